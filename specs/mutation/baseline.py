"""The shipped protocols in each model of the trial: what they do there, part by part, and which properties hold.

Theory of operation:

1. A *stage* is a model at a size at which a search takes about a second. Stages with one rank come first: there most
   defects already show.
2. The search of the shipped protocols leaves, in the world's parts, every distinct question that was asked of them
   ("what can the executor do in this state with these budgets?") and the answer (see world/parts.py). A few thousand
   questions stand for all states of the stage.
3. A broken protocol that answers every one of them alike makes the very same graph: it need not be searched to be known
   to survive. The order in which several ranks are reached, or several things noted, in one action is no difference.
4. A defect that is known to change certain rows is asked only where a step of those rows was taken. That needs every
   step to be told. What met an illegal event tells none, so where that can happen all is asked; an answer that nobody
   took tells none either, so these questions are always asked.
5. To answer alike is less than to be equivalent: a model looks at what effects do, not at every effect. `Alike.STEPS`
   says that the very same steps were taken too, each with the same effects in the same order.
6. A property that does not hold here says nothing about a defect, and is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from ...protocol.core import Step
from ...protocol.executor import ExecutorProtocol
from ...protocol.shutdown import StopDo
from ...protocol.worker import WorkerProtocol
from ..explore import Verdict, check
from ..models import AHEAD, FULL, FUTURES, LATE, LIFE, MODELS, QUEUES, READY, SETTLED, SHUTDOWN, TURNS, Model
from ..world import Budgets, Did, World
from ..world.ghost import Done
from ..world.parts import Next, Parts
from .defects import Defect, Key


class Stage(NamedTuple):
    """A model at a size."""

    name: str
    model: Model

    def world(self, executor: ExecutorProtocol, worker: WorkerProtocol) -> World:
        """The world of these protocols."""
        return self.model.world(executor=executor, worker=worker)


def _at_two(name: str, model: Model, **budgets: int) -> Stage:
    return Stage(name, replace(model, ranks=2, budgets=Budgets(**budgets)))


STAGES = (
    *(Stage(f"{model.name}/1", replace(model, ranks=1)) for model in MODELS.values() if model.ranks == 2),
    *(Stage(model.name, model) for model in (TURNS, FULL, LATE, SETTLED)),
    Stage("queues", QUEUES),
    _at_two("ready: a crash, a failure", READY, crashes=1, raises=1),
    _at_two("ahead: a failure, a cancel", AHEAD, raises=1, cancels=1),
    _at_two("ahead: a crash", AHEAD, crashes=1),
    _at_two("futures: one gives up", FUTURES, give_ups=1),
    _at_two("life: a crash, a stop", LIFE, crashes=1, stops=1),
    Stage(
        "settled: twice",  # two ranks: the call stays in the books while the second owes its answer
        replace(
            SETTLED, ranks=2, calls=(1,), ahead=1, budgets=Budgets(raises=1, cancels=2, call_deadlines=2)
        ),
    ),
    Stage(
        "settled: a crash, a failure",
        replace(SETTLED, ranks=2, calls=(1,), ahead=1, budgets=Budgets(raises=1, crashes=1)),
    ),
    _at_two("shutdown: late", SHUTDOWN, stops=1, stubborn=1, wedged=1, freezes=1),
)


class Alike(Enum):
    """How much the answers of broken protocols are like those of the shipped ones. The order is from less to more."""

    NOT = 0
    """Some answer is another."""
    ANSWERS = 1
    """Every answer is the same, by steps that differ."""
    STEPS = 2
    """Every answer is the same, by the same steps; at most their order within one action differs."""
    ALL = 3
    """Every answer is the same, by the same steps in the same order."""


_Steps = tuple[tuple[tuple[int, Step], ...], ...]
"""Per action that is possible, its steps and the calls that they belong to."""


class _Question(NamedTuple):
    """One thing that was asked of the parts, and which rows the answer took."""

    ask: Any
    about: tuple[Any, ...]
    answer: Any
    steps: _Steps
    takes: frozenset[Key]


@dataclass(frozen=True)
class Baseline:
    """What a stage shows of the shipped protocols."""

    stage: Stage
    states: int
    holds: frozenset[str]
    """The properties that hold."""
    questions: tuple[_Question, ...]
    by_key: dict[Key, tuple[_Question, ...]]
    silent: tuple[_Question, ...]
    """What the executor learns of a rank without a step that is told."""

    def alike(self, defect: Defect, executor: ExecutorProtocol, worker: WorkerProtocol) -> Alike:
        """How far the broken protocols answer in the same way."""
        parts = self.stage.world(executor, worker).parts
        least = Alike.ALL
        for one in self._concerned(defect):
            labels: list[Did] = []
            if one.ask(parts, *one.about, labels=labels) != one.answer:
                return Alike.NOT
            if least is not Alike.ANSWERS:
                least = min(least, _compared(one.steps, _steps(labels)), key=_value)
        return least

    def _concerned(self, defect: Defect) -> Iterable[_Question]:
        if defect.asks or _LEGAL not in self.holds:
            return self.questions
        found = {id(one): one for key in defect.touches for one in self.by_key.get(key, ())}
        return {**found, **{id(one): one for one in self.silent}}.values()


_LEGAL = "no illegal event"


def _value(alike: Alike) -> int:
    return alike.value


def _steps(labels: list[Did]) -> _Steps:
    return tuple(label.steps for label in labels)


def _compared(right: _Steps, found: _Steps) -> Alike:
    if right == found:
        return Alike.ALL
    same = all(Counter(one) == Counter(other) for one, other in zip(right, found, strict=True))
    return Alike.STEPS if same else Alike.ANSWERS


@cache
def baseline(stage: Stage) -> Baseline:
    """Search the shipped protocols. Raises AssertionError if the search does not come to its end."""
    world = stage.world(ExecutorProtocol(), WorkerProtocol())
    report = check(world, stage.model.properties(world))
    assert report.explored[0].truncated is None
    holds = frozenset(outcome.name for outcome in report.outcomes if outcome.verdict is Verdict.HOLDS)
    questions = tuple(_asked(world.parts))
    by_key: dict[Key, list[_Question]] = {}
    for question in questions:
        for key in question.takes:
            by_key.setdefault(key, []).append(question)
    kept = {key: tuple(found) for key, found in by_key.items()}
    silent = tuple(one for one in questions if one.ask is _learnt and not all(one.steps))
    return Baseline(stage, report.states, holds, questions, kept, silent)


# --- questions ------------------------------------------------------------------------------------------------------


def _asked(parts: Parts) -> Iterator[_Question]:
    """Each question once, with every budget that was ever left when it was asked."""
    masks: dict[tuple[Any, ...], int] = {}
    for executor in list(parts.executors.values()):
        for key in list(executor.memo):
            if key == "alarm":
                masks[_alarm, executor.value] = 0
            elif isinstance(key, int):
                _add(masks, (_own, executor.value), key)
            elif len(key) == 2:
                _add(masks, (_threads, executor.value, key[0].value), key[1])
            else:
                _add(masks, (_learnt, executor.value, key[0].value, key[2]), key[1])
    for rank in list(parts.ranks.values()):
        for key in rank.memo:
            if isinstance(key, int):
                _add(masks, (_moves, rank.value), key)
    for (ask, *about), mask in masks.items():
        yield _question(parts, ask, mask, *about)


def _add(masks: dict[tuple[Any, ...], int], question: tuple[Any, ...], mask: int) -> None:
    masks[question] = masks.get(question, 0) | mask


def _question(parts: Parts, ask: Any, *about: Any) -> _Question:
    labels: list[Did] = []
    answer = ask(parts, *about, labels=labels)
    takes = frozenset(
        (step.machine, step.source.name, step.event.value) for label in labels for _, step in label.steps
    )
    return _Question(ask, about, answer, _steps(labels), takes)


def _alarm(parts: Parts, _mask: int, state: Any, labels: list[Did] | None = None) -> Any:
    return _answers([parts.next(parts.executor_rules.alarm(state))], labels)


def _own(parts: Parts, mask: int, state: Any, labels: list[Did] | None = None) -> Any:
    return _answers(parts.own(state, mask), labels)


def _threads(parts: Parts, mask: int, state: Any, threads: Any, labels: list[Did] | None = None) -> Any:
    return _answers(parts.thread_moves(state, threads, mask), labels)


def _learnt(
    parts: Parts, mask: int, state: Any, rank: Any, drainer: int | None, labels: list[Did] | None = None
) -> Any:
    found = parts.learnt(parts.executor_node(state), parts.rank_node(rank), mask, drainer)
    return _answers(found, labels)


def _moves(parts: Parts, mask: int, rank: Any, labels: list[Did] | None = None) -> Any:
    part = parts.rank_node(rank)
    moves = parts.rank_moves(part, mask)
    if labels is not None:
        labels += [label for label, _, _ in moves]
    return [(*_of(label), after.value, record) for label, after, record in moves], part.memo["quiet"]


def _answers(found: list[Next], labels: list[Did] | None) -> Any:
    if labels is not None:
        labels += [act.label for act in found]
    return [
        (
            *_of(act.label),
            act.executor.value,
            None if act.rank is None else act.rank.value,
            sorted(act.others, key=_first),  # stable: what one rank meets, it meets in this order
            _noted(act.record),
            act.wakes,
            None if act.threads is None else act.threads.value,
            act.quiet,
        )
        for act in found
    ]


def _of(label: Did) -> tuple[str, str, bool]:
    return label.actor, label.action, label.fair


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


_ALARM = (StopDo.ARM_GRACE, StopDo.ARM_TERM, StopDo.ARM_KILL, StopDo.DISARM)


def _noted(record: tuple[Any, ...]) -> tuple[Any, ...]:
    """The record's changes: all but the alarm's commute."""
    alarm = tuple(op for op in record if isinstance(op, Done) and op.effect in _ALARM)
    return sorted(repr(op) for op in record if op not in alarm), alarm
