"""The models that are checked: one world, many views of it.

Theory of operation. Everything at once is more than a search can hold, so each model begins where its protocol begins,
ends where it ends, and spends its budgets on that protocol's own faults; `life` then runs all of it at a small size.
A model is built for a size, a number of crashes and a pair of protocols, so that variants and mutants go through the
same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..protocol.executor import ExecutorProtocol
from ..protocol.futures import Serve
from ..protocol.life import Life
from ..protocol.ready import Start
from ..protocol.worker import WorkerProtocol
from . import properties as p
from .explore import Property
from .world import Budgets, Now, World
from .world.callers import waits
from .world.handshake import Handshake
from .world.late import Bounded, Late
from .world.parts import Parts

Properties = Callable[[World], list[Property[Now]]]


def is_up(now: Now) -> bool:
    """Every rank is READY; no queue needs to be open."""
    return now.executor.value.start[0] is Start.UP


def is_decided(now: Now) -> bool:
    """The start is up, or has failed."""
    return now.executor.value.start[0] is not Start.STARTING


def serves(now: Now) -> bool:
    """The executor accepts calls and every worker waits for one."""
    if now.life is not Life.SERVING:
        return False
    workers = (rank.value.worker for rank in now.ranks)
    return all(worker is not None and worker.serve[0] is Serve.IDLE for worker in workers)


def is_over(now: Now) -> bool:
    """The executor serves no more and every caller has come back."""
    return now.life is not Life.SERVING and not waits(now.threads.value)


@dataclass(frozen=True)
class Model:
    """A named configuration of the world and the properties that it must have."""

    name: str
    sentence: str
    ranks: int
    budgets: Budgets
    asks: tuple[Properties, ...]
    calls: tuple[int, ...] = ()
    ahead: int = 1
    eager: bool = True
    deadline_is_certain: bool = False
    begin: Callable[[Now], bool] | None = None
    until: Callable[[Now], bool] | None = None
    parts: type[Parts] = Parts
    symmetric: bool = False
    """Whether the ranks differ in their numbers only, so that it is searched modulo their order."""
    executor: ExecutorProtocol = field(default_factory=ExecutorProtocol)
    worker: WorkerProtocol = field(default_factory=WorkerProtocol)

    def world(
        self,
        ranks: int | None = None,
        crashes: int | None = None,
        executor: ExecutorProtocol | None = None,
        worker: WorkerProtocol | None = None,
    ) -> World:
        """The world, at this model's own size and budgets unless told otherwise."""
        budgets = self.budgets if crashes is None else self.budgets._replace(crashes=crashes)
        return World(
            self.ranks if ranks is None else ranks,
            budgets,
            calls=self.calls,
            ahead=self.ahead,
            eager=self.eager,
            deadline_is_certain=self.deadline_is_certain,
            executor=executor or self.executor,
            worker=worker or self.worker,
            name=self.name,
            begin=self.begin,
            until=self.until,
            parts=self.parts,
            symmetric=self.symmetric,
        )

    def properties(self, world: World) -> list[Property[Now]]:
        """What must hold in `world`."""
        return [found for ask in (p.life, *self.asks) for found in ask(world)]


HANDSHAKE = Model(
    "handshake",
    "READY handshake up to its decision, with the queues left aside: for many ranks, whose order is none.",
    4,
    Budgets(crashes=1, start_deadlines=1),
    (p.handshake,),
    until=is_decided,
    parts=Handshake,
    symmetric=True,
)
READY = Model(
    "ready",
    "READY handshake: from nothing to up, or to failed with every process reaped.",
    2,
    Budgets(crashes=1, raises=1, stops=1, start_deadlines=1),
    (p.start, p.stop),
    until=is_up,
)
STALE = Model(
    "stale",
    "READY handshake with words of an earlier epoch, and of other ranks, on the control channels.",
    2,
    Budgets(crashes=1, stale=1),
    (p.start,),
    eager=False,
    until=is_up,
)
QUEUES = Model(
    "queues",
    "Queue readiness: from every rank READY to serving, or to an end.",
    2,
    Budgets(crashes=1, stops=1, start_deadlines=1),
    (p.queues, p.stop),
    begin=is_up,
)
FUTURES = Model(
    "futures",
    "Futures draining: two threads that wait for each other's replies; a rank dies, a thread is interrupted.",
    2,
    Budgets(crashes=1, give_ups=1),
    (p.calls,),
    calls=(1, 1),
    begin=serves,
    until=is_over,
)
AHEAD = Model(
    "ahead",
    "Futures draining: two calls in flight from one thread, which raise, are cancelled, or run out of time.",
    2,
    Budgets(crashes=1, raises=1, cancels=1),
    (p.calls,),
    calls=(2,),
    ahead=2,
    begin=serves,
    until=is_over,
)
STRAY = Model(
    "stray",
    "Futures draining with answers of an earlier epoch, and to calls that nobody made.",
    2,
    Budgets(raises=1, stale=1, call_deadlines=1),
    (p.calls,),
    calls=(2,),
    ahead=2,
    eager=False,
    begin=serves,
    until=is_over,
)
SHUTDOWN = Model(
    "shutdown",
    "Shutdown escalation: asked, killed or failed, with workers that are frozen, ignore SIGTERM or outlive SIGKILL.",
    2,
    Budgets(crashes=1, stops=2, stubborn=1, wedged=1, freezes=1, listeners=1, faults=1),
    (p.stop, p.listeners),
    begin=serves,
)
LIFE = Model(
    "life",
    "The whole life: start, a call, a crash, a stop, and the executor killed at any point.",
    2,
    Budgets(crashes=1, stops=1, parents=1),
    (p.start, p.queues, p.calls, p.stop, p.orphans),
    calls=(1,),
)

LATE = Model(
    "late",
    "A start and its stop with what comes late, early or twice: faults, stops, words of the dead, of another epoch.",
    1,
    Budgets(crashes=1, raises=1, stale=1, stops=2, faults=1),
    (p.stop,),
    eager=False,
    parts=Late,
)
SETTLED = Model(
    "settled",
    "Futures draining with what comes after a call was settled, and answers that are none.",
    1,
    Budgets(raises=1, stale=1, call_deadlines=1, cancels=1),
    (p.calls,),
    calls=(2,),
    ahead=2,
    eager=False,
    parts=Late,
    begin=serves,
    until=is_over,
)
TURNS = Model(
    "turns",
    "Futures draining: two threads, one of which calls again, so that a woken one finds the drainer's place taken.",
    1,
    Budgets(give_ups=1),
    (p.calls,),
    calls=(2, 1),
    begin=serves,
    until=is_over,
)
FULL = Model(
    "full",
    "Reply queues without room: workers wait for readers who give up, stop, or are killed.",
    1,
    Budgets(give_ups=1, stops=1, parents=1),
    (p.calls, p.stop, p.orphans, p.room),
    calls=(3,),
    ahead=3,
    eager=False,
    parts=Bounded,
    begin=serves,
)

SHARED = {model.name: model for model in (READY, STALE, QUEUES, FUTURES, AHEAD, STRAY, SHUTDOWN, LIFE)}
"""The models that are given to other engines, too."""
MODELS = {HANDSHAKE.name: HANDSHAKE} | SHARED | {model.name: model for model in (LATE, SETTLED, TURNS, FULL)}
