"""Small models of their own, for faults that lie below what the world models.

Theory of operation. A state is a `NamedTuple` of machine states and plain values. A function gives its moves; whatever
decides is a table that it steps, and what it does beside is the glue under test: who reads what, and when. A flag of
the model turns the fault on, so that bad and right differ by it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, TypeVar

from ...protocol.core import Effect, State
from ..explore import Label

S = TypeVar("S", bound=tuple[object, ...])
T = TypeVar("T")
Moves = Iterable[tuple[Label, S]]


class NoEffect(Effect):
    """The effects of a machine whose every effect is in its destination."""


class Small(Generic[S]):
    """A model of one initial state; a run may end where `ends` says so (default: anywhere)."""

    def __init__(
        self,
        name: str,
        start: S,
        moves: Callable[[S], Moves[S]],
        ends: Callable[[S], bool] = lambda _: True,
    ) -> None:
        self.name = name
        self._start = start
        self._moves = moves
        self._ends = ends

    def initial(self) -> list[S]:
        """The one state in which a run starts."""
        return [self._start]

    def actions(self, state: S) -> list[tuple[Label, S]]:
        """What can happen next."""
        return list(self._moves(state))

    def accepting(self, state: S) -> bool:
        """Whether a run may end here."""
        return self._ends(state)

    def describe(self, state: S) -> str:
        """The state as "field value, ..."."""
        return ", ".join(f"{name} {_word(value)}" for name, value in zip(_fields(state), state, strict=True))


def put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    """The tuple with one place changed."""
    return (*values[:index], value, *values[index + 1 :])


def _fields(state: tuple[object, ...]) -> tuple[str, ...]:
    return getattr(state, "_fields", ())


def _word(value: object) -> str:
    if isinstance(value, State | Enum):
        return value.name
    if isinstance(value, frozenset):
        return "{" + " ".join(sorted(map(_word, value))) + "}"
    if isinstance(value, tuple):
        return "[" + " ".join(map(_word, value)) + "]"
    return str(value)
