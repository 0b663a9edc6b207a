"""What futures draining promises."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.executor import ExecutorState
from ...protocol.futures import Call, Caller, Reply, ReplyOn
from ...protocol.life import Life
from ...protocol.shutdown import RankStop
from ..explore import Property, always, leads_to, sometimes
from ..world import Now, Offence, World
from .ask import executor, never_done, record

_BROKEN = (Reply.RAISED, Reply.LOST)
_ABANDONED = (Call.EXPIRED, Call.CANCELLED)
_ENDING = (Life.STOPPING, Life.FAILING, Life.DOWN, Life.FAILED)


def _failure_fails(state: ExecutorState) -> bool:
    return all(
        call[0] not in (Call.OPEN, Call.RESOLVED) or not any(reply in _BROKEN for reply in call[1:])
        for _, call in state.calls
    )


def _fails_by_its_own(state: ExecutorState) -> bool:
    return state.life[0] in _ENDING or all(
        call[0] is not Call.FAILED or any(reply in _BROKEN for reply in call[1:]) for _, call in state.calls
    )


def _dead_owe_nothing(state: ExecutorState) -> bool:
    reaped = [rank for rank, stop in enumerate(state.stop[1:], start=1) if stop is RankStop.REAPED]
    return not any(call[rank] is Reply.OWED for _, call in state.calls for rank in reaped)


def _unread_failure(now: Now) -> bool:
    if now.gone:
        return False
    opened = {identity.call for identity, call in now.executor.value.calls if call[0] is Call.OPEN}
    return any(
        message.word is ReplyOn.RAISED and message.identity.call in opened
        for rank in now.ranks
        for message in rank.value.replies
    )


def _handed_over(now: Now) -> bool:
    if now.gone:
        return True
    opened = {identity.call for identity, call in now.executor.value.calls if call[0] is Call.OPEN}
    settled = now.ghost.value.settled
    return all(number in opened or settled >> number & 1 for number in range(1, now.threads.value.next_call))


def _drainers(now: Now) -> int:
    return sum(thread.caller is Caller.DRAINING for thread in now.threads.value.threads)


def _parked(now: Now) -> bool:
    return any(thread.caller is Caller.PARKED for thread in now.threads.value.threads)


def _nobody_drains(now: Now) -> bool:
    return _parked(now) and not _drainers(now)


def _waits(number: int) -> Callable[[Now], bool]:
    return lambda now: not now.gone and bool(now.threads.value.threads[number].out)


def _waits_no_more(number: int) -> Callable[[Now], bool]:
    waits = _waits(number)
    return lambda now: not waits(now)


def _later_call_after_abandoned(state: ExecutorState) -> bool:
    return any(
        call[0] in _ABANDONED and any(later[0].call > identity.call for later in state.calls)
        for identity, call in state.calls
    )


def _by_its_name(world: World) -> Callable[[Now], bool]:
    deadlines, cancels = world.budgets.call_deadlines, world.budgets.cancels

    def predicate(now: Now) -> bool:
        left = now.ghost.value.budgets
        kept = [call[0] for _, call in now.executor.value.calls]
        return (left.call_deadlines < deadlines or Call.EXPIRED not in kept) and (
            left.cancels < cancels or Call.CANCELLED not in kept
        )

    return predicate


def calls(world: World) -> list[Property[Now]]:
    """The properties of every model in which calls are made."""
    several = sum(world.calls) > 1
    threads = len(world.calls) > 1
    outstanding = (
        executor(lambda state: len(state.calls) > 1) if several else executor(lambda s: bool(s.calls))
    )
    found: list[Property[Now]] = [
        never_done(
            "a call takes only its own replies",
            "A reply is taken by the call that it names, and by no other.",
            Offence.MIXED,
            outstanding,
        ),
        never_done(
            "a call has one outcome",
            "The outcome of a call is handed over once.",
            Offence.TWICE,
            record(lambda ghost: bool(ghost.settled)),
        ),
        never_done(
            "calls resolve in order",
            "No call is resolved while an earlier one is open.",
            Offence.OUT_OF_ORDER,
            outstanding,
        ),
        never_done(
            "a result is every rank's",
            "A call is resolved only when every rank has returned.",
            Offence.UNEARNED,
            record(lambda ghost: bool(ghost.settled)),
        ),
        always(
            "an outcome is handed over",
            "A call that is no longer open has had its outcome handed over: nobody waits for what is lost.",
            _handed_over,
            twin=record(lambda ghost: bool(ghost.settled)),
        ),
        never_done(
            "who waits comes back for a reason",
            "A waiting thread ends with its call's outcome, or because it was interrupted or out of time, and then at "
            "once.",
            Offence.LEFT,
            record(lambda ghost: bool(ghost.settled)),
        ),
        always(
            "a call ends by its name",
            "Only a call whose time is over is expired, and only one that was given up is cancelled.",
            _by_its_name(world),
            twin=outstanding,
        ),
        always(
            "a rank's failure fails its call",
            "A call to which a rank raised, or whose rank is gone, is neither open nor resolved.",
            executor(_failure_fails),
            # With one rank the call is over, and out of the books, in the same breath.
            twin=executor(
                lambda s: any(
                    reply in _BROKEN or world.size == 1 for _, call in s.calls for reply in call[1:]
                )
            ),
        ),
        always(
            "a call fails for its own reasons",
            "While the executor serves, a call fails only by an answer, or a death, of a rank that owes it.",
            executor(_fails_by_its_own),
            twin=executor(lambda s: s.life[0] is Life.SERVING and bool(s.calls)),
        ),
        always(
            "the end fails every open call",
            "Once the executor is ending, no call is open.",
            executor(
                lambda s: s.life[0] not in _ENDING or all(call[0] is not Call.OPEN for _, call in s.calls)
            ),
            twin=executor(lambda s: any(call[0] is Call.OPEN for _, call in s.calls)),
        ),
        always(
            "one drains",
            "Never do two callers read the reply queues at once.",
            lambda now: _drainers(now) <= 1,
            twin=(lambda now: bool(_drainers(now)) and _parked(now))
            if threads
            else lambda now: _drainers(now) == 1,
        ),
        *(
            leads_to(
                f"caller {number} comes back",
                "A caller that waits is answered, or gives up.",
                _waits(number),
                _waits_no_more(number),
            )
            for number in range(len(world.calls))
        ),
    ]
    if threads:
        found.append(
            leads_to(
                "nobody is left parked",
                "When the drainer leaves, a parked caller drains in its place, or all of them are answered.",
                _nobody_drains,
                lambda now: not _nobody_drains(now),
            )
        )
    if world.budgets.crashes:
        found.append(
            always(
                "the dead owe nothing",
                "No call waits for a rank that was reaped: what fails it is the death, not the end that follows.",
                executor(_dead_owe_nothing),
                twin=executor(
                    lambda s: world.size == 1 or any(Reply.LOST in call[1:] for _, call in s.calls)
                ),
            )
        )
    if world.budgets.raises:
        found.append(
            never_done(
                "an answer says what happened",
                "A worker whose method raised answers with a failure, and one whose method returned does not.",
                Offence.MISSAID,
                record(lambda ghost: bool(ghost.settled)),
            )
        )
    if world.budgets.raises and not world.budgets.give_ups:
        found.append(
            leads_to(
                "a failure reaches its call",
                "A failure that a rank wrote settles its call, whatever the other ranks do.",
                _unread_failure,
                lambda now: not _unread_failure(now),
            )
        )
    if several and (world.budgets.cancels or world.budgets.call_deadlines):
        found.append(
            sometimes(
                "an abandoned call is outlived",
                "A later call can be made, and is kept apart, while replies to an abandoned one are still owed.",
                executor(_later_call_after_abandoned),
            )
        )
    if world.budgets.stale:
        found.append(
            never_done(
                "a stale reply changes nothing",
                "An answer of another epoch, or to no call at all, is dropped.",
                Offence.STALE_HARM,
                record(lambda ghost: not ghost.budgets.stale),
            )
        )
    return found
