"""The ranks of one executor as the operating system knows them: processes and channels, and effects on them.

Only the supervisor makes and reaps processes. A channel's descriptor is closed when nobody can be waiting on it any
more, at the very end: closing a descriptor under somebody's poll would let its number mean another thing there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import cloudpickle

from ..protocol.core import Identity
from ..protocol.queues import QueueDo
from ..protocol.ready import ReadyDo
from ..protocol.shutdown import StopDo
from .arena import Returns
from .channel import Packet, Say, end, give_back, pair
from .config import ExecutorConfig
from .errors import ConfigError, QueueClosedError
from .message_queue import MessageQueue
from .process import PassedFd, RankProcess, disown_end, own_end
from .worker_proc import GIVEN, Launch, Work, main

EPOCH = 1  # a group that came back after a failure would be the next one


class Ranks:
    """Processes and channels, by rank."""

    def __init__(self, config: ExecutorConfig) -> None:
        """Make the channels.

        Raises `ConfigError` if the worker class or its arguments cannot be pickled, and `OSError` if there are no
        descriptors left.
        """
        self._config = config
        self._payload = _payload(config)
        size = config.world_size
        self._processes: list[RankProcess | None] = [None] * size
        self._inlets: list[socket.socket | None] = [None] * size
        self._rank_of: dict[int, int] = {}
        self.returns = [Returns() for _ in range(size)]
        self.broadcast = MessageQueue(size)
        self._theirs = list(self.broadcast.export_handle().ends)
        pairs = [pair() for _ in range(size)]
        self.controls = [mine for mine, _ in pairs]
        self._their_controls = [theirs for _, theirs in pairs]
        self._fds: list[int] = []
        try:
            self._self = self._kept(os.pidfd_open(os.getpid()))
            self._lock = self._kept(os.memfd_create("procession-lock", os.MFD_CLOEXEC))
            self._store = self._kept(os.memfd_create("procession-store", os.MFD_CLOEXEC))
        except OSError:
            self.close()
            raise
        for sock in (*self.broadcast.sockets, *self._theirs, *self.controls, *self._their_controls):
            own_end(sock.fileno())

    def _kept(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    # --- what the supervisor does -----------------------------------------------------------------------------------

    def make(self, rank: int, epoch: int) -> None:
        """Start a rank's process. Raises `OSError`."""
        config = self._config
        stage, place = divmod(rank, config.tensor_parallel_size)
        tape = None if config.recorder is None else PassedFd(config.recorder.fd(f"rank {rank}"))
        launch = Launch(
            epoch=epoch,
            rank=rank,
            title=f"Worker_PP{stage}_TP{place}",
            is_driver=place == 0,
            # A rendezvous file without a name: ranks reach this process's memory file through procfs.
            init_method=f"file:///proc/{os.getpid()}/fd/{self._store}",
            threads=config.worker_threads,
            control=self._their_controls[rank],
            broadcast=self._theirs[rank],
            executor=PassedFd(self._self),
            lock=PassedFd(self._lock),
            tape=tape,
            spin=config.spin,
            payload=self._payload,
        )
        process = RankProcess(config.start_method, launch.title, main, (launch,))
        process.start()
        self._processes[rank] = process
        for sock in (self._their_controls[rank], self._theirs[rank]):
            disown_end(sock.fileno())
            sock.close()

    def process(self, rank: int) -> RankProcess:
        """A rank's process; it was made."""
        process = self._processes[rank]
        assert process is not None
        return process

    def alive(self) -> list[int]:
        """Ranks whose process was made and not reaped."""
        return [rank for rank, process in enumerate(self._processes) if process is not None]

    def adopt_inlet(self, rank: int, fd: int) -> None:
        """READY came with the executor's end of the rank's reply queue."""
        sock = socket.socket(fileno=fd)
        own_end(fd)
        self._inlets[rank] = sock
        self._rank_of[fd] = rank

    def inlet(self, rank: int) -> socket.socket:
        """The executor's end of a rank's reply queue; it is known."""
        sock = self._inlets[rank]
        assert sock is not None
        return sock

    def has_inlet(self, rank: int) -> bool:
        """Whether the rank's reply queue is known."""
        return self._inlets[rank] is not None

    def rank_of(self, fd: int) -> int:
        """Whose reply queue a descriptor is."""
        return self._rank_of[fd]

    def give_back(self) -> None:
        """Tell every rank which blocks of its replies it may write again."""
        for rank, returns in enumerate(self.returns):
            if returns.any():
                give_back(self.inlet(rank), returns)

    # --- effects ----------------------------------------------------------------------------------------------------

    def perform(self, effect: str, rank: int) -> None:
        """Do one effect on one rank."""
        if effect is QueueDo.SEND_OPEN:
            _say(self.broadcast.sockets[rank], Say.OPEN, rank)
        elif effect is QueueDo.SEND_JOINED:
            _say(self.inlet(rank), Say.JOINED, rank)
        elif effect is StopDo.CLOSE_CONTROL:
            end(self.controls[rank])
        elif effect is StopDo.SEND_SIGTERM:
            self.process(rank).signal(signal.SIGTERM)
        elif effect is StopDo.SEND_SIGKILL:
            self.process(rank).signal(signal.SIGKILL)
        elif effect is StopDo.REAP:
            self.process(rank).reap()
            self._processes[rank] = None
        elif effect is not ReadyDo.DROP_STALE:
            raise AssertionError(f"effect {effect!r} has no meaning on the executor's side")

    def close(self) -> None:
        """Close every channel. Nobody waits on any of them any more."""
        for sock in (
            *self.broadcast.sockets,
            *self._theirs,
            *self.controls,
            *self._their_controls,
            *(sock for sock in self._inlets if sock is not None),
        ):
            if sock.fileno() >= 0:
                disown_end(sock.fileno())
                sock.close()
        self.broadcast.arena.close()
        for rank in self.alive():
            self.process(rank).forget()  # a survivor: nobody watches it any more
        for fd in self._fds:
            with contextlib.suppress(OSError):
                os.close(fd)


def _payload(config: ExecutorConfig) -> bytes:
    clash = sorted({*GIVEN} & {*config.worker_kwargs})
    if clash:
        raise ConfigError(f"worker_kwargs must not name {', '.join(clash)}: the executor gives these")
    work = Work(config.worker_cls, dict(config.worker_kwargs), config.pause, config.worker_protocol)
    try:
        return bytes(cloudpickle.dumps(work))
    except Exception as error:
        raise ConfigError(f"worker_cls and worker_kwargs cannot be pickled: {error}") from error


def _say(sock: socket.socket, word: Say, rank: int) -> None:
    with contextlib.suppress(QueueClosedError, OSError):  # the rank is gone; its pidfd tells the supervisor
        Packet(word).address(Identity(EPOCH, rank)).send(sock)
