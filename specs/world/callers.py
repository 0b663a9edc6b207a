"""The threads that make calls and wait for them.

Theory of operation:

1. A thread submits its calls, at most `ahead` of them before it waits, and then waits for the oldest. Each wait is a
   machine of its own: it begins LOOKING and ends ANSWERED or GAVE_UP.
2. What a waiting thread may do depends on three facts only: whether its call is settled, whether another thread drains,
   and whether it was woken since it parked. `open_to` is that rule; the trace validator asks it, too.
3. A drainer that leaves wakes every parked thread, by its table's effect; each then looks again, in its own time.
"""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.core import State
from ...protocol.futures import Caller, CallerOn


class Thread(NamedTuple):
    """One thread: where its wait stands (None: it does not wait now), and the calls it has out and has left."""

    caller: State | None = None
    woken: bool = False
    out: tuple[int, ...] = ()
    """Calls submitted and not yet waited for, oldest first; the first is waited for."""
    left: int = 0


class Threads(NamedTuple):
    """All threads, and the number that the next call will get."""

    threads: tuple[Thread, ...] = ()
    next_call: int = 1

    @property
    def drainer(self) -> int | None:
        """The thread that drains, if one does."""
        for number, thread in enumerate(self.threads):
            if thread.caller is Caller.DRAINING:
                return number
        return None


def open_to(caller: State, *, settled: bool, drained: bool, woken: bool) -> list[CallerOn]:
    """The events that may happen to a waiting thread by itself; deadline and interruption may come at any time.

    `settled`: its call is no longer open. `drained`: another thread drains. `woken`: a drainer left since it parked.
    """
    if settled:
        # A thread that was woken may find out which of the two it was only when it looks again.
        return [CallerOn.SETTLED, *([CallerOn.LOOK] if caller is Caller.PARKED and woken else [])]
    if caller is Caller.LOOKING:
        return [CallerOn.PARK if drained else CallerOn.DRAIN]
    if caller is Caller.PARKED and woken:
        return [CallerOn.LOOK]
    return []


def wake_parked(threads: Threads) -> Threads:
    """Every parked thread has been woken."""
    return threads._replace(
        threads=tuple(
            thread._replace(woken=True) if thread.caller is Caller.PARKED else thread
            for thread in threads.threads
        )
    )


def waits(threads: Threads) -> bool:
    """Whether some thread has a call out that it has not come back from."""
    return any(thread.out for thread in threads.threads)
