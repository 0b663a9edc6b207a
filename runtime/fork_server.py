"""Python's fork server, started early and made to leave nothing behind.

The server listens on a socket file, which only the program that started it removes; if that program is killed, the
file would stay. And the server notices that the program is gone only when it has imported what it preloads, and when
the last worker is gone, too. So this module is the first thing that the server preloads. There it removes the file
when the server ends, and watches the program: when that is gone, the server ends at once. Workers watch it themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import socket
import sys
import threading
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

from .process import signals_blocked
from .wait import Waiter


def warm(preload: tuple[str, ...]) -> None:
    """Start the server, which imports `preload`; returns at once. Does nothing if it runs already."""
    resource_tracker.ensure_running()  # it unblocks signals in this thread, so it must run before they are blocked
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *preload])
    # The server and all it forks begin with these blocked; each worker unblocks them when it is ready for them.
    with signals_blocked():
        forkserver.ensure_running()


def helper_pids() -> set[int]:
    """The processes that Python itself keeps beside this one: the fork server and the resource tracker."""
    server = getattr(forkserver, "_forkserver", None)
    tracker = getattr(resource_tracker, "_resource_tracker", None)
    pids = (getattr(server, "_forkserver_pid", None), getattr(tracker, "_pid", None))
    return {pid for pid in pids if pid}


def _listening_file() -> Path | None:
    """The socket file that this process listens on, if it is one of multiprocessing's."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as sock:
            name = sock.getsockname()
            listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and isinstance(name, str) and Path(name).name.startswith("listener-"):
                return Path(name)
    return None


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):  # not empty: something else of that program is in it
            path.parent.rmdir()


def _watch(program: int, path: Path, owner: int) -> None:
    """Sleeps in the kernel; a forked child has no copy of this thread."""
    waiter = Waiter()
    waiter.watch(program)
    waiter.wait()
    _remove(path, owner)
    os._exit(0)


if sys.argv[:1] == ["-c"]:
    _path = _listening_file()  # only the server itself listens; in every other process there is none
    if _path is not None:
        atexit.register(_remove, _path, os.getpid())
        _program = os.pidfd_open(os.getppid())
        threading.Thread(target=_watch, args=(_program, _path, os.getpid()), daemon=True).start()
