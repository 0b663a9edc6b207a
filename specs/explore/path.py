"""Paths: where a run went, as action indices that can be replayed.

Theory of operation
-------------------
A path is a start (the position among the model's initial states) and a list of action indices; states and labels
follow from those by walking. Everything that shows a path walked it through ``model.actions`` first, so that what is
printed is a run of the model and not a guess about one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .model import Label, Model

S = TypeVar("S", bound=Hashable)


class ReplayError(Exception):
    """A path does not fit the model: it was made from another one, or the model has changed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a path."""

    index: int
    """Its position in ``model.actions(state)``."""
    label: Label


@dataclass(frozen=True, slots=True)
class Path(Generic[S]):
    """A finite run; always one state more than steps."""

    start: int
    states: tuple[S, ...]
    steps: tuple[Step, ...]

    @property
    def last(self) -> S:
        """The state in which the path ends."""
        return self.states[-1]

    @property
    def indices(self) -> tuple[int, ...]:
        """The action indices, from which `walk` makes the same path."""
        return tuple(step.index for step in self.steps)


def walk(model: Model[S], indices: Sequence[int], start: int = 0) -> Path[S]:
    """Follow action indices from the initial state at position `start`.

    Raises ReplayError, naming the step and what was allowed there, if the model has no such state or action.
    """
    initial = list(model.initial())
    if not 0 <= start < len(initial):
        raise ReplayError(f"{model.name} has {len(initial)} initial states, none at position {start}")
    state = initial[start]
    states, steps = [state], []
    for number, index in enumerate(indices, start=1):
        enabled = list(model.actions(state))
        if not 0 <= index < len(enabled):
            allowed = ", ".join(f"{i} {label.actor} {label.action}" for i, (label, _) in enumerate(enabled))
            raise ReplayError(
                f"step {number} takes action {index}, but in state ({model.describe(state)}) "
                f"{model.name} allows {allowed or 'none'}"
            )
        label, state = enabled[index]
        steps.append(Step(index, label))
        states.append(state)
    return Path(start, tuple(states), tuple(steps))
