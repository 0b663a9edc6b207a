"""What the explorer explores: labelled steps between hashable states.

Theory of operation
-------------------
A model is a function from a state to its enabled actions. Nothing else is asked of it, so that the same explorer
serves a composed protocol, a mutant of it, and a five-state graph in a test.

1. A *state* is any hashable value; two states are the same if they are equal. Small tuples of small ints are fastest.
2. An *action* is a `Label` and the state it leads to. ``actions(state)`` is pure and lists them in a fixed order: the
   position in that list is the action's *index*, and a path is stored and replayed as a list of indices.
3. A label says who acted (`actor`, a lifeline in the sequence diagram) and what it did. ``fair`` says whether the
   action, once it stays enabled, must happen: true for a process that runs its code, false for a crash, a signal, a
   caller who may or may not call, a timer that may never fire.
4. Weak fairness speaks of *classes* of actions. A class is ``(actor, action)`` unless the model has a method
   ``fair_key(label)`` that says otherwise.
5. A model may have ``canonical(state)``, which maps a state to the representative of its symmetry class. It may then
   have ``distinct_actions(state)`` too: of a representative's actions, one of each class of symmetric ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar, cast

S = TypeVar("S", bound=Hashable)


class Label(NamedTuple):
    """What one action did, for people and for fairness."""

    actor: str
    """The lifeline: "executor", "rank 1", "environment"."""
    action: str
    """The action's name, such as "device_up" or "crash"."""
    sends: tuple[tuple[str, str, str], ...] = ()
    """Arrows of the sequence diagram: (from, to, message)."""
    note: str = ""
    """States after the action, shown beside the lifeline."""
    fair: bool = True
    """Weakly fair; faults, and timers that need not fire, are not."""


class Model(Protocol[S]):
    """The interface of every model; see the module's theory of operation."""

    @property
    def name(self) -> str:
        """The model's name in reports."""

    def initial(self) -> Iterable[S]:
        """The states in which a run may start, at least one, in a fixed order."""

    def actions(self, state: S) -> Iterable[tuple[Label, S]]:
        """The enabled actions and where each leads, in a fixed order."""

    def accepting(self, state: S) -> bool:
        """Whether a run may end here. A state without a way on that is not accepting is a deadlock."""

    def describe(self, state: S) -> str:
        """The state in words."""


class ModelError(Exception):
    """The model itself is at fault: it raised, has no initial state, or does not repeat itself."""


def fair_key_of(model: Model[S]) -> Callable[[Label], Hashable]:
    """The model's own ``fair_key``, or the default: a class is (actor, action)."""
    own = getattr(model, "fair_key", None)
    if own is None:
        return attrgetter("actor", "action")  # not a lambda: it is called once a transition
    return cast("Callable[[Label], Hashable]", own)


def canonical_of(model: Model[S]) -> Callable[[S], S] | None:
    """The model's ``canonical``, or None if it declares no symmetry."""
    return cast("Callable[[S], S] | None", getattr(model, "canonical", None))


def distinct_actions_of(model: Model[S]) -> Callable[[S], Iterable[tuple[Label, S]]]:
    """The model's own ``distinct_actions``, or all its actions."""
    own = getattr(model, "distinct_actions", None)
    return cast("Callable[[S], Iterable[tuple[Label, S]]]", own or model.actions)


def moves(model: Model[S], state: S) -> list[Label]:
    """The labels of the actions that change `state`; the others are stutters, which count for nothing."""
    return [label for label, after in model.actions(state) if after != state]
