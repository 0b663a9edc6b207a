"""The one way this runtime waits: for a message, or death, or cancel, or a deadline; never for a message alone.

Messages are sockets, deaths are pidfds, cancels are eventfds or a socket's end, and the deadline is an absolute point
on the monotonic clock. All of them are descriptors in one poll, so nothing can be waited for without the rest.
`None` is no deadline; a deadline in the past looks once and does not wait: it never turns into a negative time-out,
which poll would take for ever (vllm#41357).
"""

from __future__ import annotations

import math
import os
import select
import threading
import time

_LONGEST = (
    86_400.0  # seconds of one sleep; poll counts milliseconds in an int, and the loops around it look again
)
READ = select.POLLIN
WRITE = select.POLLOUT
_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL


def deadline_in(seconds: float | None) -> float | None:
    """The absolute deadline that lies `seconds` ahead; None stays None."""
    return None if seconds is None else time.monotonic() + seconds


def left(deadline: float | None) -> float | None:
    """Seconds to sleep until `deadline`: never negative, and a day at most; None stays None."""
    return None if deadline is None else min(_LONGEST, max(0.0, deadline - time.monotonic()))


class Waiter:
    """Descriptors to wait for."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def watch(self, descriptor: int, events: int = READ) -> None:
        """Wait for `events` on `descriptor`, too; again replaces what was watched for."""
        if self._watched.get(descriptor) != events:
            self._poll.register(descriptor, events)
            self._watched[descriptor] = events

    def forget(self, descriptor: int) -> None:
        """Wait for it no longer; fine if it was not watched."""
        if self._watched.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def wait(self, deadline: float | None = None, spin: float = 0.0) -> list[int]:
        """The descriptors that are ready; empty when the deadline has passed.

        A closed or broken descriptor is ready: whoever looks at it will see. `spin` is how long, in seconds, to look
        again and again, yielding the processor each time, before going to sleep.
        """
        poll = self._poll.poll
        if spin > 0.0:
            until = time.perf_counter() + spin
            while not (ready := poll(0)) and time.perf_counter() < until:
                os.sched_yield()
            if ready:
                return [descriptor for descriptor, _ in ready]
        while True:
            seconds = left(deadline)
            ready = poll(None if seconds is None else math.ceil(seconds * 1000))
            if ready or seconds == 0.0:
                break
        return [descriptor for descriptor, _ in ready]


class Flag:
    """An event that a poll can see, and that stays set: level, not edge, so no wake-up can be lost."""

    def __init__(self) -> None:
        # Between a look at the number and its use it may be closed and mean another file. The lock is never held for
        # longer than that, and a finaliser that comes in the midst of it may take it again.
        self._lock = threading.RLock()
        self.fd = -1
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def set(self) -> None:
        """Make the descriptor readable, now and until `clear`."""
        with self._lock:
            if self.fd >= 0:
                os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Look at what is flagged only after this: what comes later sets the flag again."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        with self._lock:
            fd, self.fd = self.fd, -1
            if fd >= 0:
                os.close(fd)
