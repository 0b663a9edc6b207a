"""The protocol reference as Markdown, one page a protocol, made from the tables and from nothing else.

Theory of operation. A page is a module's own theory of operation, then each of its machines: purpose, states with
their sentences and what can happen next, events with their kinds, effects, rows, and the diagram. Nothing is typed
twice; `tests/docs` fails when a page and its tables part.
"""

from __future__ import annotations

import inspect
from types import ModuleType

from ..protocol import futures, life, queues, ready, shutdown
from ..protocol.core import Effect, State, Table
from ..protocol.core.table import Row
from .diagrams import coupling_diagram, state_diagram

PAGES: dict[str, ModuleType] = {
    "ready": ready,
    "queues": queues,
    "futures": futures,
    "shutdown": shutdown,
    "life": life,
}


def page(name: str) -> str:
    """The page of one protocol."""
    module = PAGES[name]
    parts = [_theory(module), f"The tables: [`protocol/{name}.py`](../protocol/{name}.py)."]
    shared = {id(table) for other in PAGES.values() if other is not module for table in _own(other)}
    parts += [_machine(table) for table in _own(module) if id(table) not in shared or _defined(table, module)]
    if module is life:
        parts.append(f"## How the machines act on each other\n\n```mermaid\n{coupling_diagram()}```")
    note = f"<!-- Made by `procession reference` from protocol/{name}.py; do not edit. -->"
    return "\n\n".join([note, *parts]) + "\n"


def _own(module: ModuleType) -> list[Table]:
    return [value for value in vars(module).values() if isinstance(value, Table)]


def _defined(table: Table, module: ModuleType) -> bool:
    return table.states.__module__ == module.__name__


def _theory(module: ModuleType) -> str:
    """The docstring: its first sentence as the title, its theory as it stands."""
    text = inspect.getdoc(module) or ""
    title, _, rest = text.partition("\n")
    return f"# {title.rstrip('.')}\n{rest}"


def _machine(table: Table) -> str:
    parts = [f"## `{table.name}`", table.purpose, f"```mermaid\n{state_diagram(table)}```"]
    parts.append(_states(table))
    parts.append(
        "| event | brought by | what it says |\n| --- | --- | --- |\n"
        + "\n".join(
            f"| `{event.value}` | {event.kind.name.lower()} | {event.meaning} |" for event in table.events
        )
    )
    used = [effect for effect in table.effects if any(effect in row["after"] for row in table.rows)]
    if used:
        parts.append(_effects(used))
    parts.append(
        "| in | on | if | go to | and do |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(_row(row) for row in table.rows)
    )
    if table.waits:
        waits = "; ".join(
            f"{state.name} on {', '.join(sorted(kind.name.lower() for kind in kinds))}"
            for state, kinds in table.waits.items()
        )
        parts.append(f"A state that waits must leave: {waits}.{' ' + table.because if table.because else ''}")
    return "\n\n".join(parts)


def _states(table: Table) -> str:
    lines = ["| state | what is true in it | what can happen next |", "| --- | --- | --- |"]
    for state in table.states:
        mark = " (begin)" if state is table.initial else ""
        mark += " (end)" if state in table.final else ""
        lines.append(f"| {state.name}{mark} | {state.meaning} | {_next(table, state)} |")
    return "\n".join(lines)


def _next(table: Table, state: State) -> str:
    steps = [
        f"`{row['trigger'].value}` → {row['dest'].name}"
        for row in table.rows
        if state in row["source"] and row["dest"] not in (None, state) and row["dest"] is not None
    ]
    return ", ".join(steps) or "nothing"


def _effects(effects: list[Effect]) -> str:
    lines = [f"| `{effect.value}` | {effect.meaning} |" for effect in effects]
    return "\n".join(["| effect | what is to be done |", "| --- | --- |", *lines])


def _row(row: Row) -> str:
    sources = ", ".join(state.name for state in row["source"])
    guards = [guard.__name__ for guard in row["conditions"]]
    guards += [f"not {guard.__name__}" for guard in row["unless"]]
    dest = "(stays)" if row["dest"] is None else row["dest"].name
    effects = ", ".join(f"`{effect.value}`" for effect in row["after"])
    return f"| {sources} | `{row['trigger'].value}` | {', '.join(guards)} | {dest} | {effects} |"
