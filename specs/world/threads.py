"""What the threads that make and await calls can do next."""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.core import IllegalEventError
from ...protocol.executor import ExecutorProtocol, ExecutorState
from ...protocol.futures import Call, Caller, CallerOn, FuturesDo
from ...protocol.life import Life
from .callers import Thread, Threads, open_to
from .executor import Act, ExecutorRules
from .words import EXECUTOR, Offence, did

_GIVEN_UP = (CallerOn.GIVE_UP, CallerOn.DEADLINE)


def is_open(state: ExecutorState, number: int) -> bool:
    """Whether call `number` has no outcome yet."""
    return any(identity.call == number and call[0] is Call.OPEN for identity, call in state.calls)


class ThreadRules:
    """What threads that run by `protocol` can do."""

    def __init__(self, protocol: ExecutorProtocol, executor: ExecutorRules, ahead: int) -> None:
        self.protocol = protocol
        self.executor = executor
        self.ahead = ahead

    def moves(self, state: ExecutorState, threads: Threads) -> Iterator[tuple[Act, Threads]]:
        """The actions of all threads, with the threads after each."""
        drainer = threads.drainer
        for number, thread in enumerate(threads.threads):
            if self._may_submit(state, thread):
                call = threads.next_call
                changed = thread._replace(out=(*thread.out, call), left=thread.left - 1)
                act = self.executor.submit(state, call, f"caller {number}")
                yield act, _with(threads, number, changed)._replace(next_call=call + 1)
            if not thread.out:
                continue
            caller = Caller.LOOKING if thread.caller is None else thread.caller
            drained = drainer is not None and drainer != number
            settled = not is_open(state, thread.out[0])
            for event in open_to(caller, settled=settled, drained=drained, woken=thread.woken):
                yield self._step(state, threads, number, event)
            for event in _GIVEN_UP:  # also when the call was settled, and the thread does not know it yet
                act, after = self._step(state, threads, number, event)
                yield act._replace(budget="give_ups"), after

    def _may_submit(self, state: ExecutorState, thread: Thread) -> bool:
        return (
            thread.caller is None
            and thread.left > 0
            and len(thread.out) < self.ahead
            and state.life[0] is Life.SERVING
        )

    def _step(
        self, state: ExecutorState, threads: Threads, number: int, event: CallerOn
    ) -> tuple[Act, Threads]:
        thread, actor = threads.threads[number], f"caller {number}"
        caller = Caller.LOOKING if thread.caller is None else thread.caller
        action = f"{event.value} (call {thread.out[0]})"
        try:
            (after,), steps = self.protocol.caller.apply((caller,), -1, event)
        except IllegalEventError:
            label = did(EXECUTOR, f"{action}, illegal in {caller}", actor=actor)
            return Act(label, state, record=(Offence.ILLEGAL.value,)), threads
        happened = tuple((thread.out[0], step._replace(slot=number)) for step in steps)
        label = did(EXECUTOR, action, happened, actor=actor, fair=event not in _GIVEN_UP)
        ends = after in self.protocol.caller.aggregate.final
        gives_up = event in _GIVEN_UP
        told = after is Caller.ANSWERED
        wrong = gives_up != (after is Caller.GAVE_UP) or (told and is_open(state, thread.out[0]))
        if event is CallerOn.SETTLED:
            wrong = not told
        if ends:
            changed = thread._replace(caller=None, woken=False, out=thread.out[1:])
        else:
            changed = thread._replace(caller=after, woken=False)
        wakes = any(FuturesDo.WAKE_PARKED in step.effects for step in steps)
        record = (Offence.LEFT.value,) if wrong else ()
        return Act(label, state, record=record, wakes=wakes), _with(threads, number, changed)


def _with(threads: Threads, number: int, thread: Thread) -> Threads:
    changed = (*threads.threads[:number], thread, *threads.threads[number + 1 :])
    return threads._replace(threads=changed)
