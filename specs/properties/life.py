"""What holds in every model: no illegal event, no dead end, and one cause from beginning to end."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.life import Life
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


def life(world: World) -> list[Property[Now]]:
    """The properties of every model."""
    ended = executor(lambda state: state.life[0] in (Life.DOWN, Life.FAILED, Life.SERVING))
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
    if world.budgets.crashes or world.budgets.faults or world.budgets.start_deadlines:
        found.append(
            never(
                "a failure has a cause",
                "The executor fails only after a fault: what its own signals end is none.",
                _without_cause(world),
                twin=executor(lambda state: state.life[0] in (Life.FAILING, Life.FAILED)),
            )
        )
    return found
