"""Whole lives at random: threads that call in every way, and a death, a stop or an end at any moment.

No thread may hang, no answer be another's, and every recorded life must be one that the model allows.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from procession.runtime import (
    CallTimeoutError,
    ExecutorError,
    MultiprocExecutor,
    Recorder,
    ShutdownPolicy,
    WorkerError,
)
from procession.runtime import executor as module
from procession.specs.trace import validate
from tests.runtime.support import executor

POLICY = ShutdownPolicy(grace=0.2, term=0.1, kill=2, grace_after_failure=0.05)


def one_call(ready: MultiprocExecutor, who: int, n: int) -> None:
    """One way to call; an answer is this caller's own."""
    mine = [(rank, who, n) for rank in range(ready.config.world_size)]
    if n % 5 == 0:
        future = ready.collective_rpc("echo", 0.3, (who, n), non_block=True)
        if n % 10 == 0:
            future.cancel()
        elif n % 15 == 0:
            future.add_done_callback(lambda _: None)
        else:
            assert future.result(0.5) == mine
    elif n % 7 == 0:
        with contextlib.suppress(WorkerError):
            assert ready.collective_rpc("raises", 1, (0,)) is None
    else:
        assert ready.collective_rpc("echo", 1, (who, n)) == mine


class Life:
    """One executor from start to end, with three threads that call."""

    def __init__(self, rnd: random.Random) -> None:
        self.recorder = Recorder()
        self.wrong: list[BaseException] = []
        self.rnd = rnd
        self.options: dict[str, Any] = {
            "ranks": rnd.choice([1, 2, 3]),
            "start_method": rnd.choice(["fork", "fork", "fork", "forkserver"]),
            "max_inflight_calls": rnd.choice([1, 2, 64]),
            "shutdown": POLICY,
            "start_timeout": 1.5,
            "recorder": self.recorder,
        }
        self.deed = rnd.choice(["kill", "kill all", "stop", "shutdown", "nothing"])
        self.delay = rnd.random() * 0.1

    def run(self) -> None:
        try:
            ready = executor(**self.options)
        except ExecutorError:
            return
        threads = [threading.Thread(target=self.call, args=(ready, who)) for who in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        self.wrong += [TimeoutError(thread.name) for thread in threads if thread.is_alive()]
        ready.shutdown()

    def call(self, ready: MultiprocExecutor, who: int) -> None:
        late = 0
        for n in range(50):
            try:
                one_call(ready, who, n)
            except CallTimeoutError:
                late += 1
                if late == 3:  # a rank is stopped
                    return
            except ExecutorError:
                return
            except BaseException as error:  # noqa: BLE001 - whatever comes is the test's failure
                self.wrong.append(error)
                return

    def do(self) -> None:
        """What happens to it, from outside."""
        for supervisor in [s for s in module._running if s.thread.is_alive()]:
            if self.deed == "shutdown":
                supervisor.ask_stop()
            ranks = supervisor.kernel.ranks
            pids = []
            for rank in ranks.alive():
                with contextlib.suppress(AssertionError):  # reaped between the two looks
                    pids.append(ranks.process(rank).pid)
            if self.deed not in ("shutdown", "nothing") and pids:
                number = signal.SIGSTOP if self.deed == "stop" else signal.SIGKILL
                for pid in pids if self.deed == "kill all" else [self.rnd.choice(pids)]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)


@pytest.mark.parametrize("seed", range(4))
def test_lives(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    for turn in range(8):
        life = Life(rnd)
        thread = threading.Thread(target=life.run)
        thread.start()
        thread.join(life.delay)
        life.do()
        thread.join(30)
        what = f"turn {turn}: {life.deed} after {life.delay:.3f} s, {life.options}"
        assert not thread.is_alive(), what
        assert life.wrong == [], what
        verdict = validate(life.recorder.lines())
        if not verdict.accepted:
            trace = life.recorder.save(tmp_path / f"{turn}.ndjson")
            pytest.fail(f"{what}\n{trace}\n{verdict}")
