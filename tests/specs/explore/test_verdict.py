"""Verdicts combine to the worst, and nothing checked is nothing established."""

from __future__ import annotations

from itertools import product

import pytest

from procession.specs.explore import Judgement, Verdict, worst


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.HOLDS, 0), (Verdict.VIOLATED, 2), (Verdict.NOT_ESTABLISHED, 3)]
)
def test_exit_codes_leave_1_to_python(verdict: Verdict, code: int) -> None:
    assert verdict.exit_code == code


def test_one_violation_is_enough_and_one_gap_is_too_many() -> None:
    for verdicts in product(Verdict, repeat=3):
        expected = Verdict.HOLDS
        if Verdict.NOT_ESTABLISHED in verdicts:
            expected = Verdict.NOT_ESTABLISHED
        if Verdict.VIOLATED in verdicts:
            expected = Verdict.VIOLATED
        assert worst(verdicts) is expected


def test_the_worst_of_nothing_is_not_established() -> None:
    assert worst([]) is Verdict.NOT_ESTABLISHED


def test_a_judgement_reads_as_a_sentence() -> None:
    assert str(Judgement(Verdict.NOT_ESTABLISHED, "time is up")) == "not established: time is up"
