"""The facts: what is read from this machine, from texts of others, and back from JSON."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from procession.runtime.amx import CpuFacts, permit, read_facts
from procession.runtime.amx.cgroup import read_limits
from procession.runtime.amx.facts import FLAGS_OF_INTEREST, parse_cpuinfo
from procession.runtime.amx.kernel import offers_tiles, supported_components

CPUINFO = """processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum 8488C
flags\t\t: fpu vme avx2 avx512f avx512_bf16 amx_bf16 amx_tile amx_int8 flush_l1d

processor\t: 1
model name\t: another
flags\t\t: fpu
"""


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, procession.runtime.amx; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_this_machines_facts_are_sound() -> None:
    facts = read_facts()
    assert facts.torch_version is None
    assert facts.torch_capabilities is None
    assert 1 <= facts.cores <= facts.usable_cores <= facts.logical_cores
    assert 1 <= facts.usable_physical_cores <= facts.usable_cores
    assert set(facts.flags) <= FLAGS_OF_INTEREST
    assert (facts.xcomp_mask is None) is (facts.xcomp_error is not None)


def test_torch_and_the_kernel_agree_about_tiles() -> None:
    facts = read_facts(with_torch=True)
    assert facts.torch_version is not None
    if facts.torch_capabilities is None:
        pytest.skip("this torch is older than 2.13 and does not tell its capabilities")
    if facts.tiles != "offered":
        assert not facts.torch_capabilities["amx_tile"]


def test_json_round_trip() -> None:
    for facts in (read_facts(), read_facts(with_torch=True), replace(read_facts(), quota_cores=1.5)):
        again = CpuFacts.from_json(facts.to_json())
        assert again == facts
        assert again.to_json() == facts.to_json()


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"architecture": "x86_64", "surprise": 1}', "not json"])
def test_json_of_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        CpuFacts.from_json(text)


def test_facts_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        read_facts().cpu_name = "faster"  # type: ignore[misc] # that it is refused is the point


def test_cpuinfo_of_the_first_processor_counts() -> None:
    name, flags = parse_cpuinfo(CPUINFO)
    assert name == "Intel(R) Xeon(R) Platinum 8488C"
    assert flags == ("amx_bf16", "amx_int8", "amx_tile", "avx2", "avx512_bf16", "avx512f")


def test_cpuinfo_of_an_arm_machine_and_of_nothing() -> None:
    assert parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd i8mm bf16\nCPU part\t: 0xd4f\n") == (
        "0xd4f",
        ("asimd", "bf16", "i8mm"),
    )
    assert parse_cpuinfo("") == ("unknown", ())


@pytest.mark.parametrize(
    ("quota", "cores"), [(None, 4), (2.0, 2), (2.9, 2), (0.5, 1), (64.0, 4)], ids=lambda value: str(value)
)
def test_cores_to_plan_with_are_bounded_by_the_quota(quota: float | None, cores: int) -> None:
    assert replace(read_facts(), usable_cores=4, quota_cores=quota).cores == cores


def test_a_mask_offers_tiles_only_with_both_bits() -> None:
    assert offers_tiles(0x602E7)
    assert not any(offers_tiles(mask) for mask in (0xE7, 0x202E7, 0x402E7, 0))


def test_the_request_and_the_offer_agree() -> None:
    mask, error = supported_components()
    answer = permit()
    assert permit() == answer, "asking twice changes nothing"
    if error is not None:
        assert answer == error
    elif mask is not None and not offers_tiles(mask):
        assert answer == "not offered"
    else:
        assert answer == "granted"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_cgroup_v2_takes_the_least_limit_up_to_the_root(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/b/memory.max": "4000000\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/a/memory.max": "max\n",
            "sys/fs/cgroup/a/pids.max": "99\n",
        },
    )
    limits = read_limits(root)
    assert (limits.cores, limits.memory_bytes, limits.processes) == (1.5, 4000000, 99)


def test_cgroup_v2_in_a_container_that_does_not_see_its_path(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"proc/self/cgroup": "0::/docker/0123abcd\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"},
    )
    assert read_limits(root).cores == 2.0


def test_cgroup_v1_and_its_way_of_saying_no_limit(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/x\n1:cpu,cpuacct:/y\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/y/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/y/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    limits = read_limits(root)
    assert (limits.cores, limits.memory_bytes, limits.processes) == (0.5, None, None)


def test_a_machine_without_proc_has_facts_all_the_same(tmp_path: Path) -> None:
    facts = read_facts(root=tmp_path)
    assert (facts.cpu_name, facts.flags, facts.quota_cores) == ("unknown", (), None)
    assert facts.usable_physical_cores == facts.usable_cores
