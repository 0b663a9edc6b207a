"""Holding a rank before the effects of one of its steps, and letting it go: a pause for `ExecutorConfig`.

Theory of operation. The pause is called at every step of every process. In a rank it looks for a file that names a
point; at that point it takes the file away, writes its process number into one named pipe, and reads a byte from
another. So no clock is involved: the driver knows that the rank is there when it reads the number, and the rank goes on
when the driver writes. In the executor's process it counts the calls that were submitted.
"""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Any

from ..protocol.core import Step


class Holds:
    """The pause of one executor; `folder` is where its files and pipes are."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.sent = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Holds, (self.folder,)

    def __call__(self, process: str, call: int, step: Step) -> None:
        """At one step: count, or be held."""
        if process == "executor":
            self.sent += step.event.value == "submit"
            return
        rank = process.removeprefix("rank ")
        armed = f"{self.folder}/{rank}.armed"
        if os.access(armed, os.F_OK):
            machine, event, wanted = Path(armed).read_text().split()
            here = (f"{step.cluster}.{step.machine}", step.event.value)
            if here == (machine, event) and int(wanted) in (0, call):
                Path(armed).unlink()
                _wait_here(self.folder, rank)


def _wait_here(folder: str, rank: str) -> None:
    with Path(folder, f"{rank}.held").open("wb", buffering=0) as held:
        held.write(os.getpid().to_bytes(8, "little"))
    with Path(folder, f"{rank}.go").open("rb", buffering=0) as go:
        go.read(1)


class Holder:
    """The driver's side, for one executor."""

    def __init__(self, folder: str, ranks: int) -> None:
        self._folder = folder
        self._held = [_pipe(Path(folder, f"{rank}.held")) for rank in range(ranks)]
        self._go = [_pipe(Path(folder, f"{rank}.go")) for rank in range(ranks)]

    def arm(self, rank: int, point: str, call: int) -> None:
        """Hold the rank at `point` ("machine event") of `call` (0: of any)."""
        made = Path(self._folder, f"{rank}.new")
        made.write_text(f"{point} {call}")
        made.rename(Path(self._folder, f"{rank}.armed"))  # all of it, or nothing

    def held(self, rank: int, seconds: float) -> int:
        """The process number of the rank when it is there; 0 if it does not come within `seconds`."""
        poll = select.poll()
        poll.register(self._held[rank], select.POLLIN)
        if not poll.poll(seconds * 1000):
            return 0
        return int.from_bytes(os.read(self._held[rank], 8), "little")

    def release(self, rank: int) -> None:
        """Let it go on."""
        os.write(self._go[rank], b"x")

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (*self._held, *self._go):
            os.close(pipe)
        self._held, self._go = [], []


def _pipe(path: Path) -> int:
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
