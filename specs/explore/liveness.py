"""Liveness under weak fairness, and recoverability, on an explored graph.

Theory of operation
-------------------
*The obligation.* ``leads_to(p, q)`` owes q from each state with p and not q, until a state with q pays; ``eventually
q`` owes it from the start. Whether q is owed depends on the path, not on the state, so the product of state and debt is
what is searched. Its half without debt holds nothing to find, and its half with debt is the *region*: what is reached
from a state where the debt begins without passing q. Two paths that join, one in debt and one not, therefore do not
hide each other.

*The violation* is a fair run that stays in the region for ever. On a finite graph it has a fair cycle, and a fair cycle
exists exactly if some strongly connected component *of the region* is fair as a whole, since going round all of it is
as fair as any part. Judging components of the whole graph would be wrong: an action taken on the way through q says
nothing about runs that avoid q.

*Fairness.* A component is weakly fair if each class of fair actions is taken inside it, or is disabled in one of its
states. Enabled means enabled in the whole graph: an action that would lead to q and never happens is unfair.

*Stutter.* Every run may rest: repeat its state for ever. Rest neither takes nor enables anything, so it is fair exactly
where no fair action is enabled, as in a terminal state, or where only faults are left. This makes a single state
without edges a component like any other.

*Modulo symmetry.* Where no cycle is left, every run comes to rest in a state that no fair action changes. If the goal
is true in each of those, every debt is paid, whatever the way: a verdict on states, which a reduced graph can give.

*Truncation.* A state that was not expanded has unknown actions, so nothing is concluded from it: no rest, no cycle; and
for recoverability it may reach anything. What is found in the expanded part is a run of the model all the same.

*The lasso.* The stem is a shortest path in the product. The cycle goes greedily from one class that is still owed to
the nearest place that satisfies it, and home. The nearest few components are tried and the shortest lasso is given.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import compress, count
from typing import Generic, TypeVar

from .path import Path, Step, walk
from .space import Edges, Space

S = TypeVar("S", bound=Hashable)

_OUTSIDE, _SOURCE = -2, -1  # how a state was entered, where it was not by an edge
_TRIED = 8  # components for which a whole lasso is built


@dataclass(frozen=True, slots=True)
class Lasso(Generic[S]):
    """A run that goes on for ever: a stem, then a cycle; an empty cycle is rest in the stem's last state."""

    stem: Path[S]
    cycle: tuple[Step, ...]


def find_lasso(
    space: Space[S], goal: Callable[[S], bool], premise: Callable[[S], bool] | None = None
) -> Lasso[S] | None:
    """A weakly fair run that owes `goal` for ever: from some state with `premise`, or, without one, from the start."""
    edges = _full_edges(space)
    region = _Region(space, edges, goal, premise)
    for state in region.order:
        if state < space.expanded and not edges.enabled[state]:
            return _lasso(space, *region.way_to(state), [])
    best: tuple[int, list[int], list[int]] | None = None
    components = (c for c in _components(edges, region) if _is_fair(edges, c))
    for component in sorted(components, key=region.distance_of)[:_TRIED]:
        if best is not None and region.distance_of(component) >= len(best[1]) + len(best[2]):
            break
        entry = min(component, key=region.distance.__getitem__)
        (root, way), tour = region.way_to(entry), _tour(edges, component, entry)
        if best is None or len(way) + len(tour) < len(best[1]) + len(best[2]):
            best = root, way, tour
    return None if best is None else _lasso(space, *best)


def find_irrecoverable(space: Space[S], goal: Callable[[S], bool]) -> int | None:
    """The first state from which no path leads to `goal`, nor to where the search was cut off."""
    edges, size = _full_edges(space), len(space.states)
    starts = array("q", [0]) * (size + 1)  # the edges into t lie at starts[t]:starts[t + 1] of `sources`
    for target in edges.targets:
        starts[target + 1] += 1
    for state in range(size):
        starts[state + 1] += starts[state]
    sources, place = array("i", [0]) * len(edges.targets), array("q", starts)
    for state in range(space.expanded):
        for edge in edges.of(state):
            target = edges.targets[edge]
            sources[place[target]] = state
            place[target] += 1
    reaches = bytearray(map(bool, map(goal, space.states)))
    for state in range(space.expanded, size):
        reaches[state] = 1
    todo = list(compress(count(), reaches))
    while todo:
        state = todo.pop()
        for source in sources[starts[state] : starts[state + 1]]:
            if not reaches[source]:
                reaches[source] = 1
                todo.append(source)
    lost = reaches.find(0)
    return None if lost < 0 else lost


