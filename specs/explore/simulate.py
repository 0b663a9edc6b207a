"""Random walks, for sizes beyond the search.

Theory of operation
-------------------
A walk takes one enabled action after another at random, from a seed. It can show that something happens and can never
show that something does not, so no invariant *holds* by it: a violation is *violated*, a `sometimes` that is met holds,
and all else is *not established*.

1. Walk number k of seed s depends on (s, k) alone. ``random_walk(model, seed, k)`` makes it again without the
   others, on any machine; and every counterexample carries its action indices, for `walk` and `replay`.
2. Actions that are not fair (faults, optional timers) are taken with a lower weight, or every walk would have spent its
   fault budget within the first steps, and the later life of the protocol would be seen only in its ruins.
3. Where no fair action can change the state, the run may rest. A goal that is owed there is never paid: that is the
   liveness violation that a walk can show. A cycle is none, since a walk knows nothing about fairness.
4. Counterexamples are as long as the walk took, the shortest that any walk met.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import Generic, TypeVar

from .check import counterexample, reject_duplicates, steps_in_words
from .model import Model
from .path import Path, Step, walk
from .property import Kind, Property
from .report import Explored, Outcome, Report
from .search import PROGRESS_PERIOD, Progress
from .verdict import Verdict

S = TypeVar("S", bound=Hashable)

__all__ = ["random_walk", "simulate", "walk"]


def random_walk(
    model: Model[S], seed: int, number: int = 0, depth: int = 1000, fault_weight: float = 0.1
) -> Path[S]:
    """Walk `number` of `seed`: at most `depth` steps, fewer if it comes to a state without actions."""
    return _random_walk(model, seed, number, depth, fault_weight).path


@dataclass(frozen=True, slots=True)
class _Walk(Generic[S]):
    path: Path[S]
    rests: tuple[bool, ...]
    """Per state: no fair action changes it. One shorter than the path if the walk was cut at its depth."""
    stuck: bool
    """No action changes the last state."""


def _random_walk(model: Model[S], seed: int, number: int, depth: int, fault_weight: float) -> _Walk[S]:
    # A string seeds by its SHA-512, so that neighbouring seeds and walks have nothing in common.
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable is what is wanted, not unpredictable
    initial = list(model.initial())
    start = random.randrange(len(initial))
    states = [initial[start]]
    steps: list[Step] = []
    rests: list[bool] = []
    stuck = False
    while len(steps) < depth and not stuck:
        enabled = [
            (index, label, successor)
            for index, (label, successor) in enumerate(model.actions(states[-1]))
            if successor != states[-1]
        ]
        rests.append(not any(label.fair for _, label, _ in enabled))
        stuck = not enabled
        if enabled:
            weights = [1.0 if label.fair else fault_weight for _, label, _ in enabled]
            index, label, successor = random.choices(enabled, weights)[0]
            steps.append(Step(index, label))
            states.append(successor)
    return _Walk(Path(start, tuple(states), tuple(steps)), tuple(rests), stuck)


def simulate(
    model: Model[S],
    properties: Sequence[Property[S]],
    *,
    seed: int,
    walks: int = 100,
    depth: int = 1000,
    fault_weight: float = 0.1,
    seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Judge properties by `walks` random walks of at most `depth` steps, or as many as end within `seconds`."""
    reject_duplicates(properties)
    tally = _Tally(model, properties)
    began = reported = perf_counter()
    done = 0
    for number in range(walks):
        tally.add(number, _random_walk(model, seed, number, depth, fault_weight))
        done += 1
        now = perf_counter()
        if progress is not None and now - reported >= PROGRESS_PERIOD:
            reported = now
            rate = tally.visited / max(now - began, 1e-9)
            progress(
                Progress(
                    "simulation", tally.visited, tally.steps, tally.deepest, walks - done, now - began, rate
                )
            )
        if seconds is not None and now - began >= seconds:
            break
    spent = perf_counter() - began
    truncated = f"{done} walks of seed {seed}, of up to {depth} steps, are not all runs"
    explored = Explored("simulation", tally.visited, tally.steps, tally.deepest, spent, truncated)
    outcomes = tuple(tally.outcome(p, seed, explored) for p in properties)
    return Report(model.name, outcomes, (explored,), seed, spent)


