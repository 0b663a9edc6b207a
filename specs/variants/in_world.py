"""Variants that run in the composed world: a model, a size, and the one thing that is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...protocol.core import Table
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol
from ..models import Model
from ..world import Budgets, World
from ..world.parts import Parts
from .variant import Trial, Variant


def in_world(
    name: str,
    sentence: str,
    reports: tuple[str, ...],
    model: Model,
    violates: str,
    length: int,
    *,
    ranks: int,
    budgets: Budgets,
    executor: ExecutorProtocol | None = None,
    worker: WorkerProtocol | None = None,
    parts: type[Parts] = Parts,
    right_parts: type[Parts] = Parts,
    table: Table | None = None,
    **changes: Any,
) -> Variant:
    """A variant of `model` at `ranks` and `budgets`: with a table, one side's protocol, or the glue changed.

    `changes` are other fields of the model (such as `calls`), for both trials. The search takes no short cuts
    (`eager` is off), so that counterexamples are shortest.
    """
    base = replace(model, ranks=ranks, budgets=budgets, **{"eager": False, **changes})
    if table is not None:
        sides = _with_table(table)
        executor, worker = executor or sides[0], worker or sides[1]

    def trial(executor: ExecutorProtocol | None, worker: WorkerProtocol | None, parts: type[Parts]) -> Trial:
        world = World(
            base.ranks,
            base.budgets,
            calls=base.calls,
            ahead=base.ahead,
            eager=base.eager,
            deadline_is_certain=base.deadline_is_certain,
            executor=executor or base.executor,
            worker=worker or base.worker,
            name=base.name,
            begin=base.begin,
            until=base.until,
            parts=parts,
        )
        return Trial(world, base.properties(world))

    return Variant(
        name,
        sentence,
        reports,
        model.name,
        violates,
        length,
        bad=lambda: trial(executor, worker, parts),
        right=lambda: trial(None, None, right_parts),
        table=table,
    )


def _with_table(table: Table) -> tuple[ExecutorProtocol | None, WorkerProtocol | None]:
    """Both sides with the changed table; None where a side does not have it."""
    sides: list[Any] = []
    for side in (ExecutorProtocol(), WorkerProtocol()):
        try:
            sides.append(side.but(table))
        except LookupError:
            sides.append(None)
    if sides == [None, None]:
        raise LookupError(f"neither side has a table {table.name!r}")
    return sides[0], sides[1]
