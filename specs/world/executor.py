"""What can happen to the executor, each as one action: the fact, the steps it brings about, and what they do to others.

Theory of operation:

1. An action is one fact given to `ExecutorProtocol`. Its effects are sorted by whom they reach: a rank, the record, or
   the parked callers.
2. Offences are judged at once (see `judge`), while the state before, the steps and the message are all in hand.
3. An event that has no row is an offence. If a peer's message brought it, the executor does what the runtime does: the
   peer broke the protocol, so the message is dropped and FAULT is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...protocol.core import Identity, IllegalEventError, Kind, TableError
from ...protocol.executor import ExecutorProtocol, ExecutorState, Happened
from ...protocol.futures import Call, CallOn, FuturesDo, ReplyOn
from ...protocol.life import Life
from ...protocol.queues import Gate, Reader, ReaderOn, SeatOn
from ...protocol.ready import RankStart, Start
from ...protocol.shutdown import RankStop, StopDo
from .channel import MAKE, TAKE_CONTROL, TAKE_JOINS, TAKE_REPLIES, TOLD, call_message
from .channel import Op as RankOp
from .ghost import RECORDED, Done
from .ghost import Op as GhostOp
from .judge import judged
from .words import EPOCH, EXECUTOR, Budgets, Did, Message, Offence, did, rank_name

ENDED = (Life.DOWN, Life.FAILED)
GIVEN_UP = ((CallOn.DEADLINE, "call_deadlines"), (CallOn.CANCEL, "cancels"))
"""How a call is given up by somebody else than a waiting thread, and the budget that it costs."""


class Act(NamedTuple):
    """One action of the executor's process."""

    label: Did
    after: ExecutorState
    ranks: tuple[tuple[int, RankOp], ...] = ()
    record: tuple[GhostOp, ...] = ()
    wakes: bool = False
    """Every parked caller is woken."""
    budget: str = ""


