"""Search modulo symmetry, and the gate that catches an unsound canonical form."""

from __future__ import annotations

import pytest

from procession.specs.explore import (
    Graph,
    Kind,
    Label,
    LiftError,
    Limits,
    ModelError,
    Property,
    Verdict,
    always,
    check,
    eventually,
    gate,
    no_deadlock,
    no_stall,
    recoverable,
    replay,
    search,
    sometimes,
)
from procession.specs.explore.bench import RECV_SUB, UP, Handshake, State, properties


class AllSorted(Handshake):
    """Unsound: readiness is collected in rank order, and this exchanges ranks across the executor's index."""

    def canonical(self, state: State) -> State:
        return (*state[:3], tuple(sorted(state[3])))


class Restless(Handshake):
    """Unsound: its form of a form is another one."""

    def canonical(self, state: State) -> State:
        return (*state[:3], state[3][1:] + state[3][:1])


@pytest.mark.parametrize(("workers", "crashes", "states"), [(6, 2, 4_307), (8, 2, 13_216)])
def test_reduced_counts_equal_those_of_the_prototype(workers: int, crashes: int, states: int) -> None:
    model = Handshake(workers, crashes)
    assert len(search(model, canonical=model.canonical).states) == states


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(("workers", "crashes"), [(1, 1), (2, 2), (3, 1), (3, 2), (4, 2)])
def test_the_gate_passes_the_rank_aware_form(workers: int, crashes: int, blind: bool) -> None:
    judged = gate(Handshake(workers, crashes, blind), properties(crashes))
    assert judged.verdict is Verdict.HOLDS


def test_the_gate_catches_the_form_that_sorts_all_ranks() -> None:
    judged = gate(AllSorted(3, 2), properties(2))
    assert judged.verdict is Verdict.VIOLATED
    assert "reaches 12 states that do not exist, such as (executor" in judged.reason


def test_the_gate_catches_a_form_that_is_not_idempotent() -> None:
    assert gate(Restless(3, 1), properties(1)).verdict is Verdict.VIOLATED


def test_the_gate_catches_a_predicate_that_names_a_rank() -> None:
    named: Property[State] = always("rank 0 is no further than boot", "", lambda s: s[3][0] & 7 != 3)
    judged = gate(Handshake(3, 1), [named])
    assert judged.verdict is Verdict.VIOLATED
    assert "tells apart" in judged.reason


def test_the_gate_catches_a_form_that_hides_states() -> None:
    class Folded(Graph):
        def canonical(self, state: int) -> int:
            return min(state, 2)

    # 2 and 3 become one, so that 5, which only 3 leads to, is never reached.
    judged = gate(Folded({0: [("a", 2), ("b", 3)], 2: [("c", 2)], 3: [("d", 1)], 1: [("e", 0)]}))
    assert judged.verdict is Verdict.VIOLATED
    assert "misses 1 classes of states, such as (state 1)" in judged.reason


def test_the_gate_says_when_it_could_not_look() -> None:
    judged = gate(Handshake(3, 1), properties(1), Limits(states=50))
    assert judged.verdict is Verdict.NOT_ESTABLISHED


def test_the_gate_needs_a_canonical_form() -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        gate(Graph({}))


def test_the_false_deadlock_of_the_unsound_form_is_not_reported() -> None:
    # The reduced search reaches a deadlock that no run has. It cannot be walked, the full search has none: convicted.
    model = AllSorted(3, 2)
    assert search(model, canonical=model.canonical).deadlock is not None
    with pytest.raises(ModelError, match=r"unsound: no deadlock is violated modulo symmetry, and holds"):
        check(model, [no_deadlock()], symmetry=True)


def test_verdicts_on_states_come_from_the_reduced_search_with_real_runs() -> None:
    model = Handshake(4, 1, blind=True)
    asked: list[Property[State]] = [
        no_deadlock(),
        no_stall(),
        sometimes("subscribes", "", lambda s: s[0] == RECV_SUB),
        always("never up", "", lambda s: s[0] != UP),
    ]
    report = check(model, asked, symmetry=True)
    plain = check(model, asked)
    assert [o.verdict for o in report.outcomes] == [o.verdict for o in plain.outcomes]
    for reduced, full in zip(report.outcomes, plain.outcomes, strict=True):
        run, shortest = reduced.counterexample or reduced.witness, full.counterexample or full.witness
        assert run is not None
        assert shortest is not None
        replay(model, run)
        assert len(run) == len(shortest)


