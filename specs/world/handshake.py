"""The READY handshake by itself: the same world, up to the decision, with the queues left aside.

Theory of operation. While some ranks are still on their way to READY, others join queues already. What they do there
moves no rank's start, and no rank's start waits for it: so whatever the start can come to, it can come to before any
queue has been touched. Those runs are the ones that are kept. A death is still told to the queues' machines, and a
decision to everybody: it is the steps that *begin* at a queue that are left out (and searched in `queues` and `ready`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...protocol.executor import ExecutorState
from .executor import Act
from .parts import Parts
from .rank import Rank, RankMove, RankRules
from .words import Did


class Handshake(Parts):
    """The world in which nobody joins a queue."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rank_rules = _Apart(self.rank_rules.protocol)

    def _owns(self, state: ExecutorState) -> Iterator[Act]:
        return (act for act in super()._owns(state) if not _begins_at_a_queue(act.label))


class _Apart(RankRules):
    def own(self, now: Rank) -> Iterator[RankMove]:
        return (move for move in super().own(now) if not _begins_at_a_queue(move.label))


AT_A_QUEUE = frozenset({"broadcast", "replies", "intake", "outlet"})
"""The clusters at which no step begins."""


def _begins_at_a_queue(label: Did) -> bool:
    return bool(label.steps) and label.steps[0][1].cluster in AT_A_QUEUE
