"""What is done at every step of a machine: write it down, and let a test hold, stop or kill the process there.

Theory of operation:

1. By default there is no recorder and a step costs one comparison with None.
2. Each process writes its steps, one JSON line each, into an anonymous memory file that the executor made for it. A
   line is written before the step's effects are done, so a message is always written down before it can be received:
   sorted by time, the lines of all processes are an order in which everything could have happened one after another.
   A killed process loses nothing, and nothing is left behind if all are killed.
3. When the executor is down the lines are merged. `procession validate` holds them to the model.
4. A pause point is the same place: `Pause` decides, by the step, what happens to the process that takes it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..protocol.core import Step

FORMAT = 1


class Pause(Protocol):
    """Called at every step, in the process that takes it, before the step's effects. Must be picklable."""

    def __call__(self, process: str, call: int, step: Step) -> None:
        """May return, block, stop or kill the process."""


@dataclass(frozen=True)
class SignalAt:
    """A pause that sends `number` to its own process when `process` takes `event` on `machine`."""

    process: str
    machine: str
    event: str
    number: signal.Signals = signal.SIGKILL

    def __call__(self, process: str, call: int, step: Step) -> None:  # noqa: ARG002 - a pause gets the call
        """Compare, and signal."""
        if (process, f"{step.cluster}.{step.machine}", step.event.value) == (
            self.process,
            self.machine,
            self.event,
        ):
            os.kill(os.getpid(), self.number)


class Tape:
    """The lines of one process."""

    def __init__(self, process: str, fd: int) -> None:
        self.process = process
        self.fd = fd
        self._next = 0

    def write(self, call: int, step: Step, exit_status: int | None = None) -> None:
        """Write one line."""
        line: dict[str, object] = {
            "p": self.process,
            "n": self._next,
            "t": time.monotonic_ns(),
            "m": f"{step.cluster}.{step.machine}",
            "r": None if step.slot < 0 else step.slot,
            "c": call,
            "e": step.event.value,
            "from": step.source.name,
            "to": step.dest.name,
        }
        if exit_status is not None:
            line["x"] = exit_status
        self._next += 1
        os.write(self.fd, json.dumps(line).encode() + b"\n")


class Recorder:
    """Keeps the lines of an executor and its ranks. One recorder serves one executor."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._header: dict[str, object] = {}
        self._kept: list[str] | None = None
        self._lock = threading.Lock()  # a reader must not find a file closed under its hands

    def begin(self, ranks: int, epoch: int) -> None:
        """Make a memory file for each process. Called by the executor."""
        if self._files or self._kept is not None:
            raise ValueError("this recorder has recorded an executor already; make one for each")
        self._header = {"trace": FORMAT, "ranks": ranks, "epoch": epoch}
        for process in ("executor", *(f"rank {rank}" for rank in range(ranks))):
            self._files[process] = os.memfd_create(f"procession-trace {process}", os.MFD_CLOEXEC)

    def fd(self, process: str) -> int:
        """The memory file of a process."""
        return self._files[process]

    def finish(self) -> None:
        """Take the lines out of the memory files and close them. Called by the executor when it is down."""
        with self._lock:
            if self._kept is None and self._files:
                self._kept = self._collect()
                for fd in self._files.values():
                    os.close(fd)
                self._files.clear()

    def lines(self) -> list[str]:
        """The header and every line so far, in order of time."""
        with self._lock:
            return self._kept if self._kept is not None else self._collect()

    def save(self, path: str | Path) -> Path:
        """Write the trace to a file."""
        target = Path(path)
        target.write_text("\n".join(self.lines()) + "\n")
        return target

    def _collect(self) -> list[str]:
        stamped: list[tuple[int, int, int, str]] = []
        for order, fd in enumerate(self._files.values()):
            size = os.fstat(fd).st_size
            # A process that was killed may have been in the middle of its last line.
            whole, _, _ = os.pread(fd, size, 0).rpartition(b"\n")
            for line in whole.decode().splitlines():
                entry = json.loads(line)
                stamped.append((entry["t"], order, entry["n"], line))
        return [json.dumps(self._header), *(line for *_, line in sorted(stamped))]


class Hook:
    """What happens at each step of one process: it is written down, and a pause may act."""

    def __init__(self, process: str, tape: Tape | None, pause: Pause | None) -> None:
        self._process = process
        self._tape = tape
        self._pause = pause

    def __call__(self, call: int, step: Step, exit_status: int | None = None) -> None:
        """Write first: a pause may not come back."""
        if self._tape is not None:
            self._tape.write(call, step, exit_status)
        if self._pause is not None:
            self._pause(self._process, call, step)


def hook(process: str, fd: int | None, pause: Pause | None) -> Hook | None:
    """The hook of a process whose memory file is `fd`; None if there is nothing to do at a step."""
    if fd is None and pause is None:
        return None
    return Hook(process, None if fd is None else Tape(process, fd), pause)
