"""The facts of a processor that decide how a worker computes, as data that can be recorded and read back.

Theory of operation. Everything that reads the machine is here; everything that decides (`choose`) takes a `CpuFacts`,
so that decisions are tested on facts of machines we do not have. Three witnesses are kept apart, because they differ:
the flags the kernel shows in /proc/cpuinfo, the state components it offers (`kernel`), and what torch says about
itself, which is asked only on request, since it costs the import of torch.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .cgroup import read_limits
from .kernel import NOT_OFFERED, offers_tiles, supported_components

FLAGS_OF_INTEREST = frozenset(
    [
        "amx_tile",
        "amx_bf16",
        "amx_int8",
        "amx_fp16",
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512_bf16",
        "avx512_fp16",
        "avx512_vnni",
        "avx_vnni",
        "avx_ne_convert",
        "avx10",
        "avx2",
        "fma",
        "f16c",
        "hypervisor",
        "asimd",
        "bf16",
        "i8mm",
        "sve",
    ]
)
_TORCH_OF_INTEREST = [
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "amx_fp16",
    "avx512_f",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "avx2",
    "fma3",
]


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """What processor, kernel and (when asked) torch say. Holds no decision."""

    architecture: str
    """As in `uname -m`."""
    kernel_release: str
    """As in `uname -r`."""
    cpu_name: str
    """For people only: a name proves no instruction set."""
    logical_cores: int
    """Online in the machine."""
    usable_cores: int
    """Logical cores in this process's affinity."""
    usable_physical_cores: int
    """Physical cores among those; equal to `usable_cores` where the kernel does not show siblings."""
    quota_cores: float | None
    """Cores' worth of time the control groups grant; None is no limit."""
    flags: tuple[str, ...]
    """Of `FLAGS_OF_INTEREST`, those in /proc/cpuinfo, sorted."""
    xcomp_mask: int | None
    """The kernel's mask of extended state components; None with `xcomp_error` saying why."""
    xcomp_error: str | None
    """"not x86-64", "kernel too old" or an errno name; None when there is a mask."""
    torch_version: str | None = None
    """None when torch was not asked."""
    torch_capabilities: Mapping[str, bool] | None = None
    """Of `torch.cpu.get_capabilities()`, what concerns arithmetic; None when torch was not asked or is too old."""

    @property
    def cores(self) -> int:
        """Cores to plan with: the affinity, or the quota rounded down where that is less; at least 1."""
        quota = self.usable_cores if self.quota_cores is None else int(self.quota_cores)
        return max(1, min(self.usable_cores, quota))

    @property
    def tiles(self) -> str:
        """The kernel's answer about AMX tiles: "offered", "not offered", or why there is no answer."""
        if self.xcomp_mask is None:
            return self.xcomp_error or NOT_OFFERED
        return "offered" if offers_tiles(self.xcomp_mask) else NOT_OFFERED

    def to_json(self) -> str:
        """The facts as a JSON object, stable in order and readable by `from_json`."""
        plain = asdict(self) | {
            "torch_capabilities": self.torch_capabilities and dict(self.torch_capabilities)
        }
        return json.dumps(plain, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "CpuFacts":
        """Read back what `to_json` wrote. Raises ValueError for anything else."""
        plain = json.loads(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(plain, dict) or set(plain) != names:
            odd = sorted(set(plain) ^ names) if isinstance(plain, dict) else type(plain).__name__
            raise ValueError(f"not the facts of a processor: missing or unknown {odd}")
        return cls(**(plain | {"flags": tuple(plain["flags"])}))


def parse_cpuinfo(text: str) -> tuple[str, tuple[str, ...]]:
    """Name and flags of interest of the first processor in the text of /proc/cpuinfo ("unknown" without a name)."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        entries.setdefault(key.strip(), value.strip())
    flags = set((entries.get("flags") or entries.get("Features") or "").split())
    name = entries.get("model name") or entries.get("CPU part") or "unknown"
    return name, tuple(sorted(flags & FLAGS_OF_INTEREST))


def _physical(cpus: set[int], root: Path) -> int:
    siblings: set[str] = set()
    for cpu in cpus:
        try:
            file = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            siblings.add(file.read_text().strip())
        except OSError:
            return len(cpus)
    return len(siblings)


def _ask_torch() -> tuple[str, dict[str, bool] | None]:
    import torch

    ask = getattr(torch.cpu, "get_capabilities", None)  # public since 2.13, and we take older ones
    if ask is None:
        return str(torch.__version__), None
    answer = ask()
    return str(torch.__version__), {name: bool(answer[name]) for name in _TORCH_OF_INTEREST if name in answer}


def read_facts(*, with_torch: bool = False, root: Path = Path("/")) -> CpuFacts:
    """Read this machine's facts; `with_torch` also asks torch (ImportError where it is missing).

    Takes about a millisecond without torch, changes nothing, and may be called anywhere. `root` is for tests.
    """
    try:
        name, flags = parse_cpuinfo((root / "proc/cpuinfo").read_text())
    except OSError:
        name, flags = "unknown", ()
    mask, error = supported_components()
    usable = os.sched_getaffinity(0)
    version, capabilities = _ask_torch() if with_torch else (None, None)
    return CpuFacts(
        architecture=platform.machine(),
        kernel_release=platform.release(),
        cpu_name=name,
        logical_cores=os.cpu_count() or len(usable),
        usable_cores=len(usable),
        usable_physical_cores=_physical(usable, root),
        quota_cores=read_limits(root).cores,
        flags=flags,
        xcomp_mask=mask,
        xcomp_error=error,
        torch_version=version,
        torch_capabilities=capabilities,
    )
