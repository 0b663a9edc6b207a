"""The explorer against brute force, on random small graphs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from procession.specs.explore import (
    Graph,
    Property,
    Verdict,
    always,
    check,
    eventually,
    leads_to,
    no_deadlock,
    no_stall,
    recoverable,
    replay,
    search,
    sometimes,
)

Arrow = tuple[int, str, int]

ACTIONS = ("a", "b", "c", "crash!")


@st.composite
def graphs(draw: st.DrawFn, states: int = 5, arrows: int = 8) -> Graph:
    """A graph with few arrows, so that the subsets of them can be enumerated."""
    number = st.integers(0, draw(st.integers(0, states - 1)))
    chosen = draw(st.lists(st.tuples(number, st.sampled_from(ACTIONS), number), max_size=arrows, unique=True))
    table: dict[int, list[tuple[str, int]]] = {}
    for source, action, target in chosen:
        table.setdefault(source, []).append((action, target))
    ends = draw(st.none() | st.frozensets(number))
    starts = draw(st.lists(number, min_size=1, max_size=2))
    return Graph(table, starts, ends)


some_states = st.frozensets(st.integers(0, 4))


def arrows_of(graph: Graph) -> list[Arrow]:
    return [(source, action, target) for source, out in graph.arrows.items() for action, target in out]


def reached(graph: Graph, sources: frozenset[int] | set[int]) -> set[int]:
    """All states that some path from `sources` leads to."""
    found = set(sources)
    while more := {t for s, _, t in arrows_of(graph) if s in found} - found:
        found |= more
    return found


def enabled(graph: Graph, state: int) -> set[str]:
    """The fair actions that would change the state."""
    return {a for a, t in graph.arrows.get(state, ()) if not a.endswith("!") and t != state}


def is_fair(graph: Graph, states: set[int], taken: set[str]) -> bool:
    """Weak fairness, by its definition, of a cycle through these states that takes these actions."""
    return all(a in taken or any(a not in enabled(graph, s) for s in states) for a in ("a", "b", "c"))


def cycles(graph: Graph) -> Iterator[tuple[set[int], set[str]]]:
    """Every closed walk, as what it visits and takes: rests, and each strongly connected set of arrows."""
    moves = [arrow for arrow in arrows_of(graph) if arrow[0] != arrow[2]]
    for state in range(5):
        yield {state}, set()
    for size in range(2, len(moves) + 1):
        for chosen in combinations(moves, size):
            states = {s for s, _, _ in chosen} | {t for _, _, t in chosen}
            table: dict[int, list[tuple[str, int]]] = {s: [] for s in states}
            for source, action, target in chosen:
                table[source].append((action, target))
            if all(reached(Graph(table), {s}) == states for s in states):
                yield states, {a for _, a, _ in chosen}


def in_debt(graph: Graph, premise: frozenset[int] | None, goal: frozenset[int]) -> set[int]:
    """The states in which some path owes the goal: the product of state and debt, walked out."""

    def arrive(state: int, owes: bool) -> tuple[int, bool]:
        return state, (owes or (premise is not None and state in premise)) and state not in goal

    found = {arrive(s, premise is None) for s in graph.starts}
    while more := {arrive(t, owes) for s, owes in found for _, t in graph.arrows.get(s, ())} - found:
        found |= more
    return {state for state, owes in found if owes}


def violated(graph: Graph, premise: frozenset[int] | None, goal: frozenset[int]) -> bool:
    owing = in_debt(graph, premise, goal)
    return any(states <= owing and is_fair(graph, states, taken) for states, taken in cycles(graph))


@settings(deadline=None, max_examples=400)
@given(graphs(), st.none() | some_states, some_states)
@example(Graph({0: [("a", 1), ("b", 2)], 1: [("a", 0), ("b", 2)]}), None, frozenset({2}))
@example(Graph({0: [("a", 1), ("b", 2)], 1: [("a", 0)]}), None, frozenset({2}))
@example(Graph({0: [("a", 0), ("a", 2), ("b", 1)], 1: [("b", 0), ("a", 2)]}), None, frozenset({2}))
def test_liveness_equals_the_enumeration_of_lassos(
    graph: Graph, premise: frozenset[int] | None, goal: frozenset[int]
) -> None:
    prop: Property[int] = eventually("goal", "", lambda s: s in goal)
    if premise is not None:
        prop = leads_to("goal", "", lambda s: s in premise, lambda s: s in goal, twin=lambda _: True)
    outcome = check(graph, [prop])["goal"]
    assert outcome.verdict is (Verdict.VIOLATED if violated(graph, premise, goal) else Verdict.HOLDS)
    run = outcome.counterexample
    if run is None:
        return
    # The lasso is a run, it is fair, and it owes the goal from some state of the stem on for ever.
    states = replay(graph, run).states
    loop = set(states[len(run.stem) :])
    assert run.cycle is not None
    assert is_fair(graph, loop, {step.label.action for step in run.cycle})
    paid = max((n for n, s in enumerate(states) if s in goal), default=-1)
    assert paid < len(run.stem)
    if premise is None:
        assert paid == -1
    else:
        assert any(s in premise for s in states[paid + 1 :])


@settings(deadline=None, max_examples=300)
@given(graphs(states=6, arrows=12), some_states)
def test_the_rest_equals_plain_reachability(graph: Graph, wanted: frozenset[int]) -> None:
    reachable = reached(graph, set(graph.starts))
    stuck = {
        s for s in reachable if all(t == s for _, t in graph.arrows.get(s, ())) and not graph.accepting(s)
    }
    stalled = {s for s in reachable if not enabled(graph, s) and not graph.accepting(s)}
    lost = {s for s in reachable if not reached(graph, {s}) & wanted}
    bad = {
        "always": reachable - wanted,
        "no deadlock": stuck,
        "no stall": stalled,
        "recoverable": lost,
    }
    report = check(
        graph,
        [
            always("always", "", lambda s: s in wanted),
            no_deadlock(),
            no_stall(),
            recoverable("recoverable", "", lambda s: s in wanted),
            sometimes("sometimes", "", lambda s: s in wanted),
        ],
    )
    assert report.states == len(reachable)
    for name, states in bad.items():
        run = report[name].counterexample
        assert (report[name].verdict is Verdict.VIOLATED) == bool(states)
        assert (run is not None) == bool(states)
        if run is not None:
            assert replay(graph, run).last in states
            assert len(run) == min(distance(graph, s) for s in states)
    witness = report["sometimes"].witness
    assert (witness is not None) == bool(reachable & wanted)
    if witness is not None:
        assert len(witness) == min(distance(graph, s) for s in reachable & wanted)


def distance(graph: Graph, state: int) -> int:
    """Steps from the nearest start, by widening."""
    near, steps = set(graph.starts), 0
    while state not in near:
        near |= {t for s, _, t in arrows_of(graph) if s in near}
        steps += 1
    return steps


@settings(deadline=None)
@given(graphs(states=6, arrows=12))
def test_every_path_is_a_shortest_run(graph: Graph) -> None:
    space = search(graph)
    for number, state in enumerate(space.states):
        path = space.path_to(number)
        assert path.last == state
        assert len(path.steps) == distance(graph, state) == space.depth_of(number)
