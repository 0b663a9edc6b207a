"""A model as one program of the small language: variables, actions, what holds, and where it begins.

Theory of operation. The text is the glue (specs/export/glue, the same for every model) and what the tables of the model
say (`tables`). The printers and the twin each take this one program; nothing is written twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from ...protocol import executor as protocol_executor
from ...protocol import futures, life, queues, ready, shutdown
from ...protocol import worker as protocol_worker
from ...protocol.core import Kind
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol
from ..explore import Property
from ..models import Model
from ..world import NoBeginningError, Now, World
from .actions import Action, actions
from .glue import channels, ends, holds, holds_calls, holds_life, holds_stop, judge
from .glue import executor as glue_executor
from .glue import rank as glue_rank
from .glue import step as glue_step
from .glue import threads as glue_threads
from .glue import words as glue_words
from .glue.words import Only
from .small import Program
from .tables import written
from .tree import Const, ExportError, Expr, Value, Var, compared, conjunction, disjunction, negated
from .variables import Size, Variable, declared, projected, size_of

_GLUE = (
    channels,
    glue_rank,
    glue_threads,
    glue_executor,
    glue_step,
    judge,
    ends,
    holds,
    holds_life,
    holds_calls,
    holds_stop,
)


@dataclass(frozen=True)
class Exported:
    """One model in one size, ready to be printed or run."""

    model: Model
    world: World
    size: Size
    program: Program
    variables: list[Variable]
    actions: list[Action]
    first: Now

    @property
    def begin(self) -> dict[str, Any]:
        """The first state, as the program's variables have it."""
        return self.filled(projected(self.first, self.size, self.model.executor))

    def filled(self, values: dict[str, Any]) -> dict[str, Any]:
        """Put every machine of a worker that does not exist where it begins."""
        for name, cluster in self.model.worker.initial()._asdict().items():
            for suffix, absent in zip(("", "_of"), cluster, strict=False):
                row = values[f"w_{name}{suffix}"]
                values[f"w_{name}{suffix}"] = [absent if one is None else one for one in row]
        return values

    @property
    def properties(self) -> list[Property[Now]]:
        """What the model must have."""
        return self.model.properties(self.world)

    @property
    def until(self) -> str:
        """The function of the glue that says where the model goes no further; empty if there is none."""
        return "" if self.model.until is None else self.model.until.__name__

    def arguments(self, action: Action, function: str) -> list[Value]:
        """What `function` of the action is called with."""
        return self.program.arguments(function, dict(action.arguments))

    def guard(self, action: Action) -> Expr:
        """When the action may happen, with everything that holds of every action."""
        parts = [self.program.expression(action.can, *self.arguments(action, action.can))]
        if action.budget:
            parts.append(compared("<", Const(0), Var(f"b_{action.budget}")))
        if self.size.EAGER:
            free = compared("==", Var("only"), Const(Only.NONE))
            if action.reads is not Only.NONE:
                rank = compared("==", Var("only_rank"), Const(dict(action.arguments)["r"]))
                mine = conjunction([compared("==", Var("only"), Const(action.reads)), rank])
                free = disjunction([free, mine])
            parts.append(free)
        if self.until:
            parts.append(negated(self.program.expression(self.until)))
        return conjunction(parts)

    @property
    def accepting(self) -> Expr:
        """Whether a run may end here."""
        rest = self.program.expression("may_end")
        if not self.until:
            return rest
        return disjunction([self.program.expression(self.until), rest])


def exported(
    model: Model,
    ranks: int | None = None,
    crashes: int | None = None,
    executor: ExecutorProtocol | None = None,
    worker: WorkerProtocol | None = None,
) -> Exported:
    """The model, at its own size and with its own protocols unless told otherwise.

    Raises ExportError if something of it cannot be said exactly.
    """
    protocol, workers = executor or model.executor, worker or model.worker
    model = replace(model, executor=protocol, worker=workers)
    world = model.world(ranks, crashes)
    _refuse_quiet_answers(model)
    size = size_of(model, world)
    text = "\n\n".join([*map(inspect.getsource, _GLUE), written(protocol, workers)])
    try:
        (first,) = world.initial()
    except NoBeginningError as error:
        raise ExportError(str(error)) from None
    whole = {f"WHOLE_{name.upper()}": left for name, left in world.budgets._asdict().items()}
    return Exported(
        model,
        world,
        size,
        Program(text, {**_words(), **asdict(size), **whole}),
        declared(size, world),
        actions(model, world),
        first,
    )


def _refuse_quiet_answers(model: Model) -> None:
    """Answers that change nothing and do nothing would be quiet to `World`; the glue has only the supervisor's."""
    replies = model.executor.call.member
    if model.eager and replies is not None:
        for (state, event), rows in replies.alternatives.items():
            if event.kind is Kind.MESSAGE and any(row.dest is state and not row.after for row in rows):
                raise ExportError(f"{replies.name}: {event.value!r} is quiet in {state.name}")


def _words() -> Mapping[str, type[Enum]]:
    found: dict[str, type[Enum]] = {}
    for module in (
        *_GLUE,
        glue_words,
        protocol_worker,
        protocol_executor,
        life,
        shutdown,
        queues,
        ready,
        futures,
    ):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Enum) and value.__members__:
                found[name] = value
    return found
