"""The tables that the runtime steps are the objects that the checker explores: change one, and the executor changes."""

from __future__ import annotations

from typing import Any

import pytest

from procession.protocol.core import Table, TableError
from procession.protocol.executor import ExecutorProtocol
from procession.protocol.ready import RANK_START
from procession.protocol.shutdown import LISTENER, STOP
from procession.protocol.worker import WorkerProtocol
from procession.runtime import Recorder, StartError
from procession.specs.trace import validate
from tests.runtime.support import SHORT, executor, within
from tests.specs.swapped import SWAPPED_CALL, SWAPPED_EXECUTOR


def tables(protocol: Any) -> dict[str, Table]:
    """Every table of a protocol, by cluster and name."""
    found = {}
    for name, cluster in vars(protocol).items():
        for table in (getattr(cluster, "aggregate", None), getattr(cluster, "member", None)):
            if table is not None:
                found[f"{name}.{table.name}"] = table
    return found


def test_the_tables_that_run_are_the_tables_that_are_explored() -> None:
    import procession.protocol as protocol
    from procession.protocol import futures, life, queues, ready, shutdown

    shipped = {
        table.name: table
        for module in (futures, life, queues, ready, shutdown)
        for table in vars(module).values()
        if isinstance(table, Table)
    }
    assert protocol.__name__ == "procession.protocol"
    with executor() as ready_executor:
        running = tables(ready_executor._kernel.protocol)
        assert len(running) >= 12
        for name, table in running.items():
            assert table is shipped[table.name], name

        def identical(worker: object) -> bool:
            """In the rank's own process, on the protocol that the loop there steps."""
            import gc

            from procession.runtime import WorkerProc

            (loop,) = [found for found in gc.get_objects() if type(found) is WorkerProc]
            shipped = tables(WorkerProtocol())
            return tables(loop.protocol) == shipped

        assert ready_executor.collective_rpc(identical) == [True, True]


def test_swapped_rows_of_a_call_are_seen_in_every_answer() -> None:
    """What follows the last answer and what follows a failure have changed places."""
    recorder = Recorder()
    ready = executor(executor_protocol=SWAPPED_EXECUTOR, recorder=recorder, shutdown=SHORT)
    with pytest.raises(Exception, match="SERVING"):  # every rank answered, and the call fails
        ready.collective_rpc("echo", 5)
    answer = ready.collective_rpc("raises", 5, (1,))  # a rank raised, and the call is resolved
    assert answer[1] is None
    ready.shutdown()
    assert validate(recorder.lines(), executor=SWAPPED_EXECUTOR).accepted
    verdict = validate(recorder.lines())
    assert not verdict.accepted
    assert "call" in str(verdict)


def _swap(table: Table, first: str, second: str) -> ExecutorProtocol:
    """Two triggers exchanged, in every row."""
    other = {first: second, second: first}
    words = {event.value: event for event in table.events}
    rows = [{**row, "trigger": words[other.get(row["trigger"], row["trigger"])]} for row in table.rows]
    return ExecutorProtocol().but(table.but(rows=rows))  # type: ignore[arg-type]  # a copy of a Row is a dict


def test_a_start_in_another_order_is_refused() -> None:
    """With WEIGHTS and QUEUES in each other's place, a rank that starts as it should breaks the protocol."""
    with within(3), pytest.raises(StartError, match="the peer broke the protocol") as caught:
        executor(executor_protocol=_swap(RANK_START, "weights", "queues"), shutdown=SHORT)
    assert "rank_start" in str(caught.value)
    assert "the story so far" in str(caught.value)


def test_a_listener_that_is_told_and_released_the_wrong_way_round() -> None:
    rows = [dict(row) for row in LISTENER.rows]
    rows[0]["trigger"], rows[1]["trigger"] = rows[1]["trigger"], rows[0]["trigger"]
    swapped = ExecutorProtocol().but(LISTENER.but(rows=rows))  # type: ignore[arg-type]  # a copy of a Row is a dict
    called: list[int] = []
    ready = executor(executor_protocol=swapped)
    ready.register_failure_callback(lambda: called.append(1))
    ready.shutdown()
    ready.register_failure_callback(lambda: called.append(2))
    assert 2 in called  # an orderly stop calls back


def test_stages_of_the_stop_in_another_order() -> None:
    """SIGKILL's stage in the place of SIGTERM's is refused before anything runs: it could not be reached."""
    rows = [dict(row) for row in STOP.rows]
    rows[1]["dest"], rows[2]["dest"] = rows[2]["dest"], rows[1]["dest"]
    with pytest.raises(TableError, match="cannot be reached"):
        STOP.but(rows=rows)  # type: ignore[arg-type]  # a copy of a Row is a dict


def test_the_mutant_is_not_the_shipped_table() -> None:
    assert SWAPPED_CALL is not ExecutorProtocol().call.aggregate
    assert SWAPPED_EXECUTOR.call.aggregate is SWAPPED_CALL
