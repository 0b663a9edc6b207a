"""One rank: its process, the channels between it and the executor, and everything that can happen there.

Theory of operation:

1. A rank's part of the state is its worker's machines, what its process is doing, and five first-in first-out channels.
   What the worker can do depends on nothing else, so it is computed once a part and remembered.
2. The worker works on one thing at a time: an effect such as INIT_DEVICE begins the work, and its end is the next
   event. It looks at the control channel and at the executor's process between two pieces of work and while it waits;
   while a method runs it sees the executor's death alone.
3. A process that ends leaves what it wrote in the channels, and nothing else.
4. Signals take time: one that was sent is delivered by an action of its own. SIGTERM may be ignored and SIGKILL may
   have no effect, each by a budget.
5. When the executor's process is gone, nobody reads what a worker says any more, so it is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...protocol.core import Effect, Event, Identity, IllegalEventError, Kind, State, Step
from ...protocol.futures import SERVE, FuturesDo, ReplyOn, Serve, ServeOn
from ...protocol.queues import GATE, READER, SEAT, QueueDo, Reader, ReaderOn, SeatOn
from ...protocol.ready import BOOT, Boot, BootOn, RankStartOn, ReadyDo
from ...protocol.shutdown import Leave, LeaveOn, StopDo
from ...protocol.worker import WorkerProtocol, WorkerState
from .words import EPOCH, EXECUTOR, Did, Line, Message, Offence, Signal, Status, did, rank_name

Sends = list[tuple[str, str, str]]


class Rank(NamedTuple):
    """Everything about one rank outside the executor. The channels are named by what flows in them."""

    number: int
    status: Status = Status.ABSENT
    worker: WorkerState | None = None
    work: Effect | None = None
    """What the worker is doing; its end is an event."""
    running: int = 0
    """The call that the worker took last."""
    line: Line = Line.OPEN
    signal: Signal | None = None
    control: tuple[Message, ...] = ()
    calls: tuple[Message, ...] = ()
    joins: tuple[Message, ...] = ()
    """What this rank says as a reader of the broadcast queue."""
    replies: tuple[Message, ...] = ()
    joined: tuple[Message, ...] = ()
    """What the executor says as the reader of this rank's reply queue."""
    wronged: bool = False
    """A signal was sent to this rank, or its status collected, after it was reaped; or it was reaped alive."""

    @property
    def alive(self) -> bool:
        """Whether a process exists that could run."""
        return self.status in (Status.ALIVE, Status.FROZEN, Status.WEDGED)

    def dead(self) -> Rank:
        """The same rank once its process has ended."""
        up = (self.control, self.joins, self.replies) if self.line is not Line.GONE else ((), (), ())
        return Rank(self.number, Status.DEAD, control=up[0], joins=up[1], replies=up[2], wronged=self.wronged)


class RankMove(NamedTuple):
    """Something that can happen in a rank: the budget it costs, and the offence it is, if any."""

    label: Did
    after: Rank
    budget: str = ""
    offence: int = 0


# What a piece of work ends with, and which cluster learns of it.
_ENDS: dict[Effect, tuple[str, Event]] = {
    ReadyDo.INIT_DEVICE: ("boot", BootOn.DEVICE_UP),
    ReadyDo.LOAD_MODEL: ("boot", BootOn.WEIGHTS_UP),
    ReadyDo.MAKE_QUEUES: ("boot", BootOn.QUEUES_UP),
    FuturesDo.RUN_METHOD: ("serve", ServeOn.RETURNED),
    FuturesDo.SEND_REPLY: ("serve", ServeOn.SENT),
    FuturesDo.SEND_FAILURE: ("serve", ServeOn.SENT),
    StopDo.RUN_SHUTDOWN: ("leave", LeaveOn.CLEAN),
}
_SERVE_NUMBERED = (ServeOn.CALL, ServeOn.RETURNED, ServeOn.RAISED, ServeOn.SENT)


