"""Judge properties on a model: one search for all of them, then a verdict each.

Theory of operation
-------------------
1. Invariants, witnesses and twins are watches of one search; whatever needs the graph is judged on it afterwards.
2. A violation found is a violation, whether or not the search was complete. Nothing else but a `sometimes` that was
   met survives an incomplete search: it is *not established*.
3. After its own verdict, a property that was not violated answers for its twin: never met in a complete search, and it
   is violated as vacuous; not met in an incomplete one, and it is not established.
4. With `symmetry`, states are searched modulo ``model.canonical``. What that graph cannot decide is judged on a second
   search, of the full graph: properties of paths (but for those that every resting place keeps), and findings whose
   path is not one of the model (symmetry.py says why).
5. A violation that the search met first ends it if `first_violation` is set (for mutants, where one kill is enough).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Generic, TypeVar

from .counterexample import Counterexample
from .liveness import find_irrecoverable, find_lasso, find_rest_without, find_stall, is_acyclic
from .model import Model, ModelError, canonical_of, moves
from .path import Path, Step
from .property import Kind, Property
from .report import Explored, Outcome, Report
from .search import FIRST_VIOLATION, PROGRESS_PERIOD, Limits, Progress, Watch, progress_of, search
from .space import LiftError
from .verdict import Verdict

S = TypeVar("S", bound=Hashable)

_INVARIANTS = (Kind.ALWAYS, Kind.NEVER)


def check(
    model: Model[S],
    properties: Sequence[Property[S]],
    limits: Limits | None = None,
    progress: Callable[[Progress], None] | None = None,
    symmetry: bool = False,
    first_violation: bool = False,
) -> Report:
    """Explore `model` and judge each property.

    Raises ValueError if two properties share a name, or if symmetry is asked of a model without ``canonical``;
    ModelError if the model or a predicate raises.
    """
    reject_duplicates(properties)
    canonical = canonical_of(model) if symmetry else None
    if symmetry and canonical is None:
        raise ValueError(f"{model.name} has no canonical form: it cannot be searched modulo symmetry")
    began = perf_counter()
    outcomes: dict[str, Outcome] = {}
    explored = []
    in_full = list(properties)
    unlifted: dict[str, LiftError] = {}
    if canonical is not None:
        in_full = [p for p in properties if p.kind is Kind.RECOVERABLE]
        reduced = [p for p in properties if p not in in_full]
        run = _Check(model, reduced, limits, progress, canonical, first_violation)
        explored.append(run.explored)
        for p in reduced:
            if p.kind.needs_fairness and not run.ends_well(p):
                in_full.append(p)
                continue
            try:
                outcomes[p.name] = run.judge(p)
            except LiftError as error:
                in_full.append(p)
                unlifted[p.name] = error
    if in_full or canonical is None:
        run = _Check(model, in_full, limits, progress, None, first_violation)
        explored.append(run.explored)
        for p in in_full:
            outcomes[p.name] = run.judge(p)
            if p.name in unlifted and run.explored.truncated is None:
                _convict(model, p, outcomes[p.name], unlifted[p.name])
    ordered = tuple(outcomes[p.name] for p in properties)
    return Report(model.name, ordered, tuple(explored), seconds=perf_counter() - began)


def _convict(model: Model[S], p: Property[S], outcome: Outcome, error: LiftError) -> None:
    """The reduced search had found a state that decides `p`; so must a complete full one, or the form is unsound."""
    decided = Verdict.HOLDS if p.kind is Kind.SOMETIMES else Verdict.VIOLATED
    if outcome.verdict is not decided:
        raise ModelError(
            f"{model.name}: its canonical form is unsound: {p.name} is {decided} modulo symmetry, "
            f"and {outcome.verdict} in the full search"
        ) from error


def reject_duplicates(properties: Sequence[Property[S]]) -> None:
    """Raise ValueError if two properties share a name."""
    names = [p.name for p in properties]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two properties are named {name!r}")


class _Check(Generic[S]):
    """One search and the verdicts drawn from it."""

    def __init__(
        self,
        model: Model[S],
        properties: Sequence[Property[S]],
        limits: Limits | None,
        progress: Callable[[Progress], None] | None,
        canonical: Callable[[S], S] | None,
        first_violation: bool,
    ) -> None:
        self.model = model
        self.progress = progress
        self.first_violation = first_violation
        watches: list[Watch[S]] = []
        self.watch_of: dict[tuple[str, str], int] = {}
        for p in properties:
            if p.kind in _INVARIANTS or p.kind is Kind.SOMETIMES:
                self.watch_of[p.name, "predicate"] = len(watches)
                watches.append(
                    Watch(p.predicate, p.kind is not Kind.ALWAYS, first_violation and p.kind in _INVARIANTS)
                )
            if p.twin is not None:
                self.watch_of[p.name, "twin"] = len(watches)
                watches.append(Watch(p.twin))
        kinds = {p.kind for p in properties}
        self.space = search(
            model,
            watches,
            limits=limits,
            progress=progress,
            edges=any(kind.needs_edges for kind in kinds),
            canonical=canonical,
            stop_at_deadlock=first_violation and Kind.NO_DEADLOCK in kinds,
        )
        space = self.space
        self.decided = space.truncated == FIRST_VIOLATION
        self.explored = Explored(
            "search" if canonical is None else "search modulo symmetry",
            len(space.states),
            space.transitions,
            space.depth,
            space.seconds,
            space.truncated,
        )

    @cached_property
    def comes_to_rest(self) -> bool:
        """Whether every run must."""
        return is_acyclic(self.space)

    def ends_well(self, prop: Property[S]) -> bool:
        """Whether every run must come to rest, and wherever one may rest, the goal of `prop` is true."""
        return self.comes_to_rest and find_rest_without(self.space, prop.predicate) is None

    def judge(self, prop: Property[S]) -> Outcome:
        began = perf_counter()
        if prop.kind.needs_edges and self.progress is not None and self.space.seconds >= PROGRESS_PERIOD:
            self.progress(progress_of(self.space, f"judging {prop.name}", self.space.seconds))
        outcome = self._twin(prop, self._own(prop))
        self.decided = self.decided or (self.first_violation and outcome.verdict is Verdict.VIOLATED)
        return replace(outcome, seconds=perf_counter() - began)

    def _own(self, prop: Property[S]) -> Outcome:
        if prop.kind is Kind.SOMETIMES:
            return self._sometimes(prop)
        if self.decided and prop.kind.needs_edges:
            return self._outcome(prop, Verdict.NOT_ESTABLISHED, "not looked at: another property is violated")
        return self._violation(prop) or self._no_violation(prop)

    def _violation(self, prop: Property[S]) -> Outcome | None:
        space = self.space
        if prop.kind.needs_fairness:
            if space.canonical is not None:
                return None  # it ends well
            lasso = find_lasso(space, prop.predicate, prop.premise)
            if lasso is None:
                return None
            ending = f"repeats {steps_in_words(lasso.cycle)} for ever" if lasso.cycle else "rests for ever"
            reason = f"after {steps_in_words(lasso.stem.steps)} a fair run {ending} without the goal"
            return self._violated(prop, reason, lasso.stem, lasso.cycle)
        bad, why, shows = self._bad_state(prop)
        if bad is None:
            return None
        path = space.path_to(bad, shows)
        return self._violated(prop, f"after {steps_in_words(path.steps)} {why}", path)

    def _bad_state(self, prop: Property[S]) -> tuple[int | None, str, Callable[[S], bool] | None]:
        """The first bad state, what is bad about it, and (if a reduced graph may decide it) how a state shows that."""
        space, model, predicate = self.space, self.model, prop.predicate
        match prop.kind:
            case Kind.ALWAYS:
                return self._match(prop), "it is false", lambda s: not predicate(s)
            case Kind.NEVER:
                return self._match(prop), "it happens", predicate
            case Kind.NO_DEADLOCK:
                why = "nothing can move, where no run may end"
                return space.deadlock, why, lambda s: not (moves(model, s) or model.accepting(s))
            case Kind.NO_STALL:
                why = "nothing is bound to move, where no run may end"
                return find_stall(space), why, lambda s: not (_must_move(model, s) or model.accepting(s))
            case Kind.RECOVERABLE:
                return find_irrecoverable(space, predicate), "no path leads to the goal any more", None
        raise AssertionError(f"{prop.kind} is not judged by a state")

    def _match(self, prop: Property[S]) -> int | None:
        return self.space.matches[self.watch_of[prop.name, "predicate"]]

    def _sometimes(self, prop: Property[S]) -> Outcome:
        found = self._match(prop)
        if found is None:
            if self.space.truncated:
                return self._no_violation(prop)
            reason = f"it happens in none of {len(self.space.states):,} states"
            return self._outcome(prop, Verdict.VIOLATED, reason)
        path = self.space.path_to(found, prop.predicate)
        reason = f"it happens after {steps_in_words(path.steps)}"
        run = counterexample(self.model, prop, reason, path)
        return self._outcome(prop, Verdict.HOLDS, reason, witness=run)

    def _twin(self, prop: Property[S], outcome: Outcome) -> Outcome:
        if prop.twin is None or outcome.verdict is Verdict.VIOLATED:
            return outcome
        if self.space.matches[self.watch_of[prop.name, "twin"]] is not None:
            return outcome
        if self.space.truncated:
            reason = f"{outcome.reason}; and its twin was not met"
            return replace(outcome, verdict=Verdict.NOT_ESTABLISHED, reason=reason)
        reason = f"vacuous: its twin is met in none of {len(self.space.states):,} states"
        return replace(outcome, verdict=Verdict.VIOLATED, reason=reason)

    def _no_violation(self, prop: Property[S]) -> Outcome:
        states = f"{len(self.space.states):,} states"
        if self.space.truncated is None:
            return self._outcome(prop, Verdict.HOLDS, f"in all {states}")
        what = "it does not happen" if prop.kind is Kind.SOMETIMES else "no violation"
        reason = f"{what} in {states}, but the search is incomplete: {self.space.truncated}"
        return self._outcome(prop, Verdict.NOT_ESTABLISHED, reason)

    def _violated(
        self, prop: Property[S], reason: str, path: Path[S], cycle: tuple[Step, ...] | None = None
    ) -> Outcome:
        run = counterexample(self.model, prop, reason, path, cycle)
        return self._outcome(prop, Verdict.VIOLATED, reason, run)

    def _outcome(
        self,
        prop: Property[S],
        verdict: Verdict,
        reason: str,
        run: Counterexample | None = None,
        witness: Counterexample | None = None,
    ) -> Outcome:
        return Outcome(prop.name, prop.kind, prop.sentence, verdict, reason, self.explored, run, witness)


def counterexample(
    model: Model[S], prop: Property[S], reason: str, path: Path[S], cycle: tuple[Step, ...] | None = None
) -> Counterexample:
    """Put a path, and the cycle that follows it, into words."""
    states = list(path.states)
    for step in cycle or ():
        states.append(list(model.actions(states[-1]))[step.index][1])
    words = tuple(map(model.describe, states))
    return Counterexample(model.name, prop.name, prop.sentence, reason, path.start, path.steps, cycle, words)


def steps_in_words(taken: Sequence[Step]) -> str:
    """How many steps, in words."""
    return "1 step" if len(taken) == 1 else f"{len(taken)} steps"


def _must_move(model: Model[S], state: S) -> bool:
    return any(label.fair for label in moves(model, state))
