"""One rank's process, as its owner sees it: started by any of three methods, watched and signalled by a pidfd.

Theory of operation:

1. A pidfd names one process for ever: a signal through it can never hit a process that got the same number later, and
   it becomes readable when the process ends, whoever holds copies of whatever pipe.
2. The exit status is looked at first (`status`), so that the cause is known before anything is told, and collected
   once (`reap`). Only the supervisor does either (cpython#130895).
3. The process is made with SIGINT and SIGTERM blocked and unblocks them when it is ready for them: a signal can come
   between fork and the child's first line (gunicorn#1910).
4. A new interpreter imports the program's main module before it comes to us, which may take long; if the owner is
   killed meanwhile, nobody would end it. What it reads before that import is its name: so the name arms the watch.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.context
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any, Literal

from .wait import Waiter

StartMethod = Literal["fork", "spawn", "forkserver"]

_STATUS_WAIT = 1.0  # seconds that a fork server may take to pass on a status


class PassedFd:
    """A descriptor as an argument of a process that is being started, whatever the start method."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[Callable[[Any], PassedFd], tuple[Any]]:
        return _passed, (reduction.DupFd(self.fd),)


def _passed(duplicate: Any) -> PassedFd:
    return PassedFd(duplicate.detach())


_watches = False


def watch(owner: int) -> None:
    """From here on this process ends when the process of the pidfd `owner` does, whatever it is doing."""
    global _watches
    if not _watches:
        _watches = True
        threading.Thread(target=_outlive_nobody, args=(owner,), name="watch", daemon=True).start()


def _outlive_nobody(owner: int) -> None:
    waiter = Waiter()
    waiter.watch(owner)
    waiter.wait()
    os.kill(os.getpid(), signal.SIGKILL)


class _WatchfulName(str):
    """A process's name; to unpickle it, as a new interpreter does before anything else, arms the watch."""

    __slots__ = ("owner",)
    owner: int  # a pidfd of this process, to be passed on once; -1: it was

    def __reduce__(self) -> tuple[Callable[..., str], tuple[object, ...]]:
        owner, self.owner = self.owner, -1
        return (str, (str(self),)) if owner < 0 else (_named, (str(self), PassedFd(owner)))


def _named(name: str, owner: PassedFd) -> str:
    watch(owner.fd)
    return name


class RankProcess:
    """The process of one rank, from just before it is made to after it is reaped."""

    def __init__(
        self, method: StartMethod, name: str, target: Callable[..., None], args: tuple[object, ...]
    ) -> None:
        self._name = _WatchfulName(name)
        context = multiprocessing.get_context(method)
        self._process: Any = context.Process(target=target, args=args, name=self._name)  # type: ignore[attr-defined]  # typeshed: BaseContext lacks Process
        self._method = method
        self._status: int | None = None
        self.pid = 0
        self.pidfd = -1

    def start(self) -> None:
        """Make the process. Raises `OSError` if the kernel does not want to."""
        self._name.owner = owner = os.pidfd_open(os.getpid())
        try:
            with signals_blocked():
                self._process.start()
        finally:
            os.close(owner)
        # It is ours to reap. As one of its own, multiprocessing would take its status whenever another process is
        # made, and wait for it, without a bound, when this program or a fork of it ends.
        multiprocessing.process._children.discard(self._process)  # type: ignore[attr-defined]  # there since 3.3
        self.pid = self._process.pid
        # The child is a zombie at worst until we reap it; under a fork server, which reaps by itself, it may be gone.
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except OSError:  # no descriptor left: nobody could watch it, so it must not stay
            self._process.kill()
            self._process.join()
            raise

    @property
    def gone_already(self) -> bool:
        """Whether the process ended, and was reaped by the fork server, before a pidfd could be had."""
        return self.pidfd < 0

    def status(self) -> int | None:
        """The exit status of a process that has ended (negative: a signal), without collecting it; None: unknown."""
        if self._status is None:
            if self._method == "forkserver":
                self._process.join(_STATUS_WAIT)
                self._status = self._process.exitcode
            else:
                self._status = self._peek()
        return self._status

    def _peek(self) -> int | None:
        try:
            info = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:  # somebody else in this program waited for all children
            return None
        if info is None:
            return None
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def reap(self) -> None:
        """Collect the status and close what was open. Call it once, when the process has ended."""
        self.status()
        # Not `join`: that waits for a pipe of which a grandchild may hold a copy. This one looks at the process itself.
        _ = self._process.exitcode
        self.forget()
        with contextlib.suppress(ValueError):  # ended, but multiprocessing could not learn its status
            self._process.close()

    def forget(self) -> None:
        """Watch it no longer, whether it has ended or not."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


@contextlib.contextmanager
def signals_blocked() -> Any:
    """SIGINT and SIGTERM blocked in this thread, and so in every process it makes meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- ends that a forked sibling must not keep -----------------------------------------------------------------------

_ends: set[int] = set()
_ends_lock = threading.Lock()
_owner = os.getpid()


def own_end(fd: int) -> int:
    """Note a descriptor of ours that only this process, or the child it is meant for, may hold."""
    global _owner
    with _ends_lock:
        if _owner != os.getpid():  # a forked host: what is noted here belongs to its parent
            _ends.clear()
            _owner = os.getpid()
        _ends.add(fd)
    return fd


def disown_end(fd: int) -> None:
    """The descriptor is closed, or about to be."""
    with _ends_lock:
        _ends.discard(fd)


def close_foreign_ends(keep: set[int]) -> None:
    """In a child that was forked: close every end that was inherited and is not its own (vllm#28053)."""
    global _ends_lock
    _ends_lock = threading.Lock()  # a thread that does not exist here may have held it
    for fd in _ends - keep:
        with contextlib.suppress(OSError):
            os.close(fd)
    _ends.clear()
