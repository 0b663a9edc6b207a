"""Planted faults: small patches of the code that runs, each found by a short program, and by the right invariant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from procession.protocol.futures import ReplyOn
from procession.runtime import MultiprocExecutor
from procession.runtime.draining import Draining
from procession.runtime.futures import CallFuture, Pending
from procession.runtime.kernel import Kernel
from procession.specs.stateful import Driver, Finding, parse
from procession.suite.ours import Ours

BOUND = 30.0  # seconds for a step
NEVER = 3.0  # seconds for a kill after which something never happens: a longer look sees no more
Fault = Callable[[pytest.MonkeyPatch], None]


def _answer_of_rank_0(patch: pytest.MonkeyPatch) -> None:
    put = Pending.put
    patch.setattr(Pending, "put", lambda self, rank, value: put(self, rank, (0, *value[1:])))


def _failure_taken_for_an_answer(patch: pytest.MonkeyPatch) -> None:
    decoded = Draining._decoded

    def mild(self: Draining, rank: int, message: Any) -> Any:
        answer = decoded(self, rank, message)
        return answer._replace(event=ReplyOn.RETURNED, cause=None)

    patch.setattr(Draining, "_decoded", mild)


def _error_names_another_rank(patch: pytest.MonkeyPatch) -> None:
    decoded = Draining._decoded

    def blame(self: Draining, rank: int, message: Any) -> Any:
        answer = decoded(self, rank, message)
        if answer.cause is not None:
            answer.cause.rank = 1 - rank  # type: ignore[attr-defined]  # a worker's error has one
        return answer

    patch.setattr(Draining, "_decoded", blame)


def _never_told(patch: pytest.MonkeyPatch) -> None:
    later = Kernel.later

    def forgets(self: Kernel, work: Callable[[], None], foreign: bool = False) -> None:
        if not foreign:
            later(self, work)

    patch.setattr(Kernel, "later", forgets)


def _cancel_says_no(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CallFuture, "cancel", lambda self: False)


def _cancel_only_says_so(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CallFuture, "cancel", lambda self: True)


def _failure_kept_quiet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MultiprocExecutor, "is_failed", property(lambda self: False))


def _failure_invented(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MultiprocExecutor, "is_failed", property(lambda self: True))


def _step_not_written_down(patch: pytest.MonkeyPatch) -> None:
    step = Kernel.step

    def quiet(self: Kernel, call: int, taken: Any) -> None:
        recorded, self.recorded = self.recorded, self.recorded and taken.event.value != "all_replied"
        step(self, call, taken)
        self.recorded = recorded

    patch.setattr(Kernel, "step", quiet)


FAULTS: dict[str, tuple[Fault, str, str]] = {
    "every answer says that it is rank 0's": (_answer_of_rank_0, "start ranks=2; call", "answer"),
    "a failure is taken for an answer": (
        _failure_taken_for_an_answer,
        "start ranks=2; call deed=raise who=1",
        "outcome",
    ),
    "an error names another rank": (
        _error_names_another_rank,
        "start ranks=2; call deed=raise who=1",
        "outcome",
    ),
    "a failure callback is never called": (
        _never_told,
        "start ranks=2; listen; kill rank=1",
        "callback or failed",
    ),
    "a call cannot be cancelled": (_cancel_says_no, "start; future deed=gate; cancel call=1", "future"),
    "a cancelled call is still answered": (
        _cancel_only_says_so,
        "start; future deed=gate; cancel call=1; open call=1; result call=1",
        "outcome",
    ),
    "a failure is kept quiet": (_failure_kept_quiet, "start ranks=2; kill rank=0", "failed"),
    "a failure is invented": (_failure_invented, "start ranks=2", "failed"),
    "a step is not written down": (_step_not_written_down, "start ranks=2; call; stop", "trace"),
}


def run(driver: Driver, program: str) -> None:
    for step in parse(program):
        driver.bound = NEVER if step.word == "kill" else BOUND
        driver.do(step)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, program, invariant = FAULTS[name]
    driver = Driver(Ours(), BOUND)
    try:
        with monkeypatch.context() as patch:
            plant(patch)
            with pytest.raises(Finding) as caught:
                run(driver, program)
            report = caught.value.report()
    finally:
        driver.abandon()
    assert caught.value.invariant in invariant.split(" or "), report
    assert "program:\n    start" in report