def test_properties_of_paths_are_judged_on_the_full_graph() -> None:
    model = Handshake(3, 1)
    passes: Property[State] = eventually(
        "passes a rank", "", lambda s: s[0] < UP and s[1] > 0
    )  # and is gone again at the end
    asked = [*properties(1), recoverable("ends", "", lambda s: s[0] >= UP), passes]
    report = check(model, asked, symmetry=True)
    assert [e.how for e in report.explored] == ["search modulo symmetry", "search"]
    hows = {o.name: o.explored.how for o in report.outcomes}
    assert {n for n, how in hows.items() if how == "search"} == {"ends", "passes a rank"}
    assert [o.verdict for o in report.outcomes] == [o.verdict for o in check(model, asked).outcomes]
    # Each search has the limits to itself, and an incomplete full one establishes nothing about paths.
    limited = check(Handshake(4, 1), asked, Limits(states=700), symmetry=True)
    assert limited["no deadlock"].verdict is Verdict.HOLDS
    assert limited["ends"].verdict is Verdict.NOT_ESTABLISHED


def test_a_goal_that_every_resting_place_keeps_is_judged_on_the_reduced_graph() -> None:
    report = check(Handshake(3, 1), properties(1), symmetry=True)
    assert [e.how for e in report.explored] == ["search modulo symmetry"]
    assert {o.kind for o in report.outcomes} >= {Kind.EVENTUALLY, Kind.LEADS_TO}
    blind = check(Handshake(3, 1, blind=True), properties(1), symmetry=True)
    assert [e.how for e in blind.explored] == ["search modulo symmetry", "search"]
    assert blind["decides"].verdict is Verdict.VIOLATED
    assert blind["decides"].counterexample is not None


def test_the_gate_catches_a_form_that_loses_every_cycle() -> None:
    class Unwound(Graph):
        def canonical(self, state: int) -> int:
            return {2: 1}.get(state, state)

        def distinct_actions(self, state: int) -> list[tuple[Label, int]]:
            return [one for one in self.actions(state) if one[0].action != "turn"]

    model = Unwound({0: [("start", 1)], 1: [("turn", 2), ("leave", 9)], 2: [("turn", 1), ("leave", 9)]})
    judged = gate(model)
    assert judged.verdict is Verdict.VIOLATED
    assert "lost every cycle" in judged.reason


class Twins(Graph):
    """Two ranks that take turns for ever, in the state (who moved last); either alone could reach the goal, 9."""

    def canonical(self, state: int) -> int:
        return 1 if state == 2 else state


def test_why_liveness_is_not_judged_on_a_reduced_graph() -> None:
    # Rank 1 could leave from state 1 alone and rank 2 from state 2 alone: each is disabled now and then, so the cycle
    # is fair. Reduced, the cycle is one state with a self-loop, "leave 1" is enabled in it for good, and the violation
    # is gone.
    arrows = {0: [("start", 1)], 1: [("turn", 2), ("leave 1", 9)], 2: [("turn", 1), ("leave 2", 9)]}
    prop: Property[int] = eventually("leaves", "", lambda s: s == 9)
    assert check(Twins(arrows), [prop], symmetry=True).verdict is Verdict.VIOLATED
    quotient = Graph({0: [("start", 1)], 1: [("turn", 1), ("leave 1", 9)]})
    assert check(quotient, [prop]).verdict is Verdict.HOLDS


def test_a_reduced_path_that_no_run_follows_is_an_error() -> None:
    class Merged(Graph):
        def canonical(self, state: int) -> int:
            return {2: 1, 1: 2}.get(state, state)

    model = Merged({0: [("a", 1)], 1: [("b", 3)], 2: [("c", 4)]})
    space = search(model, canonical=model.canonical)
    with pytest.raises(LiftError, match="modulo symmetry had reached"):
        space.path_to(space.states.index(4))


def test_a_finding_without_a_run_is_not_established_if_the_full_search_does_not_end() -> None:
    model = AllSorted(4, 2)
    reduced = len(search(model, canonical=model.canonical).states)
    outcome = check(model, [no_deadlock()], Limits(states=reduced), symmetry=True)["no deadlock"]
    assert outcome.verdict is Verdict.NOT_ESTABLISHED
