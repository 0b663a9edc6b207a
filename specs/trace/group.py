"""The world of one trace: any number of calls and callers, no budgets, and no choice.

Theory of operation:

1. It is the model's world, rule for rule: the same `ExecutorRules`, `RankRules` and `open_to`. But where the explorer
   asks "what can happen?", here the line says what did, and only that is computed.
2. `acts` gives what the executor's process may do that would begin with the given machine and event; usually one.
   `moves` gives what a worker may do.
3. Three things that the explorer leaves out are allowed, because real processes do them. A worker may be heard of
   before `made` is written: its process runs by then. A caller whose call is settled may go on waiting while others
   owe replies: so one waits for room. And an answer that nobody is owed any more is dropped without a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...protocol.core import Effect, IllegalEventError, State
from ...protocol.executor import ExecutorProtocol, ExecutorState
from ...protocol.futures import Caller, CallerOn, CallOn, FuturesDo, ReplyOn
from ...protocol.life import Life
from ...protocol.queues import ReaderOn
from ...protocol.shutdown import RankStop, StopDo
from ...protocol.worker import WorkerProtocol
from ..world import Rank, RankMove, RankRules, Status, rank_name
from ..world.callers import open_to
from ..world.channel import MAKE, done_to
from ..world.executor import Act, ExecutorRules
from ..world.ghost import Done
from ..world.threads import is_open
from ..world.words import EXECUTOR, did
from .format import Line


class Waiter(NamedTuple):
    """A thread that waits for a call."""

    call: int
    state: State
    woken: bool = False


class Change(NamedTuple):
    """An action of the executor's process, and the waiter that it leaves under a number, if it is about one."""

    act: Act
    number: int = -1
    waiter: Waiter | None = None


Acts = Iterator[Change]


