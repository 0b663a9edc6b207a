"""Real executors, ours and anybody's, driven by drawn programs and held to the tables.

Theory of operation:

1. A program is a list of steps (`program`): start, calls, signals, holds, a stop. It names ranks and calls by small
   numbers, never by process numbers or times, so it can be drawn, shrunk, printed and replayed.
2. `Driver` does the steps on a real executor, through an `Adapter`. Whatever may take long runs in a thread of its own
   and has a bound: a hang is a finding like any other.
3. Beside it stands what is known (`rank`): how far each rank must have come, and how far it may have come, stepped over
   the worker's own `serve` table. From that `allowed` computes, with the executor's own tables, in which ways a call
   may come out, and whether it must have by now. An outcome outside of that is a finding.
4. At the end of each executor its recorded trace is held to the checked model, and at the end of the program nothing
   may be left.
5. `ExecutorMachine` (`machine`) draws programs with Hypothesis. It alone needs Hypothesis, and is loaded when it is
   asked for: ranks import this package to do what a program asks of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .adapter import Adapter, Ask, Can, Deed, Flaw, Kind, Lacking, Outcome, Plan
from .driver import Driver
from .finding import Finding
from .program import Step, parse

if TYPE_CHECKING:
    from .machine import ExecutorMachine

__all__ = [
    "Adapter",
    "Ask",
    "Can",
    "Deed",
    "Driver",
    "ExecutorMachine",
    "Finding",
    "Flaw",
    "Kind",
    "Lacking",
    "Outcome",
    "Plan",
    "Step",
    "parse",
]


def __getattr__(name: str) -> Any:
    if name == "ExecutorMachine":
        from .machine import ExecutorMachine

        return ExecutorMachine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
