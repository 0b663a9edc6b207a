"""The end on real processes: bounded, once, reaped, and true about its cause."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from procession.runtime import (
    ExecutorClosedError,
    MultiprocExecutor,
    Recorder,
    ShutdownPolicy,
    StartError,
    WorkerDiedError,
)
from procession.specs.trace import validate
from tests.runtime.support import METHODS, SHORT, Method, config, eventually, executor, gone, occupied, within
from tests.runtime.workers import Echo, Flawed


class Stubborn(Echo):
    """Ignores SIGTERM from the beginning."""

    def init_device(self) -> None:
        self.ignore_sigterm()


def flawed(phase: str, deed: str, rank: int = 1, **options: Any) -> MultiprocExecutor:
    return executor(Flawed, worker_kwargs={"phase": phase, "deed": deed, "flawed": rank}, **options)


# --- how long it takes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_workers_that_are_asked_leave_by_themselves(method: Method) -> None:
    ready = executor(start_method=method)
    ready.collective_rpc("echo")
    with within(0.5):
        ready.shutdown()
    assert ready.exits == {0: 0, 1: 0}
    assert (ready.pids, ready.survivors, ready.is_failed, ready.failure) == ({}, [], False, None)


@pytest.mark.parametrize(
    ("method", "number"), [("hang", signal.SIGTERM), ("compute", signal.SIGTERM), ("stop_me", signal.SIGKILL)]
)
def test_a_worker_that_does_not_come_back_is_ended(method: str, number: signal.Signals) -> None:
    ready = executor(shutdown=SHORT)
    future = occupied(ready, method, rank=1)
    with within(2.5):
        ready.shutdown()
    assert ready.exits == {0: 0, 1: -number}
    with pytest.raises(ExecutorClosedError):
        future.result()


@pytest.mark.parametrize("method", ["hang", "compute"])
def test_a_worker_that_ignores_sigterm_is_killed(method: str) -> None:
    ready = executor(Stubborn, shutdown=SHORT)
    occupied(ready, method)
    with within(2.5):
        ready.shutdown()
    assert ready.exits == {0: -signal.SIGKILL, 1: -signal.SIGKILL}
    assert ready.survivors == []


def test_the_policy_is_what_bounds_the_end() -> None:
    ready = executor(Stubborn, shutdown=ShutdownPolicy(grace=0.5, term=0.5, kill=1))
    occupied(ready, "hang", rank=0)
    began = time.monotonic()
    ready.shutdown()
    assert 1.0 <= time.monotonic() - began < 2.0


def test_no_time_at_all() -> None:
    ready = executor(shutdown=ShutdownPolicy(grace=0, term=0, kill=5, grace_after_failure=0))
    with within(2):
        ready.shutdown()
    assert set(ready.exits) == {0, 1}
    assert ready.survivors == []


def test_a_process_that_even_sigkill_does_not_end_is_a_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the kernel's own sleep cannot be made here; a signal that does not arrive looks the same."""
    ready = executor(shutdown=ShutdownPolicy(grace=0.1, term=0.1, kill=0.3))
    occupied(ready, "hang", rank=1)
    victim = ready._kernel.ranks.process(1)
    monkeypatch.setattr(victim, "signal", lambda number: None)
    pid = ready.pids[1]
    with within(2.5):
        ready.shutdown()
    try:
        assert ready.survivors == [(1, pid)]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(
    ("deed", "status"), [("raise", 0), ("hang", -signal.SIGTERM), ("kill", -signal.SIGKILL)]
)
def test_a_workers_own_shutdown_goes_wrong(deed: str, status: int, capfd: pytest.CaptureFixture[str]) -> None:
    ready = flawed("shutdown", deed, shutdown=SHORT)
    with within(2):
        ready.shutdown()
    assert ready.exits == {0: 0, 1: status}
    assert not ready.is_failed
    assert ("no shutdown today" in capfd.readouterr().err) == (deed == "raise")


def test_exit_statuses_tell_what_happened() -> None:
    ready = executor(ranks=4, shutdown=SHORT)

    def deed(worker: Echo) -> None:
        if worker.rank == 0:
            worker.exit_me(3)
        worker.hang()

    with pytest.raises(WorkerDiedError) as caught:
        ready.collective_rpc(deed)
    assert (caught.value.rank, caught.value.exit_status) == (0, 3)
    ready.shutdown()
    assert ready.exits == {0: 3, 1: -signal.SIGTERM, 2: -signal.SIGTERM, 3: -signal.SIGTERM}
    assert ready.survivors == []


