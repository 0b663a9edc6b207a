"""All defects, tried by a few processes at once.

Theory of operation:

1. Each process is given one defect at a time, by name, and makes it itself: protocols hold functions and do not travel.
   Each also searches the shipped protocols itself, stage by stage, when it first needs to know (see `baseline`).
2. The processes are spawned, not forked: whoever shows progress has threads.
3. Nothing depends on who did what, or when: fates come back in the order of the defects.
4. A campaign may have a time limit. What was not tried by then is named, and nothing is said of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from random import Random
from time import perf_counter

from .baseline import STAGES, Stage
from .defects import Defect, defects
from .fate import Fate, Outcome, fate
from .reasons import REASONS, Reason

Show = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and of how many."""


@dataclass(frozen=True)
class Campaign:
    """What became of every defect that was tried."""

    fates: tuple[Fate, ...]
    reasons: Mapping[str, str]
    """Per survivor that has one, why it is no defect."""
    wrong: tuple[str, ...]
    """What is wrong with the table of reasons itself."""
    seconds: float
    untried: tuple[str, ...] = ()
    """The defects that a time limit left over."""

    def those(self, *outcomes: Outcome) -> list[Fate]:
        """The fates with one of these outcomes."""
        return [one for one in self.fates if one.outcome in outcomes]

    @property
    def unexplained(self) -> list[Fate]:
        """Survivors that nobody has given a reason for."""
        return [one for one in self.those(Outcome.SURVIVED) if one.defect not in self.reasons]

    @property
    def share(self) -> float:
        """How many were killed by a property, of those that lint lets pass and that are not equivalent; at most 1."""
        tried = self.those(Outcome.PROPERTY, Outcome.SURVIVED, Outcome.UNDECIDED)
        return len(self.those(Outcome.PROPERTY)) / len(tried) if tried else 1.0


def run(
    wanted: Callable[[Defect], bool] = lambda _: True,
    *,
    sample: int | None = None,
    seed: int = 0,
    processes: int | None = None,
    stages: Sequence[Stage] = STAGES,
    reasons: Sequence[Reason] = REASONS,
    show: Show = lambda *_: None,
    limit: float | None = None,
) -> Campaign:
    """Try the defects that are `wanted`, or `sample` of them drawn by `seed`, for at most `limit` seconds."""
    began = perf_counter()
    chosen = [defect for defect in defects() if wanted(defect)]
    if sample is not None and sample < len(chosen):
        drawn = set(Random(seed).sample(range(len(chosen)), sample))  # noqa: S311 - repeatable, not secret
        chosen = [defect for number, defect in enumerate(chosen) if number in drawn]
    names = [defect.name for defect in chosen]
    count = processes or min(len(os.sched_getaffinity(0)), max(len(chosen), 1))
    fates: dict[str, Fate] = {}
    with multiprocessing.get_context("spawn").Pool(count, _begin, (tuple(stages),)) as pool:
        coming = pool.imap_unordered(_try, _spread(names), chunksize=1)
        with suppress(multiprocessing.TimeoutError):  # what is missing then is said to be
            while len(fates) < len(names):
                left = None if limit is None else max(limit - (perf_counter() - began), 0.0)
                tried = coming.next(left)
                fates[tried.defect] = tried
                show(tried.where, len(fates), len(names))
    ordered = tuple(fates[name] for name in names if name in fates)
    untried = tuple(name for name in names if name not in fates)
    explained, wrong = _explained(ordered, reasons)
    return Campaign(ordered, explained, wrong, perf_counter() - began, untried)


def _spread(names: list[str]) -> Iterable[str]:
    """Long trials stand together; apart, they do not all come last."""
    return (name for start in range(7) for name in names[start::7])


@cache
def _by_name() -> dict[str, Defect]:
    return {defect.name: defect for defect in defects()}


_stages: tuple[Stage, ...] = STAGES


def _begin(stages: tuple[Stage, ...]) -> None:
    global _stages
    _stages = stages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's business, who then ends the pool


def _try(name: str) -> Fate:
    return fate(_by_name()[name], _stages)


def _explained(fates: Sequence[Fate], reasons: Sequence[Reason]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The reason of each survivor that has one; and reasons that name what is killed, or what does not exist."""
    explained: dict[str, str] = {}
    wrong = []
    by_name = {one.defect: one for one in fates}
    for reason in reasons:
        for name in reason.defects:
            if name not in _by_name():
                wrong.append(f"no defect is called {name!r}")
            elif name in by_name:
                if by_name[name].outcome not in (Outcome.SURVIVED, Outcome.UNDECIDED):
                    wrong.append(f"{name!r} has a reason to survive, and is {by_name[name].outcome.value}")
                elif name in explained:
                    wrong.append(f"{name!r} has two reasons")
                else:
                    explained[name] = reason.why
    return explained, tuple(wrong)
