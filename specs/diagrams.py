"""Mermaid pictures of the tables and of the coupling, drawn from the tables themselves.

Theory of operation. A state diagram has one arrow a row and source: what a reader of the diagram sees is what runs.
Rows that stay where they are without an effect are left out. Guards stand in brackets, effects after a slash. The
coupling is a graph of machines: an arrow says which states of one bring about which event of another.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..protocol.core import Cluster, Table
from ..protocol.core.coupling import When
from ..protocol.executor import ExecutorProtocol
from ..protocol.worker import WorkerProtocol


def tables() -> dict[str, Table]:
    """Every table of both protocols by name, in the order of the protocols."""
    found: dict[str, Table] = {}
    for cluster in (*_clusters(ExecutorProtocol()), *_clusters(WorkerProtocol())):
        for table in (cluster.aggregate, cluster.member):
            if table is not None:
                found.setdefault(table.name, table)
    return found


def state_diagram(table: Table) -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    %% {table.name}: {table.purpose}", f"    [*] --> {table.initial.name}"]
    for row in table.rows:
        words = str(row["trigger"].value)
        guards = [guard.__name__ for guard in row["conditions"]]
        guards += [f"not {guard.__name__}" for guard in row["unless"]]
        if guards:
            words += f" [{', '.join(guards)}]"
        if row["after"]:
            words += f" / {', '.join(effect.value for effect in row['after'])}"
        for source in row["source"]:
            dest = source if row["dest"] is None else row["dest"]
            if dest is not source or row["after"]:
                lines.append(f"    {source.name} --> {dest.name}: {words}")
    lines += [f"    {state.name} --> [*]" for state in table.states if state in table.final]
    return "\n".join(lines) + "\n"


def coupling_diagram() -> str:
    """How the machines of both sides act on each other, as a Mermaid flow chart."""
    executor, worker = ExecutorProtocol(), WorkerProtocol()
    lines = ["flowchart LR"]
    lines += ["    subgraph executor", *_side("e", _clusters(executor), executor.coupling), "    end"]
    rows = (*worker.coupling, *worker.agenda)
    lines += ["    subgraph worker", *_side("w", _clusters(worker), rows), "    end"]
    return "\n".join(lines) + "\n"


def _clusters(protocol: ExecutorProtocol | WorkerProtocol) -> list[Cluster]:
    return [value for value in vars(protocol).values() if isinstance(value, Cluster)]


def _side(prefix: str, clusters: list[Cluster], rows: tuple[When, ...]) -> Iterator[str]:
    for cluster in clusters:
        top = f"{prefix}_{cluster.name}"
        yield f'        {top}["{cluster.name}: {cluster.aggregate.name}"]'
        if cluster.member is None:
            continue
        below = f"{top}_member"
        yield f'        {below}["{cluster.name}: {cluster.member.name} (each)"]'
        for row in cluster.coupling:
            ends = (top, below) if row.quantity == "each" else (below, top)
            states = " or ".join(sorted(state.name for state in row.states))
            quantity = "" if row.quantity == "each" else f"{row.quantity} "
            yield f'        {ends[0]} -->|"{quantity}{states} → {row.then.value}"| {ends[1]}'
    for when in rows:
        for name, wanted in when.conditions:
            states = " or ".join(sorted(state.name for state in wanted))
            also = " (with the others)" if len(when.conditions) > 1 else ""
            yield f'        {prefix}_{name} -->|"{states} → {when.then.value}{also}"| {prefix}_{when.cluster}'
