"""Run rumur and spin: text in, findings out; everything in a temporary folder and within a time limit.

Theory of operation. Both tools write a C program that searches. So there are three stages, each with its own message
when it fails. A tool that is missing, that runs out of time, or that says anything unexpected has *not established*
anything: `Silent` says why, and no caller can take it for a verdict. A tool that is stopped is stopped with its
children. Nothing is left in the folder.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

RUMUR = ("rumur", "gcc")
SPIN = ("spin", "gcc")
_SMALL = 4_000  # states below which a search takes less time than optimising it
_DEPTH = 4_000_000  # steps that spin may go into the depth
_MEMORY = 6_000  # MiB that spin may use


class Silent(Exception):  # noqa: N818 - no error of the program: an engine has nothing to say, and says why
    """An engine established nothing; the message says why."""


@dataclass(frozen=True)
class Counted:
    """What rumur found: all states, rules fired, how often each cover was met, and whether some state is stuck."""

    states: int
    rules: int
    covers: dict[str, int]
    deadlock: bool


class Deadline:
    """One absolute time for all the tools of one check."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, at least a moment."""
        return max(self.end - monotonic(), 0.01)


def missing(tools: Sequence[str]) -> list[str]:
    """Which of the tools are not installed."""
    return [tool for tool in tools if shutil.which(tool) is None]


def rumur(text: str, states: int, deadline: Deadline, *, count: bool = True) -> Counted:
    """Search a Murphi model; `states` is about how many there are.

    With a deadlock rumur counts nothing more, so then, to `count`, it is run a second time without looking for any.

    Raises Silent.
    """
    _require(RUMUR)
    counted = _searched(text, "stuttering", states, deadline)
    if counted.deadlock and count:
        counted = replace(_searched(text, "off", states, deadline), deadlock=True)
    return counted


def _searched(text: str, stuck: str, states: int, deadline: Deadline) -> Counted:
    with tempfile.TemporaryDirectory(prefix="procession-rumur-") as folder:
        Path(folder, "model.m").write_text(text)
        options = ("--output-format", "machine-readable", "--symmetry-reduction", "off", "--threads", "2")
        looks = ("--deadlock-detection", stuck, "--counterexample-trace", "off")
        out = _run(["rumur", *options, *looks, "--output", "model.c", "model.m"], folder, deadline, {0})
        if out.strip():
            raise Silent(f"rumur says {_short(out)}")
        _compile("model.c", "model", folder, deadline, [_optimised(states), *_WIDE, "-lpthread"])
        return _counted(_run(["./model"], folder, deadline, {0, 1}))


def _counted(out: str) -> Counted:
    try:
        root = ElementTree.fromstring(out)  # noqa: S314 - what a program that we compiled wrote
    except ElementTree.ParseError as error:
        raise Silent(f"rumur's answer does not parse: {error}") from None
    summary = root.find("summary")
    if summary is None:
        raise Silent(f"rumur gave no summary: {_short(out)}")
    covers = {one.attrib["message"]: int(one.attrib["count"]) for one in root.iter("cover_result")}
    messages = {one.findtext("message", "") for one in root.iter("error")}
    others = messages - {"deadlock"}
    if others:
        raise Silent(f"rumur found an error that is none of the model's: {_short(min(others))}")
    return Counted(
        int(summary.attrib["states"]), int(summary.attrib["rules_fired"]), covers, "deadlock" in messages
    )


def spin(
    text: str, formulas: Sequence[str], processes: int, deadline: Deadline, states: int
) -> dict[str, bool]:
    """Check formulas of a Promela model, one after the other, under weak fairness: which of them hold.

    Raises Silent.
    """
    _require(SPIN)
    with tempfile.TemporaryDirectory(prefix="procession-spin-") as folder:
        Path(folder, "model.pml").write_text(text)
        out = _run(["spin", "-a", "model.pml"], folder, deadline, {0})
        if not Path(folder, "pan.c").exists():
            raise Silent(f"spin says {_short(out)}")
        fair = f"-DNFAIR={processes // 4 + 2}"
        options = [fair, "-DNOREDUCE", "-DVECTORSZ=8192", f"-DMEMLIM={_MEMORY}", "-w"]
        _compile("pan.c", "pan", folder, deadline, [_optimised(states * processes), *options])
        return {name: _holds(name, folder, deadline) for name in formulas}


def _holds(name: str, folder: str, deadline: Deadline) -> bool:
    out = _run(["./pan", "-a", "-f", "-N", name, f"-m{_DEPTH}"], folder, deadline, {0, 1})
    errors = re.search(r"errors: (\d+)", out)
    claim = re.search(r"never claim\s+\+ \((\w+)\)", out)
    if errors is None or claim is None or claim[1] != name or "fairness enabled" not in out:
        raise Silent(f"pan says {_short(out)}")
    if int(errors[1]):
        if "acceptance cycle" not in out:
            raise Silent(f"pan found something else than a cycle: {_short(out)}")
        return False
    if "max search depth too small" in out or "Search not completed" in out:
        raise Silent(f"pan did not see everything: {_short(out)}")
    return True


def _optimised(states: int) -> str:
    return "-O0" if states < _SMALL else "-O1" if states < 50 * _SMALL else "-O2"


_WIDE = ("-mcx16",) if platform.machine() == "x86_64" else ("-latomic",)


def _require(tools: Sequence[str]) -> None:
    lacking = missing(tools)
    if lacking:
        raise Silent(f"{' and '.join(lacking)} not installed (apt-get install {' '.join(lacking)})")


def _compile(source: str, program: str, folder: str, deadline: Deadline, options: Sequence[str]) -> None:
    _run(["gcc", "-w", "-o", program, source, *options], folder, deadline, {0})
    if not Path(folder, program).exists():
        raise Silent(f"gcc made nothing of {source}")


def _run(command: list[str], folder: str, deadline: Deadline, good: set[int]) -> str:
    """What the command wrote. Its children end with it, also when the time is over or somebody interrupts."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            out, _ = process.communicate(timeout=deadline.left)
        except subprocess.TimeoutExpired:
            raise Silent(f"{command[0]} ran out of time ({deadline.seconds:g} s)") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):  # it has ended meanwhile
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in good:
        raise Silent(f"{command[0]} ended with {process.returncode}: {_short(out)}")
    return out


def _short(out: str) -> str:
    text = " ".join(out.split())
    return text if len(text) <= 300 else f"{text[:150]} … {text[-150:]}"
