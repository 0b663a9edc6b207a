"""What machine it was, and how busy: a figure without this says nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Facts by name; `load` are the load averages of 1, 5 and 15 minutes."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": list(os.getloadavg()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def closing_line(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The line under every report."""
    return (
        f"{before['processor']}, {before['cores']} cores, {before['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {before['kernel']}, Python {before['python']}; load average {before['load'][0]:.1f} at the beginning, "
        f"{after['load'][0]:.1f} at the end. Compare ratios, which were made within this run; absolute times are this "
        "machine's in this hour."
    )
