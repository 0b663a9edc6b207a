"""Stand-ins for the procedures that are written from the tables (see `tables`): names and types for whoever calls them.

Theory of operation. The glue calls these; the program that is exported holds, under the same names, what the tables
say. Nothing here is ever run.
"""

from __future__ import annotations

from .words import W


def load(w: W) -> None:
    """Put the state of the machine that `machine`, `slot`, `number` and `rank` name into `source`."""
    raise NotImplementedError


def look(w: W) -> None:
    """Find the row for `source` and `event`: `legal`, `dest`, and its effects, `does` and `passes`."""
    raise NotImplementedError


def store(w: W) -> None:
    """Put `dest` into the machine."""
    raise NotImplementedError


def following(w: W) -> None:
    """The next event of the fact, if there is one: `found`, and who gets it."""
    raise NotImplementedError


def inner(w: W) -> None:
    """The first coupling row inside a cluster that acts, if one does: `found`, and who gets the event."""
    raise NotImplementedError


def outer(w: W) -> None:
    """The first coupling row between clusters that acts, if one does."""
    raise NotImplementedError


def perform(w: W) -> None:
    """The effects of the row."""
    raise NotImplementedError


def due(w: W, k: int) -> None:
    """What row `k` of the agenda gives to which machine: `f_machine`, `f_slot`, `f_event`."""
    raise NotImplementedError


def reset_worker(w: W, r: int) -> None:
    """All machines of worker `r` are where they begin."""
    raise NotImplementedError


def reset_executor(w: W) -> None:
    """All machines of the executor are where they begin."""
    raise NotImplementedError


def reset_reply(w: W, c: int, r: int) -> None:
    """What rank `r` owes to call `c` is as it begins."""
    raise NotImplementedError


def fault_has_row(w: W) -> bool:
    """Whether the executor's life has a row for FAULT."""
    raise NotImplementedError


def is_due(w: W, r: int, k: int) -> bool:
    """Whether row `k` is the first of worker `r`'s agenda that acts."""
    raise NotImplementedError


def caller_is_over(w: W) -> bool:
    """Whether `dest` is a final state of a waiting thread."""
    raise NotImplementedError


def by_time(w: W) -> bool:
    """Whether a point in time brings the event about."""
    raise NotImplementedError


def at_rest(w: W, r: int) -> bool:
    """Whether every machine of worker `r` but its leave is in a final state."""
    raise NotImplementedError


def of_death(w: W) -> bool:
    """Whether the kernel brings the event about: a process is gone."""
    raise NotImplementedError


def says_ready(w: W) -> bool:
    """Whether the row says READY."""
    raise NotImplementedError


def says_failed(w: W) -> bool:
    """Whether the row says FAILED."""
    raise NotImplementedError
