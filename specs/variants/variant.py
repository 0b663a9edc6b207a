"""Known-bad variants: what each does wrong, and the run that convicts it.

Theory of operation:

1. A variant is a pair of trials that differ by the fault alone: the *bad* one, in which a property must be violated,
   and its *right* twin, of the same size, in which the same property must hold. A conviction stands only if both are
   so: otherwise the property forbids too much, or the size shows too little.
2. Most run in the composed world, with one table, one coupling row or one piece of glue changed (see `glue`). Where
   the fault lies below what the world models (pipe ends, wake-ups, ring slots, clocks), a small model of its own is
   built from tables in the same style (see `small`).
3. `length` is the number of steps of the counterexample, pinned by tests. In the world, steps that lead to where the
   model begins are not counted.
4. A few variants never get that far: a table with a state that nothing leads to is refused when it is imported. Their
   property is lint, and their counterexample has no steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...protocol.core import Table
from ...protocol.core.lint import faults
from ..explore import Counterexample, Model, Outcome, Property, Verdict, check

LINT = "the table is well formed"


class Trial(NamedTuple):
    """A model and what is asked of it."""

    model: Model[Any]
    properties: Sequence[Property[Any]]


@dataclass(frozen=True)
class Variant:
    """One known-bad rule. `bad` and `right` build the two trials; `name` is what the command line takes."""

    name: str
    sentence: str
    """What it does, and what its users meet."""
    reports: tuple[str, ...]
    """Public reports, as owner/repository#number."""
    model: str
    """The model it runs in."""
    violates: str
    """The name of the property."""
    length: int
    """Steps of the counterexample."""
    bad: Callable[[], Trial]
    right: Callable[[], Trial]
    table: Table | None = None
    """The changed table, where one is; what lint says of it is told."""

    @property
    def lint(self) -> tuple[str, ...]:
        """What lint says of the changed table; empty if it would be imported."""
        return () if self.table is None else tuple(faults(self.table))


@dataclass(frozen=True)
class Conviction:
    """What came of trying a variant and its right twin."""

    variant: Variant
    verdict: Verdict
    """Of the variant: it must be *violated*."""
    reason: str
    right: Verdict
    """Of the right twin: it must be *holds*."""
    counterexample: Counterexample | None
    states: int

    @property
    def length(self) -> int | None:
        """Steps of the counterexample; None if there is none."""
        if self.counterexample is not None:
            return len(self.counterexample)
        return 0 if self.verdict is Verdict.VIOLATED and self.variant.violates == LINT else None

    @property
    def stands(self) -> bool:
        """Whether the variant is convicted, its twin is not, and the length is the pinned one."""
        return (
            self.verdict is Verdict.VIOLATED
            and self.right is Verdict.HOLDS
            and self.length == self.variant.length
        )


def judged(trial: Trial, name: str) -> Outcome:
    """Check one property of a trial, by its name. Raises LookupError if it has none of that name."""
    for prop in trial.properties:
        if prop.name == name:
            return check(trial.model, [prop]).outcomes[0]
    known = ", ".join(sorted(prop.name for prop in trial.properties))
    raise LookupError(f"{trial.model.name} is asked nothing called {name!r}; it is asked: {known}")


def convict(variant: Variant) -> Conviction:
    """Try a variant and its right twin."""
    if variant.violates == LINT:
        refused = bool(variant.lint)
        verdict = Verdict.VIOLATED if refused else Verdict.HOLDS
        return Conviction(variant, verdict, "; ".join(variant.lint), Verdict.HOLDS, None, 0)
    bad, right = judged(variant.bad(), variant.violates), judged(variant.right(), variant.violates)
    states = bad.explored.states + right.explored.states
    return Conviction(variant, bad.verdict, bad.reason, right.verdict, bad.counterexample, states)
