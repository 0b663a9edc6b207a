"""Wrong glue: who reads what, and when, where no table is at fault.

Theory of operation. Each class stands in for one part of the composed world and changes one habit: it reads ranks one
after the other, watches nobody, takes a hint for the truth. The tables under it are the shipped ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...protocol.core import Identity
from ...protocol.executor import ExecutorProtocol, ExecutorState, Happened
from ...protocol.futures import SERVE, Call, CallOn, FuturesDo, Reply, ReplyOn, Serve, ServeOn
from ...protocol.ready import RankStart, Start
from ...protocol.shutdown import Listener, RankStop
from ...protocol.worker import WorkerProtocol
from ..world import Act, ExecutorRules, Line, Message, Rank, RankMove, RankRules, Status
from ..world.channel import TAKE_REPLIES
from ..world.parts import Parts
from ..world.words import EXECUTOR, did
from .edit import changed

# --- who reads whom ---------------------------------------------------------------------------------------------------


class StartInRankOrder(Parts):
    """Readiness is read rank by rank: whatever a later rank says, or its death, waits until the earlier are READY."""

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        if state.start[0] is Start.STARTING:
            waited_for = next(
                (n for n, one in enumerate(state.start[1:]) if one is not RankStart.READY), None
            )
            if rank.number != waited_for:
                return
        yield from super()._hears(state, rank)


class RepliesInRankOrder(Parts):
    """Replies are read rank by rank: the drainer blocks on the first rank that owes the oldest call."""

    def _learns(self, state: ExecutorState, rank: Rank, drainer: int | None) -> Iterator[Act]:
        if state.calls and Reply.OWED in state.calls[0][1]:
            first = state.calls[0][1].index(Reply.OWED) - 1
            drainer = drainer if rank.number == first else None
        yield from super()._learns(state, rank, drainer)


class NobodyWatches(Parts):
    """No sentinel is watched: a death is known only if the one that dies says so."""

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        yield from super()._hears(state, _as_if_alive(rank))


class WatchedFromReady(Parts):
    """A process is watched from its READY on, which told who it is."""

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        known = state.start[rank.number + 1] is RankStart.READY
        yield from super()._hears(state, rank if known else _as_if_alive(rank))


def _as_if_alive(rank: Rank) -> Rank:
    return rank._replace(status=Status.ALIVE) if rank.status is Status.DEAD else rank


class SentinelIsDeath(Parts):
    """A readable sentinel is taken for a death; a descriptor that was reused is readable, too."""

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        yield from super()._hears(state, rank)
        if rank.status is Status.ALIVE and state.stop[rank.number + 1] is RankStop.ALIVE:
            act = self.executor_rules.died(state, rank.number)
            label = did(
                EXECUTOR, f"finds the sentinel of rank {rank.number} readable", act.label.steps, fair=False
            )
            yield act._replace(label=label, budget="faults")


class LosesWhatItCannotDecode(Parts):
    """An answer that does not decode breaks its reader: it is off the queue, and no call has got it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.executor_rules = _LosingRules(self.executor_rules.protocol, self.executor_rules.ranks)


class _LosingRules(ExecutorRules):
    def garbled(self, state: ExecutorState, rank: int, message: Message, actor: str) -> Act:
        act = super().garbled(state, rank, message, actor)
        label = did(EXECUTOR, act.label.action, actor=actor, fair=False)
        return Act(label, state, ranks=((rank, TAKE_REPLIES),), budget=act.budget)


# --- workers ----------------------------------------------------------------------------------------------------------


class _Unlike(RankRules):
    """Rank 0 runs by the protocol, every other rank by another one."""

    def __init__(self, protocol: WorkerProtocol, other: WorkerProtocol) -> None:
        super().__init__(protocol)
        self._other = RankRules(other)

    def made(self, now: Rank) -> Rank:
        return super().made(now) if now.number == 0 else self._other.made(now)

    def moves(self, now: Rank) -> list[RankMove]:
        return super().moves(now) if now.number == 0 else self._other.moves(now)


