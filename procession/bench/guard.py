"""A bound on whatever a peer does: when it takes too long, its processes are killed, and so the caller is freed.

Theory of operation. A call that hangs in a library cannot be interrupted from Python, but every transport here ends a
wait whose peer is gone, or has a timeout of its own. The processes are named by pidfds, taken while they are alive: a
number that was given to somebody else is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence


def open_pidfds(pids: Sequence[int]) -> list[int]:
    """A pidfd for each process that is there."""
    found = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.append(os.pidfd_open(pid))
    return found


@contextlib.contextmanager
def signalled(pids: Sequence[int], first: signal.Signals, last: signal.Signals) -> Iterator[None]:
    """Send one signal to each process before, and another one after: to stop them for a while."""
    descriptors = open_pidfds(pids)
    try:
        _send(descriptors, first)
        yield
        _send(descriptors, last)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@contextlib.contextmanager
def guarded(pids: Sequence[int], seconds: float) -> Iterator[None]:
    """Kill the processes if what is inside takes longer than `seconds`; then it raises `TimeoutError`."""
    descriptors = open_pidfds(pids)
    fired = threading.Event()

    def kill() -> None:
        fired.set()
        _send(descriptors, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if fired.is_set():
            raise TimeoutError(f"it took more than {seconds:.0f} s, and its processes were killed") from error
        raise
    finally:
        timer.cancel()
        timer.join()
        for descriptor in descriptors:
            os.close(descriptor)


def _send(descriptors: Sequence[int], number: signal.Signals) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