class ExecutorRules:
    """What can happen to an executor of `ranks` ranks that runs by `protocol`."""

    def __init__(self, protocol: ExecutorProtocol, ranks: int, budgets: Budgets | None = None) -> None:
        self.protocol = protocol
        self.ranks = ranks
        self._budgets = budgets

    def _may(self, budget: str) -> bool:
        """Whether it can happen at all: a budget that is empty from the start need not be asked about."""
        return self._budgets is None or bool(getattr(self._budgets, budget))

    # --- what it does by itself, or is asked to -----------------------------------------------------------------

    def own(self, state: ExecutorState) -> Iterator[Act]:
        """What may happen without a message of a rank of this epoch, a death or a thread that waits."""
        if state.life[0] not in ENDED:
            rank = self.to_make(state)
            if rank is not None:
                yield self.made(state, rank)
            for rank in range(self.ranks):
                if self.to_join(state, rank):
                    yield self.handle(state, rank)
            if self._may("start_deadlines") and self.deadline_is_armed(state):
                yield self.start_deadline(state)._replace(budget="start_deadlines")
            if self._may("stops"):
                yield self.ask_stop(state)._replace(budget="stops")
            if self._may("faults") and state.life[0] in (Life.STARTING, Life.JOINING, Life.SERVING):
                yield self.fault(state)._replace(budget="faults")
            for identity, call in state.calls:
                if call[0] is Call.OPEN:
                    for event, budget in GIVEN_UP:
                        if self._may(budget):
                            yield self.give_up(state, identity.call, event)._replace(budget=budget)
        if self._may("listeners"):
            yield self.listen(state)._replace(budget="listeners")

    def to_make(self, state: ExecutorState) -> int | None:
        """The rank whose process is to be made next, or None."""
        if state.life[0] is not Life.STARTING:
            return None
        for rank in range(self.ranks):
            if state.stop[rank + 1] is RankStop.ABSENT:
                return rank
        return None

    @staticmethod
    def deadline_is_armed(state: ExecutorState) -> bool:
        """Whether the time for the whole start runs: a rank is not READY, or a queue is not open."""
        return state.start[0] is Start.STARTING or Gate.GATHERING in (state.broadcast[0], state.replies[0])

    @staticmethod
    def to_join(state: ExecutorState, rank: int) -> bool:
        """Whether the handle of the rank's reply queue is known and the queue is still to be joined."""
        return state.start[rank + 1] is RankStart.READY and state.replies[rank + 1] is Reader.UNKNOWN

    def made(self, state: ExecutorState, rank: int) -> Act:
        """The process of `rank` was made."""
        return self._act(
            f"makes rank {rank}", state, lambda: self.protocol.made(state, rank), ranks=((rank, MAKE),)
        )

    def handle(self, state: ExecutorState, rank: int) -> Act:
        """The executor joins the rank's reply queue, whose handle came with READY."""
        return self._act(
            f"joins the replies of rank {rank}",
            state,
            lambda: self.protocol.give(state, "replies", rank, ReaderOn.HANDLE),
        )

    def start_deadline(self, state: ExecutorState) -> Act:
        """The time for the whole start is over."""
        return self._act(
            "start deadline", state, lambda: self.protocol.start_deadline(state), fair=False, timed=True
        )

    def ask_stop(self, state: ExecutorState) -> Act:
        """Somebody asks for a stop."""
        return self._act("is asked to stop", state, lambda: self.protocol.ask_stop(state), fair=False)

    def fault(self, state: ExecutorState) -> Act:
        """A peer broke the protocol beyond one call."""
        return self._act("finds a fault", state, lambda: self.protocol.fault(state), fair=False)

    def listen(self, state: ExecutorState) -> Act:
        """A failure callback is registered."""
        return self._act("gets a listener", state, lambda: self.protocol.listen(state), fair=False)

    def alarm(self, state: ExecutorState) -> Act:
        """The time of the stop's present stage is over."""
        return self._act(
            f"{state.stop[0]} is over", state, lambda: self.protocol.stop_alarm(state), timed=True
        )

    def give_up(self, state: ExecutorState, number: int, event: CallOn) -> Act:
        """A call's deadline passes, or its caller cancels it."""
        return self._act(
            f"{event.value} of call {number}",
            state,
            lambda: self.protocol.give_up(state, number, event),
            fair=False,
            timed=event is CallOn.DEADLINE,
        )

    # --- what it learns from a rank -----------------------------------------------------------------------------

    def control(self, state: ExecutorState, rank: int, message: Message) -> Act:
        """The first message of the rank's control channel is read."""
        return self._said(state, rank, message, (rank, TAKE_CONTROL), f"reads {message} of rank {rank}")

    def stale(self, state: ExecutorState, rank: int, message: Message) -> Act:
        """A message of another epoch or rank is read from the rank's control channel."""
        who = message.identity
        words = f"reads stale {message} (epoch {who.epoch}, rank {who.rank}) of rank {rank}"
        act = self._said(state, rank, message, None, words)
        moved = act.after != state
        wrong = Offence.STALE_HARM if moved or Offence.ILLEGAL in act.record else 0
        return act._replace(record=(*act.record, *((wrong,) if wrong else ())), budget="stale")

    def _said(
        self, state: ExecutorState, rank: int, message: Message, taken: tuple[int, RankOp] | None, words: str
    ) -> Act:
        own = Identity(EPOCH, rank)
        return self._act(
            words,
            state,
            lambda: self.protocol.give(state, "start", rank, message.word, own, message.identity),
            ranks=() if taken is None else (taken,),
            message=message,
            own=own,
            fair=taken is not None,
        )

    def joined(self, state: ExecutorState, rank: int) -> Act:
        """The rank says, on the broadcast queue's own channel, that it listens."""
        return self._act(
            f"reads JOINED of rank {rank}",
            state,
            lambda: self.protocol.give(state, "broadcast", rank, SeatOn.JOINED),
            ranks=((rank, TAKE_JOINS),),
        )

    def opened(self, state: ExecutorState, rank: int) -> Act:
        """The rank says that its reply queue is open."""
        return self._act(
            f"reads OPEN of rank {rank}",
            state,
            lambda: self.protocol.give(state, "replies", rank, ReaderOn.OPENED),
            ranks=((rank, TAKE_REPLIES),),
        )

    def died(self, state: ExecutorState, rank: int) -> Act:
        """The process of `rank` is gone, and everything that it said of its start has been read."""
        return self._act(f"reaps rank {rank}", state, lambda: self.protocol.died(state, rank))

    # --- calls --------------------------------------------------------------------------------------------------

    def submit(self, state: ExecutorState, number: int, actor: str) -> Act:
        """A caller submits call `number`, which goes to every rank."""
        return self._act(
            f"submits call {number}",
            state,
            lambda: self.protocol.submit(state, Identity(EPOCH, call=number)),
            ranks=tuple((rank, call_message(rank, number)) for rank in range(self.ranks)),
            sends=tuple((EXECUTOR, rank_name(rank), f"CALL {number}") for rank in range(self.ranks)),
            actor=actor,
            fair=False,
        )

    def reply(self, state: ExecutorState, rank: int, message: Message, actor: str) -> Act:
        """The draining caller takes the first message of the rank's reply queue."""
        assert isinstance(message.word, ReplyOn)
        word = message.word
        return self._act(
            f"takes {message} of rank {rank}",
            state,
            lambda: self.protocol.reply(state, rank, word, message.identity),
            ranks=((rank, TAKE_REPLIES),),
            message=message,
            actor=actor,
        )

    def garbled(self, state: ExecutorState, rank: int, message: Message, actor: str) -> Act:
        """The first message of the rank's reply queue is a result that does not decode: it counts as a failure."""
        act = self.reply(state, rank, message._replace(word=ReplyOn.RAISED), actor)
        words = f"cannot decode {message} of rank {rank}"
        label = did(EXECUTOR, words, act.label.steps, act.label.sends, actor=actor, fair=False)
        return act._replace(label=label, budget="raises")

    def stale_reply(self, state: ExecutorState, rank: int, message: Message, actor: str) -> Act:
        """The draining caller reads an answer that belongs to no call of this epoch."""
        act = self.reply(state, rank, message, actor)
        moved = act.after != state
        label = did(
            EXECUTOR, f"takes stale {message} of rank {rank}", act.label.steps, actor=actor, fair=False
        )
        return act._replace(
            label=label,
            ranks=(),
            record=(*act.record, *((Offence.STALE_HARM.value,) if moved else ())),
            budget="stale",
        )

    # --- one action ---------------------------------------------------------------------------------------------

    def _act(
        self,
        action: str,
        before: ExecutorState,
        fact: Callable[[], tuple[ExecutorState, Happened]],
        *,
        ranks: tuple[tuple[int, RankOp], ...] = (),
        record: tuple[GhostOp, ...] = (),
        message: Message | None = None,
        own: Identity | None = None,
        sends: tuple[tuple[str, str, str], ...] = (),
        actor: str | None = None,
        fair: bool = True,
        timed: bool = False,
    ) -> Act:
        try:
            after, happened = fact()
        except IllegalEventError as error:
            return self._illegal(action, before, error, ranks, record)
        except TableError as error:  # of a mutant: its coupling runs in circles
            label = did(EXECUTOR, f"{action}: {error.faults[0]}")
            return Act(label, before, ranks, (*record, Offence.ILLEGAL.value))
        reached, noted, arrows, wakes = list(ranks), list(record), list(sends), False
        for call, step in happened:
            for effect in step.effects:
                if effect in TOLD or effect is StopDo.REAP:
                    reached.append((step.slot, effect))
                    if effect in TOLD:
                        arrows.append((EXECUTOR, rank_name(step.slot), TOLD[effect]))
                elif effect in RECORDED:
                    noted.append(Done(effect, max(call, step.slot, 0)))
                elif effect is FuturesDo.WAKE_PARKED:
                    wakes = True
        wrong = judged(before, after, happened, message, own, timed=timed)
        if wrong:
            noted.append(wrong)
        label = did(EXECUTOR, action, happened, tuple(arrows), actor=actor, fair=fair)
        return Act(label, after, tuple(reached), tuple(noted), wakes)

    def _illegal(
        self,
        action: str,
        before: ExecutorState,
        error: IllegalEventError,
        ranks: tuple[tuple[int, RankOp], ...],
        record: tuple[GhostOp, ...],
    ) -> Act:
        words = f"{action}, illegal at {error.machine}: {error.event.value} in {error.state.name}"
        if error.event.kind is Kind.MESSAGE:
            try:
                act = self._act(
                    words, before, lambda: self.protocol.fault(before), ranks=ranks, record=record
                )
                return act._replace(record=(*act.record, Offence.ILLEGAL.value))
            except IllegalEventError:
                pass  # not even FAULT has a row, in a broken table; then nothing happens but the offence
        return Act(did(EXECUTOR, words), before, ranks, (*record, Offence.ILLEGAL.value))
