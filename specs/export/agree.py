"""Three engines on one model: our explorer, rumur and spin; where they agree, and where not.

Theory of operation:

1. Our explorer judges the model as it is shipped. The same tables are exported, rumur searches all states and counts
   those that break or meet each condition, spin decides each formula under weak fairness. From these raw findings a
   verdict is made for each property by our own rules, so that verdicts are compared with verdicts, twins included.
2. They *agree* if the numbers of states are equal, and every property has a verdict from the engine that is asked, and
   the same. One difference is a *disagreement*, whatever else agrees. Where an engine is missing, runs out of time,
   or is not told of a property, it is *not established*.
3. A verdict of ours that is *not established*, because a limit cut the search, agrees with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol
from ..explore import Limits, Report, Verdict, check
from ..explore.property import Kind
from ..models import MODELS, Model
from .asked import Asked, asked, covers
from .engines import Counted, Deadline, Silent, rumur, spin
from .murphi import RESTS, murphi, stalls
from .program import Exported, exported
from .promela import processes, promela
from .tree import ExportError, Var

_SIZES = {"queues": (1, 2, 3), "late": (1,)}
FULL: dict[str, tuple[int, ...]] = {name: _SIZES.get(name, (1, 2)) for name in MODELS}
"""The sizes in which each model is compared. `late` with two ranks has millions of states."""

QUICK: dict[str, tuple[int, ...]] = dict.fromkeys(("ready", "futures", "shutdown"), (1,))
"""A selection that takes half a minute of processor time."""


@dataclass(frozen=True)
class Finding:
    """What one engine says: the number of states, if it counts them, and its verdicts by property."""

    engine: str
    seconds: float
    states: int | None = None
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    silent: str = ""
    """Why it established nothing; empty if it did."""


@dataclass(frozen=True)
class Comparison:
    """One model in one size."""

    model: str
    ranks: int
    ours: Report | None
    findings: tuple[Finding, ...]
    gaps: tuple[str, ...]
    """What was not established."""
    differences: tuple[str, ...]
    """Where two engines say different things."""

    @property
    def verdict(self) -> Verdict:
        """*Holds* if all agree."""
        if self.differences:
            return Verdict.VIOLATED
        return Verdict.NOT_ESTABLISHED if self.gaps else Verdict.HOLDS

    def finding(self, engine: str) -> Finding | None:
        """What that engine says."""
        return next((one for one in self.findings if one.engine == engine), None)

    def to_json(self) -> dict[str, Any]:
        """For a machine."""
        return {
            "model": self.model,
            "ranks": self.ranks,
            "verdict": str(self.verdict),
            "states": None if self.ours is None else self.ours.states,
            "seconds": None if self.ours is None else round(self.ours.seconds, 3),
            "properties": {}
            if self.ours is None
            else {outcome.name: str(outcome.verdict) for outcome in self.ours.outcomes},
            "engines": {
                one.engine: {
                    "states": one.states,
                    "seconds": round(one.seconds, 3),
                    "verdicts": {name: str(verdict) for name, verdict in one.verdicts.items()},
                    "not_established": one.silent or None,
                }
                for one in self.findings
            },
            "gaps": list(self.gaps),
            "differences": list(self.differences),
        }


def compare(
    model: Model,
    ranks: int | None = None,
    *,
    seconds: float = 900.0,
    limits: Limits | None = None,
    executor: ExecutorProtocol | None = None,
    worker: WorkerProtocol | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Judge `model` with all three engines; `seconds` is what each of the two others may take."""
    name, size = model.name, model.ranks if ranks is None else ranks
    try:
        program = exported(model, size, executor=executor, worker=worker)
        questions = asked(program)
    except ExportError as error:
        return Comparison(name, size, None, (), (f"it cannot be exported: {error}",), ())
    tell("our explorer")
    ours = check(program.world, program.properties, limits)
    tell("rumur")
    by_rumur, counted = _by_rumur(program, questions, ours.states, Deadline(seconds))
    tell("spin")
    by_spin = _by_spin(program, questions, counted, ours.states, Deadline(seconds))
    findings = (by_rumur, by_spin)
    gaps = tuple(_gaps(ours, questions, findings))
    return Comparison(name, size, ours, findings, gaps, tuple(_differences(ours, findings)))


# --- what each engine says --------------------------------------------------------------------------------------------


