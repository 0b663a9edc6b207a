"""One machine as one literal table, in the vocabulary of pytransitions.

Theory of operation:

1. A row says: in `source`, on `trigger`, if all `conditions` hold and no `unless` does, go to `dest` and have the
   effects `after` done. `dest=None` stays where it is: an event that is expected and changes nothing is written
   down, too. What has no row is illegal.
2. A row is the very dictionary that `transitions.Machine(transitions=...)` takes. pytransitions is the format and
   the door to its ecosystem (`Table.machine`, `Table.graph`), not the engine: it accepts undeclared states and
   missing conditions, and takes 10 µs a step.
3. When it is made, a table is linted (see `lint`) and compiled to a dictionary from (state, event) to its rows.
   That dictionary is what the runtime steps and what the explorer explores.
4. Guards are pure functions of two identities: the machine's own and the message's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from .errors import TableError, illegal
from .vocabulary import Effect, Event, Identity, Kind, State

if TYPE_CHECKING:
    from transitions import Machine

Guard = Callable[[Identity, Identity], bool]


class Row(TypedDict):
    """One transition, as pytransitions writes it."""

    trigger: Event
    source: list[State]
    dest: State | None
    conditions: list[Guard]
    unless: list[Guard]
    after: list[Effect]


def on(
    trigger: Event,
    source: State | Sequence[State],
    dest: State | None,
    *,
    conditions: Sequence[Guard] = (),
    unless: Sequence[Guard] = (),
    after: Sequence[Effect] = (),
) -> Row:
    """Write one row; misspelt words are type errors."""
    return {
        "trigger": trigger,
        "source": [source] if isinstance(source, State) else list(source),
        "dest": dest,
        "conditions": list(conditions),
        "unless": list(unless),
        "after": list(after),
    }


def stay(source: State | Sequence[State], *events: Event) -> list[Row]:
    """Rows for events that are expected in `source` and change nothing there."""
    return [on(event, source, None) for event in events]


class Compiled(NamedTuple):
    """One row as it is stepped: `dest` is always a state."""

    dest: State
    after: tuple[Effect, ...]
    conditions: tuple[Guard, ...]
    unless: tuple[Guard, ...]


ALL_EXITS = frozenset({Kind.MESSAGE, Kind.DEATH, Kind.CANCEL, Kind.DEADLINE})


@dataclass(frozen=True, eq=False)
class Table:
    """A machine.

    `waits` names the states in which the machine waits for somebody, and for each the kinds of event that must lead
    out of it. `because` says why where that is less than all of message, death, cancel and deadline.
    """

    name: str
    purpose: str
    states: type[State]
    events: type[Event]
    effects: type[Effect]
    initial: State
    final: frozenset[State]
    rows: tuple[Row, ...]
    waits: Mapping[State, frozenset[Kind]] = field(default_factory=dict)
    because: str = ""
    alternatives: Mapping[tuple[State, Event], tuple[Compiled, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lint and compile.

        Raises `TableError` with every fault found.
        """
        from .lint import faults

        found = faults(self)
        if found:
            raise TableError(self.name, found)
        object.__setattr__(self, "alternatives", compiled(self.rows))

    def select(self, state: State, event: Event, own: Identity | None, message: Identity | None) -> int:
        """Which of the rows of (state, event) applies. Raises `IllegalEventError` if there is none."""
        rows = self.alternatives.get((state, event))
        if rows is None:
            raise illegal(self.name, None, state, event, self.allowed(state))
        if len(rows) == 1 and not rows[0].conditions and not rows[0].unless:
            return 0
        if own is None or message is None:
            raise TypeError(f"{self.name}: {event.value!r} is guarded; it needs the message's identity")
        for index, row in enumerate(rows):
            # Plain loops: this is stepped for every answer, and a generator costs as much as the guards.
            for guard in row.conditions:
                if not guard(own, message):
                    break
            else:
                for guard in row.unless:
                    if guard(own, message):
                        break
                else:
                    return index
        raise illegal(self.name, None, state, event, self.allowed(state))

    def step(
        self, state: State, event: Event, own: Identity | None = None, message: Identity | None = None
    ) -> Compiled:
        """The row that applies. Raises `IllegalEventError` if there is none."""
        index = self.select(state, event, own, message)  # first: it refuses what has no row
        return self.alternatives[state, event][index]

    def allowed(self, state: State) -> list[Event]:
        """The events that `state` has rows for, beyond rows that only drop a message of the wrong origin."""
        return [
            event
            for (source, event), rows in self.alternatives.items()
            if source is state and not all(row.dest is state and row.unless for row in rows)
        ]

    def moves(self, state: State, event: Event) -> bool:
        """Whether `event`, unguarded, leads out of `state`."""
        rows = self.alternatives.get((state, event))
        return rows is not None and rows[0].dest is not state

    def but(self, *, rows: Iterable[Row], **changes: Any) -> Table:
        """The same machine with other rows, linted again: how variants and mutants are made."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "alternatives"}
        return Table(**{**values, **changes, "rows": tuple(rows)})

    def machine(self, model: object, **options: Any) -> Machine:
        """A live `transitions.Machine` over the same rows; `model` needs a method for each effect."""
        from transitions import Machine

        return Machine(model, **self._arguments(options))

    def graph(self, model: object, **options: Any) -> Machine:
        """The same as a `GraphMachine`, whose `get_graph()` draws Mermaid unless told otherwise."""
        from transitions.extensions import GraphMachine

        return GraphMachine(model, **self._arguments({"graph_engine": "mermaid", **options}))

    def _arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        fixed = {
            "states": self.states,
            "initial": self.initial,
            "transitions": self.rows,
            "auto_transitions": False,
        }
        return {**fixed, **options}


def compiled(rows: Iterable[Row]) -> dict[tuple[State, Event], tuple[Compiled, ...]]:
    """Rows by (state, event), in the order written."""
    found: dict[tuple[State, Event], tuple[Compiled, ...]] = {}
    for row in rows:
        for source in row["source"]:
            dest = source if row["dest"] is None else row["dest"]
            entry = Compiled(dest, tuple(row["after"]), tuple(row["conditions"]), tuple(row["unless"]))
            key = (source, row["trigger"])
            found[key] = (*found.get(key, ()), entry)
    return found
