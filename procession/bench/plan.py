"""What is to be measured, how often, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace

KIB, MIB = 1 << 10, 1 << 20
LARGE = 16 * MIB  # bytes from which on a payload takes much memory and time

# What `--only` takes, and what it is about.
MEASURES = {
    "latency": "round trip of an empty call",
    "payload": "round trip with 4 KiB, 1 MiB, 64 MiB",
    "pipeline": "calls a second with 1, 2, 8 outstanding",
    "idle": "processor time when nobody calls",
    "first": "first call after a pause",
    "life": "start and shutdown",
    "kill": "SIGKILL of a worker in mid-call, to the caller's error",
    "stepping": "what tables and recording cost",
}


def size(count: int) -> str:
    """A number of bytes in words."""
    if not count:
        return "empty"
    return f"{count // MIB} MiB" if count >= MIB else f"{count >> 10} KiB"


@dataclass(frozen=True)
class Plan:
    """Seconds, unless said.

    rounds: at most; a round is not begun if it would not end within `budget`.
    sweeps: how often a round asks what is quick to answer; each sweep counts as a round of its own.
    burst: of calls on one peer, after some that warm it.
    pause: before the first call after idleness.
    settle, idle: from when on, and for how long, idle processors are watched.
    busy: for how long workers compute when one of them is killed.
    patience: for the error after that.
    rare: rounds in which idleness, pauses and kills are measured.
    """

    ranks: tuple[int, ...] = (1, 2, 4)
    sizes: tuple[int, ...] = (4 * KIB, MIB, 64 * MIB)
    outstanding: tuple[int, ...] = (1, 2, 8)
    measures: frozenset[str] = frozenset(MEASURES)
    rounds: int = 7
    sweeps: int = 3
    budget: float = 320.0
    burst: float = 0.1
    pause: float = 3.0
    settle: float = 0.1
    idle: float = 0.5
    busy: float = 1.5
    patience: float = 2.0
    rare: int = 3
    seed: int = 0

    def quick(self) -> Plan:
        """Under a minute: fewer rounds, shorter bursts and pauses, and nothing above 1 MiB."""
        return replace(
            self,
            sizes=tuple(size for size in self.sizes if size <= MIB),
            rounds=2,
            sweeps=2,
            budget=40.0,
            burst=0.03,
            pause=0.5,
            idle=0.2,
            busy=0.5,
            patience=0.7,
            rare=1,
        )
