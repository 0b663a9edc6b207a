"""What queue readiness promises."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.core import State
from ...protocol.executor import ExecutorState
from ...protocol.futures import Serve
from ...protocol.life import Life
from ...protocol.queues import Gate, Reader, Seat
from ..explore import Property, always, eventually, leads_to, never, sometimes
from ..world import Now, World
from ..world.callers import waits
from .ask import executor

_ENDED = (Life.DOWN, Life.FAILED)


def _gates(state: ExecutorState) -> tuple[State, State]:
    return state.broadcast[0], state.replies[0]


def _settled(state: ExecutorState) -> bool:
    return state.life[0] not in (Life.STARTING, Life.JOINING)


def _all_open(state: ExecutorState) -> bool:
    return (
        state.broadcast[0] is Gate.OPEN
        and state.replies[0] is Gate.OPEN
        and all(seat is Seat.OPEN for seat in state.broadcast[1:])
        and all(reader is Reader.OPEN for reader in state.replies[1:])
    )


def _serves_on_open_queues(now: Now) -> bool:
    for rank in now.ranks:
        worker = rank.value.worker
        if worker is None or worker.serve[0] in (Serve.CLOSED, Serve.STOPPED):
            continue
        if worker.intake[0] is not Reader.OPEN or worker.outlet[0] is not Gate.OPEN:
            return False
    return True


def _waits(rank: int) -> Callable[[Now], bool]:
    def predicate(now: Now) -> bool:
        worker = now.ranks[rank].value.worker
        return now.life is Life.SERVING and worker is not None and worker.serve[0] is Serve.CLOSED

    return predicate


def _waits_no_more(rank: int) -> Callable[[Now], bool]:
    waits = _waits(rank)
    return lambda now: not waits(now)


def queues(world: World) -> list[Property[Now]]:
    """The properties of every model in which queues open."""
    serving = executor(lambda state: state.life[0] is Life.SERVING)
    return [
        eventually(
            "the queues open or the start ends",
            "In whatever order the ranks and the executor arrive, the executor comes to serve, or to an end.",
            lambda now: now.gone or _settled(now.executor.value),
            twin=serving,
        ),
        always(
            "serving means every queue is open",
            "Calls are accepted only while every seat and every reader is open, so nothing is lost to a slow joiner.",
            executor(lambda state: state.life[0] is not Life.SERVING or _all_open(state)),
            twin=serving,
        ),
        always(
            "a worker serves on open queues",
            "A worker takes calls only while the broadcast queue and its reply queue are open.",
            _serves_on_open_queues,
            twin=lambda now: any(
                rank.value.worker is not None and rank.value.worker.serve[0] is Serve.IDLE
                for rank in now.ranks
            ),
        ),
        never(
            "a worker opens once",
            "A worker that has taken a call never waits for its queues again.",
            lambda now: any(
                bool(rank.value.running)
                and rank.value.worker is not None
                and rank.value.worker.serve[0] is Serve.CLOSED
                for rank in now.ranks
            ),
            twin=serving,
        ),
        always(
            "the end ends every wait",
            "When the executor has come to its end, nothing waits for a queue to open any more.",
            executor(lambda state: state.life[0] not in _ENDED or Gate.GATHERING not in _gates(state)),
            twin=executor(lambda state: state.life[0] in _ENDED),
        ),
        *(
            leads_to(
                f"rank {rank} comes to serve",
                "A worker whose queues the executor holds open begins to serve, or ends.",
                _waits(rank),
                _waits_no_more(rank),
            )
            for rank in range(world.size)
        ),
    ]


def _writes(now: Now) -> bool:
    return any(
        rank.value.worker is not None and rank.value.worker.serve[0] is Serve.REPLYING for rank in now.ranks
    )


def _is_held(now: Now) -> bool:
    return _writes(now) and (now.gone or now.life is not Life.SERVING)


def room(_world: World) -> list[Property[Now]]:
    """The properties of the model in which a reply queue may be full."""
    return [
        leads_to(
            "no reader holds a writer for ever",
            "A worker that waits for room waits no more once the executor is ending, or is gone.",
            _is_held,
            lambda now: not _is_held(now),
        ),
        sometimes(
            "a writer waits for room",
            "A worker can meet a reply queue that has no room, while nobody reads.",
            lambda now: _writes(now) and not waits(now.threads.value),
        ),
        leads_to(
            "room is made",
            "While a caller waits, a worker that waits for room gets it: whoever drains makes it.",
            lambda now: _writes(now) and bool(now.threads.value.threads) and waits(now.threads.value),
            lambda now: not (_writes(now) and waits(now.threads.value)),
        ),
    ]
