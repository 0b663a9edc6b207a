"""What the tables say, written out as procedures of the small language.

Theory of operation. Everything here is generated from `Table`, `Cluster`, `Coupled` and `When` objects, of whatever
variant or mutant: which row applies and where it leads (`look`), its effects (`perform`), which events a fact consists
of (`following`), which coupling row acts first (`inner`, `outer`), the agenda (`due`). Where the machines keep their
states follows from the names of the clusters: `w.x_start` and `w.x_start_of[rank]`, and for a worker `w.w_boot[rank]`.

Guards are Python functions of two identities. Each is tried on all identities of a small domain, and must be a function
of whether epoch, rank and call are equal; then it is written as such, and otherwise the export refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from ...protocol.core import Cluster, Effect, Event, Guard, Identity, Kind, State, Table
from ...protocol.core.coupling import Coupled, When
from ...protocol.core.table import Compiled
from ...protocol.executor import RANK_DIED, RANK_MADE, START_DEADLINE, ExecutorProtocol
from ...protocol.futures import FuturesDo, ReplyOn
from ...protocol.life import LifeDo, LifeOn
from ...protocol.queues import QueueDo
from ...protocol.ready import RankStartOn, ReadyDo
from ...protocol.shutdown import StopDo
from ...protocol.worker import ORPHANED, STOP, WorkerProtocol
from .glue.words import Machine, Work
from .small import ExportError

T = TypeVar("T")

EXECUTOR = ("life", "start", "broadcast", "replies", "stop", "call", "listener", "caller")
WORKER = ("boot", "intake", "outlet", "serve", "leave")


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
        for word, place in _chain(self.places):
            yield f"    {word} w.machine is {_name(place.machine)}:"
            yield f"        w.source = {place.state}"
            yield f"        w.about = {place.about}"
            if place.machine is Machine.CALL_OF:
                yield "        if w.number > w.slot:"
                yield "            w.about = w.number"

    def store(self) -> Iterator[str]:
        yield "def store(w):"
        for word, place in _chain(self.places):
            if place.machine is not Machine.CALLER:
                yield f"    {word} w.machine is {_name(place.machine)}:"
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
            yield f"    if w.machine in {_tuple(machines)}:"
            for word, event in _chain(list(table.events)):
                yield f"        {word} w.event is {_name(event)}:"
                if event.kind is Kind.MESSAGE:
                    yield "            w.by_message = True"
                sources = [state for state in table.states if (state, event) in table.alternatives]
                for word2, state in _chain(sources):
                    yield f"            {word2} w.source is {_name(state)}:"
                    rows = table.alternatives[state, event]
                    yield from self.alternatives(table, state, rows)
                if not sources:
                    yield "            pass"

    def alternatives(self, table: Table, state: State, rows: Sequence[Compiled]) -> Iterator[str]:
        indent = " " * 16
        if len(rows) == 1 and not rows[0].conditions and not rows[0].unless:
            yield from (indent + line for line in self.row(table, state, rows[0]))
            return
        for word, row in _chain(rows):
            yield f"{indent}{word} {_guarded(row)}:"
            yield from (indent + "    " + line for line in self.row(table, state, row))

    def row(self, table: Table, state: State, row: Compiled) -> Iterator[str]:
        yield "w.legal = True"
        if row.dest is not state:
            yield f"w.dest = {_name(row.dest)}"
        if FuturesDo.PASS_ON in row.after:
            if row.dest is not state:
                raise ExportError(f"{table.name}: a row that passes a reply on must stay")
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
        yield from self.performed(lambda effect, phase: _worker_does(effect, phase))
        yield "    else:"
        yield "        pass"
        yield from self.performed(lambda effect, phase: _EXECUTOR_DOES.get(effect, ()))

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
        yield from _target("w.f_machine", "w.f_slot", "w.f_number", "w.f_event", 8)
        executor = {"RANK_MADE": RANK_MADE, "RANK_DIED": RANK_DIED, "START_DEADLINE": START_DEADLINE}
        for fact, events in executor.items():
            yield f"    if w.fact is Fact.{fact}:"
            of = "" if fact == "START_DEADLINE" else "_OF"
            for word, (number, (cluster, event)) in _chain(list(enumerate(events))):
                yield f"        {word} w.done == {number}:"
                slot = "w.f_slot" if of else "0"
                yield from _target(f"Machine.{cluster.upper()}{of}", slot, "0", _name(event), 12)
            if fact == "RANK_DIED":
                yield "        for c in range(1, CALLS + 1):"
                yield f"            if not w.found and w.done == {len(events) - 1} + c:"
                yield "                if w.x_here[c]:"
                yield from _target("Machine.CALL_OF", "w.f_slot", "c", _name(ReplyOn.DIED), 20)
                yield "                else:"
                yield "                    w.done += 1"
        for fact, told in {"STOP": STOP, "ORPHANED": ORPHANED}.items():
            yield f"    if w.fact is Fact.{fact}:"
            for word, (number, (cluster, slot_of, event)) in _chain(list(enumerate(told))):
                yield f"        {word} w.done == {number}:"
                of = "" if slot_of < 0 else "_OF"
                yield from _target(f"Machine.{cluster.upper()}{of}", "0", "0", _name(event), 12)
        yield "    if w.found:"
        yield "        w.done += 1"

    def inner(self) -> Iterator[str]:
        yield "def inner(w):"
        yield "    if w.works:"
        yield "        pass"
        for name in WORKER:
            cluster: Cluster = getattr(self.worker, name)
            yield from _coupling(cluster, name, f"w.w_{name}[w.rank]", f"w.w_{name}_of[w.rank]", "1", "0")
        yield "    else:"
        yield "        pass"
        for name in EXECUTOR:
            if name != "call":
                cluster = getattr(self.executor, name)
                yield from _coupling(cluster, name, f"w.x_{name}", f"w.x_{name}_of[q]", "RANKS", "0")
        yield "        for c in range(1, CALLS + 1):"
        yield "            if w.x_here[c]:"
        yield "                pass"
        rows = _coupling(
            self.executor.call, "call", "w.x_call[c]", "w.x_call_of[c * RANKS + q]", "RANKS", "c"
        )
        yield from ("        " + line for line in rows)

    def outer(self) -> Iterator[str]:
        yield "def outer(w):"
        yield "    if w.works:"
        yield "        pass"
        for row in self.worker.coupling:
            table = getattr(self.worker, row.cluster).aggregate
            acts = _acts(row, table, "w.w_{}[w.rank]", f"w.w_{row.cluster}[w.rank]")
            if acts:
                yield f"        if not w.found and {acts}:"
                yield from _target(f"Machine.{row.cluster.upper()}", "0", "0", _name(row.then), 12)
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
            acts = _acts(row, table, "w.x_{}", state)
            there = {"call": " and w.x_here[c]", "listener": " and q < w.x_listeners"}.get(row.cluster, "")
            yield f"{indent}if not w.found and {acts or 'False'}{there}:"
            machine = f"Machine.{row.cluster.upper()}"
            yield from _target(machine, slot, number, _name(row.then), len(indent) + 4)

    def agenda(self) -> Iterator[str]:
        acts = [
            _acts(row, getattr(self.worker, row.cluster).aggregate, "w.w_{}[r]", f"w.w_{row.cluster}[r]")
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
            yield f"        w.f_event = {_name(row.then)}"

    # --- beginnings -------------------------------------------------------------------------------------------------

    def resets(self) -> Iterator[str]:
        yield "def reset_worker(w, r):"
        for name in WORKER:
            cluster: Cluster = getattr(self.worker, name)
            yield f"    w.w_{name}[r] = {_name(cluster.aggregate.initial)}"
            if cluster.member is not None:
                yield f"    w.w_{name}_of[r] = {_name(cluster.member.initial)}"
        yield "def reset_executor(w):"
        for name in ("life", "start", "broadcast", "replies", "stop"):
            cluster = getattr(self.executor, name)
            yield f"    w.x_{name} = {_name(cluster.aggregate.initial)}"
            if cluster.member is not None:
                yield "    for q in range(RANKS):"
                yield f"        w.x_{name}_of[q] = {_name(cluster.member.initial)}"
        yield "    for q in range(LISTENERS):"
        yield f"        w.x_listener[q] = {_name(self.executor.listener.aggregate.initial)}"
        yield "def reset_reply(w, c, r):"
        yield f"    w.x_call[c] = {_name(self.executor.call.aggregate.initial)}"
        assert self.executor.call.member is not None
        yield f"    w.x_call_of[c * RANKS + r] = {_name(self.executor.call.member.initial)}"

    def facts(self) -> Iterator[str]:
        life = self.executor.life.aggregate
        states = [state for state in life.states if (state, LifeOn.FAULT) in life.alternatives]
        yield "def fault_has_row(w):"
        yield f"    return {_among('w.x_life', states) or 'False'}"
        yield "def caller_is_over(w):"
        final = [
            state
            for state in self.executor.caller.aggregate.states
            if state in self.executor.caller.aggregate.final
        ]
        yield f"    return {_among('w.dest', final) or 'False'}"


# --- effects ----------------------------------------------------------------------------------------------------------

REACHING = frozenset(
    {
        StopDo.CLOSE_CONTROL,
        StopDo.SEND_SIGTERM,
        StopDo.SEND_SIGKILL,
        StopDo.REAP,
        QueueDo.SEND_JOINED,
        QueueDo.SEND_OPEN,
    }
)
"""The executor's effects that reach a rank."""

