"""A bound that a step of the call machine stays under: generous, so that only a regression by a factor is seen."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import thread_time

import pytest

from procession.protocol.core import Cluster, Identity
from procession.protocol.futures import CALL_CLUSTER, Reply, ReplyOn

RANKS = 8
STEPS = 200
BOUND = 5e-6  # seconds a step; 2 µs where it was written, of which the guards take three quarters
OWN = [Identity(1, rank, 3) for rank in range(64)]


def seconds_a_step(call: Callable[[], object], repeats: int = 11) -> float:
    """The best of five medians over `repeats` of the mean time of a step, where `call` takes STEPS of them.

    This thread's own time, and the best of five: how busy the machine is must not decide.
    """
    call()
    medians = []
    for _ in range(5):
        times = []
        for _ in range(repeats):
            start = thread_time()
            call()
            times.append((thread_time() - start) / STEPS)
        medians.append(median(times))
    return min(medians)


def replies(cluster: Cluster, times: int = 1) -> Callable[[], None]:
    """STEPS replies, each of a rank that owes one; each is taken `times` times, to see what a slower step gives."""
    begin = cluster.initial(RANKS)

    def run() -> None:
        for _ in range(STEPS // RANKS):
            state = begin
            for rank in range(RANKS):
                for _ in range(times - 1):
                    cluster.apply(state, rank, ReplyOn.RETURNED, OWN[rank], OWN[rank])
                state, _ = cluster.apply(state, rank, ReplyOn.RETURNED, OWN[rank], OWN[rank])
        assert Reply.OWED not in state

    return run


def test_a_remembered_step_is_fast(capsys: pytest.CaptureFixture[str]) -> None:
    took = seconds_a_step(replies(CALL_CLUSTER))
    with capsys.disabled():
        print(f" [{took * 1e6:.2f} µs a remembered step of a call of {RANKS} ranks]", end="")
    assert took < BOUND


def test_a_step_that_is_ten_times_slower_is_seen() -> None:
    assert seconds_a_step(replies(CALL_CLUSTER, times=10), 5) > BOUND
