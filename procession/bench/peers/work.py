"""What every worker does, whatever carries the calls; and the bounds of a worker's life."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import process
from typing import Any

from ..peer import Reply, Request, check_sum

LIFE = 900  # seconds


def begin() -> None:
    """First thing in each worker: an end that needs nobody, and signals as a fresh process has them.

    The fork server that procession warms forks with SIGINT and SIGTERM blocked, which its own workers undo by
    themselves; a process pool could not terminate its workers.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIFE)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def answer(rank: int, request: Request) -> Any:
    """The work of one call on one rank."""
    reply, payload, busy = request
    if busy:
        until = time.monotonic() + busy
        while time.monotonic() < until:
            pass  # busy, not asleep: that is what is asked for
    if reply == Reply.SUM:
        return check_sum(payload)
    return payload if reply == Reply.ALL or rank == 0 else None


def end(processes: list[Any]) -> None:
    """Wait for processes that were told to end; kill those that do not. They are `multiprocessing` processes."""
    until = time.monotonic() + 2.0
    for each in processes:
        assert isinstance(each, process.BaseProcess)
        each.join(max(0.0, until - time.monotonic()))
        if each.is_alive():
            each.kill()
            each.join()
        each.close()


def parent_pidfd() -> int:
    """A descriptor that is readable when the process that asked for this one is gone."""
    parent = process.parent_process()
    assert parent is not None
    assert parent.pid is not None
    return os.pidfd_open(parent.pid)
