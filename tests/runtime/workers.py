"""Workers for the tests of the runtime: small, without torch, importable in every child by this module's name."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np


class Echo:
    """A worker that does what it is told."""

    def __init__(self, *, rank: int, shared_worker_lock: Any, **keywords: Any) -> None:
        self.rank = rank
        self.lock = shared_worker_lock
        self.keywords = keywords
        self.notes: list[Any] = []

    def init_device(self) -> None:
        """Nothing to bring up."""

    def load_model(self) -> None:
        """Nothing to load."""

    def echo(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return (self.rank, *args, *sorted(kwargs.items()))

    def pid(self) -> int:
        return os.getpid()

    def note(self, value: Any) -> int:
        self.notes.append(value)
        return len(self.notes)

    def noted(self) -> list[Any]:
        return self.notes

    def raises(self, rank: int, text: str = "boom") -> int:
        if rank == self.rank:
            raise ValueError(text)
        return self.rank

    def wait_for_pipe(self, path: str) -> int:
        """Block until somebody opens the named pipe for writing and closes it."""
        with Path(path).open("rb") as pipe:
            pipe.read()
        return self.rank

    def only(self, rank: int, method: str, *args: Any) -> Any:
        """Call `method` on one rank; the others return their number."""
        return getattr(self, method)(*args) if rank == self.rank else self.rank

    # --- ends -------------------------------------------------------------------------------------------------------

    def kill_me(self) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    def exit_me(self, code: int) -> NoReturn:
        os._exit(code)

    def sys_exit(self, code: int) -> NoReturn:
        sys.exit(code)

    def hang(self) -> NoReturn:
        """Wait in Python for what never comes."""
        threading.Event().wait()
        raise AssertionError("unreachable")

    def compute(self) -> NoReturn:
        """One native call that takes minutes, without the interpreter's lock."""
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
        raise AssertionError("unreachable")

    def stop_me(self) -> int:
        os.kill(os.getpid(), signal.SIGSTOP)
        return self.rank

    def ignore_sigterm(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    # --- payloads ---------------------------------------------------------------------------------------------------

    def array(self, size: int) -> Any:
        return np.full(size, self.rank + 1, dtype=np.uint8)

    def total(self, array: Any) -> tuple[int, int]:
        return int(array.nbytes), int(array.sum(dtype=np.uint64))

    def unpicklable(self) -> Any:
        return threading.Lock()

    def half_picklable(self) -> Any:
        """It pickles, and does not unpickle."""
        return Poison()

    def raises_half_picklable(self) -> NoReturn:
        raise TwoArgumentsError("one", "two")

    def raises_dumb(self) -> NoReturn:
        raise DumbError

    def raises_at_length(self, characters: int) -> NoReturn:
        raise ValueError("€" * characters)

    def recurse(self) -> Any:
        return self.recurse()

    def nested(self, depth: int) -> Any:
        found: list[Any] = []
        for _ in range(depth):
            found = [found]
        return found


class TwoArgumentsError(Exception):
    """Pickles by one argument, and cannot be made from it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


class DumbError(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def _explode(what: type[BaseException]) -> NoReturn:
    raise what("cannot be read")


class Poison:
    """An object whose unpickling raises `what`."""

    def __init__(self, what: type[BaseException] = ValueError) -> None:
        self.what = what

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _explode, (self.what,)


# --- workers with a flaw in their start or their end ----------------------------------------------------------------


class Flawed(Echo):
    """At `phase` of rank `flawed`, does `deed`."""

    def __init__(self, *, phase: str, deed: str, flawed: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.phase, self.deed, self.flawed = phase, deed, flawed
        self._reached("constructor")

    def _reached(self, phase: str) -> None:
        if phase != self.phase or self.rank != self.flawed:
            return
        match self.deed:
            case "raise":
                raise RuntimeError(f"no {phase} today")
            case "sys.exit":
                sys.exit(7)
            case "os._exit":
                os._exit(7)
            case "kill":
                self.kill_me()
            case "hang":
                self.hang()
            case "stop":
                self.stop_me()
            case _:
                raise AssertionError(self.deed)

    def init_device(self) -> None:
        self._reached("init_device")

    def load_model(self) -> None:
        self._reached("load_model")

    def shutdown(self) -> None:
        self._reached("shutdown")


class NoWorker:
    """Has nothing that a worker must have."""


class HalfWorker:
    """Has no load_model."""

    def init_device(self) -> None:
        """Nothing."""


not_a_class = 3
