"""What the tests of the runtime share."""

from __future__ import annotations

import array
import contextlib
import fcntl
import functools
import os
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from procession.runtime import ExecutorConfig, MultiprocExecutor, ShutdownPolicy

from .workers import Echo

Method = Literal["fork", "spawn", "forkserver"]
METHODS: tuple[Method, ...] = ("fork", "spawn", "forkserver")
PRELOAD = ("procession.runtime.worker_proc",)
SHORT = ShutdownPolicy(grace=0.2, term=0.2, kill=2.0)
# A start and a call that take longer than this hang; nothing that is right comes near it, even on a loaded machine.
BOUND = 20.0


def config(worker: Any = Echo, ranks: int = 2, **options: Any) -> ExecutorConfig:
    """A configuration for tests: fork, no torch, one thread a worker, bounded in time."""
    settings: dict[str, Any] = {
        "worker_cls": worker,
        "tensor_parallel_size": ranks,
        "start_method": "fork",
        "preload": PRELOAD,
        "threads": 1,
        "start_timeout": BOUND,
    }
    return ExecutorConfig(**{**settings, **options})


def executor(worker: Any = Echo, ranks: int = 2, **options: Any) -> MultiprocExecutor:
    """An executor for tests."""
    return MultiprocExecutor(config(worker, ranks, **options))


def occupied(ready: MultiprocExecutor, method: str, rank: int | None = None) -> Any:
    """Have `method` run, on one rank or all; returns its future once it was read by every rank."""
    args = (method,) if rank is None else (rank, method)
    future = ready.collective_rpc(
        method if rank is None else "only", args=args[rank is None :], non_block=True
    )
    for number in range(ready.config.world_size):
        if rank in (None, number):
            assert eventually(functools.partial(_read, ready, number))
    return future


def _read(ready: MultiprocExecutor, rank: int) -> bool:
    """Whether the rank has taken every message off its channel (SIOCOUTQ of our end)."""
    left = array.array("i", [0])
    fcntl.ioctl(ready._kernel.ranks.broadcast.sockets[rank], termios.TIOCOUTQ, left)
    return left[0] == 0


def eventually(true: Callable[[], object], seconds: float = 5.0) -> bool:
    """Whether `true()` comes to hold within `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return bool(true())
        time.sleep(0.002)  # a poll with a deadline
    return True


def gone(pid: int) -> bool:
    """Whether there is no such process any more, or only its zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextlib.contextmanager
def within(seconds: float, what: str = "it") -> Iterator[None]:
    """Fails if the block takes longer."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took <= seconds, f"{what} took {took:.3f} s, more than {seconds} s"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Load the machine with processes that compute."""
    pids = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            parent = os.getppid()
            while os.getppid() == parent:
                sum(range(10_000))
            os._exit(0)
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
