"""A campaign in numbers, table by table: what the command prints, what the page of the docs says.

Theory of operation. The share is the strict one: killed by a property, of those that lint lets pass and that are not
equivalent. What lint refuses is counted beside it: no checker is needed for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .campaign import Campaign
from .fate import Fate, Outcome

BAR = 0.95
"""The share that a whole campaign must kill."""


@dataclass(frozen=True)
class Counts:
    """What became of the defects of one table, or of all."""

    where: str
    defects: int
    lint: int
    killed: int
    equivalent: int
    explained: int
    unexplained: int
    undecided: int

    @property
    def share(self) -> float | None:
        """Killed by a property, of those that could be; None if there was none."""
        tried = self.killed + self.explained + self.unexplained + self.undecided
        return self.killed / tried if tried else None


def by_table(campaign: Campaign) -> list[Counts]:
    """The counts of each table, in the order of the defects."""
    names = dict.fromkeys(one.where for one in campaign.fates)
    return [
        _counted(name, [one for one in campaign.fates if one.where == name], campaign.reasons)
        for name in names
    ]


def in_all(campaign: Campaign) -> Counts:
    """The counts of everything that was tried."""
    return _counted("all", campaign.fates, campaign.reasons)


def _counted(where: str, fates: Iterable[Fate], reasons: Iterable[str]) -> Counts:
    known = set(reasons)
    fates = list(fates)

    def how_many(outcome: Outcome) -> int:
        return sum(one.outcome is outcome for one in fates)

    explained = sum(one.outcome is Outcome.SURVIVED and one.defect in known for one in fates)
    return Counts(
        where,
        len(fates),
        how_many(Outcome.LINT),
        how_many(Outcome.PROPERTY),
        how_many(Outcome.EQUIVALENT),
        explained,
        how_many(Outcome.SURVIVED) - explained,
        how_many(Outcome.UNDECIDED),
    )


def by_reason(campaign: Campaign) -> Iterator[tuple[str, list[str]]]:
    """Each reason with the survivors that it explains."""
    for why in dict.fromkeys(campaign.reasons.values()):
        yield why, [name for name, given in campaign.reasons.items() if given == why]


def by_property(campaign: Campaign) -> list[tuple[str, int]]:
    """Each property that killed something, and how many, the most first."""
    killed = [one.by for one in campaign.those(Outcome.PROPERTY)]
    return sorted(((name, killed.count(name)) for name in set(killed)), key=lambda pair: (-pair[1], pair[0]))
