"""The variables of an exported model: their sizes and ranges, and the state of `World` that they stand for.

Theory of operation. `declared` reads the annotations of `W`. `projected` writes a state of `World` down in these
variables; everything that tells two states of `World` apart must be in it, and a test holds that it is: two states
never have one projection, and the program steps projections as `World` steps states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from ...protocol.executor import CLUSTERS
from ...protocol.futures import Caller, ReplyOn
from ...protocol.queues import ReaderOn
from ...protocol.ready import RankStartOn
from ...protocol.worker import CLUSTERS as WORKER_CLUSTERS
from ..models import Model
from ..world import Mark, Now, Offence, Rank, Signal, World
from ..world.handshake import Handshake
from ..world.late import Bounded, Late
from ..world.parts import Parts
from .glue.words import Alarm, Scratch, Sent, W, Work
from .tree import ExportError, Value


@dataclass(frozen=True)
class Variable:
    """One variable, or (with a `size`) an array; `largest` is the largest number it holds, or that of its enum."""

    name: str
    kind: type[Enum] | type[bool] | type[int]
    size: int | None
    largest: int
    scratch: bool

    @property
    def zero(self) -> Value:
        """Where a variable is that says nothing."""
        return _zero(self.kind)


@dataclass(frozen=True)
class Size:
    """The numbers that a model's size and budgets set in the glue."""

    RANKS: int
    CALLS: int
    THREADS: int
    AHEAD: int
    LISTENERS: int
    EAGER: bool
    WORDS: int
    PLACES: int
    MOVES: int
    LATE: bool
    BOUNDED: bool


def size_of(model: Model, world: World) -> Size:
    """The numbers for this model in this size."""
    calls = sum(world.calls)
    if model.parts not in (Parts, Late, Bounded, Handshake):
        raise ExportError(f"a world with rules of its own: {model.parts.__name__}")
    if model.parts is Bounded and model.eager:
        raise ExportError("a quiet step that waits for room")
    return Size(
        RANKS=world.size,
        CALLS=calls,
        THREADS=len(world.calls),
        AHEAD=model.ahead,
        LISTENERS=world.budgets.listeners,
        EAGER=model.eager,
        WORDS=6,
        PLACES=calls + 2,
        MOVES=40,
        LATE=model.parts is Late,
        BOUNDED=model.parts is Bounded,
    )


def declared(size: Size, world: World) -> list[Variable]:
    """Every variable of the model, in the order in which `W` declares them, scratch last."""
    found = []
    scratch = get_type_hints(Scratch)
    hints = {name: hint for name, hint in get_type_hints(W).items() if name not in scratch}
    largest = _largest(size)
    for name, hint in {**hints, **scratch}.items():
        is_array = get_origin(hint) is list
        kind = get_args(hint)[0] if is_array else hint
        top = 255
        if issubclass(kind, Enum) and kind.__members__:
            top = len(kind) - 1
        elif name.startswith("b_"):
            top = getattr(world.budgets, name.removeprefix("b_"))
        elif name in largest:
            top = largest[name]
        elif name not in scratch and kind is int:
            raise ExportError(f"nothing says how large {name} becomes")
        found.append(Variable(name, kind, _size(name, size) if is_array else None, top, name in scratch))
    return found


def _largest(size: Size) -> dict[str, int]:
    return {
        "x_listeners": size.LISTENERS,
        "t_out": size.CALLS,
        "t_left": size.CALLS,
        "t_next": size.CALLS + 1,
        "running": size.CALLS,
        "controls": size.WORDS,
        "calls": size.PLACES,
        "call": size.CALLS,
        "joins": size.PLACES,
        "replies": size.PLACES,
        "reply": 2 * size.CALLS,
        "joined": size.PLACES,
        "only_rank": size.RANKS,
    }


_BY_CALL = frozenset(
    {
        "x_here",
        "x_call",
        "settled_now",
        "open_before",
        "owes_raised",
        "owes_lost",
        "owes_result",
        "failed_raised",
        "failed_lost",
        "resolved",
    }
)


def _size(name: str, size: Size) -> int:
    if name in _BY_CALL:
        return size.CALLS + 1
    if name.startswith("log_"):
        return size.MOVES
    return {
        "x_call_of": (size.CALLS + 1) * size.RANKS,
        "x_listener": max(size.LISTENERS, 1),
        "t_out": max(size.THREADS, 1) * size.AHEAD,
        "settled": size.CALLS + size.RANKS,
        "told": max(size.LISTENERS, 1),
        "control": size.RANKS * size.WORDS,
        "call": size.RANKS * size.PLACES,
        "reply": size.RANKS * size.PLACES,
    }.get(name, max(size.THREADS, 1) if name.startswith("t_") else size.RANKS)


def _zero(kind: type[Enum] | type[bool] | type[int]) -> Value:
    if issubclass(kind, Enum):
        return next(iter(kind), 0)  # State and Event have no members; scratch of their kind is zero
    return kind(0)


# --- projection -------------------------------------------------------------------------------------------------------


def projected(now: Now, size: Size, protocol: Any) -> dict[str, Any]:
    """The state in the program's variables; `only` and `only_rank` follow from the rest and are left out."""
    values: dict[str, Any] = {}
    for part in (_executor(now, size, protocol), _threads(now, size), _record(now, size), _ranks(now, size)):
        values.update(part)
    values["overflow"] = False
    return values


