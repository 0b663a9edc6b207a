"""Breadth-first search of a model's states, with shortest paths and honest limits.

Theory of operation
-------------------
1. States are *interned*: the first time a state is met it gets the next integer, and everything else (parents, edges,
   findings) is kept in compact arrays of those integers. Numbers follow breadth-first order. Hence the states of one
   depth are a range, the states already expanded are a prefix, and the lowest number among states with some feature is
   one that the fewest steps reach.
2. Each state keeps only its parent. The action that led from one to the other is found again, by calling ``actions``,
   for the few states whose path is wanted.
3. *Watches* are predicates looked for in every state; one pass serves all of them. A watch ends at its first match. A
   state is stuck if no action changes it; the first stuck state that is not accepting is the *deadlock*.
4. Edges are kept only if asked for: per state a slice of targets, in the order of ``actions``, and per edge its
   fairness class, or -1. A step that leaves the state as it was is a stutter, and has class -1 whatever its label
   says: it neither takes nor enables a fair action (as in TLA+, where fairness speaks of steps that change something).
5. Limits end a search early. The space then says why in `truncated`; what was found remains true, what was not found
   proves nothing.
6. With `canonical`, every state is replaced by its representative (see symmetry.py). Paths are given as concrete runs
   even then: from a real initial state, each step is one whose result has the wanted representative.
"""

from __future__ import annotations

import gc
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, count
from operator import not_
from pathlib import Path as FilePath
from resource import getpagesize
from time import perf_counter
from typing import Generic, TypeVar

from .model import Label, Model, ModelError, fair_key_of
from .path import Path, Step

S = TypeVar("S", bound=Hashable)

