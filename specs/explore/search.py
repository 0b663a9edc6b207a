"""Breadth-first search of a model's states, within limits.

Theory of operation
-------------------
1. States are *interned*: the first time a state is met it gets the next integer, in breadth-first order. What is found
   goes into a `Space` (space.py), which keeps everything else by those integers.
2. *Watches* are predicates looked for in every state; one pass serves all of them. A watch ends at its first match. A
   state is stuck if no action changes it; the first stuck state that is not accepting is the *deadlock*.
3. Edges are kept only if asked for. A step that leaves the state as it was is a stutter, and has no fairness class
   whatever its label says: it neither takes nor enables a fair action (as in TLA+, where fairness speaks of steps that
   change something).
4. Limits end a search early. The space then says why in `truncated`; what was found remains true, what was not found
   proves nothing.
5. With `canonical`, every state is replaced by its representative (symmetry.py).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import not_
from pathlib import Path
from resource import getpagesize
from time import perf_counter
from typing import Generic, TypeVar

from .model import Model, ModelError, distinct_actions_of, fair_key_of
from .space import Edges, Space

S = TypeVar("S", bound=Hashable)

# States expanded between two looks at the clock. Small, so that a slow model still reports progress and keeps its
# time limit; at a few microseconds a state the looks cost under one per cent.
_CHUNK = 64
PROGRESS_PERIOD = 0.1  # seconds between two calls of a progress callback
FIRST_VIOLATION = "it stopped at the first violation"


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


def progress_of(space: Space[S], phase: str, seconds: float) -> Progress:
    """What a progress callback is told about a space."""
    found = len(space.states)
    rate = found / max(seconds, 1e-9)
    return Progress(phase, found, space.transitions, space.depth, found - space.expanded, seconds, rate)


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
        self.fair_classes = _Numbering()
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
            space.edges.keys = list(self.fair_classes)

    def _canonical_initial(self) -> Iterator[S]:
        canonical = self.space.canonical
        for state in self.space.model.initial():
            yield canonical(state) if canonical else state

    def _expand(self, end: int) -> None:
        """Follow every action of the states from `space.expanded` up to `end`. The hot loop: locals only."""
        space, edges = self.space, self.space.edges
        key_of, number_of = fair_key_of(space.model), self.fair_classes
        states, intern, adopt = space.states, self.known.setdefault, space.parents.append
        canonical, max_states = space.canonical, self.max_states
        actions = space.model.actions if canonical is None else distinct_actions_of(space.model)
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
                        edges.classes.append(
                            number_of[key_of(label)] if label.fair and target != source else -1
                        )
                if edges is not None:
                    edges.offsets.append(len(edges.targets))
                space.expanded = source + 1
                if stuck and space.deadlock is None and not space.model.accepting(states[source]):
                    space.deadlock = source
                    if self.stop_at_deadlock:
                        space.truncated = FIRST_VIOLATION
                        break
        except MemoryError:
            raise
        except Exception as error:
            raise self._at_fault("actions", source, error) from error
        finally:
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
                    space.truncated = FIRST_VIOLATION

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
        if self.progress is not None and now - self.reported >= PROGRESS_PERIOD:
            self.reported = now
            self.progress(progress_of(self.space, "search", now - self.began))
        if limits.seconds is not None and now - self.began >= limits.seconds:
            return f"it stopped at the limit of {limits.seconds:g} seconds"
        if limits.memory is not None and _resident_bytes() >= limits.memory:
            return f"it stopped at the limit of {limits.memory / 2**20:,.0f} MiB of memory"
        return None

    def _at_fault(self, what: str, state: int, error: Exception) -> ModelError:
        space = self.space
        steps = "".join(f"\n  {s.label.actor}: {s.label.action}" for s in space.path_to(state).steps)
        return ModelError(
            f"{space.model.name}: {what} raised {type(error).__name__}: {error}\n"
            f"in state ({space.model.describe(space.states[state])}), reached by{steps or ' no step'}"
        )


class _Numbering(dict[Hashable, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
