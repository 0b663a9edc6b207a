"""Who holds which pipe end after a fork, and so who ever sees an end of file: a model of its own.

Theory of operation:

1. The parent forks its children one after the other. Each child has a control pipe that the parent holds open, and a
   pipe on which the child speaks. A reader sees the end when no living process holds the other side, and not before.
2. A fork copies every end that is open. So a child first closes each inherited end that is not its own, and the parent
   closes the child's side right after the fork.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on, stay
from ..explore import Label, Property, leads_to
from .small import NoEffect, Small, put
from .variant import Trial, Variant

PARENT = -1


class Child(State):
    """A forked child."""

    UNBORN = "The child has not been forked."
    RUNNING = "The child runs and looks at its control pipe."
    BUSY = "The child computes and looks at nothing."
    GONE = "The child's process has ended."


class ChildOn(Event):
    """What can happen to a child."""

    FORKED = "forked", Kind.WORK, "The parent forked it."
    CAUGHT = "caught", Kind.WORK, "It begins something that never ends."
    CLOSED = "closed", Kind.CANCEL, "Its control pipe came to its end."
    DIED = "died", Kind.DEATH, "It was killed."


CHILD = Table(
    name="child",
    purpose="A forked child that leaves when its control pipe ends.",
    states=Child,
    events=ChildOn,
    effects=NoEffect,
    initial=Child.UNBORN,
    final=frozenset({Child.GONE}),
    rows=(
        on(ChildOn.FORKED, Child.UNBORN, Child.RUNNING),
        on(ChildOn.CAUGHT, Child.RUNNING, Child.BUSY),
        on(ChildOn.CLOSED, Child.RUNNING, Child.GONE),
        on(ChildOn.DIED, [Child.RUNNING, Child.BUSY], Child.GONE),
        *stay(Child.GONE, ChildOn.DIED),
    ),
)


class Pipes(NamedTuple):
    """The children; who holds each control pipe's and each report pipe's writing end; what the parent has noticed."""

    children: tuple[State, ...]
    control: tuple[frozenset[int], ...]
    report: tuple[frozenset[int], ...]
    noticed: frozenset[int] = frozenset()
    closed: bool = False
    faults: int = 1


@dataclass(frozen=True)
class Rules:
    """Who closes what. `children`: how many are forked."""

    children: int = 2
    child_closes: bool = True
    parent_closes: bool = True

    def start(self) -> Pipes:
        """Every pipe is made just before its child is forked; nothing is open yet."""
        none: tuple[frozenset[int], ...] = (frozenset(),) * self.children
        unborn: tuple[State, ...] = (Child.UNBORN,) * self.children
        return Pipes(unborn, none, none)

    def moves(self, now: Pipes) -> Iterator[tuple[Label, Pipes]]:
        """What the parent and the children can do."""
        if Child.UNBORN in now.children and not now.closed:
            yield self._fork(now, now.children.index(Child.UNBORN))
        elif not now.closed:
            without = tuple(held - {PARENT} for held in now.control)
            yield (
                Label("parent", "closes the control pipes", fair=False),
                now._replace(control=without, closed=True),
            )
        for number, state in enumerate(now.children):
            name = f"child {number}"
            if state is Child.RUNNING:
                if not self._held(now, now.control[number]):
                    yield Label(name, "sees the end and leaves"), _to(now, number, ChildOn.CLOSED)
                if now.faults:
                    caught = _to(now, number, ChildOn.CAUGHT)._replace(faults=now.faults - 1)
                    yield Label(name, "computes for ever", fair=False), caught
                    died = _to(now, number, ChildOn.DIED)._replace(faults=now.faults - 1)
                    yield Label(name, "is killed", fair=False), died
            if (
                state is not Child.UNBORN
                and number not in now.noticed
                and not self._held(now, now.report[number])
            ):
                yield (
                    Label("parent", f"sees the end of child {number}"),
                    now._replace(noticed=now.noticed | {number}),
                )

    def _fork(self, now: Pipes, number: int) -> tuple[Label, Pipes]:
        control = list(now.control)
        control[number] = frozenset({PARENT})
        if not self.child_closes:
            control = [
                held | {number} if PARENT in held and n != number else held for n, held in enumerate(control)
            ]
        # The parent's copy of the last writer lives on in a variable; the ones before it were dropped by the loop.
        report = [held - {PARENT} for held in now.report]
        report[number] = frozenset({number} if self.parent_closes else {number, PARENT})
        after = _to(now, number, ChildOn.FORKED)._replace(control=tuple(control), report=tuple(report))
        return Label("parent", f"forks child {number}"), after

    @staticmethod
    def _held(now: Pipes, holders: frozenset[int]) -> bool:
        return any(one == PARENT or now.children[one] is not Child.GONE for one in holders)


def _to(now: Pipes, number: int, event: Event) -> Pipes:
    dest = CHILD.step(now.children[number], event).dest
    return now._replace(children=put(now.children, number, dest))


def _looks_in_vain(now: Pipes) -> bool:
    return now.closed and Child.RUNNING in now.children


def _unnoticed(now: Pipes) -> bool:
    return any(state is Child.GONE and number not in now.noticed for number, state in enumerate(now.children))


def _trial(rules: Rules) -> Trial:
    properties: list[Property[Pipes]] = [
        leads_to(
            "who looks sees the close",
            "When the control pipes are closed, every child that looks leaves, whatever its siblings do.",
            _looks_in_vain,
            lambda now: not _looks_in_vain(now),
        ),
        leads_to(
            "a death is an end of file",
            "When a child is gone, the parent sees the end of its pipe.",
            _unnoticed,
            lambda now: not _unnoticed(now),
        ),
    ]
    return Trial(Small("pipes", rules.start(), rules.moves), properties)


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "inherited-ends",
            "Under fork a later worker holds a copy of an earlier one's control pipe, which then never sees it close.",
            ("vllm-project/vllm#28053",),
            "pipes",
            "who looks sees the close",
            4,
            bad=lambda: _trial(Rules(child_closes=False)),
            right=lambda: _trial(Rules()),
        ),
        Variant(
            "own-writer-kept",
            "The parent keeps its copy of the last worker's writing end, so that worker's death is no end of file.",
            ("sgl-project/sglang#34233",),
            "pipes",
            "a death is an end of file",
            3,
            bad=lambda: _trial(Rules(parent_closes=False)),
            right=lambda: _trial(Rules()),
        ),
    ]
