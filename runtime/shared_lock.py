"""A lock between processes that the kernel releases when its holder dies.

It is a file lock on an anonymous memory file: no name, so nothing is left behind, and no state that a killed holder
could leave locked, as a semaphore would be (pytorch#21554).
"""

from __future__ import annotations

import fcntl
import os
import threading
from types import TracebackType


class SharedLock:
    """A mutual exclusion between all workers of one executor, and between the threads of each; not re-entrant."""

    def __init__(self, fd: int) -> None:
        """`fd`: the memory file. It is opened anew: a file lock belongs to an open file, which a fork would share."""
        self._fd = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
        self._thread = threading.Lock()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; False if `blocking` is False and somebody has it."""
        if not self._thread.acquire(blocking):
            return False
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BlockingIOError:
            self._thread.release()
            return False
        except BaseException:
            self._thread.release()
            raise
        return True

    def release(self) -> None:
        """Give it back."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._thread.release()

    def __enter__(self) -> SharedLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
