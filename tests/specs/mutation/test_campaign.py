"""What the campaign makes of defects: killed, refused, equivalent, or survived; and what it says of its reasons."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from procession.specs.mutation import Campaign, Defect, Outcome, defects, run
from procession.specs.mutation.baseline import STAGES, Stage, baseline
from procession.specs.mutation.counts import by_table, in_all
from procession.specs.mutation.fate import fate
from procession.specs.mutation.reasons import REASONS, Reason

SMALL = tuple(stage for stage in STAGES if stage.name in ("ready/1", "ahead/1", "shutdown/1"))
SURVIVOR = "stop: RUNNING --stop--> CLOSING with arm_grace before wake_blocked"
KILLED = "start: drop STARTING --all_ready--> UP"


@cache
def by_name() -> dict[str, Defect]:
    return {one.name: one for one in defects()}


def campaign(
    *names: str, stages: tuple[Stage, ...] = SMALL, reasons: tuple[Reason, ...] = REASONS
) -> Campaign:
    return run(lambda one: one.name in names, processes=1, stages=stages, reasons=reasons)


def test_every_name_is_unique() -> None:
    assert len(by_name()) == len(defects())


def test_each_reason_names_a_defect_that_exists_and_lint_lets_pass() -> None:
    for reason in REASONS:
        assert reason.why.endswith(".")
        for name in reason.defects:
            assert not by_name()[name].lint, name


def test_no_defect_has_two_reasons() -> None:
    named = [name for reason in REASONS for name in reason.defects]
    assert len(named) == len(set(named))


def test_a_killed_defect_names_its_property() -> None:
    found = fate(by_name()["call: OPEN --rank_raised--> FAILED without fail"], SMALL)
    assert found.outcome is Outcome.PROPERTY
    assert found.model == "ahead/1"
    assert found.by in {name for stage in SMALL for name in baseline(stage).holds}


def test_neighbours_that_commute_are_equivalent() -> None:
    name = "coupling of stop: each stop TERMINATING → terminate before each stop CLOSING → ask"
    found = fate(by_name()[name], SMALL)
    assert found.outcome is Outcome.EQUIVALENT
    assert found.shown == "the same steps in the same order, in every reachable state"


def test_two_who_learn_a_fact_in_another_order_take_the_same_steps() -> None:
    found = fate(by_name()["rank_made: start spawned before stop spawned"], SMALL)
    assert found.outcome is Outcome.EQUIVALENT
    assert found.shown.endswith("their order within one action differs")


def test_a_row_that_never_acts_is_not_called_equivalent() -> None:
    one = by_name()["boot: drop FAILED --stop--> (stays)"]
    assert not any(key in baseline(stage).by_key for stage in SMALL for key in one.touches)
    assert fate(one, SMALL).outcome is Outcome.SURVIVED


def test_an_effect_that_no_model_looks_at_is_not_called_equivalent() -> None:
    stage = next(stage for stage in STAGES if stage.name == "stale/1")
    name = "rank_start: SPAWNED|DEVICE|WEIGHTS|QUEUES|READY --hello [not of_this_epoch]--> (stays) without drop_stale"
    assert any(key in baseline(stage).by_key for key in by_name()[name].touches)
    assert fate(by_name()[name], [stage]).outcome is Outcome.SURVIVED


@pytest.mark.parametrize("stage", SMALL, ids=lambda stage: stage.name)
def test_to_ask_only_what_is_concerned_finds_as_much_as_to_ask_all(stage: Stage) -> None:
    shown = baseline(stage)
    some = [one for one in defects() if not one.lint and not one.asks][::23]
    assert len(some) > 20
    for one in some:
        sides = one.make()
        every = replace(one, asks=True)
        assert shown.alike(one, *sides) == shown.alike(every, *sides), one.name


def test_a_survivor_with_a_reason_is_explained_and_one_without_is_not() -> None:
    found = campaign(SURVIVOR)
    assert not found.unexplained
    assert found.reasons[SURVIVOR].startswith("Both effects")
    assert [one.defect for one in campaign(SURVIVOR, reasons=()).unexplained] == [SURVIVOR]


def test_a_reason_for_what_is_killed_or_is_none_is_wrong() -> None:
    reasons = (Reason("It is so.", (KILLED, "no such thing")),)
    found = campaign(KILLED, reasons=reasons)
    assert found.wrong == (
        f"{KILLED!r} has a reason to survive, and is killed by lint",
        "no defect is called 'no such thing'",
    )


def test_counts_add_up() -> None:
    found = campaign(SURVIVOR, KILLED, "rank_made: start spawned before stop spawned")
    (all_) = in_all(found)
    assert [one.where for one in by_table(found)] == ["start", "stop", "rank_made"]
    assert (all_.defects, all_.lint, all_.killed, all_.equivalent, all_.explained) == (3, 1, 0, 1, 1)
    assert all_.share == found.share == 0
