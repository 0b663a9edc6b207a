"""A model written down as a graph: for examples, and for tests of the explorer itself.

Theory of operation
-------------------
``Graph({0: [("go", 1)], 1: [("crash!", 2)]})`` has the states 0, 1 and 2, starts in 0 and takes each list as the
state's actions, in order. An action's name is its fairness class; one that ends in ``!`` is not fair. A run may end
where no action leads away, unless `ends` lists the states in which it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .model import Label


@dataclass(frozen=True)
class Graph:
    """A model whose states are the ints of a literal."""

    arrows: Mapping[int, Sequence[tuple[str, int]]]
    """Per state, its actions and where they lead."""
    starts: Sequence[int] = (0,)
    ends: frozenset[int] | None = None
    """Where a run may end; None: wherever there is no action."""
    name: str = field(default="graph")

    def initial(self) -> Iterable[int]:
        """The starts."""
        return self.starts

    def actions(self, state: int) -> Iterable[tuple[Label, int]]:
        """The arrows that leave `state`."""
        return [
            (Label("graph", action, fair=not action.endswith("!")), target)
            for action, target in self.arrows.get(state, ())
        ]

    def accepting(self, state: int) -> bool:
        """Whether a run may end in `state`."""
        return not self.arrows.get(state) if self.ends is None else state in self.ends

    def describe(self, state: int) -> str:
        """The state's number."""
        return f"state {state}"
