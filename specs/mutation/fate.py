"""What becomes of one defect: who convicts it, or that nobody does.

Theory of operation:

1. Lint first: a table that cannot be imported is convicted by that alone.
2. Then the stages, the cheap ones first. Where the broken protocols answer every question as the shipped ones do, they
   make the same graph, and nothing is searched (see `baseline`).
3. If that is so in all stages, by the very same steps, and each row that is changed did act somewhere, the defect is
   *equivalent*: in every reachable state of every stage it does what the shipped rows do. If the row never acted, or
   the steps differ (an effect that no model looks at), nothing has been shown, and it *survived*.
4. Where they do not, some thousand states are searched, and after the last stage everything. A search ends at the first
   violation: one kill is enough; one that was found by a search that was cut short is one all the same.
5. A defect may make a model endless. What is left after `ENOUGH` states without a violation is *undecided*, which is
   worse than survived: it counts as not killed, and no reason makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from time import perf_counter

from ..explore import Limits, Verdict, check
from ..explore import Outcome as Judged
from ..world import NoBeginningError
from .baseline import STAGES, Alike, Stage, baseline
from .defects import Defect

SOME = 3_000
ENOUGH = 100_000


class Outcome(Enum):
    """The end of a defect."""

    LINT = "killed by lint"
    PROPERTY = "killed by a property"
    EQUIVALENT = "equivalent"
    SURVIVED = "survived"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Fate:
    """What became of one defect."""

    where: str
    defect: str
    outcome: Outcome
    model: str = ""
    """The stage that convicted it, or was undecided."""
    by: str = ""
    """The property that it violates, or lint's first sentence."""
    steps: int = 0
    """Of the counterexample."""
    states: int = 0
    """Searched in all."""
    seconds: float = 0.0
    asked: tuple[str, ...] = ()
    """The stages in which it showed, and was searched for."""
    shown: str = ""
    """Of one that is equivalent: how alike it is."""


def fate(defect: Defect, stages: Sequence[Stage] = STAGES) -> Fate:
    """Try a defect."""
    began = perf_counter()
    if defect.lint:
        return Fate(defect.where, defect.name, Outcome.LINT, by=defect.lint[0])
    executor, worker = defect.make()
    states, asked, left = 0, list[str](), list[Stage]()

    def convicted(stage: Stage, limit: int) -> Fate | None:
        nonlocal states
        world = stage.world(executor, worker)
        holds = baseline(stage).holds
        properties = [prop for prop in stage.model.properties(world) if prop.name in holds]
        try:
            report = check(world, properties, Limits(states=limit), first_violation=True)
        except NoBeginningError:  # a model that begins earlier says why
            return None
        states += report.states
        wrong = [one for one in report.outcomes if one.verdict is Verdict.VIOLATED]
        if wrong:
            first = min(wrong, key=_length)
            end = Outcome.PROPERTY, stage.name, first.name, _length(first), states
            return Fate(defect.where, defect.name, *end, perf_counter() - began, tuple(asked))
        if report.explored[0].truncated is not None:
            left.append(stage)
        return None

    least = Alike.ALL
    for stage in stages:
        alike = baseline(stage).alike(defect, executor, worker)
        least = min(least, alike, key=lambda one: one.value)
        if alike is Alike.NOT:
            asked.append(stage.name)
            found = convicted(stage, SOME)
            if found is not None:
                return found
    unfinished, left = left, []
    for stage in unfinished:
        found = convicted(stage, ENOUGH)
        if found is not None:
            return found
    outcome = Outcome.UNDECIDED if left else Outcome.SURVIVED
    shown = ""
    if least in _SHOWN and _acted(defect, stages):
        outcome, shown = Outcome.EQUIVALENT, _SHOWN[least]
    undecided = left[0].name if left else ""
    seconds = perf_counter() - began
    return Fate(defect.where, defect.name, outcome, undecided, "", 0, states, seconds, tuple(asked), shown)


_SHOWN = {
    Alike.ALL: "the same steps in the same order, in every reachable state",
    Alike.STEPS: "the same steps and successors in every reachable state; their order within one action differs",
}


def _acted(defect: Defect, stages: Sequence[Stage]) -> bool:
    """Whether the shipped protocols take each of the rows that are changed, in one stage or another."""
    taken = frozenset().union(*(baseline(stage).by_key for stage in stages))
    return all(row & taken for row in defect.rows)


def _length(judged: Judged) -> int:
    return 0 if judged.counterexample is None else len(judged.counterexample)
