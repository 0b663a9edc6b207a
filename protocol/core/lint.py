"""What a table must satisfy to be imported at all.

Every fault is found, not only the first. Checked: words (declared states, events, effects; each with a sentence of
its own), reachability, that final states have no way out and others have one, dead events, that the rows of one
(state, event) neither overlap nor leave a hole whatever their guards say (but messages may be dropped for their
origin alone, and refused otherwise), and the waiting rule: each waiting state leaves on message, death, cancel and
deadline.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from .vocabulary import Effect, Event, Kind, State

if TYPE_CHECKING:
    from .table import Guard, Row, Table


def faults(table: Table) -> list[str]:
    """Everything that is wrong with `table`, as sentences; empty if nothing is."""
    found = _words(table)
    if found:
        return found  # the other checks would trip over undeclared words
    return [*_shape(table), *_reach(table), *_guards(table), *_waits(table)]


def _words(table: Table) -> list[str]:
    from .table import Row

    found = []
    states = set(table.states)
    for name, state in table.states.__members__.items():
        if name != state.name:  # to an enum, two names for one value are one member
            found.append(f"{name} means what {state.name} means: the two are one")
    words: list[State | Event | Effect] = [*table.states, *table.events, *table.effects]
    for word in words:
        if not word.meaning.strip().endswith("."):
            found.append(f"{word.name} has no sentence that says what it means")
    strings: list[Event | Effect] = [*table.events, *table.effects]
    for named in strings:
        if named.value != named.name.lower():
            found.append(f"{type(named).__name__}.{named.name} is spelt {named.value!r}")
    for row in table.rows:
        if row.keys() != Row.__annotations__.keys():
            unknown_keys = sorted(row.keys() - Row.__annotations__.keys())
            missing_keys = sorted(Row.__annotations__.keys() - row.keys())
            if unknown_keys:
                found.append(f"a row has keys that no row has: {', '.join(unknown_keys)}")
            if missing_keys:
                found.append(f"a row lacks keys: {', '.join(missing_keys)}")
            continue
        unknown: list[State | Event | Effect] = [state for state in row["source"] if state not in states]
        if row["dest"] is not None and row["dest"] not in states:
            unknown.append(row["dest"])
        # By class, not by value: another machine's event that is spelt the same is equal, and of another kind.
        if not isinstance(row["trigger"], table.events):
            unknown.append(row["trigger"])
        unknown += [effect for effect in row["after"] if not isinstance(effect, table.effects)]
        found += [f"{_text(row)}: {word!r} is not declared" for word in unknown]
        for guard in (*row["conditions"], *row["unless"]):
            if not callable(guard) or getattr(guard, "__name__", "<lambda>") == "<lambda>":
                found.append(f"{_text(row)}: a guard must be a named function, not {guard!r}")
    for state in (table.initial, *table.final, *table.waits):
        if state not in states:
            found.append(f"{state!r} is not a state of this table")
    return found


def _shape(table: Table) -> list[str]:
    found = []
    leaves = {source for row in table.rows for source in row["source"] if row["dest"] not in (None, source)}
    written = {source for row in table.rows for source in row["source"]}
    for state in table.states:
        if state in table.final and state in leaves:
            found.append(f"{state.name} is final and has a way out")
        if state not in table.final and state not in leaves:
            found.append(f"{state.name} is not final and has no way out")
        if state not in written and state not in table.final:
            found.append(f"{state.name} has no row")
    used = {row["trigger"] for row in table.rows}
    found += [f"event {event.value!r} has no row" for event in table.events if event not in used]
    return found


def _reach(table: Table) -> list[str]:
    reached, todo = {table.initial}, [table.initial]
    while todo:
        state = todo.pop()
        for row in table.rows:
            if state in row["source"] and row["dest"] is not None and row["dest"] not in reached:
                reached.add(row["dest"])
                todo.append(row["dest"])
    return [f"{state.name} cannot be reached" for state in table.states if state not in reached]


def _guards(table: Table) -> list[str]:
    by_pair: dict[tuple[State, Event], list[Row]] = {}
    for row in table.rows:
        for source in row["source"]:
            by_pair.setdefault((source, row["trigger"]), []).append(row)
    found = []
    for (state, event), rows in by_pair.items():
        guards: list[Guard] = []
        for row in rows:
            guards += [guard for guard in (*row["conditions"], *row["unless"]) if guard not in guards]
        for values in product((True, False), repeat=len(guards)):
            truth = dict(zip(guards, values, strict=True))
            match = [
                row
                for row in rows
                if all(truth[guard] for guard in row["conditions"])
                and not any(truth[guard] for guard in row["unless"])
            ]
            if not match and all(values) and event.kind is Kind.MESSAGE and all(_drops(row) for row in rows):
                continue  # of the right origin in every respect: refused, as if there were no row
            if len(match) != 1:
                case = " and ".join(f"{guard.__name__} is {truth[guard]}" for guard in guards) or "always"
                kind = "no row applies" if not match else f"{len(match)} rows apply"
                found.append(f"{state.name}, {event.value!r}: {kind} when {case}")
    return found


def _drops(row: Row) -> bool:
    """Whether the row only says whose message is dropped: it stays, unless the message is of the right origin."""
    return row["dest"] is None and bool(row["unless"])


def _waits(table: Table) -> list[str]:
    from .table import ALL_EXITS

    found = []
    for state, kinds in table.waits.items():
        exits = {
            row["trigger"].kind
            for row in table.rows
            if state in row["source"] and row["dest"] not in (None, state)
        }
        missing: set[Kind] = set(kinds) - exits
        if missing:
            names = ", ".join(sorted(kind.name.lower() for kind in missing))
            found.append(f"{state.name} waits and has no way out on {names}")
        if kinds != ALL_EXITS and not table.because:
            found.append(f"{state.name} waits for less than all four kinds, and nothing says why")
    return found


def _text(row: Row) -> str:
    sources = "|".join(state.name for state in row["source"])
    dest = "(stays)" if row["dest"] is None else row["dest"].name
    return f"{sources} --{row['trigger']}--> {dest}"