class RankRules:
    """What can happen in a rank whose worker runs by `protocol`."""

    def __init__(self, protocol: WorkerProtocol) -> None:
        self.protocol = protocol

    def made(self, now: Rank) -> Rank:
        """The rank once its process has been made."""
        return now._replace(status=Status.ALIVE, worker=self.protocol.initial())

    def moves(self, now: Rank) -> list[RankMove]:
        """Everything that the worker or its surroundings can do next."""
        name = rank_name(now.number)
        found: list[RankMove] = []
        if now.status is Status.ALIVE:
            found += self.own(now)
        if now.alive and now.status is not Status.WEDGED:
            if now.signal is Signal.KILL:
                found.append(RankMove(did(name, "dies of SIGKILL"), now.dead()))
                wedged = now._replace(status=Status.WEDGED)
                found.append(RankMove(did(name, "survives SIGKILL", fair=False), wedged, "wedged"))
            elif now.signal is Signal.TERM and now.status is Status.ALIVE:
                found.append(RankMove(did(name, "dies of SIGTERM"), now.dead()))
                stubborn = now._replace(signal=None)
                found.append(RankMove(did(name, "ignores SIGTERM", fair=False), stubborn, "stubborn"))
            if now.signal is None:
                found.append(RankMove(did(name, "crashes", fair=False), now.dead(), "crashes"))
            if now.status is Status.ALIVE:
                frozen = now._replace(status=Status.FROZEN)
                found.append(RankMove(did(name, "is stopped by SIGSTOP", fair=False), frozen, "freezes"))
            else:
                thawed = now._replace(status=Status.ALIVE)
                found.append(RankMove(did(name, "goes on after SIGCONT", fair=False), thawed))
        elif now.status is Status.WEDGED:
            found.append(RankMove(did(name, "dies of SIGKILL, late", fair=False), now.dead()))
        return found

    def own(self, now: Rank) -> Iterator[RankMove]:
        """What the worker itself does next."""
        worker, work = now.worker, now.work
        assert worker is not None
        stays = worker.leave[0] is Leave.STAYING
        running = work is FuturesDo.RUN_METHOD
        if now.line is Line.GONE and running:
            yield RankMove(did(rank_name(now.number), "ends with the executor"), now.dead())
        if now.line is Line.GONE and worker.leave[0] is not Leave.GONE:
            yield self._fact(now, "orphaned")
        if now.line is not Line.OPEN and not running and stays:
            yield self._fact(now, "stop")
        if work is not None:
            cluster, event = _ENDS[work]
            yield self._event(now._replace(work=None), cluster, event)
            if cluster == "boot":
                yield self._event(now._replace(work=None), "boot", BootOn.RAISED, budget="raises")
            elif running:
                yield self._event(now._replace(work=None), "serve", ServeOn.RAISED, budget="raises")
            return
        if not stays:
            return
        if worker.boot[0] is Boot.BORN:
            yield self._event(now, "boot", BootOn.BORN)
            yield self._event(now, "boot", BootOn.RAISED, budget="raises")
        due = self.protocol.due(worker)
        if due is not None:
            yield self._event(now, *due)
        if now.joined:
            yield self._event(now._replace(joined=now.joined[1:]), "outlet", now.joined[0].word, slot=0)
        if now.calls and worker.intake[0] is not Reader.UNKNOWN:
            message, rest = now.calls[0], now.calls[1:]
            if message.word == ReaderOn.OPENED:
                yield self._event(now._replace(calls=rest), "intake", ReaderOn.OPENED)
            elif worker.serve[0] is Serve.IDLE:
                taken = now._replace(calls=rest, running=message.identity.call)
                yield self._event(taken, "serve", ServeOn.CALL)

    # --- steps and effects --------------------------------------------------------------------------------------

    def _fact(self, now: Rank, fact: str) -> RankMove:
        assert now.worker is not None
        try:
            worker, steps = getattr(self.protocol, fact)(now.worker)
        except IllegalEventError as error:
            return self._illegal(now, error)
        return self._did(now._replace(work=None), fact, worker, steps)

    def _event(self, now: Rank, cluster: str, event: Event, slot: int = -1, budget: str = "") -> RankMove:
        assert now.worker is not None
        try:
            worker, steps = self.protocol.give(now.worker, cluster, event, slot)
        except IllegalEventError as error:
            return self._illegal(now, error)
        action = f"{event.value} {now.running}" if cluster == "serve" and now.running else event.value
        if cluster in ("intake", "outlet"):
            action = f"{cluster} {event.value}"
        return self._did(now, action, worker, steps, budget)

    def _illegal(self, now: Rank, error: IllegalEventError) -> RankMove:
        label = did(
            rank_name(now.number), f"breaks at {error.machine}: {error.event.value} in {error.state.name}"
        )
        return RankMove(label, now.dead(), offence=Offence.ILLEGAL)

    def _did(
        self, now: Rank, action: str, worker: WorkerState, steps: tuple[Step, ...], budget: str = ""
    ) -> RankMove:
        after, sends, wrong = now._replace(worker=worker), Sends(), 0
        for step in steps:
            wrong |= _unsaid(step)
            if step.event.kind is Kind.DEATH and now.line is not Line.GONE:
                wrong |= Offence.MISTOLD
            for effect in step.effects:
                after, offence = self._perform(after, step, effect, sends)
                wrong |= offence
        numbered = tuple(
            (now.running if step.cluster == "serve" and step.event in _SERVE_NUMBERED else 0, step)
            for step in steps
        )
        if after.line is Line.GONE:
            after = after._replace(control=(), joins=(), replies=())
        if worker.serve[0] is Serve.IDLE and after.running:
            after = after._replace(running=0)
        label = did(rank_name(now.number), action, numbered, tuple(sends), fair=not budget)
        return RankMove(label, after, budget, wrong)

    def _perform(self, now: Rank, step: Step, effect: Effect, sends: Sends) -> tuple[Rank, int]:
        """The rank after one effect of the worker, and the offence it is."""
        if effect is StopDo.EXIT:
            return now.dead(), 0 if _at_rest(now.worker) else Offence.UNFINISHED
        control = _CONTROL.get(effect)
        if effect is ReadyDo.SEND_PHASE:
            control = RankStartOn.__members__.get(step.dest.name)
            if control is None:
                return now.dead(), Offence.ILLEGAL  # there is no such phase to tell
        if control is not None:
            message = Message(control, Identity(EPOCH, now.number))
            late = Offence.LATE_WORD if now.work is not None else 0
            now = now._replace(control=(*now.control, message))
            sends.append((rank_name(now.number), EXECUTOR, str(message)))
            return now, late
        if effect is QueueDo.SEND_JOINED:
            message = Message(SeatOn.JOINED, Identity(EPOCH, now.number))
            now = now._replace(joins=(*now.joins, message))
        elif effect is QueueDo.SEND_OPEN:
            message = Message(ReaderOn.OPENED, Identity(EPOCH, now.number))
            now = now._replace(replies=(*now.replies, message))
        elif effect in _ENDS:
            now = now._replace(work=effect)
            word = _REPLIES.get(effect)
            if word is None:
                return now, 0
            message = Message(word, Identity(EPOCH, now.number, now.running))
            now = now._replace(replies=(*now.replies, message))
            sends.append((rank_name(now.number), EXECUTOR, str(message)))
            happened = _HAPPENED.get(step.event)
            return now, 0 if happened is word else Offence.MISSAID
        else:
            return now, 0
        sends.append((rank_name(now.number), EXECUTOR, str(message)))
        return now, 0


