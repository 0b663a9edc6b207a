"""Starts on real processes that go wrong: at once, by name, with the cause, and nothing left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from procession.runtime import (
    ConfigError,
    ExecutorConfig,
    MultiprocExecutor,
    PayloadError,
    Recorder,
    ShutdownPolicy,
    StartError,
    WorkerDiedError,
    WorkerError,
)
from procession.specs.trace import validate
from tests.runtime.support import METHODS, SHORT, Method, config, eventually, executor, within
from tests.runtime.workers import Echo, Flawed, HalfWorker, NoWorker

PHASES = {"constructor": "DEVICE", "init_device": "DEVICE", "load_model": "WEIGHTS"}


def start(phase: str, deed: str, rank: int, **options: Any) -> MultiprocExecutor:
    kwargs = {"phase": phase, "deed": deed, "flawed": rank}
    return executor(Flawed, worker_kwargs=kwargs, shutdown=SHORT, **options)


# --- a rank goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("phase", "rank"), [("constructor", 0), ("init_device", 2), ("load_model", 1)])
def test_a_phase_raises(phase: str, rank: int, method: Method) -> None:
    with within(8 if method == "spawn" else 2), pytest.raises(StartError) as caught:
        start(phase, "raise", rank, ranks=3, start_method=method)
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerError)
    assert cause.rank == rank
    assert PHASES[phase] in cause.phase
    assert f"rank {rank} failed while its start was in {PHASES[phase]}" in str(caught.value)
    assert f"RuntimeError: no {phase} today" in str(caught.value)
    remote = str(cause.__cause__)
    assert "in _reached" in remote
    assert f"RuntimeError: no {phase} today" in remote


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("deed", "text", "status"),
    [("sys.exit", "exit code 7", 7), ("os._exit", "exit code 7", 7), ("kill", r"signal 9 \(SIGKILL\)", -9)],
)
def test_a_rank_ends_in_its_start(phase: str, rank: int, deed: str, text: str, status: int) -> None:
    pattern = f"rank {rank} .*ended with {text} while its start was in {PHASES[phase]}"
    with within(2), pytest.raises(StartError, match=pattern) as caught:
        start(phase, deed, rank, ranks=3)
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerDiedError)
    assert (cause.rank, cause.exit_status) == (rank, status)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("deed", ["os._exit", "kill"])
def test_a_rank_ends_in_its_start_by_any_method(deed: str, method: Method) -> None:
    status = {"os._exit": "exit code 7", "kill": "SIGKILL"}[deed]
    with within(8), pytest.raises(StartError, match=f"rank 1 .*{status}"):
        start("load_model", deed, 1, start_method=method)


@pytest.mark.parametrize(("phase", "rank"), [("constructor", 0), ("init_device", 1), ("load_model", 2)])
@pytest.mark.parametrize("deed", ["hang", "stop"])
def test_a_rank_that_is_late_is_named(phase: str, rank: int, deed: str) -> None:
    pattern = rf"took more than 0.6 s .*: rank {rank} is in {PHASES[phase]} \(.*\) since 0.\d s\. Raise"
    with within(3), pytest.raises(StartError, match=pattern) as caught:
        start(phase, deed, rank, ranks=3, start_timeout=0.6)
    others = {0, 1, 2} - {rank}
    assert not any(f"rank {other} " in str(caught.value) for other in others)


def test_a_rank_that_waits_for_the_dead_one_hides_nothing() -> None:
    """Rank 0 waits in a rendezvous for rank 1, which is gone: the death is heard, whoever is silent."""

    class Rendezvous(Echo):
        def load_model(self) -> None:
            if self.rank == 1:
                self.kill_me()
            self.hang()

    with within(2), pytest.raises(StartError, match=r"rank 1 .*SIGKILL"):
        executor(Rendezvous, shutdown=SHORT)


def test_the_first_of_many_failures_is_the_cause(tmp_path: Path) -> None:
    def all_fail(self: Echo) -> None:
        raise RuntimeError(f"rank {self.rank} has nothing")

    class Bad(Echo):
        load_model = all_fail

    for _ in range(10):
        recorder = Recorder()
        with pytest.raises(StartError) as caught:
            executor(Bad, 4, recorder=recorder, shutdown=SHORT)
        rank = re.search(r"rank (\d) failed .*RuntimeError: rank (\d) has nothing", str(caught.value))
        assert rank is not None
        assert rank[1] == rank[2]
        assert validate(recorder.lines()).accepted


def test_an_error_that_cannot_say_what_it_is() -> None:
    class Dumb(Echo):
        def load_model(self) -> None:
            self.raises_dumb()

    with pytest.raises(StartError, match=r"DumbError: .its text cannot be had"):
        executor(Dumb)


def test_a_very_long_error() -> None:
    class Long(Echo):
        def load_model(self) -> None:
            self.raises_at_length(3_000_000)

    with pytest.raises(StartError, match="ValueError: €€€") as caught:
        executor(Long)
    assert len(str(caught.value)) < 40_000


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        (NoWorker, "NoWorker is no worker: it has no init_device and no load_model"),
        (HalfWorker, "HalfWorker is no worker: it has no load_model"),
        (Echo.echo, "worker_cls must be a class, not"),
        (None, "worker_cls must be a class, not None"),
        (3, "worker_cls must be a class, not 3"),
        ("tests.runtime.workers", "must be a class or a string like 'package.module:Class'"),
        ("tests.runtime.workers:", "must be a class or a string like"),
        (":Echo", "must be a class or a string like"),
        ("tests.runtime.workers:Echo Echo", "must be a class or a string like"),
        ("no.such.module:Echo", "there is no module 'no.such.module'"),
        ("..:Echo", "there is no module"),
    ],
)
def test_a_worker_class_that_is_none(worker: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        executor(worker)


@pytest.mark.parametrize(
    ("worker", "text"),
    [
        ("tests.runtime.workers:NoSuch", "has no attribute 'NoSuch'"),
        ("tests.runtime.workers:NoWorker", "NoWorker is no worker"),
        ("tests.runtime.workers:not_a_class", "must be a class, not 3"),
    ],
)
def test_a_worker_class_that_is_none_where_only_the_ranks_can_see(worker: str, text: str) -> None:
    with within(2), pytest.raises(StartError, match=re.escape(text)):
        executor(worker, shutdown=SHORT)


def test_a_worker_module_that_raises_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_worker.py").write_text("raise OSError('not on this machine')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with within(2), pytest.raises(StartError, match="OSError: not on this machine"):
        executor("broken_worker:Worker", shutdown=SHORT)


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_class_by_name(method: Method) -> None:
    with executor("tests.runtime.workers:Echo", start_method=method) as ready:
        assert ready.collective_rpc("echo") == [(0,), (1,)]


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_class_that_exists_nowhere_but_here(method: Method) -> None:
    class Local(Echo):
        def what(self) -> str:
            return f"local {self.rank}"

    with executor(Local, start_method=method) as ready:
        assert ready.collective_rpc("what") == ["local 0", "local 1"]


def test_what_a_worker_is_made_with() -> None:
    with executor(Echo, 2, pipeline_parallel_size=2, worker_kwargs={"size": 3}) as ready:
        for rank, keywords in enumerate(ready.collective_rpc(lambda worker: worker.keywords)):
            assert keywords["size"] == 3
            assert keywords["local_rank"] == rank
            assert keywords["is_driver_worker"] == (rank % 2 == 0)
            assert keywords["distributed_init_method"].startswith("file:///proc/")


@pytest.mark.parametrize(
    "name",
    ["rank", "local_rank", "is_driver_worker", "distributed_init_method", "shared_worker_lock"],
)
def test_worker_kwargs_that_clash(name: str) -> None:
    with pytest.raises(ConfigError, match=f"must not name {name}"):
        executor(worker_kwargs={name: 1})


def test_worker_kwargs_that_cannot_be_pickled() -> None:
    for _ in range(3):
        with pytest.raises(ConfigError, match="cannot be pickled"):
            executor(worker_kwargs={"lock": threading.Lock()})


def test_worker_kwargs_that_the_worker_does_not_take() -> None:
    class Strict(Echo):
        def __init__(self, **keywords: Any) -> None:
            assert "extra" not in keywords
            super().__init__(**keywords)

    with pytest.raises(StartError, match="AssertionError"):
        executor(Strict, worker_kwargs={"extra": 1})


@pytest.mark.parametrize(
    "options",
    [
        {"tensor_parallel_size": 0},
        {"tensor_parallel_size": -1},
        {"tensor_parallel_size": 1.5},
        {"tensor_parallel_size": True},
        {"pipeline_parallel_size": 0},
        {"max_inflight_calls": 0},
        {"threads": 0},
        {"start_method": "thread"},
        {"start_method": None},
        {"start_timeout": 0},
        {"start_timeout": -1},
        {"start_timeout": "soon"},
        {"call_timeout": 0},
        {"preload": ("no_such_module_at_all",)},
        {"preload": ("procession.no_such_module",)},
        {"preload": ("",)},
    ],
)
def test_a_configuration_that_cannot_work(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=name.split("_size")[0]):
        config(**options)


@pytest.mark.parametrize("name", ["grace", "term", "kill", "grace_after_failure"])
@pytest.mark.parametrize("value", [-1, "1", None, float("nan"), float("inf"), 1e7])
def test_a_policy_that_cannot_work(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        ShutdownPolicy(**{name: value})


def test_a_recorder_that_was_used() -> None:
    recorder = Recorder()
    executor(recorder=recorder).shutdown()
    with pytest.raises(ValueError, match="make one for each"):
        executor(recorder=recorder)


def test_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third process cannot be made: the two that were are ended."""
    from procession.runtime.ranks import Ranks

    real = Ranks.make

    def make(self: Ranks, rank: int, epoch: int) -> None:
        if rank == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        real(self, rank, epoch)

    monkeypatch.setattr(Ranks, "make", make)
    with within(2), pytest.raises(StartError, match=r"rank 2 could not be made .*ulimit -u"):
        executor(ranks=4, shutdown=SHORT)


