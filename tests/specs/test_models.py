"""Every model holds, and its size is what it was: a model that grows or shrinks has changed its meaning."""

from __future__ import annotations

import dataclasses

import pytest

from procession.specs.explore import Kind, Verdict, check, gate
from procession.specs.explore.search import search
from procession.specs.models import MODELS, Model
from procession.specs.summary import summary
from procession.specs.world import Budgets

SIZES = {
    "handshake": (2097, 3986),
    "ready": (16943, 50798),
    "stale": (12851, 142207),
    "queues": (2926, 9851),
    "futures": (60528, 286604),
    "ahead": (55888, 158290),
    "stray": (11642, 176220),
    "shutdown": (12812, 51218),
    "life": (14942, 57948),
    "late": (9162, 77513),
    "settled": (2146, 19490),
    "turns": (1387, 3713),
    "full": (2574, 11771),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_property_holds(model: Model) -> None:
    world = model.world()
    report = check(world, model.properties(world), symmetry=model.symmetric)
    assert [str(outcome) for outcome in report.outcomes if outcome.verdict is not Verdict.HOLDS] == []
    assert (report.states, report.transitions) == SIZES[model.name]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_property_has_a_sentence_and_a_twin(model: Model) -> None:
    for asked in model.properties(model.world()):
        assert asked.sentence.endswith("."), asked.name
        if asked.kind not in (Kind.SOMETIMES, Kind.NO_DEADLOCK, Kind.NO_STALL):
            assert asked.twin is not None, asked.name


@pytest.mark.parametrize("model", [model for model in MODELS.values() if model.eager], ids=lambda m: m.name)
def test_eager_reading_changes_no_verdict(model: Model) -> None:
    """The reduction is held against the full search, at a size at which that is cheap, and on a broken protocol."""
    budgets = model.budgets._replace(parents=0, raises=0)
    small = dataclasses.replace(model, ranks=1 if model.calls else 2, budgets=budgets)
    if model.name == "ready":
        small = dataclasses.replace(small, budgets=Budgets(crashes=1, stops=1))
    verdicts = {}
    sizes = {}
    for eager in (True, False):
        world = dataclasses.replace(small, eager=eager).world()
        report = check(world, small.properties(world))
        verdicts[eager] = {outcome.name: outcome.verdict for outcome in report.outcomes}
        sizes[eager] = report.states
    assert verdicts[True] == verdicts[False]
    assert (
        sizes[True] < sizes[False] or model.name == "shutdown"
    )  # which begins when everything has been read


@pytest.mark.parametrize(("ranks", "crashes"), [(1, 1), (2, 0), (2, 2), (3, 1)])
def test_ranks_may_change_places_in_the_handshake(ranks: int, crashes: int) -> None:
    world = MODELS["handshake"].world(ranks, crashes)
    judged = gate(world, MODELS["handshake"].properties(world))
    assert judged.verdict is Verdict.HOLDS, judged.reason


def test_the_handshake_of_six_ranks_of_which_two_may_crash() -> None:
    model = MODELS["handshake"]
    world = model.world(6, 2)
    report = check(world, model.properties(world), symmetry=True)
    assert report.verdict is Verdict.HOLDS
    assert [explored.how for explored in report.explored] == ["search modulo symmetry"]
    assert report.states == 24_313


def test_ranks_that_something_tells_apart_may_not_change_places() -> None:
    with pytest.raises(ValueError, match="tell its ranks apart"):
        dataclasses.replace(MODELS["futures"], symmetric=True).world()


def test_a_start_of_three_ranks() -> None:
    model = MODELS["ready"]
    small = dataclasses.replace(model, ranks=3, budgets=Budgets(crashes=1))
    world = small.world()
    report = check(world, [p for p in small.properties(world) if not p.name.startswith("SIG")])
    assert report.verdict is Verdict.HOLDS
    assert report.states == search(small.world()).expanded


def test_size_and_crashes_can_be_chosen() -> None:
    world = MODELS["queues"].world(ranks=1, crashes=0)
    assert world.size == 1
    assert world.budgets.crashes == 0


def test_what_procession_run_says_of_the_protocol() -> None:
    found = summary()
    assert (found.model, found.verdict) == ("life", "holds")
    assert found.states > 100
    assert summary() is found  # searched once a process


def test_a_search_that_was_cut_short_never_holds() -> None:
    from procession.specs.explore import Limits

    model = MODELS["queues"]
    world = model.world()
    report = check(world, model.properties(world), Limits(states=200))
    assert report.verdict is Verdict.NOT_ESTABLISHED
