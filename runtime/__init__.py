"""The processes: operating-system facts become events, and effects become system calls."""

if __name__ != "procession.runtime":  # from the repository's root it would be a second copy of every class
    raise ImportError(f"{__name__} is a folder of this repository: import procession.runtime instead")

from .config import ExecutorConfig, ShutdownPolicy
from .errors import (
    CallTimeoutError,
    ConfigError,
    ExecutorClosedError,
    ExecutorError,
    PayloadError,
    QueueClosedError,
    RankError,
    RoomError,
    StartError,
    WorkerDiedError,
    WorkerError,
)
from .executor import MultiprocExecutor
from .message_queue import MessageQueue
from .record import Recorder, SignalAt
from .worker_proc import WorkerProc

__all__ = [
    "CallTimeoutError",
    "ConfigError",
    "ExecutorClosedError",
    "ExecutorConfig",
    "ExecutorError",
    "MessageQueue",
    "MultiprocExecutor",
    "PayloadError",
    "QueueClosedError",
    "RankError",
    "Recorder",
    "RoomError",
    "ShutdownPolicy",
    "SignalAt",
    "StartError",
    "WorkerDiedError",
    "WorkerError",
    "WorkerProc",
]
