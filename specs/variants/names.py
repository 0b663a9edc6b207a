"""Names that several processes use: ports, segments, and who may remove them. A small model of one table.

Theory of operation. A process looks for a name, attaches to what is behind it, and lets go. A name that is chosen first
and taken later can be taken by another meanwhile; one without an epoch can be an earlier run's; and one that an
attacher removes is gone for those who come after. So: let the kernel choose while binding, put the epoch into the name,
and let its creator alone remove it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Kind, State, Table, on
from ..explore import Label, Property, never
from .small import NoEffect, Small, put
from .variant import Trial, Variant


class User(State):
    """A process that needs what is behind a name."""

    OUTSIDE = "The process has no name yet."
    CHOSEN = "The process has chosen a name, and holds nothing."
    ATTACHED = "The process holds what is behind the name."
    LEFT = "The process has let go."
    REFUSED = "The name was taken, or nothing is behind it."


class UserOn(Event):
    """What can happen to a process that needs a name."""

    CHOOSE = "choose", Kind.WORK, "The process finds a name that is good now."
    ATTACH = "attach", Kind.WORK, "The process takes what is behind it."
    REFUSED = "refused", Kind.MESSAGE, "The kernel says no."
    LEAVE = "leave", Kind.WORK, "The process lets go."


USER = Table(
    name="user",
    purpose="A process that chooses a name, attaches, and lets go.",
    states=User,
    events=UserOn,
    effects=NoEffect,
    initial=User.OUTSIDE,
    final=frozenset({User.LEFT, User.REFUSED}),
    rows=(
        on(UserOn.CHOOSE, User.OUTSIDE, User.CHOSEN),
        on(UserOn.ATTACH, [User.OUTSIDE, User.CHOSEN], User.ATTACHED),
        on(UserOn.REFUSED, [User.OUTSIDE, User.CHOSEN], User.REFUSED),
        on(UserOn.LEAVE, User.ATTACHED, User.LEFT),
    ),
)


class Names(NamedTuple):
    """Two processes, the name each has, the names that are taken, and whether an earlier run's is met."""

    users: tuple[State, ...] = (User.OUTSIDE, User.OUTSIDE)
    names: tuple[int, ...] = (0, 0)
    taken: frozenset[int] = frozenset()
    stale: bool = False


def _to(now: Names, number: int, event: Event) -> Names:
    return now._replace(users=put(now.users, number, USER.step(now.users[number], event).dest))


def _free(now: Names) -> int:
    return next(name for name in range(1, 4) if name not in now.taken)


@dataclass(frozen=True)
class Ports:
    """Two processes each need a port of their own; `probes`: they look for a free one first and bind it later."""

    probes: bool

    def moves(self, now: Names) -> Iterator[tuple[Label, Names]]:
        """What the two do."""
        for number, state in enumerate(now.users):
            who, name = f"process {number}", now.names[number]
            if state is User.OUTSIDE:
                name = _free(now)
                named = now._replace(names=put(now.names, number, name))
                if self.probes:
                    yield Label(who, f"finds port {name} free"), _to(named, number, UserOn.CHOOSE)
                else:
                    bound = _to(named, number, UserOn.ATTACH)._replace(taken=now.taken | {name})
                    yield Label(who, f"is given port {name}"), bound
            elif state is User.CHOSEN and name in now.taken:
                yield Label(who, f"cannot bind port {name}"), _to(now, number, UserOn.REFUSED)
            elif state is User.CHOSEN:
                bound = _to(now, number, UserOn.ATTACH)._replace(taken=now.taken | {name})
                yield Label(who, f"binds port {name}"), bound


@dataclass(frozen=True)
class Segments:
    """Two processes attach to one segment that a third made; `trackers`: each removes it when it ends."""

    trackers: bool

    def moves(self, now: Names) -> Iterator[tuple[Label, Names]]:
        """What the two do; name 1 is the segment."""
        for number, state in enumerate(now.users):
            who = f"process {number}"
            if state is User.OUTSIDE and 1 in now.taken:
                yield Label(who, "attaches to the segment"), _to(now, number, UserOn.ATTACH)
            elif state is User.OUTSIDE:
                yield Label(who, "finds no segment"), _to(now, number, UserOn.REFUSED)
            elif state is User.ATTACHED:
                taken = now.taken - {1} if self.trackers else now.taken
                yield Label(who, "ends"), _to(now, number, UserOn.LEAVE)._replace(taken=taken)


@dataclass(frozen=True)
class Runs:
    """Name 1 is left by an earlier run; process 0 makes this run's segment, and process 1 attaches to it."""

    epoch: bool

    def moves(self, now: Names) -> Iterator[tuple[Label, Names]]:
        """What the two do; with an epoch, this run's segment has a name of its own."""
        wanted = 2 if self.epoch else 1
        made = now.users[0] is User.ATTACHED
        if now.users[0] is User.OUTSIDE:
            after = _to(now, 0, UserOn.ATTACH)._replace(taken=now.taken | {wanted})
            yield Label("process 0", "makes this run's segment"), after
        if now.users[1] is User.OUTSIDE and wanted in now.taken:
            after = _to(now, 1, UserOn.ATTACH)._replace(stale=not made)
            yield Label("process 1", "attaches to the name"), after


_REFUSED: Property[Names] = never(
    "nobody is refused",
    "A name that a process goes by is its own, or is there for it.",
    lambda now: User.REFUSED in now.users,
    twin=lambda now: all(state in (User.ATTACHED, User.LEFT) for state in now.users),
)
_STALE: Property[Names] = never(
    "nobody meets an earlier run",
    "What a process attaches to belongs to this run.",
    lambda now: now.stale,
    twin=lambda now: now.users[1] is User.ATTACHED,
)


def _trial(start: Names, rules: Ports | Segments | Runs) -> Trial:
    return Trial(Small("names", start, rules.moves), [_REFUSED, _STALE])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    there = Names(taken=frozenset({1}))
    return [
        Variant(
            "probe-then-bind",
            "A free port is looked for, let go, and bound later; two queues that start together find the same one.",
            ("vllm-project/vllm#50960",),
            "names",
            "nobody is refused",
            4,
            bad=lambda: _trial(Names(), Ports(True)),
            right=lambda: _trial(Names(), Ports(False)),
        ),
        Variant(
            "attacher-removes",
            "Whoever attached to a segment has it removed when it ends, under those who use it or are still to come.",
            ("python/cpython#82300",),
            "names",
            "nobody is refused",
            3,
            bad=lambda: _trial(there, Segments(True)),
            right=lambda: _trial(there, Segments(False)),
        ),
        Variant(
            "name-without-epoch",
            "A segment's name says nothing of the run: one that an earlier run left behind is joined.",
            ("vllm-project/vllm#34169",),
            "names",
            "nobody meets an earlier run",
            1,
            bad=lambda: _trial(there, Runs(False)),
            right=lambda: _trial(there, Runs(True)),
        ),
    ]
