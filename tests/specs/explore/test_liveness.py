"""Liveness under weak fairness: each of these was once a bug of some checker (STYLE.md, ANCHORS.md 5.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from procession.specs.explore import (
    Counterexample,
    Graph,
    Label,
    Limits,
    Property,
    Verdict,
    check,
    eventually,
    leads_to,
    no_stall,
    recoverable,
    replay,
    search,
)
from procession.specs.explore.liveness import find_irrecoverable, find_lasso

GOAL = 9


def owed(graph: Graph, premise: Callable[[int], bool] | None = None, limits: Limits | None = None) -> Verdict:
    """The verdict on "eventually 9", or "the premise leads to 9"; a counterexample is replayed."""
    prop = (
        eventually("goal", "", lambda s: s == GOAL)
        if premise is None
        else leads_to("goal", "", premise, lambda s: s == GOAL)
    )
    outcome = check(graph, [prop], limits)["goal"]
    if outcome.counterexample is not None:
        replay(graph, outcome.counterexample)
    return outcome.verdict


def lasso(graph: Graph) -> Counterexample:
    run = check(graph, [eventually("goal", "", lambda s: s == GOAL)])["goal"].counterexample
    assert run is not None
    replay(graph, run)
    return run


def test_eventually_is_violated_on_a_cycle() -> None:
    graph = Graph({0: [("a", 1)], 1: [("b", 2)], 2: [("c", 1)]})
    assert owed(graph) is Verdict.VIOLATED
    run = lasso(graph)
    assert [s.label.action for s in run.stem] == ["a"]
    assert run.cycle is not None
    assert [s.label.action for s in run.cycle] == ["b", "c"]


def test_eventually_holds_where_the_cycle_must_be_left() -> None:
    # "out" stays enabled all round the cycle and is never taken: the cycle is unfair, and no violation.
    assert owed(Graph({0: [("a", 1), ("out", GOAL)], 1: [("b", 0), ("out", GOAL)]})) is Verdict.HOLDS


def test_a_cycle_that_disables_the_way_out_now_and_then_is_fair() -> None:
    # The same, but "out" is disabled in state 1, and weak fairness asks for nothing: the difference from strong.
    graph = Graph({0: [("a", 1), ("out", GOAL)], 1: [("b", 0)]})
    assert owed(graph) is Verdict.VIOLATED


def test_paths_that_join_with_different_debts() -> None:
    # State 3 is met first by the way through 9, which owes nothing any more, and later by one that owes.
    graph = Graph(
        {0: [("a", GOAL), ("b", 1)], GOAL: [("c", 3)], 1: [("d", 2)], 2: [("e", 3)], 3: [("f", 4)], 4: []}
    )
    assert owed(graph) is Verdict.VIOLATED
    # And the other way round: the way that owes nothing must not be charged with the other's debt.
    first = Graph({0: [("a", 1), ("b", 2)], 1: [("c", GOAL)], 2: [("d", 3)], GOAL: [("e", 3)], 3: [("f", 3)]})
    assert owed(first, lambda s: s == 1) is Verdict.HOLDS
    assert owed(first, lambda s: s == 2) is Verdict.VIOLATED


def test_a_debt_that_was_paid_can_be_made_again() -> None:
    graph = Graph({0: [("a", 1)], 1: [("b", GOAL)], GOAL: [("c", 2)], 2: [("d", 1), ("e", 3)], 3: [("f", 2)]})
    assert owed(graph, lambda s: s == 1) is Verdict.HOLDS
    assert owed(graph, lambda s: s == 2) is Verdict.VIOLATED


def test_a_state_with_both_premise_and_goal_owes_nothing() -> None:
    assert owed(Graph({0: [("a", GOAL)], GOAL: [("b", 1)]}), lambda s: s == GOAL) is Verdict.HOLDS


def test_fairness_is_judged_on_the_cycle_that_avoids_the_goal() -> None:
    # All of it is one component of the whole graph, and "b" is taken there, on the way through the goal. The cycle
    # 0-1 that avoids the goal never takes it, though it is enabled throughout.
    unfair = Graph({0: [("a", 1), ("b", GOAL)], 1: [("a", 0), ("b", GOAL)], GOAL: [("c", 0)]})
    assert owed(unfair, lambda s: s == 0) is Verdict.HOLDS
    # Conversely "c" is disabled only beyond the goal, and taken in the cycle that avoids it.
    fair = Graph({0: [("a", 1), ("c", 1)], 1: [("c", 0), ("d!", GOAL)], GOAL: [("a", 0)]})
    assert owed(fair, lambda s: s == 0) is Verdict.VIOLATED


def test_stutter_neither_takes_nor_enables_a_fair_action() -> None:
    # Enables: a self-loop named "a" does not make rest in 1 unfair.
    assert owed(Graph({0: [("go", 1)], 1: [("a", 1)]})) is Verdict.VIOLATED
    # Takes: in the cycle 0-1, "a" is enabled by its way out; its self-loop in 0 is no taking of it.
    graph = Graph({0: [("a", 0), ("a", GOAL), ("b", 1)], 1: [("b", 0), ("a", GOAL)]})
    assert owed(graph) is Verdict.HOLDS


def test_terminal_states_stutter() -> None:
    graph = Graph({0: [("a", 1), ("b", GOAL)]})
    run = lasso(graph)
    assert [s.label.action for s in run.stem] == ["a"]
    assert run.cycle == ()
    assert "rests for ever" in run.to_text()


def test_an_accepting_end_without_the_goal_is_a_violation_all_the_same() -> None:
    assert owed(Graph({0: [("a", 1)]}, ends=frozenset({1}))) is Verdict.VIOLATED


def test_faults_are_never_fair() -> None:
    # A crash would lead to the goal, but it need not happen, and the run rests.
    run = lasso(Graph({0: [("crash!", GOAL)]}))
    assert (len(run.stem), run.cycle) == (0, ())
    # A fault may happen in the cycle, and need not be taken there.
    assert owed(Graph({0: [("drop!", 1), ("out", GOAL)], 1: [("retry", 0), ("out", GOAL)]})) is Verdict.HOLDS
    assert owed(Graph({0: [("drop!", 1), ("out", GOAL)], 1: [("retry", 0)]})) is Verdict.VIOLATED


def test_two_fairness_assumptions_together() -> None:
    # Either of "a" and "b" alone lets some cycle be fair; only both together force the goal.
    both = Graph(
        {0: [("t", 1), ("a", GOAL)], 1: [("t", 2), ("a", GOAL), ("b", 3)], 2: [("t", 0), ("a", GOAL)]}
    )
    assert owed(both) is Verdict.VIOLATED  # 3 is an end
    forced = Graph(
        {
            0: [("t", 1), ("a", 2), ("b", GOAL)],
            1: [("t", 0), ("a", 2), ("b", GOAL)],
            2: [("t", 3), ("b", GOAL)],
            3: [("t", 2), ("b", GOAL)],
        }
    )
    assert owed(forced) is Verdict.HOLDS
    # "b" no longer enabled in 3: the cycle 2-3 is fair to it; "a" is disabled there.
    assert owed(Graph({**forced.arrows, 3: [("t", 2)]})) is Verdict.VIOLATED
    # "b" unfair: the same cycle need not be left.
    faulty = {s: [(a + "!" if a == "b" else a, t) for a, t in out] for s, out in forced.arrows.items()}
    assert owed(Graph(faulty)) is Verdict.VIOLATED


def test_the_cycle_of_a_lasso_serves_every_class_it_owes() -> None:
    # "a", "b" and "c" are enabled everywhere in the component: each must be taken in the printed cycle.
    graph = Graph(
        {
            0: [("a", 1), ("b", 2), ("c", 3)],
            1: [("a", 0), ("b", 0), ("c", 0)],
            2: [("a", 0), ("b", 0), ("c", 0)],
            3: [("a", 0), ("b", 0), ("c", 0)],
        }
    )
    run = lasso(graph)
    assert run.cycle is not None
    assert {s.label.action for s in run.cycle} == {"a", "b", "c"}
    assert len(run.cycle) <= 4


def test_the_cycle_ends_where_it_comes_home() -> None:
    run = lasso(Graph({0: [("a", 1), ("b", 1)], 1: [("a", 0), ("b", 0)]}))
    assert run.cycle is not None
    assert sorted(s.label.action for s in run.cycle) == ["a", "b"]


@pytest.mark.parametrize("first", [("z", 5), ("a", 1)])
def test_the_shorter_of_two_lassos_is_given(first: tuple[str, int]) -> None:
    start = {0: [first, ("a", 1), ("z", 5)]}
    near = {5: [("z", 6)], 6: [("z", 5)]}
    far = {1: [("b", 2)], 2: [("c", 3)], 3: [("d", 4)], 4: [("e", 1)]}
    run = lasso(Graph(start | near | far))
    assert run.cycle is not None
    assert (len(run.stem), len(run.cycle)) == (1, 2)


def test_the_stem_begins_where_the_run_does() -> None:
    graph = Graph({0: [("a", 0)], 7: [("b", 8)], 8: [("c", 7)]}, starts=(GOAL, 7))
    run = lasso(graph)
    assert run.start == 1
    assert replay(graph, run).states == (7, 8, 7)


def test_a_truncated_search_never_says_holds() -> None:
    chain = {n: [("a", n + 1)] for n in range(8)}
    chain[8] = [("a", GOAL)]
    graph = Graph(chain)
    assert owed(graph) is Verdict.HOLDS
    for limits in (Limits(depth=4), Limits(states=4), Limits(depth=9)):
        assert owed(graph, limits=limits) is Verdict.NOT_ESTABLISHED


def test_a_state_that_was_not_expanded_is_no_end() -> None:
    space = search(
        Graph({0: [("a", 1)], 1: [("b", 2)], 2: [("c", GOAL)]}), limits=Limits(depth=1), edges=True
    )
    assert find_lasso(space, lambda s: s == GOAL) is None
    assert find_irrecoverable(space, lambda s: s == GOAL) is None


def test_a_lasso_in_the_explored_part_is_a_violation_all_the_same() -> None:
    arrows = {n: [("a", n + 1)] for n in range(3, 8)} | {
        0: [("a", 1), ("x", 3)],
        1: [("b", 2)],
        2: [("c", 1)],
    }
    assert owed(Graph(arrows), limits=Limits(depth=3)) is Verdict.VIOLATED


def test_a_model_may_say_what_a_fairness_class_is() -> None:
    class OneClass(Graph):
        """Serving any of the ranks is serving all."""

        def fair_key(self, label: Label) -> str:
            return "serve"

    arrows = {0: [("a", 1), ("b", GOAL)], 1: [("a", 0), ("b", GOAL)]}
    assert owed(Graph(arrows)) is Verdict.HOLDS
    assert owed(OneClass(arrows)) is Verdict.VIOLATED


def test_depth_is_no_matter() -> None:
    # Twice Python's recursion limit: a recursive Tarjan would fall over.
    arrows = {n: [("a", n + 1)] for n in range(10, 2010)}
    arrows[2010] = [("back", 11)]
    assert owed(Graph(arrows, starts=(10,)), lambda s: s == 1000) is Verdict.VIOLATED


def test_recoverable_is_reachability_from_everywhere() -> None:
    prop: Property[int] = recoverable("back", "", lambda s: s == 0)
    good = Graph({0: [("a", 1)], 1: [("b", 0), ("c", 2)], 2: [("d", 1)]})
    assert check(good, [prop]).verdict is Verdict.HOLDS
    bad = Graph({0: [("a", 1)], 1: [("b", 0), ("c", 2)], 2: [("d", 3)], 3: [("e", 2)]})
    outcome = check(bad, [prop])["back"]
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert replay(bad, outcome.counterexample).states == (0, 1, 2)
    assert check(good, [prop], Limits(depth=1)).verdict is Verdict.NOT_ESTABLISHED
    assert check(bad, [prop], Limits(depth=1)).verdict is Verdict.NOT_ESTABLISHED


def test_recoverable_is_violated_in_a_truncated_search_if_no_way_leads_out() -> None:
    arrows = {0: [("a", 1), ("x", 3)], 1: [("b", 1)]} | {n: [("x", n + 1)] for n in range(3, 8)}
    outcome = check(Graph(arrows), [recoverable("back", "", lambda s: s == 0)], Limits(depth=3))["back"]
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.states[-1] == "state 1"


def test_no_stall_takes_no_fault_for_a_way_on() -> None:
    waits = Graph({0: [("a", 1)], 1: [("crash!", 2)]}, ends=frozenset({2}))
    assert check(waits, [no_stall()]).verdict is Verdict.VIOLATED
    assert check(Graph(waits.arrows, ends=frozenset({1, 2})), [no_stall()]).verdict is Verdict.HOLDS


def test_edges_are_asked_for() -> None:
    with pytest.raises(ValueError, match="needs the edges"):
        find_lasso(search(Graph({})), lambda s: True)


def test_a_reduced_graph_is_refused() -> None:
    space = search(Graph({}), edges=True, canonical=lambda s: s)
    for judge in (find_lasso, find_irrecoverable):
        with pytest.raises(ValueError, match="full graph"):
            judge(space, lambda s: True)
