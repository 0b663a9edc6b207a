"""What a thread may wait for, or hold, when a Ctrl-C can come at any moment.

Theory of operation:

1. Python runs a signal's handler between two instructions of the main thread: at the beginning of a Python function,
   and after a call. The library's `Condition` takes its lock inside a Python function of its own, so a Ctrl-C that
   comes between the taking and the `with` leaves it taken for good, and whoever sets an `Event` then, hangs.
2. A `Latch` is waited for on a lock that is the waiter's alone: nothing is held that another thread could need.
3. A `Condition` hands `with` its lock's own methods, which are no Python functions; no moment is between.
4. A `Thread` tells who starts it by a latch that it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Latch:
    """An event that is set once and for all."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[threading.Lock] = []

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self) -> None:
        """Wake every waiter, and whoever waits later. Any number of times, from any thread."""
        self._set = True
        while self._waiting:
            try:
                mine = self._waiting.pop()
            except IndexError:  # another thread that sets it, too, was faster
                return
            mine.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set, or for `timeout` seconds; whether it is."""
        mine = threading.Lock()
        mine.acquire()
        self._waiting.append(mine)  # then the look: who sets it after the look wakes this waiter
        if not self._set:
            mine.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        return self._set

    def _at_fork_reinit(self) -> None:
        """The library calls it, by this name, in the child of a fork: whoever waited is not here."""
        self._waiting.clear()


class Condition(threading.Condition):
    """A condition that no interruption leaves held: `with` looks both methods up before it takes the lock."""

    _lock: Any  # typeshed does not show it

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__  # type: ignore[no-any-return]  # the lock's own, in C

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__  # type: ignore[no-any-return]  # the same


class Thread(threading.Thread):
    """A daemon thread whose start may be interrupted; it runs all the same."""

    def __init__(self, target: Callable[..., object], name: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)
        self._started = Latch()