_EXECUTOR_DOES: dict[Effect, Sequence[str]] = {
    StopDo.CLOSE_CONTROL: ("close_control(w, w.slot)",),
    StopDo.SEND_SIGTERM: ("kill(w, w.slot, Sent.TERM)",),
    StopDo.SEND_SIGKILL: ("kill(w, w.slot, Sent.KILL)",),
    StopDo.REAP: ("reap(w, w.slot)",),
    QueueDo.SEND_JOINED: ("join(w, w.slot)",),
    QueueDo.SEND_OPEN: ("send(w, w.slot, 0)",),
    StopDo.ARM_GRACE: ("w.alarm = Alarm.ARM_GRACE",),
    StopDo.ARM_TERM: ("w.alarm = Alarm.ARM_TERM",),
    StopDo.ARM_KILL: ("w.alarm = Alarm.ARM_KILL",),
    StopDo.DISARM: ("w.alarm = Alarm.OFF",),
    StopDo.WAKE_BLOCKED: ("w.m_woken = True",),
    StopDo.CALL_BACK: ("call_back(w)",),
    StopDo.REPORT_SURVIVOR: ("w.survivors[w.about] = True",),
    LifeDo.ANNOUNCE_UP: ("w.m_up = True",),
    LifeDo.ANNOUNCE_FAILURE: ("w.m_failure = True",),
    LifeDo.ANNOUNCE_END: ("w.m_end = True",),
    FuturesDo.RESOLVE: ("resolve(w)",),
    FuturesDo.FAIL: ("hand_over(w)",),
    FuturesDo.WAKE_PARKED: ("w.wakes = True",),
}
"""What each effect of the executor does to the world; any other has no effect there."""

