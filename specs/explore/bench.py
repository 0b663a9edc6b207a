"""Measure the explorer: ``python -m procession.specs.explore.bench``.

Theory of operation
-------------------
The model is a READY handshake of N workers with at most K crashes, small enough to be read at a glance and the same,
rule for rule, as one that was also given to Murphi (``rumur``) and SPIN, so that its state counts are known from
elsewhere: 413 for N=3, K=1; 10,187 for N=5, K=2; 42,239 for N=6, K=2.

Each worker goes boot → ready → subscribed → got → resubscribed → serving. The executor goes through the ranks in order,
once for READY, once for the subscription, once to send GO, once to subscribe and be told GO in turn. A worker's own
variables, its stage and the five one-place channels to and from it, are packed into one int, so that what a worker can
do is a table look-up. A *blind* executor does not look at sentinels while it waits on a queue, and deadlocks.

The command reports the best of several runs, in processor time: a busy neighbour then costs what it takes from the
caches, and not the turns that it takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from time import process_time

from .check import check
from .model import Label
from .property import Property, always, eventually, leads_to, no_deadlock, sometimes
from .search import search

BOOT, READY, SUBSCRIBED, GOT, RESUBSCRIBED, SERVING, DEAD = range(7)
STAGES = ("boot", "ready", "subscribed", "got", "resubscribed", "serving", "dead")
PIPE, B_SUB, B_GO, R_SUB, R_GO = (8 << bit for bit in range(5))
CHANNELS = {PIPE: "READY", B_SUB: "SUB", B_GO: "GO", R_SUB: "RSUB", R_GO: "RGO"}
RECV_READY, RECV_SUB, SEND_GO, SEND_RSUB, RECV_RGO, UP, FAILED = range(7)
PHASES = ("await READY", "await SUB", "send GO", "send RSUB", "await RGO", "up", "failed")

State = tuple[int, int, int, tuple[int, ...]]
"""(phase, rank the executor is at, crashes so far, workers)."""
Move = tuple[Label, int, int]

FLOOR = 100_000
"""States a second that the explorer promises."""


@cache
def _moves(rank: int, worker: int, closing: bool, may_crash: bool) -> tuple[Move, ...]:
    """What a worker can do: the label, the worker after it, and the crashes it costs."""
    me, stage, channels = f"rank {rank}", worker & 7, worker & ~7
    moves: list[Move] = []
    for at, channel, goes_to in (
        (BOOT, PIPE, READY),
        (READY, B_SUB, SUBSCRIBED),
        (RESUBSCRIBED, R_GO, SERVING),
    ):
        if stage == at and not worker & channel:
            sends = ((me, "executor", CHANNELS[channel]),)
            moves.append((Label(me, "send " + CHANNELS[channel], sends), goes_to | channels | channel, 0))
    for at, channel, goes_to in ((SUBSCRIBED, B_GO, GOT), (GOT, R_SUB, RESUBSCRIBED)):
        if stage == at and worker & channel:
            moves.append((Label(me, "receive " + CHANNELS[channel]), goes_to | channels & ~channel, 0))
    if closing and stage in (SUBSCRIBED, GOT, SERVING):
        moves.append((Label(me, "terminate"), DEAD | channels, 0))
    if may_crash and stage in (BOOT, READY, GOT, RESUBSCRIBED):
        moves.append((Label(me, "crash", fair=False), DEAD | channels, 1))
    return tuple(moves)


_RECEIVES = {RECV_READY: PIPE, RECV_SUB: B_SUB, RECV_RGO: R_GO}
_SENDS = {SEND_GO: B_GO, SEND_RSUB: R_SUB}
_FAIL = Label("executor", "fail")


@cache
def _executor_label(phase: int, rank: int) -> Label:
    if phase in _RECEIVES:
        return Label("executor", "receive " + CHANNELS[_RECEIVES[phase]], note=f"from rank {rank}")
    message = CHANNELS[_SENDS[phase]]
    return Label("executor", "send " + message, (("executor", f"rank {rank}", message),))


@dataclass(frozen=True)
class Handshake:
    """The READY handshake of the measurements."""

    workers: int
    crashes: int
    blind: bool = False
    """Whether the executor ignores sentinels while it waits on queues."""
    name: str = field(default="handshake")

    def initial(self) -> Iterable[State]:
        return [(RECV_READY, 0, 0, (BOOT,) * self.workers)]

    def actions(self, state: State) -> Iterable[tuple[Label, State]]:
        phase, at, crashes, workers = state
        enabled: list[tuple[Label, State]] = []
        closing, may_crash = phase >= UP, crashes < self.crashes
        for rank, worker in enumerate(workers):
            for label, changed, cost in _moves(rank, worker, closing, may_crash):
                after = (*workers[:rank], changed, *workers[rank + 1 :])
                enabled.append((label, (phase, at, crashes + cost, after)))
        if closing:
            return enabled
        worker = workers[at]
        if phase in _RECEIVES:
            channel = _RECEIVES[phase]
            if worker & channel:
                enabled.append(self._step(state, worker & ~channel))
            elif worker & 7 == DEAD and (phase == RECV_READY or not self.blind):
                enabled.append((_FAIL, (FAILED, 0, crashes, workers)))
        elif not worker & _SENDS[phase]:
            enabled.append(self._step(state, worker | _SENDS[phase]))
        return enabled

    def _step(self, state: State, changed: int) -> tuple[Label, State]:
        phase, at, crashes, workers = state
        last = at + 1 == self.workers
        if phase == SEND_RSUB:
            goes_to, rank = RECV_RGO, at
        elif phase == RECV_RGO:
            goes_to, rank = (UP, 0) if last else (SEND_RSUB, at + 1)
        else:
            goes_to, rank = (phase + 1, 0) if last else (phase, at + 1)
        after = (*workers[:at], changed, *workers[at + 1 :])
        return _executor_label(phase, at), (goes_to, rank, crashes, after)

    def accepting(self, state: State) -> bool:
        return state[0] >= UP and all(worker & 7 == DEAD for worker in state[3])

    def describe(self, state: State) -> str:
        phase, at, crashes, workers = state
        ranks = ", ".join(
            "+".join([STAGES[worker & 7], *(name for bit, name in CHANNELS.items() if worker & bit)])
            for worker in workers
        )
        return f"executor {PHASES[phase]} (rank {at}), {crashes} crashes, ranks {ranks}"

    def canonical(self, state: State) -> State:
        """Sort within the ranks already collected and within those not yet, never across: see symmetry.py."""
        phase, at, crashes, workers = state
        if phase >= UP:
            return phase, at, crashes, tuple(sorted(workers))
        ranks = (*sorted(workers[:at]), workers[at], *sorted(workers[at + 1 :]))
        return phase, at, crashes, ranks


def properties(crashes: int) -> list[Property[State]]:
    """What the handshake promises."""
    asked: list[Property[State]] = [
        no_deadlock(),
        always("counted", "At most the budgeted crashes happen.", lambda s: s[2] <= crashes),
        sometimes("up", "The executor can come up.", lambda s: s[0] == UP),
        eventually("decides", "A start comes up or fails.", lambda s: s[0] >= UP),
        leads_to(
            "reaps",
            "Once it is decided, every worker is gone in the end.",
            lambda s: s[0] >= UP,
            lambda s: all(worker & 7 == DEAD for worker in s[3]),
        ),
    ]
    return asked


def main(argv: list[str] | None = None) -> int:
    """Measure and print; exits with 1 if the rate is below the floor."""
    parser = argparse.ArgumentParser(prog="python -m procession.specs.explore.bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--crashes", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(argv)
    model = Handshake(options.workers, options.crashes)
    best = 0.0
    for kept in ("states", "edges"):
        fastest = float("inf")
        for _ in range(options.runs):
            began = process_time()
            space = search(model, edges=kept == "edges")
            fastest = min(fastest, process_time() - began)
        rate = len(space.states) / fastest
        best = max(best, rate)
        print(
            f"{kept:7} N={options.workers} K={options.crashes}: {len(space.states):,} states, "
            f"{space.transitions:,} transitions, {fastest:.3f} s, {rate:,.0f} states/s"
        )
    print(check(model, properties(options.crashes)).to_text(), end="")
    return 0 if best >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
