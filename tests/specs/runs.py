"""Random runs of the world, as traces; and a second opinion on whether a trace is a run.

The second opinion knows nothing of validation: it follows the explorer's own world, with every state that could be
meant, line by line. It is slow, and used where validation accepts what one would think is broken. It knows who is who
among threads, which no trace tells; so it is asked only where no thread is concerned.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from procession.protocol.core import Step
from procession.specs.trace import written
from procession.specs.world import Budgets, Did, Now, World

Entry = dict[str, Any]
RANKS = 2
# Not fair, since a caller may or may not call; but a run without calls says little, and one failure says more.
_USUAL = ("submits", "raised ")


def run(seed: int) -> list[Did]:
    """The labels of a run from nothing to the end, with faults now and then."""
    budgets = Budgets(
        crashes=seed % 3 == 1,
        raises=1,
        cancels=1,
        call_deadlines=1,
        give_ups=1,
        stops=1,
        listeners=1,
        start_deadlines=seed % 4 == 3,
    )
    world = World(RANKS, budgets, calls=(2, 2), ahead=1 + seed % 2)
    random = Random(seed)
    now, labels = world.first(budgets), []
    while enabled := world.actions(now):
        usual = [label.fair or label.action.startswith(_USUAL) for label, _ in enabled]
        label, now = random.choices(enabled, [1.0 if wanted else 0.01 for wanted in usual])[0]
        labels.append(label)
    return labels


def trace(seed: int) -> tuple[str, list[Entry]]:
    """The header and the entries of a run."""
    header, *lines = written(run(seed), RANKS)
    return header, [json.loads(line) for line in lines]


def dump(header: str, entries: list[Entry]) -> list[str]:
    """The lines, with every process's count and the time made whole again."""
    counts: Counter[str] = Counter()
    lines = [header]
    for at, entry in enumerate(entries):
        lines.append(json.dumps({**entry, "n": counts[entry["p"]], "t": at}))
        counts[entry["p"]] += 1
    return lines


# --- the second opinion -----------------------------------------------------------------------------------------------

_Steps = tuple[tuple[int, Step], ...]
_At = tuple[Now, tuple[tuple[str, _Steps], ...]]
_SILENT = ("crashes", "dies of SIGTERM", "dies of SIGKILL", "gets a listener")
_PLENTY = Budgets(
    crashes=2, raises=9, call_deadlines=9, cancels=9, give_ups=9, stops=9, listeners=2, start_deadlines=9
)


def is_a_run(entries: list[Entry]) -> bool:
    """Whether some run of the explorer's world leaves these lines. Who waits is told by the call alone."""
    world = World(RANKS, _PLENTY, calls=(2, 2), ahead=2)
    frontier: set[_At] = _closed(world, {(world.first(_PLENTY), ())})
    for entry in entries:
        frontier = _closed(world, {after for at in frontier for after in _after(world, at, entry)})
        if not frontier:
            return False
    return True


def _after(world: World, at: _At, entry: Entry) -> list[_At]:
    now, pending = at
    waiting = dict(pending)
    steps = waiting.pop(entry["p"], ())
    if steps:
        return [(now, _pending(waiting, entry["p"], steps[1:]))] if _same(steps[0], entry) else []
    return [
        (after, _pending(waiting, entry["p"], label.steps[1:]))
        for label, after in world.following(now)
        if label.process == entry["p"] and label.steps and _same(label.steps[0], entry)
    ]


def _pending(others: dict[str, _Steps], process: str, steps: _Steps) -> tuple[tuple[str, _Steps], ...]:
    return tuple(sorted({**others, **({process: steps} if steps else {})}.items()))


def _same(taken: tuple[int, Step], entry: Entry) -> bool:
    call, step = taken
    slot = None if step.slot < 0 else step.slot
    words = (f"{step.cluster}.{step.machine}", step.event.value, step.source.name, step.dest.name, call)
    return words == (entry["m"], entry["e"], entry["from"], entry["to"], entry["c"]) and (
        slot == entry["r"] or step.machine == "caller"
    )


def _closed(world: World, frontier: set[_At]) -> set[_At]:
    """With whatever may have happened without a line."""
    todo = list(frontier)
    while todo:
        now, pending = todo.pop()
        for label, after in world.following(now):
            if not label.steps and label.action in _SILENT and (after, pending) not in frontier:
                left = tuple(one for one in pending if one[0] != label.process)  # a crash ends what it was at
                frontier.add((after, left))
                todo.append((after, left))
    return frontier
