"""The program that has the executor is killed or interrupted at any point: nobody is left, nobody talks about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from procession.runtime import Recorder
from tests.runtime import host as program
from tests.runtime.support import METHODS, Method, eventually, executor, within

ROOT = Path(__file__).parents[2]


class Session:
    """All that is in the session of one process: it, and everything that came from it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def members(self) -> list[int]:
        """Those that live."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                except OSError:  # it ended between the listing and the look
                    continue
                if int(session) == self.pid and state not in "ZX":
                    found.append(int(entry.name))
        return found

    def all_gone(self, seconds: float = 1.0) -> bool:
        """Whether everybody is gone within `seconds`."""
        return eventually(lambda: not self.members(), seconds)

    def left(self) -> list[str]:
        """Those that live, by their command lines."""
        return [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in self.members()]


class Host(Session):
    """`tests.runtime.host` in a session of its own, with a temporary folder of its own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.method = options["method"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.host", json.dumps(options)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        super().__init__(self.process.pid)

    def wait_for(self, word: str) -> None:
        """Read on until the program says `word`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return
        raise AssertionError(f"never said {word!r}: {self.process.communicate()[1]}")

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal does it: to everybody in the group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float = 10.0) -> tuple[int, str]:
        """Its exit status and what the whole group wrote to stderr."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            masks = "".join(t.read_text() for t in Path(f"/proc/{self.process.pid}/task").glob("*/status"))
            masks = "\n".join(line for line in masks.splitlines() if line[:3] in ("Sig", "Shd", "Pid"))
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.3)  # for the stacks to be written
            self.process.kill()
            raise AssertionError(
                f"it hangs: {self.left()}\n{self.process.communicate()[1]}\n{masks}"
            ) from None
        # New interpreters need a moment until the first line of ours runs; see `process.watch`.
        assert self.all_gone(1.0 if self.method == "fork" else 2.0), self.left()
        _, errors = self.process.communicate(timeout=5)
        return self.process.returncode, errors


def forked_host(folder: Path, options: dict[str, Any]) -> tuple[int, str, list[str]]:
    """The same program in a fork of this one, which has imported everything: its status, its errors, who is left."""
    words = folder.with_suffix(".words")
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            fd = os.open(words, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(fd, 2)
            os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            program.main(options)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    session = Session(pid)
    ended = eventually(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), 20)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    left = [] if session.all_gone() else session.left()
    left += [str(path) for path in folder.iterdir()]
    for member in session.members():
        os.kill(member, signal.SIGKILL)
    return status, words.read_text(), left


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Makes hosts; in the end nobody is left, and no file of theirs."""
    made: list[Host] = []
    memory = {path.name for path in Path("/dev/shm").glob("psm_*")}

    def make(**options: Any) -> Host:
        made.append(Host(tmp_path_factory.mktemp("h"), **options))
        return made[-1]

    yield make
    left = []
    for host in made:
        left += host.left()
        for pid in host.members():
            os.kill(pid, signal.SIGKILL)
        host.process.kill()
        host.process.communicate()
        left += [str(path) for path in host.folder.iterdir()]
    assert left == []
    assert {path.name for path in Path("/dev/shm").glob("psm_*")} - memory == set()


# What the executor steps in a run without a fault. `test_the_points_are_those_of_a_real_run` holds it to one.
START = (
    ("stop.rank_stop", "spawned"),
    ("start.rank_start", "spawned"),
    ("start.rank_start", "hello"),
    ("start.rank_start", "weights"),
    ("start.rank_start", "queues"),
    ("start.rank_start", "ready"),
    ("start.start", "all_ready"),
    ("life.life", "ranks_ready"),
    ("replies.reader", "handle"),
    ("replies.reader", "opened"),
    ("replies.gate", "all_in"),
    ("broadcast.seat", "joined"),
    ("broadcast.gate", "all_in"),
    ("broadcast.seat", "open"),
    ("life.life", "queues_open"),
)
CALLS = (
    ("life.life", "submit"),
    ("caller.caller", "drain"),
    ("caller.caller", "settled"),
    ("call.reply", "returned"),
    ("call.call", "all_replied"),
)
STOP = (
    ("life.life", "stop"),
    ("stop.stop", "stop"),
    ("stop.rank_stop", "ask"),
    ("broadcast.gate", "close"),
    ("broadcast.seat", "close"),
    ("replies.gate", "close"),
    ("replies.reader", "close"),
    ("stop.rank_stop", "died"),
    ("start.rank_start", "died"),
    ("broadcast.seat", "died"),
    ("replies.reader", "died"),
    ("stop.stop", "all_gone"),
    ("life.life", "end"),
)


def test_the_points_are_those_of_a_real_run() -> None:
    recorder = Recorder()
    ready = executor(recorder=recorder)
    for n in range(2):
        ready.collective_rpc("echo", args=(n,))
    ready.shutdown()
    steps = [json.loads(line) for line in recorder.lines()[1:]]
    assert {(s["m"], s["e"]) for s in steps if s["p"] == "executor"} == {*START, *CALLS, *STOP}


@pytest.mark.parametrize("point", [*START, *CALLS, *STOP], ids="-".join)
def test_killed_at_a_step(point: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "h"
    folder.mkdir()
    code, errors, left = forked_host(folder, {"method": "fork", "point": point, "signal": signal.SIGKILL})
    assert (code, errors, left) == (-signal.SIGKILL, "", [])


def test_nobody_is_killed_without_a_reason(tmp_path: Path) -> None:
    """The same run, with a point that it never takes, comes to its end."""
    folder = tmp_path / "h"
    folder.mkdir()
    point = ("call.call", "rank_raised")
    assert forked_host(folder, {"method": "fork", "point": point, "signal": signal.SIGKILL}) == (0, "", [])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("point", [START[1], START[9], CALLS[2], STOP[2]], ids="-".join)
def test_killed_at_a_step_with_helper_processes(hosts: Any, method: Method, point: tuple[str, str]) -> None:
    host = hosts(method=method, point=point, signal=signal.SIGKILL)
    code, errors = host.end(20)
    assert code == -signal.SIGKILL, errors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("work", [None, "hang", "compute"])
def test_killed_while_the_workers(hosts: Any, method: Method, work: str | None) -> None:
    host = hosts(method=method, **({"work": work} if work else {"idle": True}))
    host.wait_for("busy" if work else "idle")
    assert len(host.members()) >= 3
    host.process.kill()
    code, errors = host.end()
    assert (code, errors) == (-signal.SIGKILL, "")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("phase", ["constructor", "load_model"])
def test_killed_while_a_worker_starts(hosts: Any, method: Method, phase: str) -> None:
    host = hosts(method=method, phase=phase)
    host.wait_for("weights 1" if phase == "load_model" else "device 1")
    host.process.kill()
    code, errors = host.end()
    assert (code, errors) == (-signal.SIGKILL, "")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_killed_while_a_worker_imports_the_program(
    hosts: Any, method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not come to our own code, and is to end all the same."""
    monkeypatch.setenv("PROCESSION_TEST_SLOW_MAIN", "1")
    host = hosts(method=method)
    host.wait_for("spawned 1")
    assert eventually(lambda: len(host.members()) >= 4, 10)
    host.process.kill()
    code, _ = host.end()
    assert code == -signal.SIGKILL


