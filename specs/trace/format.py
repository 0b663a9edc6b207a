"""What a trace is: one header, then one line a step, of all processes, in order of time.

Theory of operation:

1. NDJSON. The header says how many ranks there are and which epoch it was. A line says the process (`p`), its own
   count of lines (`n`), the time (`t`, in nanoseconds of a clock that all processes share), the machine (`m`, as
   "cluster.machine"), the member (`r`, null for an aggregate), the call (`c`, 0 for none), the event (`e`), and the
   state before and after (`from`, `to`). An executor's line about a death also says how it ended (`x`: the exit
   status, negative for a signal).
2. Each process writes a step down before it does the step's effects. So a message is always sent before it is read,
   in the order of the file too: the file is one order in which everything could have happened.
3. Whatever is wrong with the form is found here, with its line number: what is no JSON, what lacks a key, a count with
   a gap, a clock that runs backwards, a machine or a word that no table has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...protocol.core import Table
from ...protocol.executor import ExecutorProtocol
from ...protocol.worker import WorkerProtocol

FORMAT = 1
EXECUTOR = "executor"


class TraceError(Exception):
    """The trace is not well formed. `number` is the line's, counted from 1, the header's line."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(number, message)
        self.number = number
        self.message = message

    def __str__(self) -> str:
        return f"line {self.number}: {self.message}"


class Header(NamedTuple):
    """The first line."""

    ranks: int
    epoch: int


class Line(NamedTuple):
    """One step; `number` counts the file's lines from 1, and the header is the first."""

    number: int
    process: str
    sequence: int
    time: int
    machine: str
    slot: int
    """The member, or -1 for an aggregate."""
    call: int
    event: str
    source: str
    dest: str
    exit_status: int | None = None

    def __str__(self) -> str:
        whose = f"[{self.slot}]" if self.slot >= 0 else ""
        call = f" (call {self.call})" if self.call else ""
        return f"{self.process}: {self.machine}{whose}{call}: {self.source} --{self.event}--> {self.dest}"


class Trace(NamedTuple):
    """A trace that is well formed."""

    header: Header
    lines: list[Line]


_KEYS = (("p", str), ("n", int), ("t", int), ("m", str), ("c", int), ("e", str), ("from", str), ("to", str))


def read(
    text: Iterable[str], executor: ExecutorProtocol | None = None, worker: WorkerProtocol | None = None
) -> Trace:
    """Read a trace. Raises `TraceError` at the first line that is not well formed."""
    numbered = [(number, line) for number, line in enumerate(text, start=1) if line.strip()]
    if not numbered:
        raise TraceError(1, "the trace is empty: it has not even a header")
    header = _header(*numbered[0])
    words = _words(executor or ExecutorProtocol(), worker or WorkerProtocol())
    processes = {EXECUTOR, *(f"rank {rank}" for rank in range(header.ranks))}
    counts = dict.fromkeys(processes, 0)
    latest = 0
    lines = []
    for number, line in numbered[1:]:
        entry = _line(number, _object(number, line))
        _check(entry, processes, words, header)
        if entry.sequence != counts[entry.process]:
            raise TraceError(
                number,
                f"{entry.process} counts {entry.sequence} here, and {counts[entry.process]} comes next: "
                "a line was lost, doubled or moved",
            )
        counts[entry.process] += 1
        if entry.time < latest:
            raise TraceError(number, f"its time, {entry.time}, is before that of the line before, {latest}")
        latest = entry.time
        lines.append(entry)
    return Trace(header, lines)


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise TraceError(number, f"this is not JSON ({error}): {line.strip()[:80]!r}") from None
    if not isinstance(value, dict):
        raise TraceError(number, f"this is JSON, but no object: {line.strip()[:80]!r}")
    return value


def _header(number: int, line: str) -> Header:
    value = _object(number, line)
    if "trace" not in value:
        raise TraceError(
            number, 'the header is missing: the first line must be {"trace": 1, "ranks": N, "epoch": E}'
        )
    if value["trace"] != FORMAT:
        raise TraceError(number, f"this is format {value['trace']!r} of a trace; only {FORMAT} is known here")
    for key, lowest in (("ranks", 1), ("epoch", 0)):
        if type(value.get(key)) is not int or value[key] < lowest:
            raise TraceError(
                number, f"the header's {key!r} is {value.get(key)!r}, and no number from {lowest} on"
            )
    return Header(value["ranks"], value["epoch"])


def _line(number: int, value: dict[str, Any]) -> Line:
    for key, kind in _KEYS:
        if type(value.get(key)) is not kind:
            found = f"is {value[key]!r}, not {kind.__name__}" if key in value else "is missing"
            raise TraceError(number, f"its {key!r} {found}")
    for key in ("r", "x"):
        if type(value.get(key)) not in (int, type(None)):
            raise TraceError(number, f"its {key!r} is {value[key]!r}, and neither a whole number nor null")
    slot = value.get("r")
    return Line(
        number,
        value["p"],
        value["n"],
        value["t"],
        value["m"],
        -1 if slot is None else slot,
        value["c"],
        value["e"],
        value["from"],
        value["to"],
        value.get("x"),
    )


def _words(executor: ExecutorProtocol, worker: WorkerProtocol) -> dict[tuple[bool, str], Table]:
    """The table of each machine, for the executor's process (True) and a worker's (False)."""
    found: dict[tuple[bool, str], Table] = {}
    for ours, protocol in ((True, executor), (False, worker)):
        for cluster in vars(protocol).values():
            for table in (getattr(cluster, "aggregate", None), getattr(cluster, "member", None)):
                if table is not None:
                    found[ours, f"{cluster.name}.{table.name}"] = table
    return found


def _check(line: Line, processes: set[str], words: dict[tuple[bool, str], Table], header: Header) -> None:
    if line.process not in processes:
        raise TraceError(line.number, f"there is no process {line.process!r} in a group of {header.ranks}")
    ours = line.process == EXECUTOR
    table = words.get((ours, line.machine))
    if table is None:
        known = ", ".join(sorted(machine for side, machine in words if side is ours))
        side = "executor" if ours else "worker"
        raise TraceError(line.number, f"no {side} has a machine {line.machine!r}; there are: {known}")
    if line.event not in table.events._value2member_map_:
        raise TraceError(line.number, f"machine {line.machine!r} knows no event {line.event!r}")
    for state in (line.source, line.dest):
        if state not in table.states.__members__:
            raise TraceError(line.number, f"machine {line.machine!r} has no state {state!r}")
