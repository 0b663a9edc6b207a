"""Programs drawn at random on our executor: nothing is found. The same programs each time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from procession.runtime.fork_server import warm
from procession.specs.stateful import ExecutorMachine
from procession.specs.stateful.machine import WORDS
from procession.suite.ours import PRELOAD, Ours

PROGRAMS = 30
steps: list[int] = []


@pytest.fixture(scope="module", autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary folder of our own, and Python's helpers started: nothing seems left that is not a program's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)
        resource_tracker.ensure_running()
        warm(PRELOAD)
        yield


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
