"""The order in which each side waits for its queues: which orders deadlock, by trying them all.

Theory of operation:

1. The reference system opens its queues one after the other, and a comment warns that this "will deadlock if
   re-ordered". Here every order of the executor (the broadcast queue, and each rank's reply queue) is run against every
   order of every worker (broadcast first, or its own reply queue first), over the shipped tables: the order only
   decides which queue's messages are looked at.
2. When a reader joins makes a difference. In the reference system it joins when its end is *made*, before anybody
   waits: an order deadlocks exactly if some rank waits for the broadcast queue first while the executor waits for that
   rank's reply queue before it opens the broadcast queue. Where a reader joins only when it *waits*, every rank must
   wait in the executor's own order, and any other deadlocks.
3. A remote reader joins over the network, so its JOINED comes late; the writer counts what it has heard, and the
   orders that deadlock are the same: here JOINED takes its time in any case. A writer that counts nobody (PUB/SUB
   without a word back) loses what it publishes before a reader has subscribed, and then no order helps: `Lossy`.
4. The runtime has no order: it waits for everything at once (queues.py), and never deadlocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, NamedTuple

from ...protocol.core import Cluster, State, each, some
from ...protocol.executor import ExecutorProtocol, ExecutorState
from ...protocol.queues import GATE, SEAT, Gate, GateOn, QueueDo, Reader, Seat, SeatOn
from ...protocol.worker import WorkerState
from ..explore import Verdict
from ..models import QUEUES
from ..world import Act, Budgets, ExecutorRules, Message, Node, Rank, RankMove, RankRules, World, channel
from ..world.parts import Parts
from .edit import added, swapped
from .in_world import in_world
from .variant import Trial, Variant, judged

BROADCAST = "B"
REPLIES = "R"
OPENS = "the queues open or the start ends"


class Orders(NamedTuple):
    """Who waits in which order: the executor for "B" and rank numbers, each worker for "B" and "R"."""

    executor: tuple[str | int, ...]
    workers: tuple[tuple[str, str], ...]
    late: bool = False
    """Readers join when they wait, not when their end is made."""

    def __str__(self) -> str:
        executor = " ".join(str(one) if one == BROADCAST else f"R{one}" for one in self.executor)
        workers = ", ".join(f"rank {number} {''.join(order)}" for number, order in enumerate(self.workers))
        return f"executor {executor}; {workers}"


def deadlocks(orders: Orders) -> bool:
    """The rule (see 2) that says beforehand which orders deadlock; `study` finds it out by search."""
    for rank, order in enumerate(orders.workers):
        executor_first = orders.executor.index(BROADCAST) < orders.executor.index(rank)
        rank_first = order[0] == BROADCAST
        if (rank_first and not executor_first) or (orders.late and executor_first and not rank_first):
            return True
    return False


def all_orders(ranks: int, *, late: bool = False) -> Iterator[Orders]:
    """Every order of the executor with every order of each worker."""
    for executor in permutations((BROADCAST, *range(ranks))):
        for workers in product(((BROADCAST, REPLIES), (REPLIES, BROADCAST)), repeat=ranks):
            yield Orders(executor, workers, late)


@dataclass(frozen=True)
class Study:
    """What came of trying all orders of `ranks` ranks."""

    ranks: int
    late: bool
    deadlock: tuple[Orders, ...]
    open: tuple[Orders, ...]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.deadlock) + len(self.open)


def study(ranks: int, *, late: bool = False) -> Study:
    """Try every order; (ranks + 1)! times 2 to the power of `ranks` of them."""
    found: dict[bool, list[Orders]] = {True: [], False: []}
    for orders in all_orders(ranks, late=late):
        found[judged(trial(ranks, orders), OPENS).verdict is Verdict.VIOLATED].append(orders)
    return Study(ranks, late, tuple(found[True]), tuple(found[False]))


def trial(ranks: int, orders: Orders | None) -> Trial:
    """The opening of the queues, faultless, in the given orders, or (None) waiting for everything at once."""
    parts = Parts if orders is None else waiting_in(orders)
    world = World(ranks, Budgets(), eager=True, begin=QUEUES.begin, name=QUEUES.name, parts=parts)
    return Trial(world, QUEUES.asks[0](world))


def waiting_in(orders: Orders) -> type[Parts]:
    """The glue that waits in these orders."""

    class InOrder(Parts):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.rank_rules = _InOrderRank(self.rank_rules.protocol, orders)
            if orders.late:
                self.executor_rules = _LateRules(
                    self.executor_rules.protocol, self.executor_rules.ranks, orders
                )

        def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
            now = _executor_waits(state, orders)
            seen = rank._replace(
                joins=rank.joins if now == BROADCAST else (),
                replies=rank.replies if now == rank.number else (),
            )
            yield from super()._hears(state, seen)

    return InOrder


def _executor_waits(state: ExecutorState, orders: Orders) -> str | int | None:
    """What the executor waits for now."""
    for one in orders.executor:
        if isinstance(one, int):
            if state.replies[one + 1] in (Reader.UNKNOWN, Reader.JOINED):
                return one
        elif state.broadcast[0] is Gate.GATHERING:
            return one
    return None


def _worker_waits(state: WorkerState, order: tuple[str, str]) -> str | None:
    waits: dict[str, State] = {BROADCAST: state.intake[0], REPLIES: state.outlet[0]}
    waiting = (Reader.UNKNOWN, Reader.JOINED, Gate.GATHERING)
    return next((one for one in order if waits[one] in waiting), None)


class _LateRules(ExecutorRules):
    def __init__(self, protocol: ExecutorProtocol, ranks: int, orders: Orders) -> None:
        super().__init__(protocol, ranks)
        self._orders = orders

    def own(self, state: ExecutorState) -> Iterator[Act]:
        waits = _executor_waits(state, self._orders)
        for act in super().own(state):
            if not act.label.action.startswith("joins the replies") or (
                isinstance(waits, int) and act.label.action.endswith(f" {waits}")
            ):
                yield act


class _InOrderRank(RankRules):
    def __init__(self, protocol: Any, orders: Orders) -> None:
        super().__init__(protocol)
        self._orders = orders

    def own(self, now: Rank) -> Iterator[RankMove]:
        assert now.worker is not None
        waits = _worker_waits(now.worker, self._orders.workers[now.number])
        hidden = now._replace(
            calls=now.calls if waits in (BROADCAST, None) else (),
            joined=now.joined if waits in (REPLIES, None) else (),
        )
        for move in super().own(hidden):
            if self._orders.late and move.label.action == "intake handle" and waits != BROADCAST:
                continue
            after = move.after
            if after.alive and hidden.calls != now.calls:
                after = after._replace(calls=now.calls)
            if after.alive and hidden.joined != now.joined:
                after = after._replace(joined=now.joined)
            yield move._replace(after=after)


class Lossy(Parts):
    """What is written to a reader that has not joined is lost, as PUB/SUB loses it."""

    def done_to(self, rank: Node[Rank], op: channel.Op) -> Node[Rank]:
        """See `Parts.done_to`."""
        worker = rank.value.worker
        listens = worker is None or worker.intake[0] is not Reader.UNKNOWN
        if not listens and (op is QueueDo.SEND_OPEN or isinstance(op, Message)):
            return rank
        return super().done_to(rank, op)


_UNASKED = added(
    added(SEAT, SeatOn.OPEN, Seat.EXPECTED, Seat.OPEN, QueueDo.SEND_OPEN),
    SeatOn.JOINED,  # who subscribes late is let in, and has missed what there was
    Seat.OPEN,
    Seat.OPEN,
)
_PUBLISHES = Cluster(
    "broadcast",
    GATE,
    _UNASKED,
    (
        some(_UNASKED, Seat.JOINED, Seat.OPEN, then=GateOn.ALL_IN),
        some(_UNASKED, Seat.GONE, then=GateOn.LOST),
        each(GATE, Gate.OPEN, then=SeatOn.OPEN),
        each(GATE, Gate.CLOSED, then=SeatOn.CLOSE),
    ),
)


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    reordered = Orders((0, BROADCAST), ((BROADCAST, REPLIES),))
    crossed = Orders((BROADCAST, 0), ((REPLIES, BROADCAST),), late=True)
    shared: dict[str, Any] = {"ranks": 1, "budgets": Budgets()}
    return [
        in_world(
            "reordered-waits",
            "The executor waits for a reply queue before the broadcast queue, its worker the other way round.",
            (),
            QUEUES,
            OPENS,
            1,
            parts=waiting_in(reordered),
            **shared,
        ),
        in_world(
            "crossed-waits",
            "Readers join only when they wait, and the two sides wait in different orders: each for the other's join.",
            (),
            QUEUES,
            OPENS,
            0,
            parts=waiting_in(crossed),
            **shared,
        ),
        in_world(
            "publish-before-joined",
            "The writer publishes before every reader has subscribed; who came late misses it and waits for ever.",
            ("vllm-project/vllm#21538", "NVIDIA/Megatron-LM#6715", "NVIDIA/TensorRT-LLM#7646"),
            QUEUES,
            "rank 1 comes to serve",
            8,
            ranks=2,
            budgets=Budgets(),
            executor=swapped(ExecutorProtocol(), broadcast=_PUBLISHES),
            parts=Lossy,
            right_parts=Lossy,
            table=_UNASKED,
        ),
    ]
