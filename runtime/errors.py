"""Every error a user of the executor can meet.

Each says what happened, to which rank, in which state, waiting for whom, since when, and what to do. Each waiter gets
an exception object of its own: `fresh()` makes it.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass


class ExecutorError(Exception):
    """Base of all errors of the executor."""

    def fresh(self) -> ExecutorError:
        """Another object with the same text and cause, to be raised in another thread."""
        twin = type(self).__new__(type(self))
        twin.args = self.args
        twin.__dict__.update(self.__dict__)
        twin.__cause__ = self.__cause__
        return twin


class ConfigError(ExecutorError, ValueError):
    """The configuration cannot work; nothing was started."""


class StartError(ExecutorError):
    """The executor did not start; every process it had made is gone."""


class RankError(ExecutorError):
    """A rank failed. `rank`, `phase` (what it was doing), `exit_status` (None: it did not end; negative: a signal)."""

    def __init__(self, message: str, *, rank: int, phase: str, exit_status: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank
        self.phase = phase
        self.exit_status = exit_status


class WorkerDiedError(RankError):
    """A rank's process ended though nobody asked it to."""


class WorkerError(RankError):
    """A rank's method raised. `method`, `call`, and the remote traceback as `__cause__`."""

    def __init__(self, message: str, *, rank: int, phase: str, method: str = "", call: int = 0) -> None:
        super().__init__(message, rank=rank, phase=phase)
        self.method = method
        self.call = call


class RemoteTraceback(Exception):  # noqa: N818 - it is not raised by anybody: it is a text shown as a cause
    """The traceback as the worker printed it."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class ExecutorClosedError(ExecutorError):
    """The executor was shut down before the call was answered, or before it was made."""


class CallTimeoutError(ExecutorError, TimeoutError):
    """A call's deadline passed. `call`, `method`, `waiting_for` (ranks that have not answered)."""

    def __init__(self, message: str, *, call: int, method: str, waiting_for: tuple[int, ...]) -> None:
        super().__init__(message)
        self.call = call
        self.method = method
        self.waiting_for = waiting_for


class PayloadError(ExecutorError, TypeError):
    """An object cannot be sent, or what came cannot be read."""


class RoomError(ExecutorError, MemoryError):
    """There is no room in memory for a message."""


class QueueClosedError(ExecutorError):
    """The other side of a queue is gone."""


@dataclass(frozen=True)
class RemoteFailure:
    """A failure as it travels: the exception's type, text, traceback."""

    kind: str
    text: str
    traceback: str


def how_it_ended(status: int | None) -> str:
    """An exit status in words: 'exit code 3', 'signal 9 (SIGKILL)'."""
    if status is None:
        return "an exit status that could not be read"
    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unnamed"
    return f"signal {-status} ({name})"