@pytest.mark.parametrize("method", METHODS)
def test_terminated(hosts: Any, method: Method) -> None:
    """SIGTERM with its default action is as hard an end as SIGKILL."""
    host = hosts(method=method, work="hang")
    host.wait_for("busy")
    host.process.terminate()
    code, errors = host.end()
    assert (code, errors) == (-signal.SIGTERM, "")


@pytest.mark.parametrize("method", METHODS)
def test_the_whole_session_is_terminated(hosts: Any, method: Method) -> None:
    """As a service manager does it."""
    host = hosts(method=method, work="compute")
    host.wait_for("busy")
    os.killpg(host.process.pid, signal.SIGTERM)
    code, _ = host.end()
    assert code == -signal.SIGTERM


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def _ended_by_ctrl_c(host: Host, seconds: float = 10.0) -> None:
    code, errors = host.end(seconds)
    assert code == -signal.SIGINT, errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    chained = errors.count("During handling of the above exception")
    assert errors.count("Traceback (most recent call last)") == 1 + chained, errors
    assert "Process " not in errors, errors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("phase", ["constructor", "load_model"])
def test_ctrl_c_while_a_worker_starts(hosts: Any, method: Method, phase: str) -> None:
    host = hosts(method=method, phase=phase)
    host.wait_for("weights 1" if phase == "load_model" else "device 1")
    host.interrupt()
    _ended_by_ctrl_c(host)


@pytest.mark.parametrize(
    ("method", "delay"),
    [("fork", 0.0), *((method, delay) for method in METHODS[1:] for delay in (0.0, 0.05, 0.15, 0.3))],
)
def test_ctrl_c_while_processes_are_being_made(hosts: Any, method: Method, delay: float) -> None:
    """At moments at which children run Python's own start-up code, and the fork server imports its preload."""
    host = hosts(method=method, phase="load_model")
    assert eventually(lambda: len(host.members()) > 1, 10)
    time.sleep(delay)  # not synchronisation: the moment is what varies
    host.interrupt()
    _ended_by_ctrl_c(host)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("work", ["hang", "compute"])
def test_ctrl_c_in_a_call(hosts: Any, method: Method, work: str) -> None:
    host = hosts(method=method, work=work)
    host.wait_for("busy")
    host.interrupt()
    with within(7):
        _ended_by_ctrl_c(host)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_in_a_shutdown(hosts: Any, method: Method) -> None:
    host = hosts(method=method, stubborn=True)
    host.wait_for("stopping")
    host.interrupt()
    _ended_by_ctrl_c(host)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_again_and_again(hosts: Any, method: Method) -> None:
    """Somebody impatient: in a start, then in the shutdown that follows, then at the interpreter's end."""
    host = hosts(method=method, phase="load_model", stubborn=True)
    host.wait_for("up")
    for _ in range(30):
        if host.process.poll() is not None:
            break
        host.interrupt()
        eventually(lambda: host.process.poll() is not None, 0.03)
    host.process.wait(10)
    assert host.all_gone(2), host.left()
    assert host.process.returncode in (-signal.SIGINT, 1)
