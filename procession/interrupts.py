"""A Ctrl-C on the command line: said at once, and never lost.

Theory of operation. Libraries import parts of themselves under an `except` that catches everything, and a Ctrl-C that
falls there is gone (numpy and torch do it): the command would go on as if nobody had pressed anything. So the handler
of the command line's own process remembers it, and long work asks with `heed` before it begins. What was started takes
a moment to end; the message does not wait for that.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SAID = "Interrupted. Whatever was started is being ended."
_came = False


@contextmanager
def heard() -> Iterator[None]:
    """Python's own handler is replaced, if it is in place; nobody else's is."""
    global _came  # a process has one SIGINT, and `heed` is called from anywhere
    _came = False
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    owner = os.getpid()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        global _came
        if not _came and os.getpid() == owner:
            os.write(2, f"\n{SAID}\n".encode())
        _came = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def heed() -> None:
    """Raise KeyboardInterrupt if there was one that somebody swallowed."""
    if _came:
        raise KeyboardInterrupt
