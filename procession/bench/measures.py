"""One burst of one measure on one peer that is alive.

Each function takes a peer and returns samples: seconds, calls a second, or cores. Every answer is checked; a wrong one
is a failure of the peer. An exception ends the burst, and is the caller's to write down.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .cpu import cpu_seconds
from .guard import guarded, open_pidfds
from .peer import Entry, GaveUpError, Payload, Peer, Reply, Request, check_sum, wrong

TIMEOUT = 30.0  # seconds of one call
SLOW = 1.0  # seconds of a call that needs no warming
_EMPTY = Request(Reply.ALL)


@dataclass
class Running:
    """A peer that is alive."""

    entry: Entry
    peer: Peer
    ranks: int


def timed_start(entry: Entry, ranks: int) -> tuple[Running, float]:
    """Start a peer; seconds until all ranks have answered a first call."""
    began = time.perf_counter()
    running = Running(entry, entry.make(), ranks)
    try:
        running.peer.start(ranks)
        checked_call(running, _EMPTY, 0)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to be told
            running.peer.stop()
        raise
    return running, time.perf_counter() - began


def timed_stop(running: Running) -> float:
    """Stop a peer; seconds until every process is gone."""
    began = time.perf_counter()
    with guarded(running.peer.pids, TIMEOUT):
        running.peer.stop()
    return time.perf_counter() - began


def checked_call(running: Running, request: Request, expected: int, timeout: float = TIMEOUT) -> float:
    """Seconds of one call, until the payload that came back has been read."""
    began = time.perf_counter()
    answers = running.peer.call(request, timeout)
    fault = wrong(request, running.ranks, answers, expected)
    took = time.perf_counter() - began
    if fault is not None:
        raise ValueError(f"wrong answer: {fault}")
    return took


def round_trips(
    running: Running, reply: str, array: Payload | None, seconds: float, least: int, warm: int
) -> list[float]:
    """Calls for `seconds`, at least `least` of them, after `warm` that are not counted.

    A call that takes over a second counts, warm or not, and no more than `least` of such are made.
    """
    samples: list[float] = []
    base = check_sum(array) - (0 if array is None else int(array[0]))
    with guarded(running.peer.pids, TIMEOUT + seconds):
        until = time.perf_counter() + seconds
        count = -warm
        while count < least or time.perf_counter() < until:
            expected = base
            if array is not None:  # another payload each time, or a stale answer would go unseen
                stamp = count % 251
                array[0] = stamp
                expected += stamp
            took = checked_call(running, Request(reply, array), expected)
            count = max(1, count + 1) if took > SLOW else count + 1
            if count > 0:
                samples.append(took)
            elif count == 0:
                until = time.perf_counter() + seconds
    return samples


def pipelined(running: Running, outstanding: int, seconds: float) -> list[float]:
    """Calls a second with so many outstanding, for `seconds`: one sample."""
    peer = running.peer
    with guarded(peer.pids, TIMEOUT + seconds):
        for _ in range(outstanding):
            peer.submit(_EMPTY)
        done = 0
        began = time.perf_counter()
        until = began + seconds
        while time.perf_counter() < until:
            _collected(running)
            peer.submit(_EMPTY)
            done += 1
        took = time.perf_counter() - began
        for _ in range(outstanding):
            _collected(running)
    return [done / took]


def _collected(running: Running) -> None:
    fault = wrong(_EMPTY, running.ranks, running.peer.collect(TIMEOUT), 0)
    if fault is not None:
        raise ValueError(f"wrong answer: {fault}")


def copies(source: Payload, target: Payload, seconds: float) -> list[float]:
    """Seconds of one copy into warm memory, again and again for `seconds`; three at least."""
    samples: list[float] = []
    until = time.perf_counter() + seconds
    while len(samples) < 3 or time.perf_counter() < until:
        began = time.perf_counter()
        np.copyto(target, source)
        samples.append(time.perf_counter() - began)
    return samples


def idle_cores(trees: Sequence[Sequence[int]], settle: float, seconds: float) -> list[float]:
    """Cores that each group of processes uses while nobody calls: from `settle` seconds on, for `seconds`.

    The calling process, if it is watched, comes last.
    """
    time.sleep(settle)  # idleness is what is measured
    before = [cpu_seconds(pids) for pids in trees]
    began = time.perf_counter()
    time.sleep(seconds)  # as above
    # The other way round: the last one is the process that looks, and looking costs it milliseconds.
    after = [cpu_seconds(pids) for pids in reversed(trees)][::-1]
    took = time.perf_counter() - began
    return [(end - start) / took for start, end in zip(before, after, strict=True)]


def killed_in_call(running: Running, busy: float, patience: float) -> tuple[float, str]:
    """Seconds from SIGKILL of the last worker, in mid-call and with all others busy, to the caller's error.

    busy: seconds for which every worker computes. Raises `GaveUpError` if no error came within `patience` seconds.
    """
    peer = running.peer
    (victim,) = open_pidfds(peer.pids[-1:])
    try:
        with guarded(peer.pids, patience + busy + 5.0):
            peer.submit(Request(Reply.ALL, busy=busy))
            time.sleep(0.05)  # until every worker is in the call; no peer says when that is
            began = time.perf_counter()
            signal.pidfd_send_signal(victim, signal.SIGKILL)
            try:
                peer.collect(patience)
            except (GaveUpError, TimeoutError) as error:
                raise GaveUpError(f"no error within {patience:g} s") from error
            except Exception as error:  # noqa: BLE001 - whatever the peer's library raises is what is waited for
                return time.perf_counter() - began, type(error).__name__
    finally:
        os.close(victim)
    raise GaveUpError("the call was answered although a worker was killed")
