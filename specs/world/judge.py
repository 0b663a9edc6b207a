"""What must never be done by the executor, judged step by step, where the state before, the steps and the message are
all in hand.

Theory of operation. An offence is a thing done, not a state reached: a reply taken by the wrong call leaves no trace.
Beside what a message may do, these are judged:

1. *What a machine is told is so.* An event that one machine's state brings about in another says something about that
   state ("a rank's process is gone"), and it must be true once the action is over. `_TRUE` is the list; an event that
   time brings about needs an action that time brought about.
2. *Who waits is told, and told once.* A death is a loss to both queues, and the loss of its call to whoever is owed an
   answer, though the end that follows would end them as well: the first cause must be the one that is known.
3. *The stop goes forward, one stage at a time.* From stage to stage only time leads; to the end, only that nobody is
   left.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.core import Event, Identity, Kind, State, Step
from ...protocol.core.cluster import ClusterState
from ...protocol.executor import ExecutorState, Happened
from ...protocol.futures import Call, CallOn, FuturesDo, Reply
from ...protocol.life import Life, LifeOn
from ...protocol.queues import Gate, GateOn, Reader, ReaderOn, Seat, SeatOn
from ...protocol.ready import RankStart, RankStartOn, Start, StartOn
from ...protocol.shutdown import ListenerOn, RankStop, RankStopOn, Stop, StopOn
from .words import EPOCH, Message, Offence


def judged(
    before: ExecutorState,
    after: ExecutorState,
    happened: Happened,
    message: Message | None = None,
    own: Identity | None = None,
    *,
    timed: bool = False,
) -> int:
    """The offences in the steps of one action; `timed` says that a point in time brought it about."""
    wrong = _unheard(before, happened)
    settled: set[int] = set()
    moved: set[tuple[object, ...]] = set()
    told: set[tuple[object, ...]] = set()
    for call, step in happened:
        cluster, machine, slot, event, source, dest, _ = step
        if dest is not source:
            about = (call, cluster, machine, slot, event)
            if about in moved:
                wrong |= Offence.AGAIN
            moved.add(about)
            if dest is RankStart.READY and event is not RankStartOn.READY:
                wrong |= Offence.UNSAID
            if message is not None:
                wrong |= _taken(step, call, message, own)
            what = (call, cluster, machine, event)
            if (
                what not in told
            ):  # what one member is told is told to all of them, and is so for all or for none
                told.add(what)
                wrong |= _told(before, after, happened, call, step, timed)
            if step.machine == "stop":
                wrong |= _forward(step, after)
        if FuturesDo.RESOLVE in step.effects:
            wrong |= _resolved(before, happened, call, settled)
        if FuturesDo.RESOLVE in step.effects or FuturesDo.FAIL in step.effects:
            settled.add(call)
    return int(wrong)


def _taken(step: Step, call: int, message: Message, own: Identity | None) -> int:
    if step.machine == "rank_start" and own is not None and step.event in _CONTROL_WORDS:
        if (message.identity.epoch, message.identity.rank) != (own.epoch, own.rank):
            return Offence.STALE_TAKEN
    elif step.machine == "reply" and message.identity != Identity(EPOCH, step.slot, call):
        return Offence.MIXED
    return 0


def _resolved(before: ExecutorState, happened: Happened, number: int, settled: set[int]) -> int:
    wrong = 0
    for identity, call in before.calls:
        if identity.call < number and call[0] is Call.OPEN and identity.call not in settled:
            wrong |= Offence.OUT_OF_ORDER
        if identity.call == number:
            members = _members(call, happened, number)
            if any(member is not Reply.RETURNED for member in members):
                wrong |= Offence.UNEARNED
    return wrong


def _members(call: ClusterState, happened: Happened, number: int) -> list[State]:
    """The replies of call `number` after the action: the call itself may be out of the books by then."""
    members = list(call[1:])
    for about, step in happened:
        if about == number and step.machine == "reply":
            members[step.slot] = step.dest
    return members


# --- what a machine is told is so -------------------------------------------------------------------------------------

_ENDING = (Life.STOPPING, Life.FAILING, Life.DOWN, Life.FAILED)
_NOBODY = (RankStop.REAPED, RankStop.ABSENT)

_TRUE: dict[tuple[str, Event], Callable[[ExecutorState], bool]] = {
    ("start", StartOn.ALL_READY): lambda s: all(rank is RankStart.READY for rank in s.start[1:]),
    ("start", StartOn.RANK_FAILED): lambda s: RankStart.FAILED in s.start[1:],
    ("start", StartOn.RANK_DIED): lambda s: RankStart.DEAD in s.start[1:],
    ("start", StartOn.CANCEL): lambda s: s.life[0] in _ENDING,
    ("rank_start", RankStartOn.CANCEL): lambda s: s.start[0] is Start.FAILED,
    ("life", LifeOn.RANKS_READY): lambda s: s.start[0] is Start.UP,
    ("life", LifeOn.QUEUES_OPEN): lambda s: s.broadcast[0] is Gate.OPEN and s.replies[0] is Gate.OPEN,
    ("life", LifeOn.END): lambda s: s.stop[0] in (Stop.DOWN, Stop.SURVIVORS),
    ("stop", StopOn.STOP): lambda s: s.life[0] in _ENDING,
    ("stop", StopOn.ALL_GONE): lambda s: all(rank in _NOBODY for rank in s.stop[1:]),
    ("rank_stop", RankStopOn.ASK): lambda s: s.stop[0] is not Stop.RUNNING,
    ("rank_stop", RankStopOn.TERMINATE): lambda s: s.stop[0] is Stop.TERMINATING,
    ("rank_stop", RankStopOn.KILL): lambda s: s.stop[0] is Stop.KILLING,
    ("rank_stop", RankStopOn.GIVE_UP): lambda s: s.stop[0] is Stop.SURVIVORS,
    ("listener", ListenerOn.FAILURE): lambda s: s.life[0] in (Life.FAILING, Life.FAILED),
    ("listener", ListenerOn.RELEASE): lambda s: s.life[0] in (Life.STOPPING, Life.DOWN),
    ("call", CallOn.CLOSE): lambda s: s.life[0] in _ENDING,
    ("gate", GateOn.CLOSE): lambda s: s.life[0] in _ENDING,
}
"""Per machine, the events that another machine's state brings about, and what is then true."""