# States expanded between two looks at the clock. Small, so that a slow model still reports progress and keeps its
# time limit; at a few microseconds a state the looks cost under one per cent.
_CHUNK = 64
_PROGRESS_PERIOD = 0.1  # seconds
_FIRST_VIOLATION = "it stopped at the first violation"


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a search stops; None is no limit. A search that a limit stopped establishes nothing."""

    states: int | None = 5_000_000
    seconds: float | None = None
    depth: int | None = None
    memory: int | None = None
    """Resident size of this process, in bytes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A search under way."""

    phase: str
    states: int
    transitions: int
    depth: int
    frontier: int
    """States found and not yet expanded."""
    seconds: float
    rate: float
    """States a second since the search began."""


@dataclass(frozen=True, slots=True)
class Watch(Generic[S]):
    """Find the first state whose `predicate` is (as a truth value) `wanted`."""

    predicate: Callable[[S], bool]
    wanted: bool = True
    stops: bool = False
    """Whether a match ends the search."""


@dataclass
class Edges:
    """The transitions: edge e of state s, for e in range(offsets[s], offsets[s + 1]), leads to targets[e]."""

    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("i"))
    classes: array[int] = field(default_factory=lambda: array("i"))
    """The fairness class of each edge, or -1 if it is not fair or changes nothing."""
    keys: list[Hashable] = field(default_factory=list)
    """What each fairness class stands for."""

    def of(self, state: int) -> range:
        """The edges that leave `state`."""
        return range(self.offsets[state], self.offsets[state + 1])

    def source(self, edge: int) -> int:
        """The state that `edge` leaves."""
        return bisect_right(self.offsets, edge) - 1

    @cached_property
    def enabled(self) -> list[int]:
        """Per state, the fairness classes that are enabled there, as a bit set."""
        bits = [1 << c for c in range(len(self.keys))] + [0]  # class -1 indexes the last
        shared: dict[int, int] = {}  # few distinct sets, so that equal ones are stored once
        masks = []
        for state in range(len(self.offsets) - 1):
            mask = 0
            for fair_class in self.classes[self.offsets[state] : self.offsets[state + 1]]:
                mask |= bits[fair_class]
            masks.append(shared.setdefault(mask, mask))
        return masks


@dataclass
class Space(Generic[S]):
    """The explored part of a model."""

    model: Model[S]
    canonical: Callable[[S], S] | None
    states: list[S] = field(default_factory=list)
    parents: array[int] = field(default_factory=lambda: array("i"))
    levels: list[int] = field(default_factory=list)
    """The number of the first state of each depth."""
    expanded: int = 0
    """States below this number have had all their actions followed."""
    transitions: int = 0
    seconds: float = 0.0
    truncated: str | None = None
    """Why the search ended early, or None if it saw everything."""
    matches: list[int | None] = field(default_factory=list)
    """Per watch, the first state that matched."""
    deadlock: int | None = None
    edges: Edges | None = None

    @property
    def depth(self) -> int:
        """Steps to the deepest state found."""
        return len(self.levels) - 1

    def depth_of(self, state: int) -> int:
        """Steps on a shortest path to `state`."""
        return bisect_right(self.levels, state) - 1

    def path_to(self, state: int) -> Path[S]:
        """A shortest path to a state, as a run of the model itself."""
        numbers = [state]
        while self.parents[numbers[-1]] >= 0:
            numbers.append(self.parents[numbers[-1]])
        wanted = [self.states[number] for number in reversed(numbers)]
        start, current = self._find(enumerate(self.model.initial()), wanted[0])
        states, steps = [current], []
        for goal in wanted[1:]:
            enabled = list(self.model.actions(current))
            index, current = self._find(enumerate(successor for _, successor in enabled), goal)
            steps.append(Step(index, enabled[index][0]))
            states.append(current)
        return Path(start, tuple(states), tuple(steps))

    def _find(self, candidates: Iterable[tuple[int, S]], wanted: S) -> tuple[int, S]:
        for index, state in candidates:
            if (self.canonical(state) if self.canonical else state) == wanted:
                return index, state
        cause = "its canonical form is unsound, or " if self.canonical else ""
        raise ModelError(
            f"{self.model.name}: no action leads again to ({self.model.describe(wanted)}): "
            f"{cause}its actions differ from call to call"
        )


def search(
    model: Model[S],
    watches: Sequence[Watch[S]] = (),
    *,
    limits: Limits | None = None,
    progress: Callable[[Progress], None] | None = None,
    edges: bool = False,
    canonical: Callable[[S], S] | None = None,
    stop_at_deadlock: bool = False,
) -> Space[S]:
    """Explore a model breadth-first.

    Raises ModelError, with the shortest path to the state at fault, if the model or a watch raises.
    """
    space = Space(model, canonical, matches=[None] * len(watches), edges=Edges() if edges else None)
    run = _Search(space, watches, limits or Limits(), progress, stop_at_deadlock)
    # The interned states are many, live to the end, and hold no cycles; walking them again and again for garbage
    # costs a third of the search.
    collecting = gc.isenabled()
    gc.disable()
    try:
        run.explore()
    except MemoryError:
        space.truncated = "it ran out of memory"
    finally:
        if collecting:
            gc.enable()
        run.finish()
    return space


class _Search(Generic[S]):
    """The working state of one search."""

    def __init__(
        self,
        space: Space[S],
        watches: Sequence[Watch[S]],
        limits: Limits,
        progress: Callable[[Progress], None] | None,
        stop_at_deadlock: bool,
    ) -> None:
        self.space = space
        self.watches = watches
        self.limits = limits
        self.progress = progress
        self.stop_at_deadlock = stop_at_deadlock
        self.max_states = float("inf") if limits.states is None else limits.states
        self.known: dict[S, int] = {}
        self.open = list(range(len(watches)))
        self.watched = 0
        self.level_end = 0
        self.began = self.reported = perf_counter()

    def explore(self) -> None:
        """Run to the end, or to a limit."""
        space = self.space
        for state in self._canonical_initial():
            if self.known.setdefault(state, len(space.states)) == len(space.states):
                space.states.append(state)
                space.parents.append(-1)
        if not space.states:
            raise ModelError(f"{space.model.name} has no initial state")
        self._watch()
        while space.expanded < len(space.states) and space.truncated is None:
            space.levels.append(space.expanded)
            end = self.level_end = len(space.states)
            if self.limits.depth is not None and space.depth >= self.limits.depth:
                space.truncated = f"it stopped at the limit of depth {self.limits.depth}"
            while space.expanded < end and space.truncated is None:
                self._expand(min(end, space.expanded + _CHUNK))
                self._watch()
                space.truncated = space.truncated or self._limit()

    def finish(self) -> None:
        """Close the arrays over the states that were not expanded."""
        space = self.space
        space.seconds = perf_counter() - self.began
        if len(space.states) > self.level_end:
            space.levels.append(self.level_end)
        if space.edges is not None:
            offsets = space.edges.offsets
            offsets.extend([offsets[-1]] * (len(space.states) + 1 - len(offsets)))

    def _canonical_initial(self) -> Iterator[S]:
        canonical = self.space.canonical
        for state in self.space.model.initial():
            yield canonical(state) if canonical else state

    def _expand(self, end: int) -> None:
        """Follow every action of the states from `space.expanded` up to `end`. The hot loop: locals only."""
        space, edges, class_of = self.space, self.space.edges, self._class_of
        states, intern, adopt = space.states, self.known.setdefault, space.parents.append
        actions, canonical, max_states = space.model.actions, space.canonical, self.max_states
        fresh, transitions, source = len(states), space.transitions, space.expanded
        try:
            for source in range(space.expanded, end):
                if fresh > max_states:
                    space.truncated = f"it stopped at the limit of {self.limits.states:,} states"
                    break
                stuck = True
                for label, successor in actions(states[source]):
                    if canonical is not None:
                        successor = canonical(successor)
                    target = intern(successor, fresh)
                    if target == fresh:
                        states.append(successor)
                        adopt(source)
                        fresh += 1
                        stuck = False
                    elif target != source:
                        stuck = False
                    transitions += 1
                    if edges is not None:
                        edges.targets.append(target)
                        edges.classes.append(class_of(label) if label.fair and target != source else -1)
                if edges is not None:
                    edges.offsets.append(len(edges.targets))
                space.expanded = source + 1
                if stuck and space.deadlock is None and not space.model.accepting(states[source]):
                    space.deadlock = source
                    if self.stop_at_deadlock:
                        space.truncated = _FIRST_VIOLATION
                        break
        except MemoryError:
            raise
        except Exception as error:
            raise self._at_fault("actions", source, error) from error
        space.transitions = transitions

    def _watch(self) -> None:
        """Look at the states found since the last look."""
        space, base = self.space, self.watched
        new = space.states[base:]
        self.watched = len(space.states)
        for number in tuple(self.open):
            watch = self.watches[number]
            try:
                truths = map(watch.predicate, new)
                hits = compress(count(base), truths if watch.wanted else map(not_, truths))
                found = next(hits, None)
            except Exception as error:
                raise self._at_fault("a predicate", self._raising(watch, base), error) from error
            if found is not None:
                space.matches[number] = found
                self.open.remove(number)
                if watch.stops:
                    space.truncated = _FIRST_VIOLATION

    def _raising(self, watch: Watch[S], base: int) -> int:
        for number, state in enumerate(self.space.states[base:], start=base):
            try:
                watch.predicate(state)
            except Exception:  # noqa: BLE001 - whatever it raises, this is the state at which it does
                return number
        return base

    def _limit(self) -> str | None:
        """Report progress, and say which limit has been reached, if one has."""
        now, limits = perf_counter(), self.limits
        if self.progress is not None and now - self.reported >= _PROGRESS_PERIOD:
            self.reported = now
            self.progress(self._progress(now - self.began))
        if limits.seconds is not None and now - self.began >= limits.seconds:
            return f"it stopped at the limit of {limits.seconds:g} seconds"
        if limits.memory is not None and _resident_bytes() >= limits.memory:
            return f"it stopped at the limit of {limits.memory / 2**20:,.0f} MiB of memory"
        return None

    def _progress(self, seconds: float) -> Progress:
        space, found = self.space, len(self.space.states)
        frontier = found - space.expanded
        return Progress(
            "search", found, space.transitions, space.depth, frontier, seconds, found / max(seconds, 1e-9)
        )

    def _at_fault(self, what: str, state: int, error: Exception) -> ModelError:
        space = self.space
        steps = "".join(f"\n  {s.label.actor}: {s.label.action}" for s in space.path_to(state).steps)
        return ModelError(
            f"{space.model.name}: {what} raised {type(error).__name__}: {error}\n"
            f"in state ({space.model.describe(space.states[state])}), reached by{steps or ' no step'}"
        )

    @cached_property
    def _class_of(self) -> Callable[[Label], int]:
        key_of = fair_key_of(self.space.model)
        numbers: dict[Hashable, int] = {}
        keys = self.space.edges.keys if self.space.edges else []

        def class_of(label: Label) -> int:
            key = key_of(label)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(keys)
                keys.append(key)
            return number

        return class_of


def _resident_bytes() -> int:
    return int(FilePath("/proc/self/statm").read_text().split()[1]) * getpagesize()
