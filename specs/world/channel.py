"""What the executor's effects do to a rank: messages sent, the channel closed, signals, the exit status collected."""

from __future__ import annotations

from ...protocol.core import Effect, Identity
from ...protocol.futures import ServeOn
from ...protocol.queues import QueueDo, ReaderOn, SeatOn
from ...protocol.shutdown import StopDo
from .rank import Rank
from .words import EPOCH, Line, Message, Signal, Status

# What the executor takes from a rank's channel when it reads; the names are those of the fields of `Rank`.
TAKE_CONTROL, TAKE_JOINS, TAKE_REPLIES = "take control", "take joins", "take replies"
MAKE = "make"

Op = str | Effect | Message
"""Something done to a rank: a reading, an effect, or a CALL sent."""

TOLD: dict[Effect, str] = {
    QueueDo.SEND_JOINED: "JOINED",
    QueueDo.SEND_OPEN: "OPEN",
    StopDo.CLOSE_CONTROL: "close",
    StopDo.SEND_SIGTERM: "SIGTERM",
    StopDo.SEND_SIGKILL: "SIGKILL",
}
"""The effects that a rank notices, and the arrow of each in a diagram."""


def call_message(rank: int, number: int) -> Message:
    """CALL `number`, as `rank` reads it."""
    return Message(ServeOn.CALL, Identity(EPOCH, rank, number))


def done_to(rank: Rank, op: Op) -> Rank:
    """The rank after `op`. What is sent to a process that is gone is lost."""
    if op is TAKE_CONTROL:
        return rank._replace(control=rank.control[1:])
    if op is TAKE_JOINS:
        return rank._replace(joins=rank.joins[1:])
    if op is TAKE_REPLIES:
        return rank._replace(replies=rank.replies[1:])
    if op is StopDo.REAP:
        if rank.status is not Status.DEAD:
            return rank._replace(wronged=True)
        return Rank(rank.number, Status.REAPED, joins=rank.joins, replies=rank.replies, wronged=rank.wronged)
    if not rank.alive:
        if op in _SIGNALS and rank.status is not Status.DEAD:
            return rank._replace(wronged=True)
        return rank
    if op is StopDo.CLOSE_CONTROL:
        return rank._replace(line=Line.CLOSED)
    if op is QueueDo.SEND_JOINED:
        return rank._replace(joined=(*rank.joined, Message(SeatOn.JOINED, Identity(EPOCH, rank.number))))
    if op is QueueDo.SEND_OPEN:
        return rank._replace(calls=(*rank.calls, Message(ReaderOn.OPENED, Identity(EPOCH, rank.number))))
    if isinstance(op, Message):
        return rank._replace(calls=(*rank.calls, op))
    if isinstance(op, Effect) and op in _SIGNALS:
        return rank._replace(signal=_SIGNALS[op])
    raise ValueError(f"nothing is known of {op!r}")


_SIGNALS: dict[object, Signal] = {StopDo.SEND_SIGTERM: Signal.TERM, StopDo.SEND_SIGKILL: Signal.KILL}


def orphaned(rank: Rank) -> Rank:
    """The rank once the executor's process is gone: nobody reads what it said."""
    if not rank.alive:
        return Rank(rank.number, rank.status, wronged=rank.wronged)
    return rank._replace(line=Line.GONE, control=(), joins=(), replies=())
