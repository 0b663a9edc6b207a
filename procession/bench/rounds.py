"""The rounds: every peer is started, measured in bursts that follow each other in shuffled order, and stopped.

Theory of operation:

1. A round goes through the numbers of ranks in shuffled order. For each, every peer is started; then, cell by cell,
   each peer has its burst, in a few sweeps over the cells; then every peer is stopped. Peers that are not having their
   burst are idle; one that computes even when idle is stopped by a signal meanwhile.
2. A peer that fails is stopped and missed for the rest of that number of ranks; the next round starts it anew. What it
   raised is part of the result.
3. Kills come last, and each on a peer of its own.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from ..runtime.room import available_memory
from .figures import Book, Cell
from .guard import signalled
from .measures import (
    SLOW,
    Running,
    copies,
    idle_cores,
    killed_in_call,
    pipelined,
    round_trips,
    timed_start,
    timed_stop,
)
from .peer import REPLIES, Entry, Payload, Reply, payload
from .plan import LARGE, MIB, Plan, size

HERE = "this machine"  # the peer of cells that concern no peer
CALLER = "the calling process, all peers together"
LATE = "not measured: the time was over"
_Item = TypeVar("_Item")
Tell = Callable[[str], None]


class Rounds:
    """Fills a book."""

    def __init__(self, plan: Plan, entries: Iterable[Entry], tell: Tell) -> None:
        self.book = Book()
        self.done = 0
        self._plan = plan
        self._entries = [entry for entry in entries if entry.missing is None]
        self._tell = tell
        self._dice = random.Random(plan.seed)  # noqa: S311 - an order to measure in is no secret
        self._payloads = {many: payload(many) for many in (0, *plan.sizes)}
        self._targets = {many: _warm(many) for many in plan.sizes}
        self._until = 0.0

    def run(self) -> Book:
        """As many rounds as the plan allows; one at least."""
        began = time.monotonic()
        self._until = began + 1.1 * self._plan.budget
        longest = 0.0
        for number in range(self._plan.rounds):
            started = time.monotonic()
            if number and started - began + longest > self._plan.budget:
                break
            for ranks in self._shuffled(self._plan.ranks):
                self._life(number, ranks)
                if "kill" in self._plan.measures and number < self._plan.rare:
                    self._kills(number, ranks)
            self.done = number + 1
            longest = max(longest, time.monotonic() - started)
        return self.book

    # --- one number of ranks ----------------------------------------------------------------------------------------

    def _life(self, number: int, ranks: int) -> None:
        if self._plan.measures <= {"kill"}:
            return
        alive: list[Running] = []
        try:
            for entry in self._shuffled(self._wanted()):
                self._say(number, ranks, f"starting {entry.name}")
                self._start(number, ranks, entry, alive)
            cells = self._cells(ranks)
            for sweep in range(self._plan.sweeps):
                for cell in self._shuffled([cell for cell in cells if cell.payload < LARGE]):
                    self._bursts(number * self._plan.sweeps + sweep, cell, alive)
            for cell in self._shuffled([cell for cell in cells if cell.payload >= LARGE]):
                self._bursts(number, cell, alive)
            if number < self._plan.rare:
                if "idle" in self._plan.measures:
                    self._idle(number, ranks, alive)
                if "first" in self._plan.measures:
                    self._first(number, ranks, alive)
        finally:
            for running in self._shuffled(alive):
                self._say(number, ranks, f"stopping {running.entry.name}")
                self._stop(number, running)

    def _wanted(self) -> list[Entry]:
        about_steps = {"latency", "stepping"} & self._plan.measures
        return [entry for entry in self._entries if about_steps or not entry.stepping]

    def _start(self, number: int, ranks: int, entry: Entry, alive: list[Running]) -> None:
        cell = Cell("start", ranks)
        try:
            running, took = timed_start(entry, ranks)
        except Exception as error:  # noqa: BLE001 - a peer may raise anything, and the others go on
            self.book.fail(cell, entry.name, _words(error))
            return
        alive.append(running)
        if "life" in self._plan.measures and not entry.stepping:
            self.book.put(cell, entry.name, number, [took])
        if entry.restless:
            for pid in running.peer.pids:
                os.kill(pid, signal.SIGSTOP)  # our own children, which nobody has reaped

    def _stop(self, number: int, running: Running) -> None:
        cell = Cell("stop", running.ranks)
        try:
            with self._turn(running):
                took = timed_stop(running)
        except Exception as error:  # noqa: BLE001 - as above
            self.book.fail(cell, running.entry.name, _words(error))
            return
        if "life" in self._plan.measures and not running.entry.stepping:
            self.book.put(cell, running.entry.name, number, [took])

    @contextlib.contextmanager
    def _turn(self, running: Running) -> Iterator[None]:
        if not running.entry.restless:
            yield
            return
        with signalled(running.peer.pids, signal.SIGCONT, signal.SIGSTOP):
            yield

    def _cells(self, ranks: int) -> list[Cell]:
        found = []
        measures = self._plan.measures
        if measures & {"latency", "stepping"}:
            found += [Cell("call", ranks, 0, reply) for reply in (Reply.ALL, Reply.ONE)]
        if "payload" in measures:
            for many in self._plan.sizes:
                found += [Cell("call", ranks, many, reply) for reply in REPLIES]
        if "pipeline" in measures:
            found += [Cell("pipeline", ranks, 0, Reply.ALL, many) for many in self._plan.outstanding]
        return found

    def _bursts(self, number: int, cell: Cell, alive: list[Running]) -> None:
        if time.monotonic() > self._until:
            for running in alive:
                self.book.fail(cell, running.entry.name, LATE)
            return
        room = 24 * cell.payload * cell.ranks
        if cell.payload >= LARGE and available_memory() < room:
            for running in alive:
                self.book.fail(cell, running.entry.name, f"not measured: it takes {room // MIB} MiB")
            return
        if cell.payload:
            self._copies(number, cell.payload)
        for running in self._shuffled(alive):
            entry = running.entry
            if entry.stepping and (cell.payload or cell.outstanding or cell.reply != Reply.ALL):
                continue
            if entry.largest is not None and cell.payload > entry.largest:
                continue
            if number >= 2 and self._slow(cell, entry):
                continue
            self._say(number, cell.ranks, f"{cell.measure} {cell.reply} {size(cell.payload)}: {entry.name}")
            self._burst(number, cell, running, alive)

    def _slow(self, cell: Cell, entry: Entry) -> bool:
        """Two rounds are enough of what takes seconds; the others get the time."""
        series = self.book.get(cell, entry.name)
        found = None if series is None else series.spread()
        return cell.measure == "call" and found is not None and found.median > SLOW

    def _burst(self, number: int, cell: Cell, running: Running, alive: list[Running]) -> None:
        plan = self._plan
        try:
            with self._turn(running):
                if cell.outstanding:
                    samples = pipelined(running, cell.outstanding, plan.burst)
                else:
                    array = self._payloads[cell.payload]
                    warm, least = (4, 1) if cell.payload >= LARGE else (3, 3)
                    samples = round_trips(running, cell.reply, array, plan.burst, least, warm)
        except Exception as error:  # noqa: BLE001 - as above
            self.book.fail(cell, running.entry.name, _words(error))
            alive.remove(running)
            with contextlib.suppress(Exception):  # the first error was told
                timed_stop(running)
            return
        self.book.put(cell, running.entry.name, number, samples)

    def _copies(self, number: int, many: int) -> None:
        source = self._payloads[many]
        assert source is not None
        samples = copies(source, self._targets[many], 0.2 * self._plan.burst)
        self.book.put(Cell("memcpy", payload=many), HERE, number, samples)

    # --- idleness ---------------------------------------------------------------------------------------------------

    def _idle(self, number: int, ranks: int, alive: list[Running]) -> None:
        cell = Cell("idle", ranks)
        plan = self._plan
        for restless in (False, True):
            group = [r for r in alive if r.entry.restless is restless and not r.entry.stepping]
            # The calling process is one for all; a restless peer is watched by itself, with it.
            for watched in [[r] for r in group] if restless else [group] if group else []:
                self._say(number, ranks, "idle")
                trees = [running.peer.pids for running in watched]
                try:
                    with contextlib.ExitStack() as turns:
                        for running in watched:
                            turns.enter_context(self._turn(running))
                        for running in self._shuffled(watched):
                            round_trips(running, Reply.ALL, None, 0.0, 5, 0)
                        cores = idle_cores([*trees, [os.getpid()]], plan.settle, plan.idle)
                except Exception as error:  # noqa: BLE001 - as above
                    for running in watched:
                        self.book.fail(cell, running.entry.name, _words(error))
                    continue
                if restless:
                    self.book.put(cell, watched[0].entry.name, number, [cores[0] + cores[1]])
                    continue
                for running, used in zip(watched, cores[:-1], strict=True):
                    self.book.put(cell, running.entry.name, number, [used])
                self.book.put(cell, CALLER, number, cores[-1:])

    def _first(self, number: int, ranks: int, alive: list[Running]) -> None:
        waiting = [running for running in alive if not running.entry.stepping]
        self._say(number, ranks, f"a pause of {self._plan.pause:g} s")
        time.sleep(self._plan.pause)  # idleness is what is measured
        for running in self._shuffled(waiting):
            name = running.entry.name
            try:
                with self._turn(running):
                    time.sleep(0.02)  # the processors of each are as idle as those of the first
                    first = round_trips(running, Reply.ALL, None, 0.0, 1, 0)
                    warm = round_trips(running, Reply.ALL, None, 0.2 * self._plan.burst, 20, 5)
            except Exception as error:  # noqa: BLE001 - as above
                self.book.fail(Cell("first", ranks), name, _words(error))
                continue
            self.book.put(Cell("first", ranks), name, number, first)
            self.book.put(Cell("warm", ranks), name, number, warm)

    # --- kills ------------------------------------------------------------------------------------------------------

    def _kills(self, number: int, ranks: int) -> None:
        cell = Cell("kill", ranks)
        for entry in self._shuffled(self._entries):
            if entry.stepping:
                continue
            if time.monotonic() > self._until:
                self.book.fail(cell, entry.name, LATE)
                continue
            self._say(number, ranks, f"killing a worker of {entry.name}")
            try:
                running, _ = timed_start(entry, ranks)
            except Exception as error:  # noqa: BLE001 - as above
                self.book.fail(cell, entry.name, _words(error))
                continue
            try:
                took, _ = killed_in_call(running, self._plan.busy, self._plan.patience)
                self.book.put(cell, entry.name, number, [took])
            except Exception as error:  # noqa: BLE001 - as above
                self.book.fail(cell, entry.name, _words(error))
            with contextlib.suppress(Exception):  # after a kill, an unclean end is no news
                timed_stop(running)

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _shuffled(self, items: Iterable[_Item]) -> list[_Item]:
        found = list(items)
        self._dice.shuffle(found)
        return found

    def _say(self, number: int, ranks: int, what: str) -> None:
        self._tell(f"round {number + 1}, N={ranks}: {what}")


def _words(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__


def _warm(many: int) -> Payload:
    """Shared memory of so many bytes, whose pages have been touched."""
    target = np.frombuffer(mmap.mmap(-1, many), dtype=np.uint8)
    target[:] = 1
    return target
