"""What holds in every model: no illegal event, no dead end, and one cause from beginning to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...protocol.core import State
from ...protocol.executor import ExecutorState
from ...protocol.futures import Call
from ...protocol.life import Life
from ...protocol.queues import Gate, Reader, Seat
from ...protocol.ready import RankStart, Start
from ...protocol.shutdown import Listener, RankStop, Stop
from ..explore import Property, always, never, no_deadlock, no_stall
from ..world import Mark, Now, Offence, World
from .ask import executor, never_done


def _announced(now: Now) -> bool:
    if now.gone:
        return True
    marks, life = now.ghost.value.marks, now.life
    if life is Life.SERVING and not marks & Mark.UP:
        return False
    if life in (Life.DOWN, Life.FAILED) and not marks & Mark.END:
        return False
    failing = life in (Life.FAILING, Life.FAILED)
    return bool(marks & Mark.FAILURE) == failing


_FAULTS = ("crashes", "raises", "start_deadlines", "faults", "stale")


def _without_cause(world: World) -> Callable[[Now], bool]:
    whole = [(name, getattr(world.budgets, name)) for name in _FAULTS]

    def predicate(now: Now) -> bool:
        failed = not now.gone and now.life in (Life.FAILING, Life.FAILED)
        return failed and all(getattr(now.ghost.value.budgets, name) == left for name, left in whole)

    return predicate


_ENDED = (Life.DOWN, Life.FAILED)
_IS_ENDING = (Life.STOPPING, Life.FAILING, *_ENDED)
_DECIDED = (Start.UP, Start.FAILED)
_GONE = (RankStop.REAPED,)
_UNSEATED = (Seat.CLOSED, Seat.GONE, Reader.CLOSED, Reader.GONE)
_NOT_ON_ITS_WAY = (RankStart.READY, RankStart.FAILED, RankStart.DEAD, RankStart.CANCELLED)


def _reaches_all(state: ExecutorState) -> bool:
    return state.life[0] not in _IS_ENDING or (
        state.start[0] in _DECIDED
        and all(rank in _NOT_ON_ITS_WAY for rank in state.start[1:])
        and state.broadcast[0] is Gate.CLOSED
        and state.replies[0] is Gate.CLOSED
        and all(one in _UNSEATED for one in (*state.broadcast[1:], *state.replies[1:]))
        and all(call[0] is not Call.OPEN for _, call in state.calls)
        and Listener.LISTENING not in state.listeners
        and state.stop[0] is not Stop.RUNNING
    )


def _fails_the_whole(state: ExecutorState) -> bool:
    broken = state.start[0] is Start.FAILED or Gate.CLOSED in (state.broadcast[0], state.replies[0])
    return not broken or state.life[0] in _IS_ENDING


def _dead_to_all(state: ExecutorState) -> bool:
    return all(
        stop not in _GONE or (start in _NOT_ON_ITS_WAY and seat in _UNSEATED and reader in _UNSEATED)
        for start, seat, reader, stop in _by_rank(state)
    )


def _gone_is_gone(state: ExecutorState) -> bool:
    return all(
        stop in _GONE or (start is not RankStart.DEAD and seat is not Seat.GONE and reader is not Reader.GONE)
        for start, seat, reader, stop in _by_rank(state)
    )


def _by_rank(state: ExecutorState) -> Iterator[tuple[State, ...]]:
    return zip(state.start[1:], state.broadcast[1:], state.replies[1:], state.stop[1:], strict=True)


def life(world: World) -> list[Property[Now]]:
    """The properties of every model."""
    ended = executor(lambda state: state.life[0] in (Life.DOWN, Life.FAILED, Life.SERVING))
    ending = executor(lambda state: state.life[0] in _IS_ENDING)
    found = [
        never_done(
            "no illegal event",
            "No machine ever meets an event that it has no row for.",
            Offence.ILLEGAL,
            ended,
        ),
        no_deadlock(),
        no_stall(),
        always(
            "what happened is announced",
            "Serving, failure and end are each announced when they come about, and no failure without one.",
            _announced,
            twin=lambda now: bool(now.ghost.value.marks),
        ),
    ]
    found += [
        never_done(
            "what a machine is told is so",
            "An event that one machine's state brings about in another is true: nobody is told a wrong cause.",
            Offence.MISTOLD,
            ended,
        ),
        never_done(
            "who waits is told what happened",
            "A death, a failure, the last answer or a deadline reaches everybody who waits for it, as what it is.",
            Offence.UNHEARD,
            ended,
        ),
        never_done(
            "what is said is said once",
            "Serving, failure and end are announced once, blocked callers woken once, survivors reported once; and no "
            "machine is moved twice by one and the same event.",
            Offence.AGAIN,
            lambda now: bool(now.ghost.value.marks),
        ),
    ]
    faulty = world.budgets.crashes or world.budgets.faults or world.budgets.start_deadlines
    if faulty or world.budgets.stops:
        found += [
            always(
                "an end reaches every part",
                "Once the executor is stopping or failing, no part of it waits for anything but the processes' ends.",
                executor(_reaches_all),
                twin=ending,
            ),
            always(
                "a broken part breaks the whole",
                "When the start has failed, or a queue is closed, the executor is ending.",
                executor(_fails_the_whole),
                twin=ending,
            ),
        ]
    if faulty:
        found.append(
            never(
                "a failure has a cause",
                "The executor fails only after a fault: what its own signals end is none.",
                _without_cause(world),
                twin=executor(lambda state: state.life[0] in (Life.FAILING, Life.FAILED)),
            )
        )
    if world.budgets.crashes or world.budgets.stops:
        reaped = executor(lambda state: RankStop.REAPED in state.stop[1:])
        found += [
            always(
                "the dead are dead to all",
                "A rank that was reaped is on its way to nothing, and sits at no queue.",
                executor(_dead_to_all),
                twin=reaped,
            ),
            always(
                "who is taken for gone was reaped",
                "A rank counts as dead, or as gone from a queue, only if its process is.",
                executor(_gone_is_gone),
                twin=reaped,
            ),
        ]
    if world.budgets.stops:
        stops = world.budgets.stops
        found.append(
            never(
                "a stop was asked for",
                "The executor is stopping, or down, only if somebody asked.",
                lambda now: (
                    now.ghost.value.budgets.stops == stops
                    and not now.gone
                    and now.life in (Life.STOPPING, Life.DOWN)
                ),
                twin=executor(lambda state: state.life[0] is Life.DOWN),
            )
        )
        found.append(
            always(
                "who asks for a stop gets one",
                "From the moment that somebody asks for a stop, the executor is ending.",
                lambda now: now.gone or now.ghost.value.budgets.stops == stops or now.life in _IS_ENDING,
                twin=executor(lambda state: state.life[0] is Life.STOPPING),
            )
        )
    return found
