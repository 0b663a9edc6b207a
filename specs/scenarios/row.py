"""One row of the scenario table: something that users of multiprocess executors met, and what convicts it here.

Theory of operation. A row is covered by known-bad variants (see `variants`), or it is left out and says why. Several
rows share a variant only where the mechanism is the same. The sentences are ours; the ids are those of the list of
scenarios that the project began with.
"""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    """`by`: the variants that show it, the first one first. `why`: the reason it is left out, if it is."""

    id: str
    report: str
    sentence: str
    by: tuple[str, ...] = ()
    why: str = ""

    @property
    def covered(self) -> bool:
        """Whether a variant shows it."""
        return bool(self.by)


def shown(ident: str, report: str, sentence: str, *by: str) -> Scenario:
    """A row that variants show."""
    return Scenario(ident, report, sentence, by)


def left(ident: str, report: str, sentence: str, why: str) -> Scenario:
    """A row that is left out, and why."""
    return Scenario(ident, report, sentence, (), why)
