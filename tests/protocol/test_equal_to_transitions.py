"""The compiled form of every shipped table equals a live `transitions.Machine` over the same rows.

Asked of every (state, event), and where guards decide, with every pair of identities that can differ in epoch, rank
and call: the same destination and the same effects in the same order, or both refuse.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from transitions import MachineError

from procession.protocol import futures, life, queues, ready, shutdown
from procession.protocol.core import Event, Identity, IllegalEventError, RemoteProtocolError, State, Table, on
from procession.protocol.core.table import compiled

MODULES: tuple[types.ModuleType, ...] = (ready, queues, futures, shutdown, life)
TABLES = {
    table.name: table for module in MODULES for table in vars(module).values() if isinstance(table, Table)
}
OWN = Identity(epoch=3, rank=1, call=7)
# Equal or not, in each of the three.
MESSAGES = [Identity(*values) for values in product((OWN.epoch, 2), (OWN.rank, 0), (OWN.call, 6))]

Outcome = tuple[State, tuple[str, ...]] | None  # where it led and what it did; None: it was refused


class Model:
    """What pytransitions drives: each effect is a method that notes its own name."""

    def __init__(self, table: Table) -> None:
        self.done: list[str] = []
        for effect in table.effects:
            setattr(self, effect.value, self._noting(effect.value))

    def _noting(self, name: str) -> Callable[..., None]:
        def note(*_identities: Identity) -> None:
            self.done.append(name)

        return note


class Live:
    """A live machine, put into each state in turn."""

    def __init__(self, table: Table) -> None:
        self.model: Any = Model(table)
        self.machine: Any = table.machine(self.model)

    def outcome(self, state: State, event: Event, message: Identity) -> Outcome:
        """What pytransitions does."""
        self.machine.set_state(state)
        self.model.done.clear()
        try:
            moved = self.model.trigger(event, OWN, message)
        except MachineError:
            assert self.model.state is state
            assert not self.model.done
            return None
        if not moved:  # every guard was false: the rows only drop messages of the wrong origin
            return None
        return self.model.state, tuple(self.model.done)


def outcome(table: Table, state: State, event: Event, message: Identity) -> Outcome:
    """What the compiled form does."""
    try:
        row = table.step(state, event, OWN, message)
    except IllegalEventError:
        return None
    return row.dest, tuple(effect.value for effect in row.after)


def differences(table: Table) -> tuple[int, list[str]]:
    """How many cases were compared, and those in which the two part."""
    live, found, cases = Live(table), [], 0
    for state, event in product(table.states, table.events):
        guarded = any(row.conditions or row.unless for row in table.alternatives.get((state, event), ()))
        for message in MESSAGES if guarded else [OWN]:
            cases += 1
            ours, theirs = outcome(table, state, event, message), live.outcome(state, event, message)
            if ours != theirs:
                found.append(f"{table.name}: {state.name}, {event.value}, {message}: {ours} and {theirs}")
    return cases, found


def test_which_tables_are_compared() -> None:
    assert sorted(TABLES) == [
        "boot",
        "call",
        "caller",
        "gate",
        "leave",
        "life",
        "listener",
        "rank_start",
        "rank_stop",
        "reader",
        "reply",
        "seat",
        "serve",
        "start",
        "stop",
    ]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_compiled_form_equals_a_live_machine(table: Table) -> None:
    cases, found = differences(table)
    assert found == []
    assert cases >= len(table.states) * len(table.events)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_taken_in_some_case(table: Table) -> None:
    """Else the comparison would be empty for it: the identities above reach every outcome of every guard."""
    taken = set()
    for (state, event), rows in table.alternatives.items():
        for message in MESSAGES:
            with suppress(RemoteProtocolError):  # where rows only drop messages of the wrong origin
                taken.add((state, event, table.select(state, event, OWN, message)))
        assert {(state, event, index) for index in range(len(rows))} <= taken


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_is_handed_over_unchanged(table: Table) -> None:
    rows = copy.deepcopy(table.rows)
    live = Live(table)
    assert table.rows == rows
    assert live.model.state is table.initial
    assert sorted(live.machine.states) == sorted(state.name for state in table.states)
    assert sorted(event for event in live.machine.events) == sorted(event.value for event in table.events)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_effect_hides_an_event(table: Table) -> None:
    """pytransitions binds `model.EVENT()` only where the model has no such method."""
    live = Live(table)
    for event in table.events:
        assert event.value not in {effect.value for effect in table.effects}
        live.machine.set_state(table.initial)
        assert callable(getattr(live.model, event.value))
        assert getattr(live.model, f"may_{event.value}")(OWN, OWN) is (
            (table.initial, event) in table.alternatives
        )


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_graph_names_every_state_and_every_event(table: Table) -> None:
    model: Any = Model(table)
    table.graph(model)
    text = model.get_graph().source
    assert "stateDiagram-v2" in text
    assert f"[*] --> {table.initial.name}" in text
    for state in table.states:
        assert f'state "{state.name}" as {state.name}\n' in text
    for event in table.events:
        assert event.value in text


# --- that the comparison can fail -------------------------------------------------------------------------------------


def _compiled_otherwise(table: Table, change: Callable[[Any], Any]) -> Table:
    """A copy of `table` whose compiled form does not come from its rows."""
    other = table.but(rows=table.rows)
    changed = {key: tuple(change(row) for row in rows) for key, rows in table.alternatives.items()}
    object.__setattr__(other, "alternatives", changed)
    return other


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row._replace(dest=life.Life.FAILED),
        lambda row: row._replace(after=(*row.after, life.LifeDo.ANNOUNCE_UP)),
        lambda row: row._replace(after=()),
    ],
    ids=["dest", "effect more", "effect less"],
)
def test_a_miscompiled_table_is_seen(change: Callable[[Any], Any]) -> None:
    assert differences(_compiled_otherwise(life.LIFE, change))[1]


def test_a_missing_row_is_seen() -> None:
    other = life.LIFE.but(rows=life.LIFE.rows)
    alternatives = dict(other.alternatives)
    del alternatives[life.Life.SERVING, life.LifeOn.SUBMIT]
    object.__setattr__(other, "alternatives", alternatives)
    (found,) = differences(other)[1]
    assert found.startswith("life: SERVING, submit, ")


def test_a_forgotten_guard_is_seen() -> None:
    other = futures.REPLY.but(rows=futures.REPLY.rows)
    bare = {
        key: tuple(row._replace(unless=()) for row in rows)
        for key, rows in futures.REPLY.alternatives.items()
    }
    object.__setattr__(other, "alternatives", bare)
    assert (
        differences(other)[1] == []
    )  # the first row that applies wins in both, and the right one stands first
    reverse = {key: rows[::-1] for key, rows in bare.items()}
    object.__setattr__(other, "alternatives", reverse)
    assert differences(other)[1]


def test_an_internal_transition_does_not_leave_its_state() -> None:
    """`dest=None` stays for both; pytransitions would run exit and enter callbacks for a named self-loop."""
    row = on(life.LifeOn.SUBMIT, life.Life.SERVING, None)
    assert compiled([row])[life.Life.SERVING, life.LifeOn.SUBMIT][0].dest is life.Life.SERVING
    live = Live(life.LIFE)
    left: list[State] = []
    live.model.on_exit_SERVING = lambda *_identities: left.append(life.Life.SERVING)
    live.machine.set_state(life.Life.SERVING)
    assert live.model.submit(OWN, OWN)
    assert left == []
    assert live.model.stop(OWN, OWN)
    assert live.model.state is life.Life.STOPPING
