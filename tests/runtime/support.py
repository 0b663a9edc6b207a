"""What the tests of the runtime share."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
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
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
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