_WORKER_DOES: dict[Effect, Sequence[str]] = {
    ReadyDo.SEND_HELLO: ("say(w, w.rank, RankStartOn.HELLO)",),
    ReadyDo.SEND_READY: ("say(w, w.rank, RankStartOn.READY)",),
    ReadyDo.SEND_FAILED: ("say(w, w.rank, RankStartOn.FAILED)",),
    QueueDo.SEND_JOINED: ("joins_in(w, w.rank)",),
    QueueDo.SEND_OPEN: ("answer(w, w.rank, 0)",),
    StopDo.EXIT: ("dies(w, w.rank)",),
}


def _worker_does(effect: Effect, phase: str) -> Sequence[str]:
    """What an effect of a worker does to the world; a piece of work is begun."""
    if effect is ReadyDo.SEND_PHASE:
        if phase in RankStartOn.__members__:
            return (f"say(w, w.rank, RankStartOn.{phase})",)
        return ("dies(w, w.rank)", "w.o_illegal = True")  # there is no such phase to tell
    if effect.name in Work.__members__:
        begun = f"w.work[w.rank] = Work.{effect.name}"
        if effect is FuturesDo.SEND_REPLY:
            return (begun, "answer_returned(w, w.rank)")
        if effect is FuturesDo.SEND_FAILURE:
            return (begun, "answer_raised(w, w.rank)")
        return (begun,)
    return _WORKER_DOES.get(effect, ())


# --- words ------------------------------------------------------------------------------------------------------------