class Group:
    """The executor, the ranks and the waiting threads of a trace."""

    def __init__(self, ranks: int, executor: ExecutorProtocol, worker: WorkerProtocol) -> None:
        self.rules = ExecutorRules(executor, ranks)
        self.rank_rules = RankRules(worker)
        self.executor: ExecutorState = executor.initial(ranks)
        self.ranks = [Rank(number) for number in range(ranks)]
        self.waiters: dict[int, Waiter] = {}
        self.seen_waiters: set[int] = set()
        self.last_call = 0
        self.alarm: Effect | None = None
        self._by_word: dict[tuple[str, str], Callable[[Line], Acts]] = self._dispatch()

    # --- what may happen ----------------------------------------------------------------------------------------

    def acts(self, line: Line) -> Acts:
        """What the executor's process may do that could begin with `line`."""
        given = self._by_word.get((line.machine, line.event)) or self._by_word.get((line.machine, ""))
        return iter(()) if given is None else given(line)

    def moves(self, number: int) -> Iterator[RankMove]:
        """What the worker of that rank may do, computed one by one."""
        rank = self.ranks[number]
        if rank.status is Status.ABSENT:
            rank = self.rank_rules.made(rank)
        return self.rank_rules.own(rank) if rank.status is Status.ALIVE else iter(())

    def all_acts(self) -> Acts:
        """Everything that the executor's process may do; for explanations."""
        state = self.executor
        yield from map(Change, self.rules.own(state))
        for rank in range(len(self.ranks)):
            line = Line(0, EXECUTOR, 0, 0, "", rank, 0, "", "", "")
            for learnt in (self._control, self._joined, self._opened, self._died):
                yield from learnt(line)
            for word in ReplyOn:
                if word is not ReplyOn.DIED:
                    yield from self._reply(line._replace(event=word.value))
        yield from self._alarm(Line(0, EXECUTOR, 0, 0, "", -1, 0, "", "", ""))
        yield from map(
            Change, [self.rules.submit(state, self.last_call + 1, "caller")] if self._serves() else []
        )
        for number, waiter in self.waiters.items():
            for event in CallerOn:
                yield from self._caller(Line(0, EXECUTOR, 0, 0, "", number, waiter.call, event.value, "", ""))

    def _dispatch(self) -> dict[tuple[str, str], Callable[[Line], Acts]]:
        """By machine and event of an action's first step; "" is any event."""
        return {
            ("stop.rank_stop", "spawned"): self._made,
            ("stop.rank_stop", "died"): self._died,
            ("stop.stop", "alarm"): self._alarm,
            ("start.rank_start", ""): self._control,
            ("start.start", "deadline"): self._deadline,
            ("replies.reader", "handle"): self._handle,
            ("replies.reader", "opened"): self._opened,
            ("broadcast.seat", "joined"): self._joined,
            ("life.life", "stop"): lambda _: iter((Change(self.rules.ask_stop(self.executor)),)),
            ("life.life", "fault"): lambda _: iter((Change(self.rules.fault(self.executor)),)),
            ("life.life", "submit"): self._submit,
            ("call.reply", ""): self._reply,
            ("call.call", "deadline"): lambda line: self._give_up(line, CallOn.DEADLINE),
            ("call.call", "cancel"): lambda line: self._give_up(line, CallOn.CANCEL),
            ("caller.caller", ""): self._caller,
            ("listener.listener", ""): lambda _: iter((Change(self.rules.listen(self.executor)),)),
        }

    def _serves(self) -> bool:
        return self.executor.life[0] is Life.SERVING

    def _rank(self, line: Line) -> Rank | None:
        return self.ranks[line.slot] if 0 <= line.slot < len(self.ranks) else None

    def _made(self, line: Line) -> Acts:
        if self.rules.to_make(self.executor) == line.slot:
            yield Change(self.rules.made(self.executor, line.slot))

    def _handle(self, line: Line) -> Acts:
        if self._rank(line) and self.rules.to_join(self.executor, line.slot):
            yield Change(self.rules.handle(self.executor, line.slot))

    def _control(self, line: Line) -> Acts:
        rank = self._rank(line)
        if rank and rank.control:
            yield Change(self.rules.control(self.executor, line.slot, rank.control[0]))

    def _joined(self, line: Line) -> Acts:
        rank = self._rank(line)
        if rank and rank.joins:
            yield Change(self.rules.joined(self.executor, line.slot))

    def _opened(self, line: Line) -> Acts:
        rank = self._rank(line)
        if rank and rank.replies and rank.replies[0].word == ReaderOn.OPENED:
            yield Change(self.rules.opened(self.executor, line.slot))

    def _died(self, line: Line) -> Acts:
        rank = self._rank(line)
        state = self.executor.stop[line.slot + 1] if rank else RankStop.ABSENT
        if rank and rank.status is Status.DEAD and not rank.control and state is not RankStop.REAPED:
            yield Change(self.rules.died(self.executor, line.slot))

    def _alarm(self, _line: Line) -> Acts:
        if self.alarm is not None:
            yield Change(self.rules.alarm(self.executor))

    def _deadline(self, _line: Line) -> Acts:
        if self.rules.deadline_is_armed(self.executor):
            yield Change(self.rules.start_deadline(self.executor))

    def _submit(self, line: Line) -> Acts:
        if self._serves() and line.call > self.last_call:
            yield Change(self.rules.submit(self.executor, line.call, "caller"))

    def _give_up(self, line: Line, event: CallOn) -> Acts:
        act = self.rules.give_up(self.executor, line.call, event)
        if act.label.steps:
            yield Change(act)

    def _reply(self, line: Line) -> Acts:
        rank = self._rank(line)
        drained = any(waiter.state is Caller.DRAINING for waiter in self.waiters.values())
        while rank and drained and rank.replies and isinstance(rank.replies[0].word, ReplyOn):
            message = rank.replies[0]
            act = self.rules.reply(self.executor, line.slot, message, "caller")
            if act.label.steps:
                if message.word is ReplyOn.RETURNED and line.event == ReplyOn.RAISED.value:
                    act = self.rules.garbled(self.executor, line.slot, message, "caller")
                yield Change(act)
                return
            rank = self.ranks[line.slot] = rank._replace(replies=rank.replies[1:])  # nobody is owed it

    def _caller(self, line: Line) -> Acts:
        number, call = line.slot, line.call
        waiter = self.waiters.get(number)
        if waiter is None:
            if number in self.seen_waiters or not 0 < call <= self.last_call:
                return
            waiter = Waiter(call, self.rules.protocol.caller.aggregate.initial)
        if waiter.call != call:
            return
        event = _CALLER_ON[line.event]
        settled = not is_open(self.executor, call)
        drained = any(other.state is Caller.DRAINING for key, other in self.waiters.items() if key != number)
        allowed = open_to(waiter.state, settled=settled, drained=drained, woken=waiter.woken)
        if settled and self.executor.calls:
            allowed += open_to(waiter.state, settled=False, drained=drained, woken=waiter.woken)
        if event not in (*allowed, CallerOn.DEADLINE, CallerOn.GIVE_UP):
            return
        try:
            (after,), steps = self.rules.protocol.caller.apply((waiter.state,), -1, event)
        except IllegalEventError:
            return
        happened = tuple((call, step._replace(slot=number)) for step in steps)
        wakes = any(FuturesDo.WAKE_PARKED in step.effects for step in steps)
        act = Act(did(EXECUTOR, event.value, happened), self.executor, wakes=wakes)
        yield Change(act, number, Waiter(call, after))

    # --- what happened ------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """The executor's process did it."""
        act = change.act
        for _, step in act.label.steps:
            if step.machine == "life" and step.event == "submit":
                self.last_call = act.after.calls[-1][0].call
        self.executor = act.after
        for number, op in act.ranks:
            rank = self.ranks[number]
            if op is MAKE:
                if rank.status is Status.ABSENT:
                    self.ranks[number] = self.rank_rules.made(rank)
            else:
                self.ranks[number] = done_to(rank, op)
        for noted in act.record:
            if isinstance(noted, Done) and noted.effect in _ALARMS:
                self.alarm = None if noted.effect is StopDo.DISARM else noted.effect
        if change.waiter is not None:
            self._waited(change.number, change.waiter)
        if act.wakes:
            for number, waiter in self.waiters.items():
                if waiter.state is Caller.PARKED:
                    self.waiters[number] = waiter._replace(woken=True)

    def _waited(self, number: int, waiter: Waiter) -> None:
        self.seen_waiters.add(number)
        if waiter.state in self.rules.protocol.caller.aggregate.final:
            self.waiters.pop(number, None)
        else:
            self.waiters[number] = waiter

    def move(self, number: int, move: RankMove) -> int:
        """The worker of that rank did it; returns how many words it said on its control channel."""
        before = len(self.ranks[number].control)
        self.ranks[number] = move.after
        return len(move.after.control) - before

    # --- in words -----------------------------------------------------------------------------------------------

    def states(self) -> dict[str, str]:
        """Where each process is."""
        state = self.executor
        words = [f"life {state.life[0]}"]
        for name in ("start", "broadcast", "replies", "stop"):
            cluster = getattr(state, name)
            words.append(f"{name} {cluster[0]} [{' '.join(map(str, cluster[1:]))}]")
        words += [f"call {i.call} {call[0]} [{' '.join(map(str, call[1:]))}]" for i, call in state.calls]
        words += [f"caller {n} {w.state} for call {w.call}" for n, w in self.waiters.items()]
        found = {EXECUTOR: ", ".join(words)}
        for rank in self.ranks:
            found[rank_name(rank.number)] = _rank_in_words(rank)
        return found


_CALLER_ON: dict[str, CallerOn] = {event.value: event for event in CallerOn}
_ALARMS = (StopDo.ARM_GRACE, StopDo.ARM_TERM, StopDo.ARM_KILL, StopDo.DISARM)


def _rank_in_words(rank: Rank) -> str:
    words = [rank.status.value]
    if rank.worker is not None:
        names = ("boot", "intake", "outlet", "serve", "leave")
        words += [f"{name} {getattr(rank.worker, name)[0]}" for name in names]
    for field, said in (("control", "said"), ("joins", "said"), ("replies", "said"), ("calls", "is told")):
        for message in getattr(rank, field):
            words.append(f"{said} {message}, unread")
    return ", ".join(words)
