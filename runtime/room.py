"""How much memory may still be taken, by what the kernel and the control group say."""

from __future__ import annotations

from pathlib import Path


def available_memory() -> int:
    """Bytes available to this process: MemAvailable, or less where a control group allows less."""
    room = _mem_available()
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    if limit is not None and used is not None:
        room = min(room, max(0, limit - used))
    return room


def _mem_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemAvailable; a kernel of version 3.14 or later is needed")


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