def _executor(now: Now, size: Size, protocol: Any) -> Iterator[tuple[str, Any]]:
    state = now.executor.value
    for name in CLUSTERS:
        cluster = getattr(state, name)
        yield f"x_{name}", cluster[0]
        if len(cluster) > 1:
            yield f"x_{name}_of", list(cluster[1:])
    calls = {identity.call: call for identity, call in state.calls}
    absent = protocol.call.initial(size.RANKS)
    rows = [calls.get(number, absent) for number in range(size.CALLS + 1)]
    yield "x_here", [number in calls for number in range(size.CALLS + 1)]
    yield "x_call", [row[0] for row in rows]
    yield "x_call_of", [reply for row in rows for reply in row[1:]]
    yield "x_listeners", len(state.listeners)
    idle = [protocol.listener.aggregate.initial] * max(size.LISTENERS, 1)
    yield "x_listener", [*state.listeners, *idle[len(state.listeners) :]]


def _threads(now: Now, size: Size) -> Iterator[tuple[str, Any]]:
    threads = now.threads.value.threads
    missing = max(size.THREADS, 1) - len(threads)
    yield "t_waits", [*(thread.caller is not None for thread in threads), *[False] * missing]
    callers = [Caller.LOOKING if thread.caller is None else thread.caller for thread in threads]
    yield "t_caller", [*callers, *[Caller.LOOKING] * missing]
    yield "t_woken", [*(thread.woken for thread in threads), *[False] * missing]
    yield "t_left", [*(thread.left for thread in threads), *[0] * missing]
    out = [_filled(thread.out, size.AHEAD, 0) for thread in threads]
    yield "t_out", [call for row in (*out, *[[0] * size.AHEAD] * missing) for call in row]
    yield "t_next", now.threads.value.next_call


def _record(now: Now, size: Size) -> Iterator[tuple[str, Any]]:
    ghost = now.ghost.value
    yield "gone", ghost.gone
    yield "alarm", Alarm.OFF if ghost.alarm is None else Alarm[ghost.alarm.name]
    for mark in Mark:
        yield f"m_{str(mark.name).lower()}", bool(ghost.marks & mark)
    yield "settled", [bool(ghost.settled >> bit & 1) for bit in range(size.CALLS + size.RANKS)]
    yield "told", [bool(ghost.told >> bit & 1) for bit in range(max(size.LISTENERS, 1))]
    yield "survivors", [bool(ghost.survivors >> bit & 1) for bit in range(size.RANKS)]
    known = {name.removeprefix("o_"): name for name in W.__annotations__ if name.startswith("o_")}
    for name in known.values():
        yield name, False
    for offence in Offence(ghost.offences):
        name = str(offence.name).lower()
        if name not in known:
            raise ExportError(f"the export does not know the offence {name}")
        yield known[name], True
    for name, left in ghost.budgets._asdict().items():
        yield f"b_{name}", left


def _ranks(now: Now, size: Size) -> Iterator[tuple[str, Any]]:
    ranks = [node.value for node in now.ranks]
    yield "status", [rank.status for rank in ranks]
    for name in WORKER_CLUSTERS:
        states = [None if rank.worker is None else getattr(rank.worker, name) for rank in ranks]
        yield f"w_{name}", [None if state is None else state[0] for state in states]
        if name == "outlet":
            yield f"w_{name}_of", [None if state is None else state[1] for state in states]
    yield "work", [Work.NOTHING if rank.work is None else Work[rank.work.name] for rank in ranks]
    yield "running", [rank.running for rank in ranks]
    yield "line", [rank.line for rank in ranks]
    yield (
        "signal",
        [Sent[rank.signal.name] if isinstance(rank.signal, Signal) else Sent.NONE for rank in ranks],
    )
    yield "controls", [len(rank.control) for rank in ranks]
    words = [_filled([m.word for m in rank.control], size.WORDS, RankStartOn.SPAWNED) for rank in ranks]
    yield "control", [word for row in words for word in row]
    yield "calls", [len(rank.calls) for rank in ranks]
    codes = [_filled([m.identity.call for m in rank.calls], size.PLACES, 0) for rank in ranks]
    yield "call", [code for row in codes for code in row]
    yield "joins", [len(rank.joins) for rank in ranks]
    yield "replies", [len(rank.replies) for rank in ranks]
    answers = [_filled(_answers(rank), size.PLACES, 0) for rank in ranks]
    yield "reply", [code for row in answers for code in row]
    yield "joined", [len(rank.joined) for rank in ranks]
    yield "wronged", [rank.wronged for rank in ranks]


def _answers(rank: Rank) -> list[int]:
    found = []
    for message in rank.replies:
        if message.word == ReaderOn.OPENED:
            found.append(0)
        else:
            found.append(2 * message.identity.call - (message.word is ReplyOn.RETURNED))
    return found


def _filled(values: Any, length: int, filler: Any) -> list[Any]:
    row = list(values)
    if len(row) > length:
        raise ExportError(f"a channel holds {len(row)} words, and the export gives it {length}")
    return [*row, *[filler] * (length - len(row))]
