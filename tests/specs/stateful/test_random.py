"""Programs drawn at random on our executor: nothing is found. The same programs each time."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from procession.specs.stateful import ExecutorMachine
from procession.specs.stateful.machine import WORDS
from procession.suite.ours import Ours

PROGRAMS = 30
steps: list[int] = []


class Quick(ExecutorMachine):
    """Our executor; what was done is counted."""

    adapter: ClassVar[type[Ours]] = Ours
    words = tuple(word for word in WORDS if word != "orphan")  # it takes seconds, and a fixed program has it

    def finished(self) -> None:
        """A program came to its end."""
        steps.append(len(self.driver.program))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_found_by_random_programs() -> None:
    profile = settings(
        max_examples=PROGRAMS,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # what is found is reported as it was found
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(Quick, settings=profile)
    except BaseException:
        if Quick.last is not None:
            pytest.fail(Quick.last.report())
        raise
    assert len(steps) >= PROGRAMS  # it may draw one that it cannot finish, and another instead
    assert sum(steps) > 10 * PROGRAMS