# --- where and how it is started ------------------------------------------------------------------------------------


def test_two_executors_at_once() -> None:
    with executor() as one, executor(start_method="forkserver") as two, executor() as three:
        everyone = (one, two, three)
        futures = [[e.collective_rpc("echo", args=(n,), non_block=True) for n in range(10)] for e in everyone]
        for answers in futures:
            assert [f.result(5) for f in answers] == [[(0, n), (1, n)] for n in range(10)]
        one.shutdown()
        assert two.collective_rpc("echo") == three.collective_rpc("echo") == [(0,), (1,)]


def test_many_starts_at_once_from_threads() -> None:
    """Forked children of one executor hold nothing of another that is being made at the same time."""
    problems: list[BaseException] = []

    def life() -> None:
        try:
            for _ in range(4):
                with executor() as ready:
                    assert ready.collective_rpc("echo", 10) == [(0,), (1,)]
                assert ready.exits == {0: 0, 1: 0}
        except BaseException as error:  # noqa: BLE001 - whatever comes is the test's failure
            problems.append(error)

    threads = [threading.Thread(target=life) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert problems == []
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("method", METHODS)
def test_started_in_a_thread_that_ends(method: Method) -> None:
    made: list[MultiprocExecutor] = []
    thread = threading.Thread(target=lambda: made.append(executor(start_method=method)))
    thread.start()
    thread.join(20)
    (ready,) = made
    assert ready.collective_rpc("echo") == [(0,), (1,)]
    ready.shutdown()
    made.clear()


@pytest.mark.parametrize("method", METHODS)
def test_without_standard_streams(method: Method, tmp_path: Path) -> None:
    """Their numbers are free, and become those of our channels."""
    note = tmp_path / "note"
    program = f"""
        import os, sys
        if __name__ == "__main__":
            for fd in (0, 1, 2):
                os.close(fd)
        sys.path.append({str(Path(__file__).parents[2])!r})
        from tests.runtime.support import executor
        if __name__ == "__main__":
            with executor(start_method={method!r}) as ready:
                answer = ready.collective_rpc("echo", 10, (b"x" * 100_000,))
                open({str(note)!r}, "w").write(str([(rank, len(x)) for rank, x in answer]))
    """
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(script)], timeout=30, check=False)
    assert done.returncode == 0
    assert note.read_text() == "[(0, 100000), (1, 100000)]"


