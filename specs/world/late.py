"""What comes late, early or twice: the same world with a ruder environment.

Theory of operation. The executor and the ranks are those of the other models; what is added is what real surroundings
do to them and what a tidy world never shows:

1. Somebody asks for a stop again, and a fault is found, while the executor ends and after it has ended.
2. A call is cancelled, or its time passes, after it was settled, while replies to it are owed.
3. A worker sees the end of its control channel twice.
4. The news of a death overtakes what the dead rank had said: it is read afterwards. (The runtime's supervisor reads
   first; an executor that has its deaths from elsewhere may not.)
5. A failure, too, may be read as an answer of an earlier epoch, of another rank, or to no call.
6. A reply queue has no room (`Bounded`): the worker waits until what it wrote before was read.

Each but the last costs a budget: `stops`, `faults`, `call_deadlines`, `cancels`, `stale`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...protocol.executor import ExecutorState
from ...protocol.futures import Call, FuturesDo, ReplyOn, ServeOn
from ...protocol.life import Life
from ...protocol.shutdown import Leave, RankStop, Stop, StopDo
from . import channel
from .executor import ENDED, GIVEN_UP, Act
from .parts import Parts, node
from .rank import Rank, RankMove, RankRules
from .words import Line, Node, Status, did, rank_name

_SETTLED = (Call.FAILED, Call.EXPIRED, Call.CANCELLED)


class Late(Parts):
    """The ruder environment."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rank_rules = _ToldTwice(self.rank_rules.protocol)

    def _owns(self, state: ExecutorState) -> Iterator[Act]:
        yield from super()._owns(state)
        rules = self.executor_rules
        if state.life[0] in ENDED:
            yield rules.ask_stop(state)._replace(budget="stops")
        if state.life[0] in (Life.STOPPING, Life.FAILING, *ENDED):
            yield rules.fault(state)._replace(budget="faults")
        for identity, call in state.calls:
            if call[0] in _SETTLED:
                for event, budget in GIVEN_UP:
                    yield rules.give_up(state, identity.call, event)._replace(budget=budget)

    def _learns(self, state: ExecutorState, rank: Rank, drainer: int | None) -> Iterator[Act]:
        yield from super()._learns(state, rank, drainer)
        if drainer is not None and self._stale:
            for message in self._stale_replies(state, rank.number):
                failure = message._replace(word=ReplyOn.RAISED)
                yield self.executor_rules.stale_reply(state, rank.number, failure, f"caller {drainer}")

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        yield from super()._hears(state, rank)
        number = rank.number
        unreaped = state.stop[number + 1] is not RankStop.REAPED
        if rank.control and rank.status is Status.DEAD and unreaped and state.stop[0] is not Stop.DOWN:
            act = self.executor_rules.died(state, number)
            words = f"reaps rank {number} before it has read what it said"
            label = did(act.label.process, words, act.label.steps, act.label.sends, fair=False)
            yield act._replace(label=label, budget="faults")

    def done_to(self, rank: Node[Rank], op: channel.Op) -> Node[Rank]:
        after = super().done_to(rank, op)
        if op is StopDo.REAP and rank.value.control:
            return node(self.ranks, after.value._replace(control=rank.value.control))
        return after


class _ToldTwice(RankRules):
    """A worker that takes its leave sees the end of its control channel again."""

    def own(self, now: Rank) -> Iterator[RankMove]:
        yield from super().own(now)
        assert now.worker is not None
        if now.line is Line.CLOSED and now.worker.leave[0] is Leave.LEAVING:
            move = self._fact(now, "stop")
            same = move.after._replace(work=now.work) if move.after.alive else move.after
            label = did(rank_name(now.number), "is asked again", move.label.steps, fair=False)
            yield move._replace(label=label, after=same, budget="faults")


class Bounded(Parts):
    """The world in which a reply queue holds one answer: whoever writes the next waits until that was read."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rank_rules = _Waiting(self.rank_rules.protocol)


class _Waiting(RankRules):
    def own(self, now: Rank) -> Iterator[RankMove]:
        full = now.work in (FuturesDo.SEND_REPLY, FuturesDo.SEND_FAILURE) and bool(now.replies)
        for move in super().own(now):
            if not full or all(step.event is not ServeOn.SENT for _, step in move.label.steps):
                yield move
