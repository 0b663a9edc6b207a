"""Where everybody is when something was found: noted while they are there."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path

from ..trace import sequence_diagram
from .finding import Finding
from .known import Known


def explain(known: Known, finding: Finding) -> None:
    """Note the program, the states, the stacks and the trace; the first time only."""
    if finding.details:
        return
    finding.program = [str(step) for step in known.program]
    lines = known.adapter.trace()
    finding.details = [
        ("under way", [one.op.name for one in known.under_way]),
        ("states", known.adapter.states()),
        ("stacks of this process", _stacks()),
        ("stacks of the ranks", known.adapter.stacks()),
        ("trace", lines[-60:]),
    ]
    if lines:
        finding.diagram = sequence_diagram(lines, 120)


def _stacks() -> list[str]:
    """Of every thread of this process that is about the executor."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: list[str] = []
    for ident, frame in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        found.append(f"{names.get(ident, ident)}:")
        for entry in traceback.extract_stack(frame)[-8:]:
            found.append(f"  {Path(entry.filename).name}:{entry.lineno} {entry.name}: {entry.line}")
    return found