def find_stall(space: Space[S]) -> int | None:
    """The first state that is not accepting and that no fair action changes."""
    enabled = _edges(space).enabled
    return next(
        (s for s in range(space.expanded) if not enabled[s] and not space.model.accepting(space.states[s])),
        None,
    )


def is_acyclic(space: Space[S]) -> bool:
    """Whether no run comes back to where it was, so that each comes to rest; False if the search was cut short.

    On a reduced graph a step that leads to its own state may be a stutter or an exchange of ranks, and counts as a
    cycle.
    """
    if space.truncated is not None:
        return False
    edges, stutters = _edges(space), space.canonical is None
    entries = array("i", [0]) * len(space.states)
    for state in range(len(space.states)):
        for edge in edges.of(state):
            if not stutters or edges.targets[edge] != state:
                entries[edges.targets[edge]] += 1
    todo = [state for state, entered in enumerate(entries) if not entered]
    left = len(space.states)
    while todo:
        state = todo.pop()
        left -= 1
        for edge in edges.of(state):
            target = edges.targets[edge]
            if target != state:
                entries[target] -= 1
                if not entries[target]:
                    todo.append(target)
    return not left


def find_rest_without(space: Space[S], goal: Callable[[S], bool]) -> int | None:
    """The first state in which a run may rest for ever, and `goal` is not true."""
    enabled = _edges(space).enabled
    return next((s for s in range(space.expanded) if not enabled[s] and not goal(space.states[s])), None)


class _Region:
    """The states in which the goal can be owed, in the order of the shortest paths in the product."""

    def __init__(
        self, space: Space[S], edges: Edges, goal: Callable[[S], bool], premise: Callable[[S], bool] | None
    ) -> None:
        size = len(space.states)
        paid = bytearray(map(bool, map(goal, space.states)))
        if premise is None:
            sources = [s for s in range(space.levels[1] if space.depth > 0 else size) if not paid[s]]
        else:
            sources = [s for s in compress(count(), map(premise, space.states)) if not paid[s]]
        self.parents, self.edges = space.parents, edges
        self.entered = array("q", [_OUTSIDE]) * size
        self.distance = array("i", [0]) * size
        self.order: list[int] = []
        # Debts begin at different depths: each source joins when the search is as deep as it is, so that the order
        # stays that of path length. Sources are sorted, as state numbers are by depth.
        waiting, depth = iter([*sources, size]), -1
        frontier: list[int] = []
        next_source = next(waiting)
        while frontier or next_source < size:
            depth = depth + 1 if frontier else space.depth_of(next_source)
            level_end = space.levels[depth + 1] if depth < space.depth else size
            while next_source < level_end:
                if self.entered[next_source] == _OUTSIDE:
                    self._enter(next_source, _SOURCE, depth, frontier)
                next_source = next(waiting)
            reached: list[int] = []
            for state in frontier:
                for edge in edges.of(state):
                    target = edges.targets[edge]
                    if not paid[target] and self.entered[target] == _OUTSIDE:
                        self._enter(target, edge, depth + 1, reached)
            frontier = reached

    def _enter(self, state: int, entered: int, distance: int, level: list[int]) -> None:
        self.entered[state] = entered
        self.distance[state] = distance
        self.order.append(state)
        level.append(state)

    def distance_of(self, component: list[int]) -> int:
        return min(map(self.distance.__getitem__, component))

    def way_to(self, state: int) -> tuple[int, list[int]]:
        """An initial state, and the edges of a shortest path from it through the beginning of the debt to `state`."""
        way = []
        while self.entered[state] != _SOURCE:
            way.append(self.entered[state])
            state = self.edges.source(self.entered[state])
        while self.parents[state] >= 0:
            parent = self.parents[state]
            way.append(next(e for e in self.edges.of(parent) if self.edges.targets[e] == state))
            state = parent
        return state, way[::-1]


