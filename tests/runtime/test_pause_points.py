"""Every point at which a rank can die or stop: a clear error, in time, and nothing left.

The points are not written down here: they are every step that a normal run takes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from procession.runtime import (
    CallTimeoutError,
    ExecutorClosedError,
    ExecutorError,
    MultiprocExecutor,
    Recorder,
    ShutdownPolicy,
    SignalAt,
    StartError,
    WorkerDiedError,
)
from procession.specs.trace import validate
from tests.runtime.support import Method, executor, within

RANKS = 2
BOUND = 2.0  # seconds from a death to its error, on a loaded machine
FAST = ShutdownPolicy(grace=0.2, term=0.1, kill=2.0)

slowest: list[tuple[float, str]] = []


@pytest.fixture(scope="module", autouse=True)
def _report_slowest(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for seconds, what in sorted(slowest, reverse=True)[:3]:
            print(f"\n  {1000 * seconds:7.1f} ms from death to error: {what}", end="")


def run(recorder: Recorder, path: Path, timeout: float = 10, **options: Any) -> MultiprocExecutor:
    """Start, two calls, shutdown; the trace is saved and judged however it ends."""
    ready: MultiprocExecutor | None = None
    try:
        ready = executor(ranks=RANKS, recorder=recorder, **options)
        for n in range(2):
            assert ready.collective_rpc("echo", timeout, (n,)) == [(rank, n) for rank in range(RANKS)]
        ready.shutdown()
        return ready
    finally:
        if ready is not None:
            ready.shutdown()
        recorder.save(path)
        judge(path)


def judge(path: Path) -> None:
    """A recorded run, however it ended, is one that the model allows."""
    verdict = validate(path.read_text().splitlines())
    assert verdict.accepted, f"{path}\n{verdict}"


def steps(recorder: Recorder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recorder.lines()[1:]]


def points() -> list[tuple[str, str, str]]:
    """Every distinct (process, machine, event) that a rank takes in a normal run."""
    recorder = Recorder()
    ready = executor(ranks=RANKS, recorder=recorder)
    for n in range(2):
        ready.collective_rpc("echo", args=(n,))
    ready.shutdown()
    found = dict.fromkeys((s["p"], s["m"], s["e"]) for s in steps(recorder) if s["p"] != "executor")
    return list(found)


# What a rank steps, in a run without a fault. `test_the_points_are_those_of_a_real_run` holds it to one.
MACHINES = {
    "boot.boot": ("born", "device_up", "weights_up", "queues_up", "stop"),
    "intake.reader": ("handle", "opened", "close"),
    "outlet.seat": ("joined", "open", "close"),
    "outlet.gate": ("all_in", "close"),
    "serve.serve": ("begin", "call", "returned", "sent", "stop"),
    "leave.leave": ("asked", "clean"),
}
POINTS = [
    (f"rank {rank}", machine, event)
    for rank in range(RANKS)
    for machine, events in MACHINES.items()
    for event in events
]


def test_the_points_are_those_of_a_real_run() -> None:
    assert sorted(points()) == sorted(POINTS)


def when_it_died(recorder: Recorder, process: str) -> float:
    """When the process took its last step, on the monotonic clock."""
    return float(max(s["t"] for s in steps(recorder) if s["p"] == process)) / 1e9


STARTING = ("boot.boot", "intake.reader", "outlet.seat", "outlet.gate")
STOPPING = ("stop", "close", "asked", "clean")


@pytest.mark.parametrize(
    ("process", "machine", "event", "method"),
    [
        # Every point by fork; the last rank's by the fork server, too, which learns of the death before we do.
        *((*point, "fork") for point in POINTS),
        *((*point, "forkserver") for point in POINTS if point[0] == "rank 1"),
    ],
)
def test_killed(process: str, machine: str, event: str, method: Method, tmp_path: Path) -> None:
    recorder = Recorder()
    pause = SignalAt(process, machine, event)
    options: dict[str, Any] = {"pause": pause, "start_method": method, "shutdown": FAST}
    if event in STOPPING:  # it had been asked to stop: that is no failure
        with within(BOUND + 1):
            ready = run(recorder, tmp_path / "trace.ndjson", **options)
        assert not ready.is_failed
        assert ready.exits == {int(process[5:]): -signal.SIGKILL, 1 - int(process[5:]): 0}
        return
    with pytest.raises(ExecutorError) as caught:
        run(recorder, tmp_path / "trace.ndjson", **options)
    learnt = time.monotonic()
    took = learnt - when_it_died(recorder, process)
    slowest.append((took, f"{method}, {process} at {machine} {event}"))
    assert took <= BOUND
    text = str(caught.value)
    assert isinstance(caught.value, WorkerDiedError | StartError), text
    assert process in text
    assert "SIGKILL" in text
    if isinstance(caught.value, StartError):
        assert isinstance(caught.value.__cause__, WorkerDiedError)


def stop_at(process: str, machine: str, event: str, path: Path) -> None:
    recorder = Recorder()
    pause = SignalAt(process, machine, event, signal.SIGSTOP)
    # The whole start is bounded where the rank stops in it; twenty others start on this machine at the same time.
    start = 6.0 if machine in STARTING else 20.0
    options: dict[str, Any] = {"pause": pause, "shutdown": FAST, "start_timeout": start, "timeout": 1.5}
    if event in STOPPING:
        with within(10):
            ready = run(recorder, path, **options)
        assert not ready.is_failed
        assert ready.exits[int(process[5:])] == -signal.SIGKILL
        assert ready.survivors == []
        return
    with within(10), pytest.raises((StartError, CallTimeoutError), match=process):
        run(recorder, path, **options)


@pytest.mark.parametrize("rank", range(RANKS))
def test_stopped(rank: int, tmp_path: Path) -> None:
    """A process that is stopped says nothing and does not die: time alone ends the wait, and it is reaped.

    Time is all that these take, so the points are taken together.
    """
    points = [point for point in POINTS if point[0] == f"rank {rank}"]
    with ThreadPoolExecutor(len(points)) as pool:
        ends = [pool.submit(stop_at, *point, tmp_path / f"{n}.ndjson") for n, point in enumerate(points)]
    for point, end in zip(points, ends, strict=True):
        error = end.exception()
        assert error is None, point


@pytest.mark.parametrize("process", ["rank 0", "rank 1"])
def test_a_stopped_rank_that_is_continued_goes_on(process: str, tmp_path: Path) -> None:
    recorder = Recorder()
    ready = executor(ranks=RANKS, recorder=recorder)
    pid = ready.pids[int(process[5:])]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(CallTimeoutError, match=process):
        ready.collective_rpc("echo", 0.2, (1,))
    os.kill(pid, signal.SIGCONT)
    assert ready.collective_rpc("echo", 5, (2,)) == [(0, 2), (1, 2)]
    ready.shutdown()
    recorder.save(tmp_path / "trace.ndjson")
    judge(tmp_path / "trace.ndjson")


def test_an_executor_that_ends_while_a_rank_is_stopped(tmp_path: Path) -> None:
    recorder = Recorder()
    ready = executor(ranks=RANKS, recorder=recorder, shutdown=FAST)
    os.kill(ready.pids[1], signal.SIGSTOP)
    future = ready.collective_rpc("echo", args=(1,), non_block=True)
    with within(2):
        ready.shutdown()
    with pytest.raises(ExecutorClosedError):
        future.result()
    assert ready.exits == {0: 0, 1: -signal.SIGKILL}
    recorder.save(tmp_path / "trace.ndjson")
    judge(tmp_path / "trace.ndjson")
