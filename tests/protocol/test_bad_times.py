"""Facts that are true, and come at a bad time: the protocol takes them, and refuses what cannot be told apart.

Each was refused, or let pass, once.
"""

from __future__ import annotations

import pytest

from procession.protocol.core import Event, Identity, TableError, on, when
from procession.protocol.core.table import Row
from procession.protocol.executor import ExecutorProtocol, ExecutorState
from procession.protocol.futures import ReplyOn, Serve, ServeOn
from procession.protocol.life import LIFE, Life, LifeOn
from procession.protocol.queues import ReaderOn, SeatOn
from procession.protocol.ready import BootOn, RankStartOn, Start
from procession.protocol.worker import WorkerProtocol, WorkerState

EXECUTOR = ExecutorProtocol()
WORKER = WorkerProtocol()
EPOCH = 2
WORDS = (RankStartOn.HELLO, RankStartOn.WEIGHTS, RankStartOn.QUEUES, RankStartOn.READY)
PHASES = (BootOn.BORN, BootOn.DEVICE_UP, BootOn.WEIGHTS_UP, BootOn.QUEUES_UP)


def made(*ranks: int, of: int = 2) -> ExecutorState:
    """An executor that made these ranks."""
    state = EXECUTOR.initial(of)
    for rank in ranks:
        state, _ = EXECUTOR.made(state, rank)
    return state


def ready(state: ExecutorState, rank: int) -> ExecutorState:
    """Rank said all there is to say."""
    own = Identity(EPOCH, rank)
    for word in WORDS:
        state, _ = EXECUTOR.give(state, "start", rank, word, own, own)
    return state


def serving_executor(ranks: int = 2) -> ExecutorState:
    """An executor that accepts calls."""
    state = made(*range(ranks), of=ranks)
    facts = (("replies", ReaderOn.HANDLE), ("broadcast", SeatOn.JOINED))
    for rank in range(ranks):
        state = ready(state, rank)
        for cluster, event in facts:
            state, _ = EXECUTOR.give(state, cluster, rank, event)
    for rank in range(ranks):
        state, _ = EXECUTOR.give(state, "replies", rank, ReaderOn.OPENED)
    assert state.life == (Life.SERVING,)
    return state


def worker(*facts: tuple[str, Event, int]) -> WorkerState:
    """A worker that met these."""
    state = WORKER.initial()
    for cluster, event, slot in facts:
        state, _ = WORKER.give(state, cluster, event, slot)
    return state


def serving_worker(*events: ServeOn) -> WorkerState:
    """A worker that serves, and what it met since."""
    return worker(
        *(("boot", phase, -1) for phase in PHASES),
        ("intake", ReaderOn.HANDLE, -1),
        ("intake", ReaderOn.OPENED, -1),
        ("outlet", SeatOn.JOINED, 0),
        ("serve", ServeOn.BEGIN, -1),
        *(("serve", event, -1) for event in events),
    )


# --- the executor's side ----------------------------------------------------------------------------------------------


def test_a_reply_that_names_another_rank_is_dropped() -> None:
    """REPLY's guards compare epoch and call; the call's own identity has no rank to compare."""
    state, _ = EXECUTOR.submit(serving_executor(), Identity(EPOCH, call=1))
    after, _ = EXECUTOR.reply(state, 0, ReplyOn.RETURNED, Identity(EPOCH, 1, 1))
    assert after == state


def test_a_call_identity_is_used_once() -> None:
    """Two calls of one identity are taken; the first answers of both go to the first."""
    state, _ = EXECUTOR.submit(serving_executor(), Identity(EPOCH, call=1))
    with pytest.raises(Exception, match="call"):
        EXECUTOR.submit(state, Identity(EPOCH, call=1))


# --- the worker's side ------------------------------------------------------------------------------------------------


def test_an_orphan_leaves_at_once_while_a_method_runs() -> None:
    """SERVE has no row for a death in RUNNING, and ORPHANED is one fact for all machines: all refuse."""
    state, steps = WORKER.orphaned(serving_worker(ServeOn.CALL))
    assert state.serve == (Serve.STOPPED,)
    assert "exit" in [effect.value for step in steps for effect in step.effects]


@pytest.mark.parametrize("first", ["stop", "orphaned", "raised"])
def test_a_stop_that_comes_second_changes_nothing(first: str) -> None:
    """The control channel's end is seen twice, after the executor's death, or after FAILED was said.

    `orphaned` may come second to all of them, and twice; LEAVE has ASKED in STAYING alone.
    """
    state = worker(("boot", BootOn.BORN, -1))
    if first == "stop":
        state, _ = WORKER.stop(state)
    elif first == "orphaned":
        state, _ = WORKER.orphaned(state)
    else:
        state, _ = WORKER.give(state, "boot", BootOn.RAISED)
    assert WORKER.orphaned(state)
    assert WORKER.stop(state)[0].leave == state.leave


# --- variants and lint ------------------------------------------------------------------------------------------------


class _StillMovingError(Exception):
    """The coupling took more steps than there are states."""


def test_a_coupling_between_clusters_that_never_rests_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One destination changed: a fault while FAILING starts anew, and the failed start is a fault again."""
    rows: list[Row] = []
    for row in LIFE.rows:
        if row["trigger"] is LifeOn.FAULT and Life.FAILING in row["source"]:
            rows.append({**row, "source": [state for state in row["source"] if state is not Life.FAILING]})
        else:
            rows.append(row)
    variant = EXECUTOR.but(LIFE.but(rows=[*rows, on(LifeOn.FAULT, Life.FAILING, Life.STARTING)]))
    steps = 0
    take = ExecutorProtocol._one

    def counted(self: ExecutorProtocol, *fact: object) -> object:
        nonlocal steps
        steps += 1
        if steps > 1000:
            raise _StillMovingError
        return take(self, *fact)  # type: ignore[arg-type]

    monkeypatch.setattr(ExecutorProtocol, "_one", counted)
    with pytest.raises(TableError, match="never comes to rest"):
        variant.died(made(0), 0)


def test_a_misspelt_coupling_between_clusters_is_refused_when_it_is_made() -> None:
    """Today it is an AttributeError, at the first step."""
    with pytest.raises(TableError):
        ExecutorProtocol(coupling=(when(("strat", Start.UP), then=("life", LifeOn.RANKS_READY)),))


def test_a_variant_of_a_table_that_stands_nowhere_is_refused() -> None:
    elsewhere = LIFE.but(rows=LIFE.rows, name="lief")
    with pytest.raises(LookupError):
        EXECUTOR.but(elsewhere)