def _components(edges: Edges, region: _Region) -> Iterator[list[int]]:
    """The strongly connected components of the region that have more than one state (Tarjan, without recursion).

    Single states need no look: one that may rest was found before, and a self-loop is a stutter.
    """
    offsets, targets = edges.offsets, edges.targets
    done = len(region.entered) + 1  # larger than every number: neither a visit nor a smaller low-link
    number = [done] * len(region.entered)
    for state in region.order:
        number[state] = 0
    low = [0] * len(number)
    visits = 0
    open_states: list[int] = []
    for root in region.order:
        if number[root]:
            continue
        visits += 1
        number[root] = low[root] = visits
        open_states.append(root)
        calls = [(root, offsets[root])]
        while calls:
            state, first = calls.pop()
            for edge in range(first, offsets[state + 1]):
                target = targets[edge]
                if number[target] == 0:
                    calls.append((state, edge))  # to be looked at again, then with the target's low-link
                    visits += 1
                    number[target] = low[target] = visits
                    open_states.append(target)
                    calls.append((target, offsets[target]))
                    break
                if number[target] < done and low[target] < low[state]:
                    low[state] = low[target]
            else:
                if low[state] == number[state]:
                    component: list[int] = []
                    while not component or component[-1] != state:
                        component.append(open_states.pop())
                        number[component[-1]] = done
                    if len(component) > 1:
                        yield component


def _is_fair(edges: Edges, component: list[int]) -> bool:
    owed = -1
    for state in component:
        owed &= edges.enabled[state]
    if owed:
        inside = set(component)
        for state in component:
            for edge in edges.of(state):
                if edges.targets[edge] in inside and edges.classes[edge] >= 0:
                    owed &= ~(1 << edges.classes[edge])
    return not owed


def _tour(edges: Edges, component: list[int], home: int) -> list[int]:
    """Edges of a closed walk from `home` that takes each fair class or visits a state where it is disabled."""
    inside = set(component)
    owed = edges.enabled[home]
    tour: list[int] = []
    state = home
    while owed:
        for edge in _nearest(edges, inside, state, partial(_pays, edges, owed)):
            tour.append(edge)
            owed = _after(edges, owed, edge)
            state = edges.targets[edge]
    if state != home:
        tour += _nearest(edges, inside, state, lambda edge: edges.targets[edge] == home)
    return tour


def _pays(edges: Edges, owed: int, edge: int) -> bool:
    return _after(edges, owed, edge) != owed


def _after(edges: Edges, owed: int, edge: int) -> int:
    """The classes still owed once `edge` is taken and its target visited."""
    if edges.classes[edge] >= 0:
        owed &= ~(1 << edges.classes[edge])
    return owed & edges.enabled[edges.targets[edge]]


def _nearest(edges: Edges, inside: set[int], start: int, wanted: Callable[[int], bool]) -> list[int]:
    """A shortest walk inside the component that ends with a wanted edge."""
    entered = {start: _SOURCE}
    queue = [start]
    for state in queue:
        for edge in edges.of(state):
            target = edges.targets[edge]
            if target not in inside:
                continue
            if wanted(edge):
                walk = [edge]
                while entered[state] != _SOURCE:
                    walk.append(entered[state])
                    state = edges.source(entered[state])
                return walk[::-1]
            if target not in entered:
                entered[target] = edge
                queue.append(target)
    raise AssertionError("a fair component has, for each class it owes, a place that satisfies it")


def _lasso(space: Space[S], root: int, way: list[int], tour: list[int]) -> Lasso[S]:
    """Turn edges into the model's own steps, by walking them."""
    edges = _edges(space)
    indices = [edge - edges.offsets[edges.source(edge)] for edge in (*way, *tour)]
    run = walk(space.model, indices, space.path_to(root).start)
    return Lasso(Path(run.start, run.states[: len(way) + 1], run.steps[: len(way)]), run.steps[len(way) :])


def _edges(space: Space[S]) -> Edges:
    if space.edges is None:
        raise ValueError("this property needs the edges: search(..., edges=True)")
    return space.edges


def _full_edges(space: Space[S]) -> Edges:
    if space.canonical is not None:
        raise ValueError("a property of paths is judged on the full graph, not on a symmetry-reduced one")
    return _edges(space)