def test_phases_in_order() -> None:
    seen: dict[int, list[str]] = {0: [], 1: []}
    times: list[float] = []

    def on_phase(rank: int, phase: str, seconds: float) -> None:
        seen[rank].append(phase)
        times.append(seconds)

    ready = executor(on_phase=on_phase)
    assert seen == {rank: ["spawned", "device", "weights", "queues", "ready"] for rank in (0, 1)}
    ready.shutdown()
    assert [phases[-1] for phases in seen.values()] == ["gone", "gone"]
    assert times == sorted(times)


def test_a_display_that_raises_does_not_end_a_start(capfd: pytest.CaptureFixture[str]) -> None:
    def on_phase(rank: int, phase: str, seconds: float) -> None:
        raise RuntimeError("no terminal")

    with executor(on_phase=on_phase) as ready:
        assert ready.collective_rpc("echo") == [(0,), (1,)]
    assert "RuntimeError: no terminal" in capfd.readouterr().err


def test_a_display_that_asks_for_the_end() -> None:
    """From the supervisor's own thread: it cannot wait for itself."""
    from procession.runtime import executor as module

    before = set(module._running)

    def on_phase(rank: int, phase: str, seconds: float) -> None:
        if phase == "weights":
            for supervisor in set(module._running) - before:
                supervisor.ask_stop()

    with within(3), pytest.raises(StartError):
        executor(on_phase=on_phase, shutdown=SHORT)


