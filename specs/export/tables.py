"""What the tables say, written out as procedures of the small language.

Theory of operation. Everything here is generated from `Table`, `Cluster`, `Coupled` and `When` objects, of whatever
variant or mutant: which row applies and where it leads (`look`), its effects (`perform`), which events a fact consists
of (`following`), which coupling row acts first (`inner`, `outer`), the agenda (`due`). Where the machines keep their
states follows from the names of the clusters: `w.x_start` and `w.x_start_of[rank]`, and for a worker `w.w_boot[rank]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...protocol.core import Cluster, Effect, Kind, State, Table
from ...protocol.core.table import Compiled
from ...protocol.executor import ExecutorProtocol
from ...protocol.futures import SERVE, FuturesDo, ReplyOn
from ...protocol.life import LifeOn
from ...protocol.queues import GATE, READER, SEAT
from ...protocol.ready import BOOT, ReadyDo
from ...protocol.worker import WorkerProtocol
from .effects import REACHING, executor_does, worker_does
from .glue.words import Machine
from .guards import guarded
from .tree import ExportError
from .wording import acts_when, among, chain, coupling_rows, name_of, target, there, tuple_of

EXECUTOR = ("life", "start", "broadcast", "replies", "stop", "call", "listener", "caller")
WORKER = ("boot", "intake", "outlet", "serve", "leave")

AT_REST = {"boot": BOOT, "intake": READER, "outlet": GATE, "outlet_of": SEAT, "serve": SERVE}
"""The shipped tables whose final states say that a worker is at rest, whatever the tables that it runs by."""


@dataclass(frozen=True)
class Place:
    """Where one machine of a cluster keeps its state, and what is known of its steps."""

    machine: Machine
    table: Table
    state: str
    about: str
    """What the record takes an effect of it to be about."""
    reaches: bool
    """Its slot is a rank, so that its effects may reach one."""


def places(executor: ExecutorProtocol, worker: WorkerProtocol) -> list[Place]:
    """Every machine of the world."""
    found = []
    for name in EXECUTOR:
        cluster: Cluster = getattr(executor, name)
        state, about = _EXECUTOR_PLACES.get(name, (f"w.x_{name}", "0"))
        found.append(Place(Machine[name.upper()], cluster.aggregate, state, about, False))
        if cluster.member is not None:
            at = "w.number * RANKS + w.slot" if name == "call" else "w.slot"
            machine = Machine[f"{name.upper()}_OF"]
            found.append(Place(machine, cluster.member, f"w.x_{name}_of[{at}]", "w.slot", True))
    for name in WORKER:
        cluster = getattr(worker, name)
        found.append(Place(Machine[name.upper()], cluster.aggregate, f"w.w_{name}[w.rank]", "0", True))
        if cluster.member is not None:
            machine = Machine[f"{name.upper()}_OF"]
            found.append(Place(machine, cluster.member, f"w.w_{name}_of[w.rank]", "0", True))
    return found


_EXECUTOR_PLACES = {
    "call": ("w.x_call[w.number]", "w.number"),
    "listener": ("w.x_listener[w.slot]", "w.slot"),
    "caller": ("w.t_caller[w.slot]", "0"),
}


def written(executor: ExecutorProtocol, worker: WorkerProtocol) -> str:
    """The text of all procedures that the tables give."""
    return _Writer(executor, worker).text()


class _Writer:
    def __init__(self, executor: ExecutorProtocol, worker: WorkerProtocol) -> None:
        self.executor = executor
        self.worker = worker
        self.places = places(executor, worker)
        self.effects: dict[tuple[tuple[Effect, ...], str], int] = {((), ""): 0}

    def text(self) -> str:
        look = list(self.look())  # first: it numbers the effects that perform spells out
        parts = [
            look,
            self.load(),
            self.store(),
            self.perform(),
            self.following(),
            self.inner(),
            self.outer(),
            self.agenda(),
            self.resets(),
            self.facts(),
        ]
        return "\n".join(line for part in parts for line in part) + "\n"

    # --- rows -------------------------------------------------------------------------------------------------------

    def load(self) -> Iterator[str]:
        yield "def load(w):"
        for word, place in chain(self.places):
            yield f"    {word} {there(place.machine)}w.machine is {name_of(place.machine)}:"
            yield f"        w.source = {place.state}"
            yield f"        w.about = {place.about}"
            if place.machine is Machine.CALL_OF:
                yield "        if w.number > w.slot:"
                yield "            w.about = w.number"

    def store(self) -> Iterator[str]:
        yield "def store(w):"
        for word, place in chain(self.places):
            yield f"    {word} {there(place.machine)}w.machine is {name_of(place.machine)}:"
            yield f"        {place.state} = w.dest"

    def look(self) -> Iterator[str]:
        yield "def look(w):"
        yield "    w.legal = False"
        yield "    w.passes = False"
        yield "    w.by_message = False"
        yield "    w.does = 0"
        yield "    w.dest = w.source"
        tables = {id(place.table): place.table for place in self.places}
        for table in tables.values():
            machines = [place.machine for place in self.places if place.table is table]
            yield f"    if {there(*machines)}w.machine in {tuple_of(machines)}:"
            for word, event in chain(list(table.events)):
                yield f"        {word} w.event is {name_of(event)}:"
                if event.kind is Kind.MESSAGE:
                    yield "            w.by_message = True"
                sources = [state for state in table.states if (state, event) in table.alternatives]
                for word2, state in chain(sources):
                    yield f"            {word2} w.source is {name_of(state)}:"
                    rows = table.alternatives[state, event]
                    yield from self.alternatives(table, state, rows)
                if not sources:
                    yield "            pass"

    def alternatives(self, table: Table, state: State, rows: Sequence[Compiled]) -> Iterator[str]:
        indent = " " * 16
        if len(rows) == 1 and not rows[0].conditions and not rows[0].unless:
            yield from (indent + line for line in self.row(table, state, rows[0]))
            return
        for word, row in chain(rows):
            yield f"{indent}{word} {guarded(row)}:"
            yield from (indent + "    " + line for line in self.row(table, state, row))

    def row(self, table: Table, state: State, row: Compiled) -> Iterator[str]:
        yield "w.legal = True"
        if row.dest is not state:
            yield f"w.dest = {name_of(row.dest)}"
        if FuturesDo.PASS_ON in row.after and row.dest is state:  # else it is taken, whatever it says
            yield "w.passes = True"
        if row.after:
            phase = row.dest.name if ReadyDo.SEND_PHASE in row.after else ""
            number = self.effects.setdefault((row.after, phase), len(self.effects))
            yield f"w.does = {number}"
        for place in self.places:
            if place.table is table and not place.reaches and REACHING & set(row.after):
                raise ExportError(f"{table.name}: an effect that reaches a rank, and no rank")

    def perform(self) -> Iterator[str]:
        yield "def perform(w):"
        yield "    if w.works:"
        yield "        pass"
        yield from self.performed(worker_does)
        yield "    else:"
        yield "        pass"
        yield from self.performed(executor_does)

    def performed(self, does: Callable[[Effect, str], Sequence[str]]) -> Iterator[str]:
        for (effects, phase), number in self.effects.items():
            lines = [line for effect in effects for line in does(effect, phase)]
            if lines:
                yield f"        if w.does == {number}:  # {', '.join(effects)}"
                yield from ("            " + line for line in lines)

    # --- facts and coupling -----------------------------------------------------------------------------------------

    def following(self) -> Iterator[str]:
        yield "def following(w):"
        yield "    if w.fact is Fact.ONE and w.done == 0:"
        yield from target("w.f_machine", "w.f_slot", "w.f_number", "w.f_event", 8)
        executor = {
            "RANK_MADE": self.executor.rank_made,
            "RANK_DIED": self.executor.rank_died,
            "START_DEADLINE": self.executor.at_start_deadline,
        }
        workers = {"STOP": self.worker.at_stop, "ORPHANED": self.worker.at_orphaned}
        for told in (*executor.values(), *workers.values()):
            if len({one[0] for one in told}) < len(told):
                # Whether all events of a fact have rows is asked before the first is given; see step.check.
                raise ExportError("a fact that tells one machine twice")
        for fact, events in executor.items():
            yield f"    if w.fact is Fact.{fact}:"
            yield "        pass"
            of = "" if fact == "START_DEADLINE" else "_OF"
            for word, (number, (cluster, event)) in chain(list(enumerate(events))):
                yield f"        {word} w.done == {number}:"
                slot = "w.f_slot" if of else "0"
                yield from target(f"Machine.{cluster.upper()}{of}", slot, "0", name_of(event), 12)
            if fact == "RANK_DIED":
                yield "        for c in range(1, CALLS + 1):"
                yield f"            if not w.found and w.done == {len(events) - 1} + c:"
                yield "                if w.x_here[c]:"
                yield from target("Machine.CALL_OF", "w.f_slot", "c", name_of(ReplyOn.DIED), 20)
                yield "                else:"
                yield "                    w.done += 1"
        for fact, told in workers.items():
            yield f"    if w.fact is Fact.{fact}:"
            yield "        pass"
            for word, (number, (cluster, slot_of, event)) in chain(list(enumerate(told))):
                yield f"        {word} w.done == {number}:"
                of = "" if slot_of < 0 else "_OF"
                yield from target(f"Machine.{cluster.upper()}{of}", "0", "0", name_of(event), 12)
        yield "    if w.found:"
        yield "        w.done += 1"

    def inner(self) -> Iterator[str]:
        yield "def inner(w):"
        yield "    if w.works:"
        yield "        pass"
        for name in WORKER:
            cluster: Cluster = getattr(self.worker, name)
            yield from coupling_rows(cluster, name, f"w.w_{name}[w.rank]", f"w.w_{name}_of[w.rank]", "1", "0")
        yield "    else:"
        yield "        pass"
        for name in EXECUTOR:
            if name != "call":
                cluster = getattr(self.executor, name)
                yield from coupling_rows(cluster, name, f"w.x_{name}", f"w.x_{name}_of[q]", "RANKS", "0")
        yield "        for c in range(1, CALLS + 1):"
        yield "            if w.x_here[c]:"
        yield "                pass"
        rows = coupling_rows(
            self.executor.call, "call", "w.x_call[c]", "w.x_call_of[c * RANKS + q]", "RANKS", "c"
        )
        yield from ("        " + line for line in rows)

    def outer(self) -> Iterator[str]:
        yield "def outer(w):"
        yield "    if w.works:"
        yield "        pass"
        for row in self.worker.coupling:
            table = getattr(self.worker, row.cluster).aggregate
            acts = acts_when(row, table, "w.w_{}[w.rank]", f"w.w_{row.cluster}[w.rank]")
            if acts:
                yield f"        if not w.found and {acts}:"
                yield from target(f"Machine.{row.cluster.upper()}", "0", "0", name_of(row.then), 12)
        yield "    else:"
        yield "        pass"
        for row in self.executor.coupling:
            table = getattr(self.executor, row.cluster).aggregate
            number, slot, indent, state = "0", "0", "        ", f"w.x_{row.cluster}"
            if row.cluster == "call":
                yield "        for c in range(1, CALLS + 1):"
                number, indent, state = "c", "            ", "w.x_call[c]"
            elif row.cluster == "listener":
                yield "        for q in range(LISTENERS):"
                slot, indent, state = "q", "            ", "w.x_listener[q]"
            acts = acts_when(row, table, "w.x_{}", state)
            there = {"call": " and w.x_here[c]", "listener": " and q < w.x_listeners"}.get(row.cluster, "")
            yield f"{indent}if not w.found and {acts or 'False'}{there}:"
            machine = f"Machine.{row.cluster.upper()}"
            yield from target(machine, slot, number, name_of(row.then), len(indent) + 4)

    def agenda(self) -> Iterator[str]:
        acts = [
            acts_when(row, getattr(self.worker, row.cluster).aggregate, "w.w_{}[r]", f"w.w_{row.cluster}[r]")
            or "False"
            for row in self.worker.agenda
        ]
        yield "def is_due(w, r, k):"
        cases = [
            " and ".join([f"k == {number}", f"({act})", *(f"not ({earlier})" for earlier in acts[:number])])
            for number, act in enumerate(acts)
        ]
        yield f"    return {' or '.join(cases) or 'False'}"
        yield "def due(w, k):"
        yield "    w.f_slot = 0"
        for number, row in enumerate(self.worker.agenda):
            yield f"    if k == {number}:"
            yield f"        w.f_machine = Machine.{row.cluster.upper()}"
            yield f"        w.f_event = {name_of(row.then)}"

    # --- beginnings -------------------------------------------------------------------------------------------------

    def resets(self) -> Iterator[str]:
        yield "def reset_worker(w, r):"
        for name in WORKER:
            cluster: Cluster = getattr(self.worker, name)
            yield f"    w.w_{name}[r] = {name_of(cluster.aggregate.initial)}"
            if cluster.member is not None:
                yield f"    w.w_{name}_of[r] = {name_of(cluster.member.initial)}"
        yield "def reset_executor(w):"
        for name in ("life", "start", "broadcast", "replies", "stop"):
            cluster = getattr(self.executor, name)
            yield f"    w.x_{name} = {name_of(cluster.aggregate.initial)}"
            if cluster.member is not None:
                yield "    for q in range(RANKS):"
                yield f"        w.x_{name}_of[q] = {name_of(cluster.member.initial)}"
        yield "    for q in range(LISTENERS):"
        yield f"        w.x_listener[q] = {name_of(self.executor.listener.aggregate.initial)}"
        yield "def reset_reply(w, c, r):"
        yield f"    w.x_call[c] = {name_of(self.executor.call.aggregate.initial)}"
        assert self.executor.call.member is not None
        yield f"    w.x_call_of[c * RANKS + r] = {name_of(self.executor.call.member.initial)}"

    def facts(self) -> Iterator[str]:
        life = self.executor.life.aggregate
        states = [state for state in life.states if (state, LifeOn.FAULT) in life.alternatives]
        yield "def fault_has_row(w):"
        yield f"    return {among('w.x_life', states) or 'False'}"
        for name, kind in (("by_time", Kind.DEADLINE), ("of_death", Kind.DEATH)):
            cases = [
                f"({there(place.machine)}w.machine is {name_of(place.machine)} and w.event in {tuple_of(events)})"
                for place in self.places
                if (events := [event for event in place.table.events if event.kind is kind])
            ]
            yield f"def {name}(w):"
            yield f"    return {' or '.join(cases) or 'False'}"
        for name, effect in (("says_ready", ReadyDo.SEND_READY), ("says_failed", ReadyDo.SEND_FAILED)):
            numbers = [str(number) for (effects, _), number in self.effects.items() if effect in effects]
            yield f"def {name}(w):"
            yield f"    return w.does in ({', '.join(numbers)},)" if numbers else "    return False"
        yield "def at_rest(w, r):"
        rest = [
            among(f"w.w_{name}[r]", [state for state in table.states if state in table.final])
            for name, table in AT_REST.items()
        ]
        yield f"    return {' and '.join(rest)}"
        yield "def caller_is_over(w):"
        final = [
            state
            for state in self.executor.caller.aggregate.states
            if state in self.executor.caller.aggregate.final
        ]
        yield f"    return {among('w.dest', final) or 'False'}"