def _name(word: State | Event | Machine) -> str:
    return f"{type(word).__name__}.{word.name}"


def _tuple(words: Iterable[State | Event | Machine]) -> str:
    return "(" + "".join(f"{_name(word)}, " for word in words).strip() + ")"


def _among(variable: str, states: Sequence[State]) -> str:
    return f"{variable} in {_tuple(states)}" if states else ""


def _chain(items: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Each with the word that begins its branch."""
    for number, item in enumerate(items):
        yield ("elif" if number else "if"), item


def _target(machine: str, slot: str, number: str, event: str, indent: int) -> Iterator[str]:
    lines = (
        "w.found = True",
        f"w.machine = {machine}",
        f"w.slot = {slot}",
        f"w.number = {number}",
        f"w.event = {event}",
    )
    yield from (" " * indent + line for line in lines)


def _moved_by(table: Table, event: Event) -> list[State]:
    return [state for state in table.states if table.moves(state, event)]


def _acts(row: When, table: Table, watched: str, state: str) -> str:
    """When a row between clusters acts; empty if never."""
    moved = _among(state, _moved_by(table, row.then))
    if not moved:
        return ""
    met = [_among(watched.format(name), sorted(states, key=str)) for name, states in row.conditions]
    return " and ".join([*met, moved])


def _coupling(
    cluster: Cluster, name: str, aggregate: str, member: str, members: str, number: str
) -> Iterator[str]:
    """The coupling rows inside one cluster, each as an `if`."""
    for row in cluster.coupling:
        yield from _coupled(cluster, row, name, aggregate, member, members, number)


def _coupled(
    cluster: Cluster, row: Coupled, name: str, aggregate: str, member: str, members: str, number: str
) -> Iterator[str]:
    states = sorted(row.states, key=str)
    if row.quantity == "each":
        assert cluster.member is not None
        moved = _among(member, _moved_by(cluster.member, row.then))
        watched = _among(aggregate, states)
        if moved and watched:
            yield f"        for q in range({members}):"
            yield f"            if not w.found and {watched} and {moved}:"
            yield from _target(f"Machine.{name.upper()}_OF", "q", number, _name(row.then), 16)
        return
    moved = _among(aggregate, _moved_by(cluster.aggregate, row.then))
    if moved:
        quantity = "all" if row.quantity == "every" else "any"
        watched = _among(member, states) or "False"
        yield f"        if not w.found and {moved} and {quantity}({watched} for q in range({members})):"
        yield from _target(f"Machine.{name.upper()}", "0", number, _name(row.then), 12)


# --- guards -----------------------------------------------------------------------------------------------------------

_PARTS = ("w.same_epoch", "w.same_rank", "w.same_call")
_IDENTITIES = [Identity(*parts) for parts in product(range(2), range(3), range(3))]


def _guarded(row: Compiled) -> str:
    parts = [*(guard_text(guard) for guard in row.conditions), *(f"not {guard_text(g)}" for g in row.unless)]
    return " and ".join(parts) or "True"


def guard_text(guard: Guard) -> str:
    """A guard as a condition on whether epoch, rank and call are equal.

    Raises ExportError if it depends on anything else.
    """
    truth: dict[tuple[bool, ...], bool] = {}
    for own, message in product(_IDENTITIES, repeat=2):
        equal = tuple(one == two for one, two in zip(own, message, strict=True))
        if truth.setdefault(equal, bool(guard(own, message))) != bool(guard(own, message)):
            name = getattr(guard, "__name__", repr(guard))
            raise ExportError(f"guard {name} is no function of which parts of two identities are equal")
    needed = [
        place
        for place in range(len(_PARTS))
        if any(value != truth[_flipped(equal, place)] for equal, value in truth.items())
    ]
    cases = {tuple(equal[place] for place in needed) for equal, value in truth.items() if value}
    words = [
        " and ".join(
            _PARTS[place] if is_equal else f"not {_PARTS[place]}"
            for place, is_equal in zip(needed, case, strict=True)
        )
        or "True"
        for case in sorted(cases, reverse=True)
    ]
    return f"({' or '.join(words) or 'False'})"


def _flipped(equal: tuple[bool, ...], place: int) -> tuple[bool, ...]:
    return tuple(not value if number == place else value for number, value in enumerate(equal))