def test_a_phase_is_told_before_it_begins() -> None:
    """A rank that hangs in a phase has said which."""
    seen = threading.Event()

    def on_phase(rank: int, phase: str, seconds: float) -> None:
        if (rank, phase) == (1, "weights"):
            seen.set()

    def hang() -> None:
        with pytest.raises(StartError):
            start("load_model", "hang", 1, start_timeout=1.5, on_phase=on_phase)

    thread = threading.Thread(target=hang)
    thread.start()
    assert seen.wait(1.4)
    thread.join(5)
    assert not thread.is_alive()


def test_the_start_of_a_group_under_load() -> None:
    from tests.runtime.support import busy

    with busy(4), executor(ranks=6) as ready:
        assert ready.collective_rpc("echo", 20) == [(rank,) for rank in range(6)]


def test_environment_and_name_of_a_worker() -> None:
    with executor(threads=3) as ready:
        names = ready.collective_rpc(
            lambda worker: Path("/proc/self/cmdline").read_bytes().strip(b"\0").decode()
        )
        assert names == ["Worker_PP0_TP0", "Worker_PP0_TP1"]
        expected = os.environ.get("OMP_NUM_THREADS", "3")
        assert ready.collective_rpc(lambda worker: os.environ["OMP_NUM_THREADS"]) == [expected] * 2


def test_the_lock_is_shared_by_the_ranks_and_freed_by_a_death() -> None:
    def hold_and_die(worker: Echo) -> None:
        if worker.rank == 0:
            worker.lock.acquire()
            worker.kill_me()
        worker.hang()

    def add(worker: Echo, path: str) -> None:
        for _ in range(100):
            with worker.lock:
                note = Path(path)
                note.write_text(str(int(note.read_text()) + 1))

    with executor() as ready:
        number = Path(os.environ["TMPDIR"]) / "number"
        number.write_text("0")
        ready.collective_rpc(add, args=(str(number),))
        assert number.read_text() == "200"
        number.unlink()
        with pytest.raises(WorkerDiedError):
            ready.collective_rpc(hold_and_die)


def test_config_errors_are_what_their_bases_are() -> None:
    with pytest.raises(ValueError, match="tensor_parallel_size"):
        ExecutorConfig(Echo, tensor_parallel_size=0)
    assert issubclass(PayloadError, TypeError)


def test_eventually_is_honest() -> None:
    """The helper that every other test leans on says no when it is no."""
    assert not eventually(lambda: False, 0.05)
    with pytest.raises(AssertionError, match="took"), within(0.0):
        eventually(lambda: False, 0.01)
