"""Catch what C code prints to file descriptor 1 while a block runs.

Theory of operation. oneDNN and MKL print with C's stdio, which Python's `redirect_stdout` does not see. So descriptor 1
is swapped for a temporary file, with C's buffers flushed before and after, and put back whatever happens. The swap is
the process's: other threads that print during the block print into the file, and a child forked during it would keep
it. So it belongs at a worker's start-up, around one tiny product; the caller hands back what was not meant for it.
"""

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Callable

_ONE_AT_A_TIME = threading.Lock()


def _flush_c() -> None:
    ctypes.CDLL(None).fflush(None)


def _flush_python() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def captured(action: Callable[[], object]) -> str:
    """Run `action` and return what went to descriptor 1 meanwhile, as text (undecodable bytes replaced).

    Works with descriptor 1 closed, and leaves it as it was. Raises what `action` raises, and OSError when there is no
    room for a temporary file.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as file:
        _flush_python()
        _flush_c()
        try:
            saved = os.dup(1)
        except OSError:
            saved = -1  # a daemon may have closed it
        try:
            os.dup2(file.fileno(), 1)
            action()
        finally:
            _flush_python()
            _flush_c()
            if saved >= 0:
                os.dup2(saved, 1)
                os.close(saved)
            else:
                os.close(1)
        file.seek(0)
        return file.read().decode(errors="replace")
