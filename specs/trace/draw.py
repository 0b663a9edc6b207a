"""A recorded run as a Mermaid sequence diagram.

Theory of operation. A message is drawn where it is read, as an arrow from its sender: the line of its reading names
both ends. What a process does by itself is a note with the machine's new state. Lines that change nothing are left out,
and so is the middle of a long run: a diagram of thousands of arrows helps nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .format import EXECUTOR, Line, read

# Machine and event of a reading, and the word for the arrow.
_FROM_RANK = {
    ("broadcast.seat", "joined"): "JOINED",
    ("replies.reader", "opened"): "OPEN",
    ("call.reply", "returned"): "RETURNED",
    ("call.reply", "raised"): "RAISED",
    **{
        ("start.rank_start", word): word.upper() for word in ("hello", "weights", "queues", "ready", "failed")
    },
}
_FROM_EXECUTOR = {
    ("intake.reader", "opened"): "OPEN",
    ("outlet.seat", "joined"): "JOINED",
    ("serve.serve", "call"): "CALL",
    ("leave.leave", "asked"): "close",
}
_SENT_TO_RANK = {("stop.rank_stop", "terminate"): "SIGTERM", ("stop.rank_stop", "kill"): "SIGKILL"}


def sequence_diagram(text: Iterable[str], most: int = 300) -> str:
    """Draw a trace; of more than `most` lines, the middle is left out. Raises `TraceError` if it is not well formed."""
    trace = read(text)
    names = [EXECUTOR, *(f"rank {rank}" for rank in range(trace.header.ranks))]
    drawn = ["sequenceDiagram", *(f"    participant p{at} as {name}" for at, name in enumerate(names))]
    lines = [line for line in trace.lines if line.source != line.dest]
    head, skipped, tail = _shortened(lines, most)
    drawn += _arrows(head)
    if skipped:
        drawn.append(f"    Note over p0,p{len(names) - 1}: … {skipped} more steps …")
        drawn += _arrows(tail)
    return "\n".join(drawn) + "\n"


def _shortened(lines: Sequence[Line], most: int) -> tuple[Sequence[Line], int, Sequence[Line]]:
    if len(lines) <= most:
        return lines, 0, ()
    kept = most // 2
    return lines[:kept], len(lines) - 2 * kept, lines[-kept:]


def _arrows(lines: Iterable[Line]) -> list[str]:
    return [_arrow(line) for line in lines]


def _arrow(line: Line) -> str:
    word = (line.machine, line.event)
    call = f" {line.call}" if line.call else ""
    if line.process == EXECUTOR and line.slot >= 0:
        if word in _FROM_RANK:
            return f"    p{line.slot + 1}->>p0: {_FROM_RANK[word]}{call}"
        if word in _SENT_TO_RANK:
            return f"    p0->>p{line.slot + 1}: {_SENT_TO_RANK[word]}"
    me = 0 if line.process == EXECUTOR else int(line.process.removeprefix("rank ")) + 1
    if me and word in _FROM_EXECUTOR:
        return f"    p0->>p{me}: {_FROM_EXECUTOR[word]}{call}"
    whose = f" {line.slot}" if line.slot >= 0 and not me else ""
    machine = re.sub(r"^(\w+)\.\1$", r"\1", line.machine)
    ended = "" if line.exit_status is None else f" (exit status {line.exit_status})"
    return f"    Note over p{me}: {machine}{whose}{call}: {line.dest}{ended}"