def test_a_grandchild_that_outlives_its_worker_holds_nobody_up(tmp_path: Path) -> None:
    """It keeps copies of every descriptor of the worker, multiprocessing's sentinel among them."""
    note = tmp_path / "pid"

    def have_a_child(worker: Echo) -> None:
        pid = os.fork()
        if pid == 0:
            os.execv("/bin/sh", ["sh", "-c", "exec sleep 60"]) if worker.rank else signal.pause()
        note.with_suffix(f".{worker.rank}").write_text(str(pid))

    for end in ("shutdown", "kill"):
        ready = executor(shutdown=SHORT)
        ready.collective_rpc(have_a_child)
        pids = [int(note.with_suffix(f".{rank}").read_text()) for rank in range(2)]
        workers = list(ready.pids.values())
        try:
            if end == "kill":
                os.kill(ready.pids[0], signal.SIGKILL)
                assert eventually(functools.partial(getattr, ready, "is_failed"), 1)
            with within(1.5, end):
                ready.shutdown()
            assert all(not Path(f"/proc/{pid}").exists() for pid in workers), "a zombie is left"
            assert ready.exits[0] == (-signal.SIGKILL if end == "kill" else 0)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


# --- who asks -------------------------------------------------------------------------------------------------------


def test_shutdown_twice_and_from_many_threads() -> None:
    for _ in range(12):
        ready = executor()
        together = threading.Barrier(4)
        errors: list[BaseException] = []

        def stop(
            r: MultiprocExecutor = ready, b: threading.Barrier = together, e: list[Any] = errors
        ) -> None:
            b.wait()
            try:
                r.shutdown()
            except BaseException as error:  # noqa: BLE001 - whatever comes is the test's failure
                e.append(error)

        threads = [threading.Thread(target=stop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
        assert errors == []
        ready.shutdown()
        assert ready.exits == {0: 0, 1: 0}


def test_a_flag_that_is_set_while_it_is_closed_hits_no_other_descriptor() -> None:
    """`ask_stop` takes no lock, so it can meet the end; a write to a closed number may be a write to another file."""
    for _ in range(40):
        ready = executor(ranks=1)
        over = threading.Event()
        errors: list[BaseException] = []

        def pester(r: MultiprocExecutor = ready, o: threading.Event = over, e: list[Any] = errors) -> None:
            try:
                while not o.is_set():
                    r._supervisor.ask_stop()
            except BaseException as error:  # noqa: BLE001 - whatever comes is the test's failure
                e.append(error)

        thread = threading.Thread(target=pester)
        thread.start()
        ready.shutdown()
        over.set()
        thread.join()
        assert errors == []


def test_shutdown_from_a_failure_callback() -> None:
    ready = executor(shutdown=SHORT)
    done = threading.Event()

    def callback() -> None:
        ready.shutdown()
        done.set()

    ready.register_failure_callback(callback)
    os.kill(ready.pids[0], signal.SIGKILL)
    assert done.wait(3)
    ready.shutdown()


def test_shutdown_while_another_thread_is_in_a_call() -> None:
    ready = executor(shutdown=SHORT)
    caught: list[Any] = []

    def call() -> None:
        try:
            ready.collective_rpc("hang")
        except BaseException as error:  # noqa: BLE001 - whatever comes is what the test looks at
            caught.append((time.monotonic(), error))

    thread = threading.Thread(target=call)
    thread.start()
    assert eventually(lambda: ready._kernel.state.calls)
    began = time.monotonic()
    ready.shutdown()
    thread.join(5)
    when, error = caught[0]
    assert isinstance(error, ExecutorClosedError)
    assert when - began < 0.2  # at once, and not after the grace


def test_shutdown_while_another_thread_waits_for_the_start() -> None:
    from procession.runtime import executor as module

    before = set(module._running)
    caught: list[Any] = []

    def start() -> None:
        try:
            flawed("init_device", "hang", shutdown=SHORT)
        except BaseException as error:  # noqa: BLE001 - whatever comes is what the test looks at
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    assert eventually(lambda: set(module._running) - before)
    (supervisor,) = set(module._running) - before
    assert eventually(lambda: len(supervisor.kernel.ranks.alive()) == 2)
    supervisor.ask_stop()
    thread.join(3)
    assert not thread.is_alive()
    assert isinstance(caught[0], StartError)
    assert "STOPPING" in str(caught[0]) or "DOWN" in str(caught[0])


def test_an_executor_that_is_dropped_ends() -> None:
    ready = executor()
    pids = list(ready.pids.values())
    del ready
    gc.collect()
    assert eventually(lambda: all(gone(pid) for pid in pids), 2)


def test_an_executor_in_a_cycle_that_is_dropped_ends() -> None:
    ready = executor()
    pids = list(ready.pids.values())
    ready.myself = ready  # type: ignore[attr-defined]  # a cycle, so that only the collector finds it
    del ready
    gc.collect()
    assert eventually(lambda: all(gone(pid) for pid in pids), 2)


# --- causes and callbacks -------------------------------------------------------------------------------------------


def test_later_deaths_do_not_replace_the_first_cause() -> None:
    for victim in (0, 1, 2):
        ready = executor(ranks=3, shutdown=SHORT)
        ready.register_failure_callback(lambda: None)
        os.kill(ready.pids[victim], signal.SIGKILL)
        assert eventually(functools.partial(getattr, ready, "is_failed"))
        for pid in ready.pids.values():
            os.kill(pid, signal.SIGKILL)
        ready.shutdown()
        errors = []
        for _ in range(3):
            with pytest.raises(WorkerDiedError, match=f"rank {victim} .*SIGKILL") as caught:
                ready.collective_rpc("echo")
            errors.append(caught.value)
        assert len({id(error) for error in errors}) == 3
        assert ready.failure is not ready.failure
        assert str(ready.failure) == str(errors[0])


def test_each_callback_is_called_once() -> None:
    ready = executor(shutdown=SHORT)
    called: list[str] = []
    told = threading.Semaphore(0)

    def callback(name: str, error: BaseException | None = None) -> Any:
        def call() -> None:
            called.append(name)
            told.release()
            if error is not None:
                raise error

        return call

    for name, error in (("a", None), ("b", ValueError()), ("c", SystemExit()), ("d", None)):
        ready.register_failure_callback(callback(name, error))
    os.kill(ready.pids[1], signal.SIGKILL)
    for _ in range(4):
        assert told.acquire(timeout=3), called
    ready.register_failure_callback(callback("late"))
    assert told.acquire(timeout=1)
    ready.shutdown()
    ready.register_failure_callback(callback("very late"))
    assert told.acquire(timeout=1)
    assert sorted(called) == ["a", "b", "c", "d", "late", "very late"]


def test_a_slow_callback_keeps_nobody_waiting() -> None:
    release = threading.Event()
    entered = threading.Event()
    ready = executor(shutdown=SHORT)

    def slow() -> None:
        entered.set()
        release.wait(10)

    ready.register_failure_callback(slow)
    try:
        with within(1.5):
            with pytest.raises(WorkerDiedError):
                ready.collective_rpc("only", args=(0, "kill_me"))
            assert entered.wait(1)
            with pytest.raises(WorkerDiedError):
                ready.collective_rpc("echo")
            ready.shutdown()
    finally:
        release.set()


def test_no_callback_after_an_orderly_stop() -> None:
    called: list[int] = []
    ready = executor()
    ready.register_failure_callback(lambda: called.append(1))
    ready.shutdown()
    ready.register_failure_callback(lambda: called.append(2))
    assert called == []


def test_what_happens_after_the_end_is_not_recorded_into_somebody_elses_file(tmp_path: Path) -> None:
    """The recorder's descriptors are closed then, and their numbers may mean other files."""
    recorder = Recorder()
    ready = executor(recorder=recorder, shutdown=SHORT)
    os.kill(ready.pids[1], signal.SIGKILL)
    assert eventually(lambda: not ready._supervisor.thread.is_alive())
    files = [(tmp_path / str(n)).open("w+") for n in range(20)]  # these take the numbers
    ready.register_failure_callback(lambda: None)
    with pytest.raises(WorkerDiedError):
        ready.collective_rpc("echo")
    assert [file.tell() for file in files] == [0] * 20
    assert [os.fstat(file.fileno()).st_size for file in files] == [0] * 20
    for file in files:
        file.close()
    assert validate(recorder.lines()).accepted


def _in_flight(ready: MultiprocExecutor, calls: int) -> bool:
    return len(ready._kernel.state.calls) == calls


def test_callers_in_many_threads_all_learn_the_cause(tmp_path: Path) -> None:
    """With a recorder: a parked caller that comes late writes to nothing that is closed."""
    for turn in range(8):
        recorder = Recorder()
        ready = executor(recorder=recorder, shutdown=SHORT)
        found: list[BaseException] = []

        def call(r: MultiprocExecutor = ready, f: list[BaseException] = found) -> None:
            try:
                r.collective_rpc("hang")
            except BaseException as raised:  # noqa: BLE001 - whatever comes is what the test looks at
                f.append(raised)

        threads = [threading.Thread(target=call) for _ in range(12)]
        for thread in threads:
            thread.start()
        assert eventually(functools.partial(_in_flight, ready, 12))
        os.kill(ready.pids[1], signal.SIGKILL)
        for thread in threads:
            thread.join(5)
        ready.shutdown()
        assert [type(error) for error in found] == [WorkerDiedError] * 12, turn
        assert len({id(error) for error in found}) == 12
        assert validate(recorder.lines()).accepted


# --- the interpreter's end and forks --------------------------------------------------------------------------------


def script(text: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    program = textwrap.dedent(text)
    return subprocess.run(  # `check` is what the tests look at
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        cwd=Path(__file__).parents[2],
        **options,
    )


NEVER_SHUT = """
    import sys
    sys.path.append(".")
    from tests.runtime.support import SHORT, executor
    ready = executor(start_method=sys.argv[1], shutdown=SHORT)
    assert ready.collective_rpc("echo") == [(0,), (1,)]
    print(*ready.pids.values())
    {end}
"""


@pytest.mark.parametrize(
    ("method", "end", "code"),
    [
        ("fork", "pass", 0),
        ("spawn", "pass", 0),
        ("forkserver", "pass", 0),
        ("fork", "sys.exit(3)", 3),
        ("forkserver", "ready.myself = ready", 0),
        ("fork", "future = ready.collective_rpc('hang', non_block=True)", 0),
    ],
)
def test_the_interpreter_ends_without_a_shutdown(method: Method, end: str, code: int) -> None:
    with within(15):
        done = script(NEVER_SHUT.format(end=end), method)
    assert (done.returncode, done.stderr) == (code, "")
    assert eventually(lambda: all(gone(int(pid)) for pid in done.stdout.split()), 1)


def test_a_child_of_the_host_that_leaves_does_not_disturb() -> None:
    ready = executor()
    for leave in ("exit", "shutdown", "collect"):
        pid = os.fork()
        if pid == 0:
            try:
                if leave == "shutdown":
                    ready.shutdown()
                elif leave == "collect":
                    ready._finalizer()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert ready.collective_rpc("echo", 5) == [(0,), (1,)]
    done = script(
        NEVER_SHUT.format(
            end="""
    import os
    pid = os.fork()
    if pid == 0:
        sys.exit(0)  # runs every exit handler of this copy
    os.waitpid(pid, 0)
    assert ready.collective_rpc("echo", 5) == [(0,), (1,)]
    """
        ),
        "fork",
    )
    assert (done.returncode, done.stderr) == (0, "")
    ready.shutdown()


def test_an_executor_in_a_forked_child_of_a_host_that_has_one() -> None:
    """Each has its own; the child's workers hold nothing of the parent's."""
    ready = executor()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with executor() as other:
                if other.collective_rpc("echo", 5, ("child",)) == [(0, "child"), (1, "child")]:
                    code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ready.collective_rpc("echo", 5) == [(0,), (1,)]
    with within(1):
        ready.shutdown()


def test_a_host_that_reaps_all_children_does_not_hang_the_end() -> None:
    """Somebody else's waitpid(-1) takes our statuses: they are unknown then, and the end comes all the same."""
    ready = executor(shutdown=SHORT)
    over = threading.Event()

    def reap_all() -> None:
        while not over.is_set():
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                continue

    thief = threading.Thread(target=reap_all)
    thief.start()
    try:
        os.kill(ready.pids[0], signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=re.compile("rank 0")):
            ready.collective_rpc("hang", 5)
        with within(4):
            ready.shutdown()
    finally:
        over.set()
        thief.join()


def test_config_is_not_shared_state() -> None:
    same = config()
    with MultiprocExecutor(same) as one, MultiprocExecutor(same) as two:
        assert set(one.pids.values()).isdisjoint(two.pids.values())