def at_rest(worker: WorkerState) -> bool:
    """Whether nothing of the worker goes on, now that it was asked to stop or the executor is gone."""
    return (
        worker.boot[0] in BOOT.final
        and worker.intake[0] in READER.final
        and worker.outlet[0] in GATE.final
        and all(seat in SEAT.final for seat in worker.outlet[1:])
        and worker.serve[0] in SERVE.final
    )


def _unsaid(step: Step) -> int:
    """Whether the step counts something as said that it does not say."""
    says = _SAYS.get(step.dest)
    unsaid = step.dest is not step.source and says is not None and says not in step.effects
    return Offence.UNSAID if unsaid else 0


def _at_rest(worker: WorkerState | None) -> bool:
    """Whether a worker may end: it failed to come up, or has taken its leave and nothing goes on."""
    assert worker is not None
    if worker.leave[0] is not Leave.GONE:
        return False
    return worker.boot[0] is Boot.FAILED or at_rest(worker)


_SAYS: dict[State, Effect] = {Boot.READY: ReadyDo.SEND_READY, Boot.FAILED: ReadyDo.SEND_FAILED}
_CONTROL: dict[Effect, Event] = {
    ReadyDo.SEND_HELLO: RankStartOn.HELLO,
    ReadyDo.SEND_READY: RankStartOn.READY,
    ReadyDo.SEND_FAILED: RankStartOn.FAILED,
}
# What an answer must say, by what ended the method.
_HAPPENED: dict[Event, Event] = {ServeOn.RETURNED: ReplyOn.RETURNED, ServeOn.RAISED: ReplyOn.RAISED}
_REPLIES: dict[Effect, Event] = {
    FuturesDo.SEND_REPLY: ReplyOn.RETURNED,
    FuturesDo.SEND_FAILURE: ReplyOn.RAISED,
}