_IN_GATE: dict[tuple[str, Event], Callable[[ClusterState], bool]] = {
    ("gate", GateOn.ALL_IN): lambda c: all(one in (Seat.JOINED, Seat.OPEN, Reader.OPEN) for one in c[1:]),
    ("gate", GateOn.LOST): lambda c: any(one in (Seat.GONE, Reader.GONE) for one in c[1:]),
    ("seat", SeatOn.OPEN): lambda c: c[0] is Gate.OPEN,
    ("seat", SeatOn.CLOSE): lambda c: c[0] is Gate.CLOSED,
    ("reader", ReaderOn.CLOSE): lambda c: c[0] is Gate.CLOSED,
}
"""The same, of the two queue clusters."""

_IN_CALL: dict[tuple[str, Event], Callable[[list[State]], bool]] = {
    ("call", CallOn.ALL_REPLIED): lambda replies: all(one is Reply.RETURNED for one in replies),
    ("call", CallOn.RANK_RAISED): lambda replies: Reply.RAISED in replies,
    ("call", CallOn.RANK_LOST): lambda replies: Reply.LOST in replies,
}
"""The same, of a call."""


def _told(
    before: ExecutorState, after: ExecutorState, happened: Happened, call: int, step: Step, timed: bool
) -> int:
    if step.event.kind is Kind.DEADLINE and not timed:
        return Offence.MISTOLD
    key = (step.machine, step.event)
    so = True
    if key in _TRUE:
        so = _TRUE[key](after)
    elif key in _IN_GATE:
        so = _IN_GATE[key](getattr(after, step.cluster))
    elif key in _IN_CALL:
        replies = next((_members(one, happened, call) for who, one in before.calls if who.call == call), [])
        so = _IN_CALL[key](replies)
    return 0 if so else Offence.MISTOLD


# --- who waits is told ------------------------------------------------------------------------------------------------


def _unheard(before: ExecutorState, happened: Happened) -> int:
    """Whether a death, a deadline, a failure or the last answer is kept from somebody who waits for it."""
    wrong = 0
    told = {
        (step.cluster, step.event) for _, step in happened if step.dest is not step.source and step.slot < 0
    }
    events = {step.event for _, step in happened if step.machine in ("rank_stop", "start", "gate")}
    if any(step.machine == "rank_stop" and step.event is RankStopOn.DIED for _, step in happened):
        for name in ("broadcast", "replies"):
            if getattr(before, name)[0] is not Gate.CLOSED and (name, GateOn.LOST) not in told:
                wrong |= Offence.UNHEARD
    if GateOn.DEADLINE in events:
        waits = {"start": before.start[0] is Start.STARTING}
        waits |= {name: getattr(before, name)[0] is Gate.GATHERING for name in ("broadcast", "replies")}
        if any(waiting and (name, GateOn.DEADLINE) not in told for name, waiting in waits.items()):
            wrong |= Offence.UNHEARD
    for identity, call in before.calls:
        if call[0] is Call.OPEN:
            wrong |= _call_unheard(call, happened, identity.call)
    return wrong


def _call_unheard(call: ClusterState, happened: Happened, number: int) -> int:
    members = _members(call, happened, number)
    ends = [step for about, step in happened if about == number and step.machine == "call"]
    if Reply.RAISED in members or Reply.LOST in members:
        named = CallOn.RANK_RAISED if Reply.RAISED in members else CallOn.RANK_LOST
        as_such = any(step.event is named and step.dest is Call.FAILED for step in ends)
    elif all(reply is Reply.RETURNED for reply in members):
        as_such = any(step.dest is Call.RESOLVED for step in ends)
    else:
        return 0
    return 0 if as_such else Offence.UNHEARD


# --- the stop ---------------------------------------------------------------------------------------------------------

_STAGES: list[State] = [Stop.RUNNING, Stop.CLOSING, Stop.TERMINATING, Stop.KILLING, Stop.SURVIVORS]


def _forward(step: Step, after: ExecutorState) -> int:
    if step.dest is Stop.DOWN:
        return 0 if all(rank in _NOBODY for rank in after.stop[1:]) else Offence.SKIPPED
    if step.source is Stop.DOWN or _STAGES.index(step.dest) != _STAGES.index(step.source) + 1:
        return Offence.SKIPPED
    by_time = step.event.kind is Kind.DEADLINE
    return 0 if by_time or step.dest is Stop.CLOSING else Offence.SKIPPED


_CONTROL_WORDS: tuple[Event, ...] = (
    RankStartOn.HELLO,
    RankStartOn.WEIGHTS,
    RankStartOn.QUEUES,
    RankStartOn.READY,
    RankStartOn.FAILED,
)
