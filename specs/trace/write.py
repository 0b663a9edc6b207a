"""A run of the model, written down as a recorder would have written it.

Theory of operation. A label of the world carries the table steps that its action took; each becomes a line. What the
runtime adds is added here: a number of its own for each wait, and an exit status when a rank is reaped. Time is the
position in the run. Actions that no process takes a step in (a crash, a signal on its way) leave no line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..explore import Label
from ..world import Did
from .format import FORMAT


def written(labels: Iterable[Label], ranks: int, epoch: int = 1) -> list[str]:
    """The lines, header first, of a run of a `World` whose steps have these labels.

    The run must begin where nothing has been made. Raises TypeError if a label is none of a world's.
    """
    lines: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    waits: dict[tuple[int, int], int] = {}
    left: set[int] = set()
    for label in labels:
        if not isinstance(label, Did):
            raise TypeError(f"{label!r} is no label of a world: it has no steps")
        for call, step in label.steps:
            slot: int | None = None if step.slot < 0 else step.slot
            if step.machine == "caller":
                slot = waits.setdefault((step.slot, call), len(waits))
            line = {
                "p": label.process,
                "n": counts[label.process],
                "t": len(lines) * 1000,
                "m": f"{step.cluster}.{step.machine}",
                "r": slot,
                "c": call,
                "e": step.event.value,
                "from": step.source.name,
                "to": step.dest.name,
            }
            if step.machine == "rank_stop" and step.event.value == "died":
                line["x"] = 0 if step.slot in left else -9
            if step.machine == "leave" and step.dest.name == "GONE":
                left.add(int(label.process.removeprefix("rank ")))
            counts[label.process] += 1
            lines.append(line)
    header = {"trace": FORMAT, "ranks": ranks, "epoch": epoch}
    return [json.dumps(line) for line in (header, *lines)]
