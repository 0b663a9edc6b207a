"""What becomes of one defect: who convicts it, or that nobody does.

Theory of operation:

1. Lint first: a table that cannot be imported is convicted by that alone.
2. Then the stages in which the defect can show at all, the one in which it shows first in front. Each is searched three
   times at most: a few hundred states, a few thousand, everything. A violation found by a search that was cut short is
   one all the same.
3. A search ends at the first violation: one kill is enough.
4. A defect may make a model endless. What is left after `ENOUGH` states without a violation is *undecided*, which is
   worse than survived: it counts as not killed, and no reason makes up for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from time import perf_counter

from ..explore import Limits, Verdict, check
from ..explore import Outcome as Judged
from ..world import NoBeginningError
from .baseline import STAGES, Baseline, Stage
from .defects import Defect

ROUNDS = (400, 4_000)
ENOUGH = 150_000


class Outcome(Enum):
    """The end of a defect."""

    LINT = "killed by lint"
    PROPERTY = "killed by a property"
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
    """The stages in which it could have shown."""


def fate(defect: Defect, baselines: Mapping[str, Baseline], stages: Sequence[Stage] = STAGES) -> Fate:
    """Try a defect."""
    began = perf_counter()
    if defect.lint:
        return Fate(defect.where, defect.name, Outcome.LINT, by=defect.lint[0])
    executor, worker = defect.make()
    concerned = [stage for stage in stages if _shows(defect, baselines[stage.name])]
    order = {stage.name: _first(defect, baselines[stage.name]) for stage in concerned}
    asked = tuple(stage.name for stage in concerned)
    states = 0
    left = concerned
    undecided = ""
    for limit in (*ROUNDS, ENOUGH):
        again = []
        for stage in sorted(left, key=lambda stage: (limit == ENOUGH, order[stage.name])):
            world = stage.world(executor, worker)
            holds = baselines[stage.name].holds
            properties = [asked for asked in stage.model.properties(world) if asked.name in holds]
            try:
                report = check(world, properties, Limits(states=limit), first_violation=True)
            except NoBeginningError:  # a model that begins earlier says why
                continue
            states += report.states
            wrong = [one for one in report.outcomes if one.verdict is Verdict.VIOLATED]
            if wrong:
                first = min(wrong, key=_length)
                return Fate(
                    defect.where,
                    defect.name,
                    Outcome.PROPERTY,
                    stage.name,
                    first.name,
                    _length(first),
                    states,
                    perf_counter() - began,
                    asked,
                )
            if report.explored[0].truncated is not None:
                again.append(stage)
                undecided = stage.name
        left = again
    outcome = Outcome.UNDECIDED if left else Outcome.SURVIVED
    seconds = perf_counter() - began
    model = undecided if left else ""
    return Fate(defect.where, defect.name, outcome, model, states=states, seconds=seconds, asked=asked)


def _length(judged: Judged) -> int:
    return 0 if judged.counterexample is None else len(judged.counterexample)


def _shows(defect: Defect, known: Baseline) -> bool:
    if defect.touches is None:
        return True
    return any(key in known.taken or (defect.asks and key in known.looked_at) for key in defect.touches)


def _first(defect: Defect, known: Baseline) -> int:
    if defect.touches is None:
        return known.states
    return min((known.taken.get(key, known.states) for key in defect.touches), default=known.states)
