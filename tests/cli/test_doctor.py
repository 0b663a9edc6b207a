"""`procession doctor`: what it prints of this machine, and what it says of machines in trouble."""

import builtins
import json
import mmap
import multiprocessing
import os
import resource
import socket
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from procession import machine
from procession.cli import main
from procession.commands import doctor
from procession.exits import Exit
from procession.machine import Finding
from procession.runtime.amx.cgroup import CgroupLimits
from procession.runtime.config import ExecutorConfig

NONE = CgroupLimits(None, None, None)
SUBJECTS = [
    "python",
    "torch",
    "processor",
    "cores",
    "instruction sets",
    "AMX",
    "AMX tiles, kernel",
    "AMX tiles, permission",
    "data type",
    "matrix product",
    "memory",
    "start methods",
    "pidfd",
    "memfd",
    "shared memory",
    "open files",
    "processes",
    "SEQPACKET",
    "model package",
]


def test_the_report_is_whole_and_this_machine_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == Exit.OK
    out = capsys.readouterr().out
    for subject in SUBJECTS:
        assert subject in out
    assert "An executor can run here." in out


def test_json_has_the_same_subjects_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == Exit.OK
    report = json.loads(capsys.readouterr().out)
    assert report["sound"] is True
    assert [finding["subject"] for finding in report["findings"]] == SUBJECTS
    values = {finding["subject"]: finding["value"] for finding in report["findings"]}
    assert values["data type"] in ("float32", "bfloat16")
    assert values["start methods"] == ["fork", "forkserver", "spawn"]
    assert values["SEQPACKET"] > 4096
    assert all(finding["sentence"] for finding in report["findings"])


def test_without_torch_the_rest_is_told_and_the_exit_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def no_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch":
            raise OSError("libtorch_cpu.so: cannot open shared object file [sic]")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_torch)
    assert main(["doctor"]) == Exit.ERROR
    out = capsys.readouterr().out
    assert "[sic]" in out, "a message is printed as it is, not read as markup"
    assert "pip install torch" in out
    assert "1 to put right first." in out
    assert "model package" in out


def test_a_product_that_fails_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(dtype: str) -> None:
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(doctor, "probe", fail)
    assert main(["doctor"]) == Exit.ERROR
    assert "could not create a primitive" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "advice"),
    [("ENOSPC", "faulthandler"), ("EPERM", "seccomp"), ("kernel too old", "5.16"), ("granted", None)],
)
def test_what_the_kernel_answers_decides_the_advice(
    monkeypatch: pytest.MonkeyPatch, answer: str, advice: str | None
) -> None:
    monkeypatch.setattr(doctor, "permit", lambda: answer)
    found = next(f for f in doctor.examine() if f.subject == "AMX tiles, permission")
    assert answer in found.sentence
    assert (found.note is None) if advice is None else advice in (found.note or "")


def test_pythons_too_old_and_too_new() -> None:
    assert machine.python((3, 10)).problem is not None
    assert machine.python((3, 14)).note is not None
    for version in ((3, 11), (3, 12), (3, 13)):
        found = machine.python(version)
        assert found.problem is None
        assert found.note is None


def test_memory_is_bounded_by_the_control_group(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable:  4194304 kB\n")
    assert machine.memory(NONE, meminfo).value == 4 << 30
    found = machine.memory(CgroupLimits(None, 512 << 20, None), meminfo)
    assert found.value == 512 << 20
    assert "fewer workers" in (found.note or "")
    assert machine.memory(NONE, tmp_path / "none").value is None
    meminfo.write_text("nonsense\n")
    assert machine.memory(NONE, meminfo).value is None


def test_shared_memory_missing_small_or_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "mount a tmpfs" in (machine.shared_room(NONE, tmp_path / "none").note or "")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "chmod" in (machine.shared_room(NONE, tmp_path).note or "")
    monkeypatch.undo()
    monkeypatch.setattr(machine, "_LEAST_SHARED", 1 << 62)
    assert "--shm-size" in (machine.shared_room(NONE, tmp_path).note or "")


@pytest.mark.parametrize(
    ("holder", "name", "look"),
    [
        (os, "pidfd_open", machine.pidfd),
        (os, "memfd_create", machine.memfd),
        (mmap, "mmap", machine.memfd),
        (socket, "socketpair", machine.seqpacket),
    ],
)
def test_a_refused_system_call_is_a_problem_with_advice(
    monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, look: Any
) -> None:
    def refused(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    assert look().problem is None
    monkeypatch.setattr(holder, name, refused)
    found: Finding = look()
    assert "Operation not permitted" in found.sentence
    assert "sandbox" in (found.problem or "")


def test_limits_that_are_low_and_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda number: (64, 4096))
    assert "ulimit -n" in (machine.open_files().note or "")
    assert "raise the limit" in (machine.processes(NONE).note or "")
    monkeypatch.setattr(resource, "getrlimit", lambda number: (resource.RLIM_INFINITY,) * 2)
    assert machine.open_files().note is None
    assert machine.processes(NONE).value == -1
    assert machine.processes(CgroupLimits(None, None, 100)).value == 100


def test_the_default_start_method_is_the_executors() -> None:
    (default,) = (field.default for field in fields(ExecutorConfig) if field.name == "start_method")
    assert default == machine.DEFAULT_START_METHOD


def test_a_python_without_forkserver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert "--start-method spawn" in (machine.start_methods().problem or "")


def test_the_largest_message_is_exact() -> None:
    largest = machine.seqpacket().value
    assert isinstance(largest, int)
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sender, receiver:
        sender.setblocking(False)
        sender.send(bytes(largest))
        receiver.recv(1)
        with pytest.raises(OSError):
            sender.send(bytes(largest + 1))


def test_the_model_package_absent_and_hollow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--model tiny" in (machine.model_package("no-such-package").note or "")
    assert "lacks its weights" in machine.model_package("click").sentence


def test_sizes_for_people() -> None:
    assert [machine.size(n) for n in (0, 1023, 1024, 5 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]
