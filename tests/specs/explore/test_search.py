"""The search: numbering, shortest paths, limits, faults of the model, and its speed of telling."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest

from procession.specs.explore import Graph, Label, Limits, ModelError, Progress, Watch, search

UP = Label("counter", "up")


@dataclass
class Counter:
    """Counts for ever, or until it breaks."""

    breaks_at: int | None = None
    error: type[BaseException] = ValueError
    name: str = "counter"

    def initial(self) -> Iterable[int]:
        return [0]

    def actions(self, state: int) -> Iterator[tuple[Label, int]]:
        if state == self.breaks_at:
            raise self.error("no more")
        yield UP, state + 1

    def accepting(self, state: int) -> bool:
        return False

    def describe(self, state: int) -> str:
        return f"at {state}"


class Nobody(Counter):
    """A model that cannot start."""

    def initial(self) -> Iterable[int]:
        return []


class Fickle(Counter):
    """A model whose actions differ from call to call."""

    calls = 0

    def actions(self, state: int) -> Iterator[tuple[Label, int]]:
        self.calls += 1
        yield UP, state + (1 if self.calls == 1 else 2)


DIAMOND = Graph(
    {0: [("a", 1), ("b", 2)], 1: [("c", 3)], 2: [("d", 3), ("e", 4)], 3: [("f", 5)], 4: [("g", 5)]}
)


def test_states_are_numbered_breadth_first_and_met_once() -> None:
    space = search(DIAMOND)
    assert space.states == [0, 1, 2, 3, 4, 5]
    assert list(space.levels) == [0, 1, 3, 5]
    assert [space.depth_of(n) for n in range(6)] == [0, 1, 1, 2, 2, 3]
    assert (space.transitions, space.depth, space.truncated) == (7, 3, None)


def test_a_path_is_shortest_and_replayable() -> None:
    path = search(DIAMOND).path_to(4)
    assert path.states == (0, 2, 4)
    assert path.indices == (1, 1)
    assert [step.label.action for step in path.steps] == ["b", "e"]


def test_several_starts() -> None:
    space = search(Graph({7: [("a", 8)], 9: [("b", 10)]}, starts=(7, 9, 7)))
    assert space.states == [7, 9, 8, 10]
    assert (space.path_to(3).start, space.path_to(3).states) == (1, (9, 10))


def test_watches_give_the_first_match_or_none() -> None:
    watches: list[Watch[int]] = [
        Watch(lambda s: s >= 3),
        Watch(lambda s: s < 2, wanted=False),
        Watch(lambda s: s == 9),
    ]
    assert search(DIAMOND, watches).matches == [3, 2, None]


def test_a_watch_that_stops_ends_the_search() -> None:
    space = search(Counter(), [Watch(lambda s: s == 500, stops=True)])
    assert space.matches == [500]
    assert space.truncated == "it stopped at the first violation"


def test_edges_keep_the_order_of_actions_and_give_stutter_no_class() -> None:
    space = search(Graph({0: [("a", 0), ("b", 1), ("x!", 1)], 1: [("a", 0)]}), edges=True)
    edges = space.edges
    assert edges is not None
    assert [[edges.targets[e] for e in edges.of(s)] for s in (0, 1)] == [[0, 1, 1], [0]]
    assert [edges.keys[c] if c >= 0 else None for c in edges.classes] == [
        None,
        ("graph", "b"),
        None,
        ("graph", "a"),
    ]
    assert [edges.source(e) for e in range(4)] == [0, 0, 0, 1]


def test_deadlock_is_a_state_that_nothing_changes_and_where_no_run_may_end() -> None:
    stuck = Graph({0: [("a", 1)], 1: [("spin", 1)]}, ends=frozenset())
    assert search(stuck).deadlock == 1
    assert search(Graph({0: [("a", 1)]}, ends=frozenset({0}))).deadlock == 1
    assert search(Graph({0: [("a", 1)]})).deadlock is None
    assert search(stuck, stop_at_deadlock=True).truncated == "it stopped at the first violation"


def test_each_limit_ends_the_search_and_says_so() -> None:
    for limits, reason in (
        (Limits(states=100), "it stopped at the limit of 100 states"),
        (Limits(depth=7), "it stopped at the limit of depth 7"),
        (Limits(seconds=0.0), "it stopped at the limit of 0 seconds"),
        (Limits(memory=1), "it stopped at the limit of 0 MiB of memory"),
    ):
        space = search(Counter(), limits=limits, edges=True)
        assert space.truncated == reason
        assert space.edges is not None
        assert len(space.edges.offsets) == len(space.states) + 1
        assert 0 < space.expanded < len(space.states)
        assert space.depth_of(len(space.states) - 1) == len(space.states) - 1


def test_limits_that_are_just_met_end_nothing() -> None:
    assert search(DIAMOND, limits=Limits(states=6, depth=4)).truncated is None
    assert search(DIAMOND, limits=Limits(states=5)).truncated is not None
    # At depth 3 lies a state of which nobody knows whether anything follows.
    assert search(DIAMOND, limits=Limits(depth=3)).truncated is not None


def test_limits_that_are_far_off_end_nothing() -> None:
    assert search(DIAMOND, limits=Limits(states=None, seconds=3600.0, memory=2**50)).truncated is None


def test_garbage_is_collected_afterwards_as_before() -> None:
    assert gc.isenabled()
    search(DIAMOND)
    assert gc.isenabled()
    gc.disable()
    try:
        search(DIAMOND)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_running_out_of_memory_is_a_limit() -> None:
    space = search(Counter(breaks_at=1000, error=MemoryError), edges=True)
    assert space.truncated == "it ran out of memory"
    assert space.expanded == 1000
    assert space.transitions == 1000


def test_a_model_that_raises_is_at_fault_and_the_way_there_is_told() -> None:
    with pytest.raises(
        ModelError, match=r"(?s)actions raised ValueError: no more.*at 2.*counter: up.*counter: up"
    ):
        search(Counter(breaks_at=2))


def test_a_predicate_that_raises_is_at_fault() -> None:
    with pytest.raises(ModelError, match=r"(?s)predicate raised ZeroDivisionError.*at 3"):
        search(Counter(), [Watch(lambda s: 1 // (s - 3) > 5)])


def test_a_model_without_a_start_is_at_fault() -> None:
    with pytest.raises(ModelError, match="no initial state"):
        search(Nobody())


def test_a_model_that_does_not_repeat_itself_is_found_out() -> None:
    space = search(Fickle(), limits=Limits(depth=1))
    with pytest.raises(ModelError, match="differ from call to call"):
        space.path_to(1)


def test_progress_is_told_ten_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    # The package's attribute `search` is the function; the module is in sys.modules under the same name.
    module = importlib.import_module("procession.specs.explore.search")
    monkeypatch.setattr(module, "perf_counter", lambda: next(ticks) / 100)
    told: list[Progress] = []
    search(Counter(), limits=Limits(seconds=1.0), progress=told.append)
    assert 8 <= len(told) <= 10
    assert [p.states for p in told] == sorted(p.states for p in told)
    last = told[-1]
    assert (last.phase, last.frontier, last.depth) == ("search", 1, last.states - 2)
    assert last.rate == pytest.approx(last.states / last.seconds)
