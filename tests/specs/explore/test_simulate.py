"""Random walks: repeatable, and never more sure than they may be."""

from __future__ import annotations

import pytest

from procession.specs.explore import (
    Graph,
    Progress,
    Property,
    Verdict,
    always,
    check,
    eventually,
    leads_to,
    never,
    no_deadlock,
    no_stall,
    random_walk,
    recoverable,
    replay,
    simulate,
    sometimes,
    walk,
)
from procession.specs.explore.bench import Handshake, properties


def yes(_: int) -> bool:
    return True


def no(_: int) -> bool:
    return False


def test_a_walk_is_repeated_by_seed_and_number_and_replayed_by_indices() -> None:
    model = Handshake(8, 2)
    path = random_walk(model, seed=5, number=3)
    assert path == random_walk(model, seed=5, number=3)
    assert path == walk(model, path.indices, path.start)
    assert path != random_walk(model, seed=5, number=4)
    assert path != random_walk(model, seed=6, number=3)
    assert random_walk(model, seed=5, number=3, depth=10).indices == path.indices[:10]


def test_walks_are_the_same_on_every_machine() -> None:
    assert random_walk(Handshake(3, 1), seed=1, depth=8).indices == (4, 0, 1, 0, 0, 0, 0, 0)


def test_a_walk_finds_what_the_search_finds_and_the_run_replays() -> None:
    model = Handshake(4, 1, blind=True)
    report = simulate(model, properties(1), seed=1, walks=200)
    exact = check(model, properties(1))
    for name in ("no deadlock", "decides"):
        run, shortest = report[name].counterexample, exact[name].counterexample
        assert report[name].verdict is Verdict.VIOLATED
        assert run is not None
        assert shortest is not None
        assert replay(model, run)
        assert len(run) >= len(shortest)
        assert (run.cycle == ()) == (name == "decides")
        assert "of seed 1" in run.reason
    assert report.exit_code == 2
    assert report.seed == 1


def test_walks_never_establish_what_only_all_runs_could() -> None:
    graph = Graph({n: [("on", n + 1)] for n in range(5)})
    asked: list[Property[int]] = [
        always("always", "", yes, twin=no),
        never("never", "", no),
        sometimes("unmet", "", no),
        eventually("eventually", "", lambda s: s == 5),
        leads_to("leads to", "", lambda s: s == 1, lambda s: s == 5),
        recoverable("recoverable", "", lambda s: s == 5),
        no_deadlock(),
        no_stall(),
    ]
    report = simulate(graph, asked, seed=0)
    assert {o.verdict for o in report.outcomes} == {Verdict.NOT_ESTABLISHED}
    walks = "in 600 states visited, but 100 walks of seed 0, of up to 1000 steps, are not all runs"
    assert report["always"].reason == f"no violation {walks}; and its twin was not met"
    assert report["never"].reason == f"no violation {walks}"
    assert report["leads to"].reason == f"no violation {walks}"  # its twin, the premise, was met
    assert report["unmet"].reason == f"it does not happen {walks}"
    assert report["recoverable"].reason == f"a walk cannot show that no path leads somewhere {walks}"
    assert report.exit_code == 3


def test_what_a_walk_meets_it_shows() -> None:
    graph = Graph({n: [("on", n + 1)] for n in range(5)}, ends=frozenset())
    asked: list[Property[int]] = [
        always("always", "", lambda s: s < 3),
        never("never", "", lambda s: s == 2),
        sometimes("met", "", lambda s: s == 4),
        eventually("eventually", "", no),
        leads_to("leads to", "", lambda s: s == 1, lambda s: s == 0),
        no_deadlock(),
        no_stall(),
    ]
    report = simulate(graph, asked, seed=0, walks=3)
    ends = {o.name: len(run) for o in report.outcomes if (run := o.counterexample or o.witness)}
    assert ends == {
        "always": 3,
        "never": 2,
        "met": 4,
        "eventually": 5,
        "leads to": 5,
        "no deadlock": 5,
        "no stall": 5,
    }
    assert report["met"].verdict is Verdict.HOLDS


def test_a_walk_that_was_cut_short_rests_nowhere() -> None:
    graph = Graph({n: [("on", n + 1)] for n in range(9)})
    asked: list[Property[int]] = [eventually("goal", "", lambda s: s == 9), no_deadlock()]
    report = simulate(graph, asked, seed=0, depth=5)
    assert {o.verdict for o in report.outcomes} == {Verdict.NOT_ESTABLISHED}


def test_a_run_may_rest_where_only_faults_are_left() -> None:
    graph = Graph({0: [("crash!", 1)], 1: []}, ends=frozenset({0, 1}))
    asked: list[Property[int]] = [eventually("goal", "", lambda s: s == 1), no_stall()]
    report = simulate(graph, asked, seed=0)
    assert report["goal"].verdict is Verdict.VIOLATED
    assert report["no stall"].verdict is Verdict.NOT_ESTABLISHED


def test_a_debt_is_paid_and_made_again_along_a_walk() -> None:
    graph = Graph({0: [("a", 1)], 1: [("b", 2)], 2: [("c", 3)], 3: [("d", 4)]})
    paid: Property[int] = leads_to("paid", "", lambda s: s in (0, 2), lambda s: s in (1, 4))
    unpaid: Property[int] = leads_to("unpaid", "", lambda s: s in (0, 2), lambda s: s == 1)
    report = simulate(graph, [paid, unpaid], seed=0, walks=1)
    assert [o.verdict for o in report.outcomes] == [Verdict.NOT_ESTABLISHED, Verdict.VIOLATED]


def test_stutter_takes_no_steps() -> None:
    assert random_walk(Graph({0: [("spin", 0), ("on", 1)], 1: [("spin", 1)]}), seed=0).states == (0, 1)


def test_faults_are_rarer_than_steps() -> None:
    graph = Graph({0: [("step", 0), ("on", 1), ("crash!", 2)], 1: [], 2: []})
    ends = [random_walk(graph, seed=0, number=n).last for n in range(300)]
    assert 0 < ends.count(2) < ends.count(1) / 4
    assert {random_walk(graph, seed=0, number=n, fault_weight=0.0).last for n in range(50)} == {1}


def test_progress_and_the_time_limit() -> None:
    told: list[Progress] = []
    report = simulate(Handshake(6, 1), properties(1), seed=0, walks=10**9, seconds=0.25, progress=told.append)
    assert 1 <= len(told) <= 3
    assert told[0].phase == "simulation"
    assert "walks of seed 0" in (report.explored[0].truncated or "")


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="two properties"):
        simulate(Graph({}), [no_deadlock(), no_deadlock()], seed=0)
