"""Processor time of processes, to the nanosecond: what every thread of each has run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

_TICK = 1e9 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: Sequence[int]) -> float:
    """Seconds of processor time that the threads of these processes have used so far; threads that ended are missed."""
    return sum(_nanoseconds(Path("/proc") / str(pid)) for pid in pids) / 1e9


def _nanoseconds(process: Path) -> float:
    total = 0.0
    with contextlib.suppress(OSError):  # a thread or the process ended while it was looked at
        for task in (process / "task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:  # a kernel without schedstat counts in ticks of 10 ms
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) * _TICK
    return total
