"""What is found when an executor does what it may not: the invariant, and everything one needs to see why."""

from __future__ import annotations

from collections.abc import Sequence

# Each invariant, and what it says.
INVARIANTS = {
    "start": "a start that nothing disturbs succeeds, and one that fails says why and whose fault it is",
    "outcome": "a call comes out in a way that some order of what happened allows",
    "answer": "an answer is the caller's own: of its call, by rank, byte for byte",
    "once": "a call comes out once: whoever asks, and however often, hears the same",
    "cause": "the first cause is kept: every call that the executor's failure fails names the same rank",
    "hang": "what must come to an end does, within the bound",
    "future": "a future behaves as the standard library's do: done, wait, as_completed, cancel, callbacks",
    "callback": "a failure callback is called once if the executor fails, and never if it does not",
    "failed": "the executor says that it failed if it did, and does not if it did not",
    "hold": "a rank comes to each step of its table, and waits there when it is held",
    "exit": "a rank that is asked to leave, and has all the time, leaves by itself, with status 0",
    "stop": "a stop from any thread, any number of times, returns without an error",
    "orphan": "when the executor's own process is killed, its ranks end",
    "trace": "what every process recorded is one run of the checked model",
    "left": "nothing is left behind: no process, thread, descriptor, shared memory or file",
}


class Finding(AssertionError):  # noqa: N818 - what was found, and no error of the suite's own
    """`invariant` does not hold. The details are the program, the states, the stacks and the trace."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.text = text
        self.program: list[str] = []
        self.details: list[tuple[str, Sequence[str]]] = []
        self.diagram = ""

    def __str__(self) -> str:
        return f"{self.invariant} ({INVARIANTS[self.invariant]}): {self.text}"

    def report(self) -> str:
        """Everything, as text: the program, what was found, where everybody is, and the run as a diagram."""
        parts = [str(self), "", "program:", *(f"    {line}" for line in self.program)]
        for title, lines in self.details:
            if lines:
                parts += ["", f"{title}:", *(f"    {line}" for line in lines)]
        if self.diagram:
            parts += ["", "diagram (Mermaid):", *(f"    {line}" for line in self.diagram.splitlines())]
        return "\n".join(parts)
