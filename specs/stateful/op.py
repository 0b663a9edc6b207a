"""Something that may take long, in a thread of its own: it has a bound, and a hang is found instead of shared."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

POLL = 0.0005  # seconds between two looks at what has no event to wait for


class Op:
    """`work` runs in a thread; `value` or `error` is there when `done` is."""

    def __init__(self, name: str, work: Callable[[], Any]) -> None:
        self.name = name
        self.value: Any = None
        self.error: BaseException | None = None
        self._work = work
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"suite: {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what the caller would have got
            self.error = error
        self._done.set()

    @property
    def done(self) -> bool:
        """Whether it has come to its end."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it comes to its end within `seconds`; its thread is gone then."""
        if self._done.wait(seconds):
            self._thread.join()
        return self._done.is_set()


def eventually(true: Callable[[], object], seconds: float) -> bool:
    """Whether `true()` comes to hold within `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return bool(true())
        time.sleep(POLL)  # a look with a bound: what is looked at has no event
    return True
