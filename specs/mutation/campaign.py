"""All defects, tried by a few processes at once.

Theory of operation:

1. Each process is given one defect at a time, by name, and makes it itself: protocols hold functions and do not travel.
   Each also searches the shipped protocols itself, stage by stage, when it first needs to know (see `baseline`).
2. The processes are spawned, not forked: whoever shows progress has threads.
3. Nothing depends on who did what, or when: fates come back in the order of the defects.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    def those(self, *outcomes: Outcome) -> list[Fate]:
        """The fates with one of these outcomes."""
        return [one for one in self.fates if one.outcome in outcomes]

    @property
    def killed(self) -> int:
        """How many were convicted."""
        return len(self.those(Outcome.LINT, Outcome.PROPERTY))

    @property
    def unexplained(self) -> list[Fate]:
        """Survivors that nobody has given a reason for, and whatever was not decided."""
        return [
            one
            for one in self.those(Outcome.SURVIVED, Outcome.UNDECIDED)
            if one.outcome is Outcome.UNDECIDED or one.defect not in self.reasons
        ]


def run(
    wanted: Callable[[Defect], bool] = lambda _: True,
    *,
    sample: int | None = None,
    seed: int = 0,
    processes: int | None = None,
    stages: Sequence[Stage] = STAGES,
    reasons: Sequence[Reason] = REASONS,
    show: Show = lambda *_: None,
) -> Campaign:
    """Try the defects that are `wanted`, or `sample` of them drawn by `seed`."""
    began = perf_counter()
    chosen = [defect for defect in _all() if wanted(defect)]
    if sample is not None and sample < len(chosen):
        drawn = set(Random(seed).sample(range(len(chosen)), sample))  # noqa: S311 - repeatable, not secret
        chosen = [defect for number, defect in enumerate(chosen) if number in drawn]
    names = [defect.name for defect in chosen]
    count = processes or min(len(os.sched_getaffinity(0)), max(len(chosen), 1))
    fates: dict[str, Fate] = {}
    with multiprocessing.get_context("spawn").Pool(count, _begin, (tuple(stages),)) as pool:
        for tried in pool.imap_unordered(_try, _spread(names), chunksize=1):
            fates[tried.defect] = tried
            show(tried.where, len(fates), len(names))
    ordered = tuple(fates[name] for name in names)
    explained, wrong = _explained(ordered, reasons)
    return Campaign(ordered, explained, wrong, perf_counter() - began)


def _spread(names: list[str]) -> Iterable[str]:
    """Long trials stand together; apart, they do not all come last."""
    return (name for start in range(7) for name in names[start::7])


@cache
def _all() -> tuple[Defect, ...]:
    return tuple(defects())


@cache
def _by_name() -> dict[str, Defect]:
    return {defect.name: defect for defect in _all()}


_stages: tuple[Stage, ...] = STAGES


def _begin(stages: tuple[Stage, ...]) -> None:
    global _stages
    _stages = stages


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
                if by_name[name].outcome in (Outcome.LINT, Outcome.PROPERTY):
                    wrong.append(f"{name!r} has a reason to survive, and is {by_name[name].outcome.value}")
                elif name in explained:
                    wrong.append(f"{name!r} has two reasons")
                else:
                    explained[name] = reason.why
    return explained, tuple(wrong)
