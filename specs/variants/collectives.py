"""Ranks that meet in collectives, matched by nothing but their order: a small model.

Theory of operation. Each rank runs a program of collectives and blocks in each until every rank is in *one*. Where the
programs differ, by order or by length, ranks block in different ones for ever. Set-up belongs here too: a group that is
made on first use is a collective that one rank enters and another has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, no_deadlock
from .small import NoEffect, Small, put
from .variant import Trial, Variant


class Member(State):
    """A rank between and in collectives."""

    COMPUTING = "The rank runs on its own."
    INSIDE = "The rank is in a collective and waits for the others."
    DONE = "The rank's program has come to its end."


class MemberOn(Event):
    """What can happen to a rank."""

    ENTER = "enter", Kind.WORK, "The rank's program comes to a collective."
    MET = "met", Kind.MESSAGE, "Every rank is in it."
    END = "end", Kind.WORK, "The rank's program has no further one."


MEMBER = Table(
    name="member",
    purpose="A rank between and in collectives.",
    states=Member,
    events=MemberOn,
    effects=NoEffect,
    initial=Member.COMPUTING,
    final=frozenset({Member.DONE}),
    rows=(
        on(MemberOn.ENTER, Member.COMPUTING, Member.INSIDE),
        on(MemberOn.MET, Member.INSIDE, Member.COMPUTING),
        on(MemberOn.END, Member.COMPUTING, Member.DONE),
    ),
)


class Meeting(NamedTuple):
    """The ranks, and how many collectives each has behind it."""

    members: tuple[State, ...]
    passed: tuple[int, ...]


@dataclass(frozen=True)
class Programs:
    """The collectives of each rank, by name, in its order."""

    of_rank: tuple[tuple[str, ...], ...]

    def start(self) -> Meeting:
        """Every rank at the beginning of its program."""
        computing: tuple[State, ...] = (Member.COMPUTING,) * len(self.of_rank)
        return Meeting(computing, (0,) * len(self.of_rank))

    def moves(self, now: Meeting) -> Iterator[tuple[Label, Meeting]]:
        """Ranks enter, and leave together."""
        where = []
        for rank, (state, passed) in enumerate(zip(now.members, now.passed, strict=True)):
            program, name = self.of_rank[rank], f"rank {rank}"
            if state is Member.COMPUTING:
                event = MemberOn.ENTER if passed < len(program) else MemberOn.END
                word = f"enters {program[passed]}" if passed < len(program) else "ends"
                dest = MEMBER.step(state, event).dest
                yield Label(name, word), now._replace(members=put(now.members, rank, dest))
            where.append(program[passed] if state is Member.INSIDE else None)
        if where[0] is not None and len(set(where)) == 1:
            members = tuple(MEMBER.step(state, MemberOn.MET).dest for state in now.members)
            passed_by = tuple(passed + 1 for passed in now.passed)
            yield Label("all", f"leave {where[0]}"), Meeting(members, passed_by)


def _trial(*programs: tuple[str, ...]) -> Trial:
    rules = Programs(programs)
    model = Small(
        "collectives", rules.start(), rules.moves, lambda now: all(one is Member.DONE for one in now.members)
    )
    return Trial(model, [no_deadlock(twin=lambda now: Member.DONE in now.members)])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "collectives-permuted",
            "Each rank takes its collectives from a dictionary, in an order of its own; they are matched by position.",
            ("NVIDIA/apex#19",),
            "collectives",
            "no deadlock",
            2,
            bad=lambda: _trial(("weights", "bias"), ("bias", "weights")),
            right=lambda: _trial(("weights", "bias"), ("weights", "bias")),
        ),
        Variant(
            "group-made-on-first-use",
            "A group is made when a rank first uses it: some enter its set-up, others never come to it.",
            ("NVIDIA/Megatron-LM#5370",),
            "collectives",
            "no deadlock",
            2,
            bad=lambda: _trial(("step",), ("set-up", "step")),
            right=lambda: _trial(("set-up", "step"), ("set-up", "step")),
        ),
    ]
