"""What the control groups leave to this process: processor time and memory.

Theory of operation. A container shows all cores of its host and grants a fraction. The limit of a group holds for all
below it, so the answer is the least limit on the way from our group to the root. Inside a container the path that
/proc/self/cgroup names may not exist under its own /sys/fs/cgroup: folders that are missing are passed over, and the
walk ends at the root, where a container finds its own limit. Versions 1 and 2 are both read, since hosts mix them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED_V1 = 1 << 60  # version 1 writes "no limit" as a huge page-aligned number


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """Limits that hold for this process; None where there is none."""

    cores: float | None
    """Cores' worth of processor time, such as 1.5."""
    memory_bytes: int | None
    """Memory in bytes, anonymous, memfd and /dev/shm together."""
    processes: int | None
    """Processes and threads together."""


def _groups(root: Path) -> dict[str, str]:
    """Controller → path of our group; the empty controller is version 2."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _texts(root: Path, controller: str, file: str) -> Iterator[str]:
    """Contents of `file` in our group of `controller` ("" is version 2) and in each group above it."""
    path = _groups(root).get(controller)
    if path is None:
        return
    base = root / "sys/fs/cgroup" / controller
    group = Path(path.lstrip("/"))
    for folder in (group, *group.parents):
        try:
            yield (base / folder / file).read_text().strip()
        except OSError:
            continue


def _least_number(root: Path, controller: str, file: str) -> int | None:
    numbers = [int(text) for text in _texts(root, controller, file) if text.isdigit()]
    return min((n for n in numbers if n < _UNLIMITED_V1), default=None)


def _cores(root: Path) -> float | None:
    shares: list[float] = []
    for text in _texts(root, "", "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit():
            shares.append(int(quota) / int(period))
    quotas = list(_texts(root, "cpu", "cpu.cfs_quota_us"))
    periods = list(_texts(root, "cpu", "cpu.cfs_period_us"))
    for quota, period in zip(quotas, periods, strict=False):
        if quota.isdigit() and period.isdigit():  # -1 is no limit
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def _least(*values: int | None) -> int | None:
    return min((v for v in values if v is not None), default=None)


def read_limits(root: Path = Path("/")) -> CgroupLimits:
    """Read the limits under `root` (for tests; normally /). What cannot be read is no limit; raises nothing."""
    return CgroupLimits(
        cores=_cores(root),
        memory_bytes=_least(
            _least_number(root, "", "memory.max"), _least_number(root, "memory", "memory.limit_in_bytes")
        ),
        processes=_least(_least_number(root, "", "pids.max"), _least_number(root, "pids", "pids.max")),
    )
