"""What each stage of the trial shows of the shipped protocols: which rows it takes, and which properties hold.

Theory of operation:

1. A *stage* is a model at a size. The stages are ordered by their cost: every model with one rank first, where most
   defects already show, then the models at their own sizes.
2. A search of the shipped protocols notes, for each pair of state and event, whether a step was taken there, whether
   the coupling looked at it, and how many states had been expanded when it was first taken.
3. A defect that differs only in rows that a stage never takes (nor, where that could matter, looks at) is not tried
   there: the search would be the same, state by state.
4. A property that does not hold here says nothing about a defect, and is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...protocol.core import Event, State, Table
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol
from ..diagrams import tables
from ..explore import Property, Verdict, check
from ..models import MODELS, Model
from ..mutants import with_rows
from ..world import Did, Now, World

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Stage:
    """A model at a size."""

    model: Model
    ranks: int

    @property
    def name(self) -> str:
        """The model's name, with the number of ranks where it is not the model's own."""
        return self.model.name if self.ranks == self.model.ranks else f"{self.model.name}/{self.ranks}"

    def world(self, executor: ExecutorProtocol, worker: WorkerProtocol) -> World:
        """The world of these protocols."""
        return self.model.world(self.ranks, executor=executor, worker=worker)


STAGES = (
    *(Stage(model, 1) for model in MODELS.values()),
    *(
        Stage(MODELS[name], MODELS[name].ranks)
        for name in ("queues", "shutdown", "stray", "life", "stale", "ready", "futures", "ahead")
    ),
)


@dataclass(frozen=True)
class Baseline:
    """What a stage shows of the shipped protocols."""

    stage: str
    states: int
    holds: frozenset[str]
    """The properties that hold."""
    taken: dict[Key, int]
    """The pairs of state and event in which a step was taken, and after how many states."""
    looked_at: frozenset[Key]
    """The pairs that were looked at, by the coupling or for an action that no budget allowed."""


def baseline(stage: Stage) -> Baseline:
    """Search the shipped protocols. Raises AssertionError if the search does not come to its end."""
    looked_at: set[Key] = set()
    executor, worker = ExecutorProtocol(), WorkerProtocol()
    for table in tables().values():
        watched = with_rows(table, table.rows)
        object.__setattr__(watched, "alternatives", _Noting(table, looked_at))
        if _has(executor, table):
            executor = executor.but(watched)
        if _has(worker, table):
            worker = worker.but(watched)
    world = stage.world(executor, worker)
    watch = _Watch(world)
    asked: Iterable[Property[Now]] = stage.model.properties(world)
    report = check(watch, list(asked))
    assert report.explored[0].truncated is None
    holds = frozenset(outcome.name for outcome in report.outcomes if outcome.verdict is Verdict.HOLDS)
    return Baseline(stage.name, report.states, holds, watch.taken(), frozenset(looked_at))


def _has(protocol: ExecutorProtocol | WorkerProtocol, table: Table) -> bool:
    return any(table.name in getattr(cluster, "table_names", ()) for cluster in vars(protocol).values())


class _Noting(dict[tuple[State, Event], Any]):
    """A table's rows, which notes what is looked up."""

    def __init__(self, table: Table, keys: set[Key]) -> None:
        super().__init__(table.alternatives)
        self._name = table.name
        self._keys = keys

    def get(self, key: Any, default: Any = None) -> Any:
        self._keys.add((self._name, key[0].name, key[1].value))
        return super().get(key, default)


class _Watch:
    """A world that notes its labels, each with the number of states expanded before it."""

    def __init__(self, world: World) -> None:
        self.name = world.name
        self.initial = world.initial
        self.accepting = world.accepting
        self.describe = world.describe
        self._world = world
        self._labels: dict[int, tuple[int, Did]] = {}
        self._expanded = 0

    def actions(self, now: Now) -> list[tuple[Did, Now]]:
        found = self._world.actions(now)
        for label, _ in found:
            if id(label) not in self._labels:
                self._labels[id(label)] = self._expanded, label
        self._expanded += 1
        return found

    def taken(self) -> dict[Key, int]:
        taken: dict[Key, int] = {}
        for expanded, label in self._labels.values():
            for _, step in label.steps:
                taken.setdefault((step.machine, step.source.name, step.event.value), expanded)
        return taken