def _by_rumur(
    program: Exported, questions: list[Asked], states: int, deadline: Deadline
) -> tuple[Finding, Counted | None]:
    began = perf_counter()
    wanted = [
        *covers(questions),
        ("overflow", Var("overflow")),
        ("may end", program.accepting),
        ("illegal", Var("o_illegal")),
    ]
    try:
        counted = rumur(murphi(program, wanted), states, deadline)
        if counted.covers["overflow"]:
            raise Silent("a channel of the export is too small, or a coupling runs in circles")
    except (Silent, ExportError) as silent:
        return Finding("rumur", perf_counter() - began, silent=str(silent)), None
    rests = RESTS if counted.covers["may end"] else 0
    verdicts = {}
    for place, one in enumerate(questions):
        if one.known and not one.prop.kind.needs_fairness:
            verdicts[one.prop.name] = _of_states(one, place, counted)
        if one.prop.kind is Kind.NO_STALL and counted.covers["illegal"]:
            # An illegal event that has been noted may come again and change nothing; then a guard is not a way on.
            try:
                stall = rumur(stalls(program), 2 * states, deadline, count=False).deadlock
            except Silent as silent:
                return Finding("rumur", perf_counter() - began, silent=str(silent)), counted
            verdicts[one.prop.name] = Verdict.VIOLATED if stall else Verdict.HOLDS
    return Finding("rumur", perf_counter() - began, counted.states - rests, verdicts), counted


def _of_states(one: Asked, place: int, counted: Counted) -> Verdict:
    if one.prop.kind is Kind.NO_DEADLOCK:
        violated = counted.deadlock
    elif one.prop.kind is Kind.SOMETIMES:
        violated = not counted.covers[f"bad {place}"]
    else:
        violated = bool(counted.covers[f"bad {place}"])
    return Verdict.VIOLATED if violated or _is_vacuous(place, counted) else Verdict.HOLDS


def _is_vacuous(place: int, counted: Counted) -> bool:
    return counted.covers.get(f"twin {place}") == 0


def _by_spin(
    program: Exported, questions: list[Asked], counted: Counted | None, states: int, deadline: Deadline
) -> Finding:
    began = perf_counter()
    known = [(place, one) for place, one in enumerate(questions) if one.known and one.formula is not None]
    formulas = [one.formula for _, one in known if one.formula is not None]
    names = [f"f{number}" for number in range(len(formulas))]
    try:
        holds = spin(promela(program, formulas), names, processes(program), deadline, states)
    except (Silent, ExportError) as silent:
        return Finding("spin", perf_counter() - began, silent=str(silent))
    verdicts = {}
    for name, (place, one) in zip(names, known, strict=True):
        if not holds[name]:
            verdicts[one.prop.name] = Verdict.VIOLATED
        elif one.prop.twin is None:
            verdicts[one.prop.name] = Verdict.HOLDS
        elif (
            counted is not None
        ):  # whether it is vacuous is a question about states, which spin was not asked
            vacuous = _is_vacuous(place, counted)
            verdicts[one.prop.name] = Verdict.VIOLATED if vacuous else Verdict.HOLDS
    return Finding("spin", perf_counter() - began, None, verdicts)


# --- comparing --------------------------------------------------------------------------------------------------------


def _gaps(ours: Report, questions: list[Asked], findings: tuple[Finding, ...]) -> Iterator[str]:
    for one in findings:
        if one.silent:
            yield f"{one.engine}: {one.silent}"
    for outcome in ours.outcomes:
        if outcome.verdict is Verdict.NOT_ESTABLISHED:
            yield f"our explorer: {outcome.name}: {outcome.reason}"
    said = {name for one in findings for name in one.verdicts}
    silent = {one.engine for one in findings if one.silent}
    for question in questions:
        asked_of = "spin" if question.prop.kind.needs_fairness else "rumur"
        if question.prop.name not in said and asked_of not in silent:
            words = (
                "is not asked for it"
                if question.known
                else "does not know it: see specs/export/glue/holds.py"
            )
            yield f"{question.prop.name}: {asked_of} {words}"


def _differences(ours: Report, findings: tuple[Finding, ...]) -> Iterator[str]:
    for one in findings:
        whole = all(explored.truncated is None for explored in ours.explored)
        if one.states is not None and one.states != ours.states and whole:
            yield f"{one.engine} finds {one.states:,} states, our explorer {ours.states:,}"
        for outcome in ours.outcomes:
            verdict = one.verdicts.get(outcome.name)
            differs = verdict is not outcome.verdict and outcome.verdict is not Verdict.NOT_ESTABLISHED
            if verdict is not None and differs:
                yield f"{outcome.name}: {one.engine} says {verdict}, our explorer says {outcome.verdict}"
