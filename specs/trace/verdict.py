"""What validation found: accepted, or the first line that cannot be, and everything one needs to see why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TraceVerdict:
    """The verdict on one trace.

    `matched` counts the lines that were accepted, the header among them; `number` is the file's line that was not
    (one past the end, if lines are missing there), `line` what it says, `last` the last accepted one. `allowed` says,
    by process and machine, what could have come instead; `states` where each process was.
    """

    accepted: bool
    lines: int
    matched: int
    number: int | None = None
    line: str = ""
    reason: str = ""
    last: str = ""
    allowed: dict[str, list[str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.accepted:
            return f"accepted: all {self.lines} lines are one run of the model"
        text = [f"refused at line {self.number}: {self.reason}"]
        if self.line:
            text.append(f"  it says     {self.line}")
        text.append(
            f"  matched     {self.matched} of {self.lines} lines"
            + (f"; the last: {self.last}" if self.last else "")
        )
        for process, events in self.allowed.items():
            text.append(f"  allowed of {process}: " + ("; ".join(events) or "nothing"))
        for process, state in self.states.items():
            text.append(f"  {process} is at: {state}")
        return "\n".join(text)

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON data."""
        return {
            "format": "procession.trace-verdict/1",
            "accepted": self.accepted,
            "lines": self.lines,
            "matched": self.matched,
            "number": self.number,
            "line": self.line,
            "reason": self.reason,
            "last": self.last,
            "allowed": self.allowed,
            "states": self.states,
        }
