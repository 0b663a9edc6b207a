"""Three-valued verdicts: *holds*, *violated*, *not established*.

Theory of operation
-------------------
A checker that has only "pass" and "fail" must call an unfinished search one or the other, and it will call it "pass".
So there is a third value, it is the default wherever nothing was shown, and no combination turns it into *holds*.

1. *Violated* beats *not established* beats *holds*: one counterexample is enough, one gap is too many.
2. The worst of nothing is *not established*: a suite that checked no property established none.
3. Exit codes are 0, 2 and 3. The code 1 is left to Python, whose uncaught exceptions exit with it: a crash of the
   checker must not read as a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """The outcome of one check, or of several together."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_ESTABLISHED = "not established"

    def __str__(self) -> str:
        return self.value

    @property
    def exit_code(self) -> int:
        """The process exit code that stands for this verdict: 0, 2 or 3."""
        return _EXIT_CODES[self]


_EXIT_CODES = {Verdict.HOLDS: 0, Verdict.VIOLATED: 2, Verdict.NOT_ESTABLISHED: 3}
_FROM_WORST = (Verdict.VIOLATED, Verdict.NOT_ESTABLISHED, Verdict.HOLDS)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of the verdicts; of none at all, *not established*."""
    return min(verdicts, key=_FROM_WORST.index, default=Verdict.NOT_ESTABLISHED)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the sentence that gives its reason."""

    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"
