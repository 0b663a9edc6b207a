"""What this program left behind: processes, threads, descriptors, shared memory, socket and temporary files.

Take a `snapshot` before, and ask `left_behind` after; the answer is a list of sentences, empty if nothing was left.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from .fork_server import helper_pids

# What we, Python and torch would name. Other programs of the machine make and remove files at the same time.
_OURS = ("pymp-", "listener-", "torch_", "psm_", "gloo")


@dataclass(frozen=True)
class Snapshot:
    """What there is at a point in time."""

    processes: dict[int, str]
    threads: frozenset[str]
    descriptors: frozenset[str]
    shared_memory: frozenset[str]
    files: frozenset[str]


def snapshot() -> Snapshot:
    """Look at everything now."""
    return Snapshot(
        descendants(os.getpid()),
        frozenset(f"{thread.name} ({thread.ident})" for thread in threading.enumerate()),
        frozenset(_descriptors()),
        frozenset(_names(Path("/dev/shm"), _OURS)),  # noqa: S108 - it is looked at, not written to
        frozenset(_names(Path(tempfile.gettempdir()), _OURS)),
    )


def left_behind(before: Snapshot) -> list[str]:
    """What there is now and was not before, as sentences."""
    now = snapshot()
    helpers = helper_pids()
    found = [
        f"process {pid} ({name})"
        for pid, name in now.processes.items()
        if pid not in before.processes and pid not in helpers
    ]
    found += [f"thread {name}" for name in sorted(now.threads - before.threads)]
    found += [f"descriptor {what}" for what in sorted(now.descriptors - before.descriptors)]
    found += [f"shared memory /dev/shm/{name}" for name in sorted(now.shared_memory - before.shared_memory)]
    found += [f"file {name} in {tempfile.gettempdir()}" for name in sorted(now.files - before.files)]
    return found


def _descriptors() -> list[str]:
    """Each open descriptor and what it is: "7 (socket:[1234])"."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - a Path would open one more while it looks
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            found.append(f"{name} ({os.readlink(f'/proc/self/fd/{name}')})")  # noqa: PTH115 - as above
    return found


def descendants(pid: int) -> dict[int, str]:
    """Every living process below `pid`, by number, with its name."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended between the listing and the look
                stat = (entry / "stat").read_text()
                name, _, rest = stat.partition("(")[2].rpartition(")")
                state, parent = rest.split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = (int(parent), name)
    below: dict[int, str] = {}
    todo = [pid]
    while todo:
        current = todo.pop()
        for child, (parent_pid, name) in parents.items():
            if parent_pid == current and child not in below:
                below[child] = name
                todo.append(child)
    return below


def _names(folder: Path, prefixes: tuple[str, ...]) -> list[str]:
    with contextlib.suppress(OSError):
        return [entry.name for entry in folder.iterdir() if entry.name.startswith(prefixes)]
    return []