@dataclass(frozen=True, slots=True)
class _Find(Generic[S]):
    """The start of a walk that shows something: of walk `number`, the first `length` steps."""

    number: int
    length: int
    path: Path[S]


class _Tally(Generic[S]):
    """What all walks together have shown."""

    def __init__(self, model: Model[S], properties: Sequence[Property[S]]) -> None:
        self.model = model
        self.properties = properties
        self.finds: dict[str, _Find[S]] = {}
        self.twins: set[str] = set()
        self.visited = self.steps = self.deepest = 0

    def add(self, number: int, walked: _Walk[S]) -> None:
        path = walked.path
        self.visited += len(path.states)
        self.steps += len(path.steps)
        self.deepest = max(self.deepest, len(path.steps))
        for p in self.properties:
            best = self.finds.get(p.name)
            at = next(self._shows(p, walked), None)
            if at is not None and (best is None or at < best.length):
                self.finds[p.name] = _Find(number, at, path)
            if p.twin is not None and p.name not in self.twins and any(map(p.twin, path.states)):
                self.twins.add(p.name)

    def _shows(self, p: Property[S], walked: _Walk[S]) -> Iterator[int]:
        """The places in the walk where the property is violated (of a `sometimes`: met)."""
        states = walked.path.states
        if p.kind in (Kind.ALWAYS, Kind.NEVER, Kind.SOMETIMES):
            wanted = p.kind is not Kind.ALWAYS
            yield from (at for at, state in enumerate(states) if bool(p.predicate(state)) is wanted)
        elif p.kind is Kind.NO_DEADLOCK:
            if walked.stuck and not self.model.accepting(states[-1]):
                yield len(states) - 1
        elif p.kind is Kind.NO_STALL:
            yield from (
                at for at, rests in enumerate(walked.rests) if rests and not self.model.accepting(states[at])
            )
        elif p.kind.needs_fairness:
            owed = p.premise is None
            for at, (state, rests) in enumerate(zip(states, walked.rests, strict=False)):
                owed = owed or (p.premise is not None and bool(p.premise(state)))
                if owed and p.predicate(state):
                    if p.premise is None:
                        return
                    owed = False
                if owed and rests:
                    yield at

    def outcome(self, p: Property[S], seed: int, explored: Explored) -> Outcome:
        find = self.finds.get(p.name)
        if find is None:
            what = "it does not happen" if p.kind is Kind.SOMETIMES else "no violation"
            if p.kind is Kind.RECOVERABLE:
                what = "a walk cannot show that no path leads somewhere"
            unmet = "; and its twin was not met" if p.twin is not None and p.name not in self.twins else ""
            reason = f"{what} in {explored.states:,} states visited, but {explored.truncated}{unmet}"
            return Outcome(p.name, p.kind, p.sentence, Verdict.NOT_ESTABLISHED, reason, explored)
        path = Path(find.path.start, find.path.states[: find.length + 1], find.path.steps[: find.length])
        where = f"after {steps_in_words(path.steps)} of walk {find.number} of seed {seed}"
        if p.kind is Kind.SOMETIMES:
            reason = f"it happens {where}"
            run = counterexample(self.model, p, reason, path)
            return Outcome(p.name, p.kind, p.sentence, Verdict.HOLDS, reason, explored, witness=run)
        reason = f"violated {where}"
        run = counterexample(self.model, p, reason, path, () if p.kind.needs_fairness else None)
        return Outcome(p.name, p.kind, p.sentence, Verdict.VIOLATED, reason, explored, run)
