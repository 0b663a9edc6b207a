"""What must hold: properties by name, each with one sentence and a twin.

Theory of operation
-------------------
Stateright's words, plus the two it lacks:

=================  =====================================================================================
always, never      every (no) reachable state satisfies the predicate
sometimes          some reachable state satisfies it
eventually         every fair run reaches a state that satisfies it
leads_to           in every fair run, each state with the premise is, then or later, followed by the goal
recoverable        from every reachable state some path leads to the goal (AG EF)
no_deadlock        every reachable state has a way on, or is one where a run may end
no_stall           every reachable state has a *fair* way on, or is one where a run may end
=================  =====================================================================================

A property can hold because nothing ever happens. Its *twin* is a predicate that some reachable state must satisfy for
the property to have said something; a property whose twin is never met is violated as vacuous. The twin of `leads_to`
is its premise unless another is given; the others have one if their author gives it.

`no_deadlock` takes a crash for a way on, so that an executor which waits for ever for a live but silent rank passes
as long as that rank may still crash. `no_stall` does not: a run may rest wherever nothing that *must* happen is left.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Predicate = Callable[[S], bool]


class Kind(Enum):
    """The shape of a property."""

    ALWAYS = "always"
    NEVER = "never"
    SOMETIMES = "sometimes"
    EVENTUALLY = "eventually"
    LEADS_TO = "leads to"
    RECOVERABLE = "recoverable"
    NO_DEADLOCK = "no deadlock"
    NO_STALL = "no stall"

    def __str__(self) -> str:
        return self.value

    @property
    def has_predicate(self) -> bool:
        """Whether it is about a predicate; the built-in ones are not."""
        return self not in _BUILT_IN

    @property
    def needs_edges(self) -> bool:
        """Whether judging it takes the transitions as well as the states."""
        return self in _NEED_EDGES

    @property
    def needs_fairness(self) -> bool:
        """Whether it speaks of fair runs."""
        return self in _NEED_FAIRNESS

    @property
    def needs_full_graph(self) -> bool:
        """Whether it speaks of paths: a symmetry-reduced graph decides it at most in part; see symmetry.py."""
        return self in _NEED_FULL_GRAPH


_BUILT_IN = frozenset({Kind.NO_DEADLOCK, Kind.NO_STALL})
_NEED_FAIRNESS = frozenset({Kind.EVENTUALLY, Kind.LEADS_TO})
_NEED_FULL_GRAPH = _NEED_FAIRNESS | {Kind.RECOVERABLE}
_NEED_EDGES = _NEED_FULL_GRAPH | {Kind.NO_STALL}


@dataclass(frozen=True, slots=True)
class Property(Generic[S]):
    """One property; use the constructors below."""

    kind: Kind
    name: str
    sentence: str
    predicate: Predicate[S]
    """The invariant, the forbidden or wanted state, or the goal. Unused by no_deadlock and no_stall."""
    premise: Predicate[S] | None = None
    """Of leads_to: where the obligation begins."""
    twin: Predicate[S] | None = None
    """Some reachable state must satisfy this, or the property is vacuous."""


def always(
    name: str, sentence: str, predicate: Predicate[S], *, twin: Predicate[S] | None = None
) -> Property[S]:
    """Every reachable state satisfies `predicate`."""
    return Property(Kind.ALWAYS, name, sentence, predicate, twin=twin)


def never(
    name: str, sentence: str, predicate: Predicate[S], *, twin: Predicate[S] | None = None
) -> Property[S]:
    """No reachable state satisfies `predicate`."""
    return Property(Kind.NEVER, name, sentence, predicate, twin=twin)


def sometimes(name: str, sentence: str, predicate: Predicate[S]) -> Property[S]:
    """Some reachable state satisfies `predicate`."""
    return Property(Kind.SOMETIMES, name, sentence, predicate)


def eventually(
    name: str, sentence: str, goal: Predicate[S], *, twin: Predicate[S] | None = None
) -> Property[S]:
    """Every weakly fair run reaches a state that satisfies `goal`."""
    return Property(Kind.EVENTUALLY, name, sentence, goal, twin=twin)


def leads_to(
    name: str, sentence: str, premise: Predicate[S], goal: Predicate[S], *, twin: Predicate[S] | None = None
) -> Property[S]:
    """In every weakly fair run, a state with `premise` is, then or later, followed by one with `goal`."""
    return Property(Kind.LEADS_TO, name, sentence, goal, premise, premise if twin is None else twin)


def recoverable(
    name: str, sentence: str, goal: Predicate[S], *, twin: Predicate[S] | None = None
) -> Property[S]:
    """From every reachable state, some path leads to `goal` (AG EF)."""
    return Property(Kind.RECOVERABLE, name, sentence, goal, twin=twin)


def no_deadlock(
    name: str = "no deadlock",
    sentence: str = "Every state has a way on, or is one where a run may end.",
    *,
    twin: Predicate[Any] | None = None,
) -> Property[Any]:
    """Every reachable state can change, or is accepting."""
    return Property(Kind.NO_DEADLOCK, name, sentence, _unused, twin=twin)


def no_stall(
    name: str = "no stall",
    sentence: str = "Every state has a way on that must be taken, or is one where a run may end.",
    *,
    twin: Predicate[Any] | None = None,
) -> Property[Any]:
    """Every reachable state has a fair action that changes it, or is accepting."""
    return Property(Kind.NO_STALL, name, sentence, _unused, twin=twin)


def _unused(_state: object) -> bool:
    raise AssertionError("a property without a predicate was asked for one")