class OthersKeepFailuresBack(Parts):
    """Only rank 0 owes replies, and so only rank 0 reports failures: what raises elsewhere is logged and dropped."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        protocol = self.rank_rules.protocol
        silent = protocol.but(changed(SERVE, ServeOn.RAISED, Serve.RUNNING, Serve.IDLE))
        self.rank_rules = _Unlike(protocol, silent)


class OthersNeverAnswer(Parts):
    """Rank 0 alone answers; every rank is waited for."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        protocol = self.rank_rules.protocol
        silent = protocol.but(changed(SERVE, ServeOn.RETURNED, Serve.RUNNING, Serve.IDLE))
        self.rank_rules = _Unlike(protocol, silent)


class _Endless(RankRules):
    """A method may run for ever: its end is not bound to come."""

    def own(self, now: Rank) -> Iterator[RankMove]:
        for move in super().own(now):
            if (
                now.work is FuturesDo.RUN_METHOD
                and move.after.work is not FuturesDo.RUN_METHOD
                and move.after.alive
            ):
                label = did(
                    move.label.process, move.label.action, move.label.steps, move.label.sends, fair=False
                )
                move = move._replace(label=label)
            yield move


class _Blind(_Endless):
    """The executor's death is not looked at: never, while idle, or while a method runs."""

    def __init__(self, protocol: WorkerProtocol, when: str) -> None:
        super().__init__(protocol)
        self._when = when

    def own(self, now: Rank) -> Iterator[RankMove]:
        running = now.work is FuturesDo.RUN_METHOD
        assert now.worker is not None
        idle = now.worker.serve[0] is Serve.IDLE and now.work is None
        blind = {"never": True, "idle": idle, "busy": running}[self._when]
        if now.line is not Line.GONE or not blind:
            yield from super().own(now)
            return
        for move in super().own(now._replace(line=Line.OPEN)):
            after = move.after
            if after.alive:
                after = after._replace(line=Line.GONE, control=(), joins=(), replies=())
            yield move._replace(after=after)


class MethodsMayHang(Parts):
    """The world in which a worker's method may run for ever; nothing else is changed."""

    when = ""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        protocol = self.rank_rules.protocol
        self.rank_rules = _Blind(protocol, self.when) if self.when else _Endless(protocol)


class ParentUnwatched(MethodsMayHang):
    """Workers do not watch the executor's process."""

    when = "never"


class ParentUnwatchedWhileIdle(MethodsMayHang):
    """A flag says that the executor is gone; the loop that waits for the next call does not look at it."""

    when = "idle"


class ParentUnwatchedWhileBusy(MethodsMayHang):
    """The executor's death is seen at the next read; a worker that computes does not read."""

    when = "busy"


# --- the executor's own code ------------------------------------------------------------------------------------------


class EndBeforeCause(ExecutorProtocol):
    """On a death the executor ends first, which fails every call; the calls never learn of the death."""

    def died(self, state: ExecutorState, rank: int) -> tuple[ExecutorState, Happened]:
        """See `ExecutorProtocol.died`."""
        after, happened = super().died(state._replace(calls=()), rank)
        return self._settle(after._replace(calls=state.calls), happened)


class LastListener(ExecutorProtocol):
    """A callback that is registered takes the place of the one before it."""

    def listen(self, state: ExecutorState) -> tuple[ExecutorState, Happened]:
        """See `ExecutorProtocol.listen`."""
        released = tuple(Listener.RELEASED if one is Listener.LISTENING else one for one in state.listeners)
        return super().listen(state._replace(listeners=released))


class ForgetsFailed(ExecutorProtocol):
    """A call that failed is forgotten at once, though replies to it are still to come."""

    forgotten: tuple[Call, ...] = (Call.FAILED,)

    def reply(
        self, state: ExecutorState, rank: int, event: ReplyOn, message: Identity
    ) -> tuple[ExecutorState, Happened]:
        """See `ExecutorProtocol.reply`."""
        after, happened = super().reply(state, rank, event, message)
        return self._without(after), happened

    def give_up(self, state: ExecutorState, number: int, event: CallOn) -> tuple[ExecutorState, Happened]:
        """See `ExecutorProtocol.give_up`."""
        after, happened = super().give_up(state, number, event)
        return self._without(after), happened

    def _without(self, state: ExecutorState) -> ExecutorState:
        kept = tuple(one for one in state.calls if one[1][0] not in self.forgotten)
        return state._replace(calls=kept)


class ForgetsAbandoned(ForgetsFailed):
    """A call that expired or was cancelled is forgotten at once, though its replies are still to come."""

    forgotten = (Call.EXPIRED, Call.CANCELLED)
