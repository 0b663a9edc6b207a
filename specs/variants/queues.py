"""Queue readiness: waits that are blind, in the composed world. Orders of waiting have a model of their own (`order`).

Theory of operation: see `variant`.
"""

from __future__ import annotations

from ...protocol.core import Cluster, each, some
from ...protocol.executor import ExecutorProtocol
from ...protocol.queues import GATE, READER, SEAT, Gate, GateOn, Reader, ReaderOn, Seat, SeatOn
from ..models import QUEUES
from ..world import Budgets
from .edit import ignored, swapped
from .in_world import in_world
from .variant import Variant

_BLIND = (
    ignored(SEAT, SeatOn.DIED, Seat.EXPECTED, Seat.JOINED, Seat.OPEN),
    ignored(READER, ReaderOn.DIED, Reader.UNKNOWN, Reader.JOINED, Reader.OPEN),
)
_DEAF = ignored(GATE, GateOn.CLOSE, Gate.GATHERING, Gate.OPEN)
_EARLY = Cluster(
    "broadcast",
    GATE,
    SEAT,
    (
        some(SEAT, Seat.JOINED, Seat.OPEN, then=GateOn.ALL_IN),
        some(SEAT, Seat.GONE, then=GateOn.LOST),
        each(GATE, Gate.OPEN, then=SeatOn.OPEN),
        each(GATE, Gate.CLOSED, then=SeatOn.CLOSE),
    ),
)


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    good = ExecutorProtocol()
    return [
        in_world(
            "readiness-blind-to-death",
            "The readiness wait of a queue looks at the queue alone; a rank that dies before it joins ends it never.",
            ("vllm-project/vllm#58059",),
            QUEUES,
            "the queues open or the start ends",
            4,
            ranks=1,
            budgets=Budgets(crashes=1),
            executor=good.but(_BLIND[0]).but(_BLIND[1]),
            table=_BLIND[0],
        ),
        in_world(
            "readiness-blind-to-cancel",
            "The monitor knows of the death and stops everything; the readiness wait cannot be told, and waits on.",
            ("vllm-project/vllm#58059",),
            QUEUES,
            "the end ends every wait",
            4,
            ranks=1,
            budgets=Budgets(stops=1),
            executor=good.but(_DEAF),
            table=_DEAF,
        ),
        in_world(
            "open-at-first-join",
            "The broadcast queue counts as open when the first reader has joined; the others may miss what is sent.",
            ("vllm-project/vllm#21538",),
            QUEUES,
            "serving means every queue is open",
            6,
            ranks=2,
            budgets=Budgets(crashes=1),
            executor=swapped(good, broadcast=_EARLY),
        ),
    ]
