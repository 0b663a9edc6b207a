"""What is measured, and the arithmetic from samples to figures.

Theory of operation. A *cell* is one question (what, with how many ranks, which payload, who replies, how many calls
outstanding); a *series* is one peer's answers to it, one `Round` a round, each with every sample. The figure of a
series is the median of its rounds' medians, with the smallest and largest of them; p99 is over all samples of all
rounds, and only given where there are at least a hundred. A ratio between two series is made of the rounds that both
have, round by round: its median, smallest and largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

ENOUGH = 100  # samples for a p99


class Spread(NamedTuple):
    """A median and its range."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, order=True)
class Cell:
    """A question. `payload` in bytes; `outstanding` 0: the blocking call. What does not matter to it stays as it is."""

    measure: str
    ranks: int = 0
    payload: int = 0
    reply: str = ""
    outstanding: int = 0


@dataclass
class Series:
    """One peer's samples for a cell, by round, and what went wrong."""

    rounds: dict[int, list[float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def spread(self) -> Spread | None:
        """The median of the rounds' medians, and their range; None if there are no samples."""
        return spread([median(samples) for samples in self.rounds.values() if samples])

    def p99(self) -> float | None:
        """Over all samples; None if they are too few."""
        samples = [sample for samples in self.rounds.values() for sample in samples]
        return quantile(samples, 0.99) if len(samples) >= ENOUGH else None

    def count(self) -> int:
        """How many samples there are."""
        return sum(len(samples) for samples in self.rounds.values())


def spread(values: Sequence[float]) -> Spread | None:
    """Median, smallest, largest; None of nothing."""
    return Spread(median(values), min(values), max(values)) if values else None


def quantile(samples: Sequence[float], part: float) -> float:
    """The smallest sample that at least `part` of the samples do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def ratio(ours: Series | None, theirs: Series | None) -> Spread | None:
    """ours ÷ theirs, made round by round; None if they share no round."""
    if ours is None or theirs is None:
        return None
    return spread(
        [
            median(samples) / median(theirs.rounds[number])
            for number, samples in ours.rounds.items()
            if samples and theirs.rounds.get(number) and median(theirs.rounds[number]) > 0.0
        ]
    )


class Book:
    """Every series, by cell and peer."""

    def __init__(self) -> None:
        self._series: dict[Cell, dict[str, Series]] = {}

    def put(self, cell: Cell, peer: str, number: int, samples: Sequence[float]) -> None:
        """Samples of one round; more of the same round are added."""
        self._of(cell, peer).rounds.setdefault(number, []).extend(samples)

    def fail(self, cell: Cell, peer: str, why: str) -> None:
        """It could not be measured this time."""
        problems = self._of(cell, peer).problems
        if why not in problems:
            problems.append(why)

    def _of(self, cell: Cell, peer: str) -> Series:
        return self._series.setdefault(cell, {}).setdefault(peer, Series())

    def cells(self, measure: str | None = None) -> list[Cell]:
        """The questions, in order."""
        return sorted(cell for cell in self._series if measure in (None, cell.measure))

    def get(self, cell: Cell, peer: str) -> Series | None:
        """A series, or None if it was never tried."""
        return self._series.get(cell, {}).get(peer)

    def peers(self, cell: Cell) -> list[str]:
        """Who was asked, in the order of the first answer."""
        return list(self._series.get(cell, {}))

    def ratio(self, cell: Cell, ours: str, theirs: str) -> Spread | None:
        """ours ÷ theirs in a cell."""
        return ratio(self.get(cell, ours), self.get(cell, theirs))

    def to_json(self) -> list[dict[str, Any]]:
        """Everything, with every round's median."""
        return [self._row(cell, peer) for cell in self.cells() for peer in self.peers(cell)]

    def _row(self, cell: Cell, peer: str) -> dict[str, Any]:
        series = self._series[cell][peer]
        found = series.spread()
        return {
            **vars(cell),
            "peer": peer,
            "median": None if found is None else found.median,
            "low": None if found is None else found.low,
            "high": None if found is None else found.high,
            "p99": series.p99(),
            "samples": series.count(),
            "rounds": {str(number): median(samples) for number, samples in series.rounds.items() if samples},
            "problems": series.problems,
        }
