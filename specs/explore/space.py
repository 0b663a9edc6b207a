"""The explored part of a model: numbered states, compact edges, and the way back to any state.

Theory of operation
-------------------
1. State numbers follow breadth-first order. Hence the states of one depth are a range, the states already expanded are
   a prefix, and the lowest number among states with some feature is one that the fewest steps reach.
2. Each state keeps only its parent. The action that led from one to the other is found again, by calling ``actions``,
   for the few states whose path is wanted.
3. Edges, where they were asked for, are a slice of targets a state, in the order of ``actions`` (so that an edge's
   place in the slice is the action's index), and a fairness class an edge, or -1.
4. On a symmetry-reduced graph a path is given as a concrete run even so: each step is one whose result has the wanted
   representative, and the last state must show what the path is wanted for. If there is no such run, that is an error,
   never a made-up path.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Generic, TypeVar

from .model import Model, ModelError
from .path import Path, Step

S = TypeVar("S", bound=Hashable)

_Entry = tuple[S, Step]
_LIFTS = 1000  # concrete states followed at once when a path of a reduced graph is made a run


class LiftError(ModelError):
    """A path of the symmetry-reduced graph is no path of the model; see symmetry.py for why that may be."""


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

    def path_to(self, number: int, shows: Callable[[S], bool] | None = None) -> Path[S]:
        """A shortest path to a state, as a run of the model itself.

        On a reduced graph it leads to a state that has this one as its canonical form and satisfies `shows`.

        Raises LiftError if a path of the reduced graph is no path of the model, and ModelError if the model's actions
        differ from call to call.
        """
        numbers = [number]
        while self.parents[numbers[-1]] >= 0:
            numbers.append(self.parents[numbers[-1]])
        forms = [self.states[n] for n in reversed(numbers)]
        initial = list(self.model.initial())
        # Layer k: the concrete states that the first k steps may lead to, each with how it was entered. Without
        # symmetry there is one a layer.
        entries: dict[S, _Entry[S] | None] = {s: None for s in initial if self._form(s) == forms[0]}
        layers = [entries]
        for form in forms[1:]:
            entries = {}
            for before in islice(layers[-1], _LIFTS):
                for index, (label, after) in enumerate(self.model.actions(before)):
                    if after not in entries and self._form(after) == form:
                        entries[after] = before, Step(index, label)
            layers.append(entries)
        current = next((s for s in layers[-1] if shows is None or shows(s)), None)
        if current is None:
            raise self._lost(forms[-1])
        states, steps = [current], []
        for entries in layers[:0:-1]:
            entry = entries[states[-1]]
            assert entry is not None  # only the first layer has states without an entry
            states.append(entry[0])
            steps.append(entry[1])
        return Path(initial.index(states[-1]), tuple(reversed(states)), tuple(reversed(steps)))

    def _form(self, state: S) -> S:
        return self.canonical(state) if self.canonical else state

    def _lost(self, form: S) -> ModelError:
        where = f"{self.model.name}: no path leads again to ({self.model.describe(form)})"
        if self.canonical is None:
            return ModelError(f"{where}: its actions differ from call to call")
        return LiftError(f"{where}, which the search modulo symmetry had reached")
