"""What the READY handshake promises."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.core import State
from ...protocol.executor import ExecutorState
from ...protocol.ready import Boot, RankStart, Start
from ...protocol.shutdown import RankStop
from ..explore import Property, always, eventually, leads_to, never
from ..world import Now, Offence, Status, World
from .ask import executor, never_done, record

_DECIDED = (Start.UP, Start.FAILED)
_GONE = (RankStop.REAPED, RankStop.ABSENT)


def _ready_is_true(now: Now) -> bool:
    return all(
        start is not RankStart.READY or rank.value.worker is None or rank.value.worker.boot[0] is Boot.READY
        for rank, start in zip(now.ranks, now.executor.value.start[1:], strict=True)
    )


_ASIDE = ("stops", "start_deadlines", "faults", "stale")


def _is_cause(start: State, stop: State) -> bool:
    return start in (RankStart.FAILED, RankStart.DEAD) or (
        start is RankStart.READY and stop is RankStop.REAPED
    )


def _names_nobody(world: World) -> Callable[[Now], bool]:
    whole = [(name, getattr(world.budgets, name)) for name in _ASIDE]

    def predicate(now: Now) -> bool:
        state = now.executor.value
        return (
            state.start[0] is Start.FAILED
            and not any(map(_is_cause, state.start[1:], state.stop[1:]))
            and all(getattr(now.ghost.value.budgets, name) == left for name, left in whole)
        )

    return predicate


def _failed_leaves(now: Now) -> bool:
    return all(
        start is not RankStart.FAILED or not rank.value.alive
        for rank, start in zip(now.ranks, now.executor.value.start[1:], strict=True)
    )


def _unread_death(now: Now) -> bool:
    starting = not now.gone and now.executor.value.start[0] is Start.STARTING
    return starting and any(rank.value.status is Status.DEAD for rank in now.ranks)


def _reaped(state: ExecutorState) -> bool:
    return all(rank in _GONE for rank in state.stop[1:])


def start(world: World) -> list[Property[Now]]:
    """The properties of every model that holds a start and what comes of it."""
    return [
        *handshake(world),
        leads_to(
            "a failed start leaves no worker",
            "Once a start has failed, every process that was made is reaped.",
            lambda now: not now.gone and now.executor.value.start[0] is Start.FAILED,
            lambda now: now.gone or _reaped(now.executor.value),
        ),
    ]


def handshake(world: World) -> list[Property[Now]]:
    """The properties of every model that holds a start up to its decision."""
    found = [
        eventually(
            "start decides",
            "A start comes up or fails, whichever rank dies, raises or is told to stop.",
            lambda now: now.gone or now.executor.value.start[0] in _DECIDED,
            twin=executor(lambda state: state.start[0] is Start.UP),
        ),
        always(
            "up means every rank is READY",
            "The start is up only while every single rank is READY.",
            executor(
                lambda state: (
                    state.start[0] is not Start.UP or all(rank is RankStart.READY for rank in state.start[1:])
                )
            ),
            twin=executor(lambda state: state.start[0] is Start.UP),
        ),
        always(
            "READY is the rank's own word",
            "A rank counts as READY only if its worker said so.",
            _ready_is_true,
            twin=executor(lambda state: RankStart.READY in state.start[1:]),
        ),
        always(
            "the first failure decides",
            "As soon as one rank is known to have failed or died, the start is decided.",
            executor(
                lambda state: (
                    state.start[0] in _DECIDED
                    or not any(rank in (RankStart.FAILED, RankStart.DEAD) for rank in state.start[1:])
                )
            ),
            twin=executor(lambda state: state.start[0] is Start.UP),
        ),
        never_done(
            "READY is said",
            "A rank becomes READY by a READY of its own, and by nothing else.",
            Offence.UNSAID,
            twin=executor(lambda state: RankStart.READY in state.start[1:]),
        ),
        never_done(
            "a phase is said before it begins",
            "What a rank is about to do, it says first: a phase that hangs is known by name.",
            Offence.LATE_WORD,
            twin=executor(lambda state: RankStart.READY in state.start[1:]),
        ),
        never_done(
            "a stale message is never taken",
            "A message of another epoch or rank moves no rank's start.",
            Offence.STALE_TAKEN,
            twin=executor(lambda state: RankStart.READY in state.start[1:]),
        ),
    ]
    if world.budgets.crashes:
        found.append(
            never(
                "a failed start names its cause",
                "A start fails of a rank that is known to have failed or died, unless time or somebody ended it.",
                _names_nobody(world),
                twin=executor(lambda state: RankStart.DEAD in state.start[1:]),
            )
        )
        found.append(
            leads_to(
                "a death ends the start",
                "A start in which a process has died is decided, however long the other ranks are silent.",
                _unread_death,
                lambda now: not _unread_death(now),
            )
        )
    if world.budgets.raises:
        raises = world.budgets.raises
        found += [
            never(
                "who counts as failed said so",
                "A rank is taken for failed only if a phase of its start raised.",
                lambda now: (
                    now.ghost.value.budgets.raises == raises
                    and RankStart.FAILED in now.executor.value.start[1:]
                ),
                twin=executor(lambda state: RankStart.FAILED in state.start[1:]),
            ),
            always(
                "who failed leaves",
                "A rank that reported a failure of its start has ended its process by itself.",
                _failed_leaves,
                twin=executor(lambda state: RankStart.FAILED in state.start[1:]),
            ),
        ]
        crashes = world.budgets.crashes
        found.append(
            never(
                "who raises says so",
                "A rank is taken for dead in its start only if it crashed: one that raised has said what.",
                lambda now: (
                    now.ghost.value.budgets.crashes == crashes
                    and RankStart.DEAD in now.executor.value.start[1:]
                ),
                twin=executor(lambda state: RankStart.FAILED in state.start[1:]),
            )
        )
    if world.budgets.stale:
        found.append(
            never_done(
                "a stale message changes nothing",
                "A message of another epoch or rank is dropped, whenever it comes.",
                Offence.STALE_HARM,
                twin=record(lambda ghost: not ghost.budgets.stale),
            )
        )
    return found
