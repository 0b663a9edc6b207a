"""What a call's books say of its ranks: counts, side outputs, replies put aside. Small models.

Theory of operation. The shipped call keeps one machine a rank, so it can say who is late. A count cannot: it says how
many. The same goes for data that every rank owes beside its reply, and for replies that belong to an earlier future
than the one that is dropped: what is not kept by name is lost or laid at the wrong door.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Identity, Kind, State, Table, on
from ...protocol.core.cluster import AGGREGATE
from ...protocol.futures import CALL_CLUSTER, Call, CallOn, Reply, ReplyOn
from ..explore import Label, Property, always, never
from .small import NoEffect, Small, put
from .variant import Trial, Variant

RANKS = 2


class Late(NamedTuple):
    """A call (the shipped cluster), and whom its report names when its time is over."""

    call: tuple[State, ...]
    named: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Books:
    """`by_rank`: the report names the ranks whose replies are owed; else it knows how many have come."""

    by_rank: bool

    def moves(self, now: Late) -> Iterator[tuple[Label, Late]]:
        """Replies, in any order, and the deadline."""
        if now.call[0] is not Call.OPEN:
            return
        for rank in range(RANKS):
            if now.call[rank + 1] is Reply.OWED:
                own = Identity(1, rank, 1)
                after, _ = CALL_CLUSTER.apply(now.call, rank, ReplyOn.RETURNED, own, own)
                yield Label(f"rank {rank}", "replies", fair=False), now._replace(call=after)
        owed = [rank for rank in range(RANKS) if now.call[rank + 1] is Reply.OWED]
        counted = list(range(RANKS))[RANKS - len(owed) :]
        after, _ = CALL_CLUSTER.apply(now.call, AGGREGATE, CallOn.DEADLINE)
        named = frozenset(owed if self.by_rank else counted)
        yield Label("caller", "is out of time, reports who is late"), Late(after, named)


class Side(State):
    """What a rank owes beside its reply."""

    NONE = "The rank has not run the first call of the step."
    HELD = "The rank has side data for the aggregator."
    SENT = "The side data came with the rank's reply to the second call."
    LOST = "The rank replied to the second call without it."


class SideOn(Event):
    """What can happen to a rank's side data."""

    EXECUTED = "executed", Kind.WORK, "The first call of the step ran."
    SAMPLED = "sampled", Kind.WORK, "The second call ran and its reply carries the data."
    EMPTY = "empty", Kind.WORK, "The second call ran and its reply is empty."


SIDE = Table(
    name="side",
    purpose="Data that every rank owes beside its reply, in a step of two calls.",
    states=Side,
    events=SideOn,
    effects=NoEffect,
    initial=Side.NONE,
    final=frozenset({Side.SENT, Side.LOST}),
    rows=(
        on(SideOn.EXECUTED, Side.NONE, Side.HELD),
        on(SideOn.SAMPLED, Side.HELD, Side.SENT),
        on(SideOn.EMPTY, Side.HELD, Side.LOST),
    ),
)


class Step(NamedTuple):
    """A step over two stages; the last one samples."""

    sides: tuple[State, ...] = (Side.NONE,) * RANKS


@dataclass(frozen=True)
class Stages:
    """`carries`: a stage that has no output of its own still sends what it owes."""

    carries: bool

    def moves(self, now: Step) -> Iterator[tuple[Label, Step]]:
        """Each rank runs both calls."""
        for rank, side in enumerate(now.sides):
            if side is Side.NONE:
                event, word = SideOn.EXECUTED, "executes"
            elif side is Side.HELD:
                full = self.carries or rank == RANKS - 1
                event, word = (SideOn.SAMPLED if full else SideOn.EMPTY), "samples"
            else:
                continue
            yield Label(f"rank {rank}", word), Step(put(now.sides, rank, SIDE.step(side, event).dest))


class Future(State):
    """A future, and its reply."""

    OWED = "The reply is in the queue."
    HELD = "The reply is kept for the future's owner."
    HANDED = "The owner has the reply."
    DROPPED = "The owner let go of the future."
    THROWN = "The reply was thrown away, and the owner still wants it."


class FutureOn(Event):
    """What can happen to a future."""

    READ = "read", Kind.MESSAGE, "The reply is taken off the queue and kept."
    ASKED = "asked", Kind.WORK, "The owner asks for the result."
    DROPPED = "dropped", Kind.CANCEL, "The owner lets go."
    THROWN = "thrown", Kind.WORK, "The reply is taken off the queue and forgotten."


FUTURE = Table(
    name="future",
    purpose="A future whose reply stands in a queue behind those of older ones.",
    states=Future,
    events=FutureOn,
    effects=NoEffect,
    initial=Future.OWED,
    final=frozenset({Future.HANDED, Future.DROPPED, Future.THROWN}),
    rows=(
        on(FutureOn.READ, Future.OWED, Future.HELD),
        on(FutureOn.ASKED, [Future.OWED, Future.HELD], Future.HANDED),
        on(FutureOn.DROPPED, [Future.OWED, Future.HELD], Future.DROPPED),
        on(FutureOn.THROWN, Future.OWED, Future.THROWN),
    ),
)


class Pair(NamedTuple):
    """Two futures, the older first."""

    older: State = Future.OWED
    newer: State = Future.OWED


@dataclass(frozen=True)
class Drops:
    """`keeps`: to drop the newer one, the older one's reply is read and kept; else it is read past."""

    keeps: bool

    def moves(self, now: Pair) -> Iterator[tuple[Label, Pair]]:
        """The owner asks for the older one, and drops the newer one, in any order."""
        if now.older in (Future.OWED, Future.HELD):
            asked = FUTURE.step(now.older, FutureOn.ASKED).dest
            yield Label("owner", "asks for the older result"), now._replace(older=asked)
        if now.newer is Future.OWED:
            dropped = now._replace(newer=FUTURE.step(now.newer, FutureOn.DROPPED).dest)
            if now.older is Future.OWED:
                event = FutureOn.READ if self.keeps else FutureOn.THROWN
                dropped = dropped._replace(older=FUTURE.step(now.older, event).dest)
            yield Label("owner", "drops the newer future", fair=False), dropped


def _late(by_rank: bool) -> Trial:
    def owed(now: Late) -> frozenset[int]:
        return frozenset(rank for rank in range(RANKS) if now.call[rank + 1] is Reply.OWED)

    asked: Property[Late] = always(
        "who is late is named",
        "The report of a call that ran out of time names the ranks that have not replied, and no other.",
        lambda now: now.call[0] is not Call.EXPIRED or now.named == owed(now),
        twin=lambda now: now.call[0] is Call.EXPIRED and len(now.named) == 1,
    )
    return Trial(Small("counts", Late(CALL_CLUSTER.initial(RANKS)), Books(by_rank).moves), [asked])


def _side(carries: bool) -> Trial:
    asked: Property[Step] = never(
        "no side output is lost",
        "What a rank owes beside its reply comes with its reply, in every stage.",
        lambda now: Side.LOST in now.sides,
        twin=lambda now: Side.SENT in now.sides,
    )
    return Trial(Small("counts", Step(), Stages(carries).moves), [asked])


def _drops(keeps: bool) -> Trial:
    asked: Property[Pair] = never(
        "a dropped future takes nothing along",
        "Letting go of one future leaves every other one's reply where its owner finds it.",
        lambda now: now.older is Future.THROWN,
        twin=lambda now: now.newer is Future.DROPPED and now.older is Future.HANDED,
    )
    return Trial(Small("counts", Pair(), Drops(keeps).moves), [asked])


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "replies-counted",
            "Replies are counted, not booked by rank: when the time is over, nobody can say who is late.",
            ("vllm-project/vllm#17965", "vllm-project/vllm#19668"),
            "counts",
            "who is late is named",
            2,
            bad=lambda: _late(False),
            right=lambda: _late(True),
        ),
        Variant(
            "side-output-lost",
            "A step became two calls; stages that sample nothing reply with nothing, and drop what every rank owes.",
            ("vllm-project/vllm#28768",),
            "counts",
            "no side output is lost",
            2,
            bad=lambda: _side(False),
            right=lambda: _side(True),
        ),
        Variant(
            "drop-takes-earlier",
            "A future that is dropped reads the queue up to its own reply, and throws the earlier ones away.",
            ("ray-project/ray#49781",),
            "counts",
            "a dropped future takes nothing along",
            1,
            bad=lambda: _drops(False),
            right=lambda: _drops(True),
        ),
    ]
