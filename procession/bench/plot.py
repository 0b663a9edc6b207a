"""The plot: what an empty call costs, what a payload costs, how many calls a second, how long an error takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .figures import Cell, Spread
from .peer import Reply
from .plan import size
from .rounds import HERE

if TYPE_CHECKING:
    from .report import Result

MISSING = "--plot needs matplotlib, which is not installed: pip install 'procession[bench]'"


def draw(result: Result, path: Path) -> None:
    """Write an SVG (or whatever the file's ending says). Raises ImportError, with advice, without matplotlib."""
    try:
        import matplotlib as mpl

        mpl.use("svg")
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(MISSING) from error
    panels = _panels(result)
    with pyplot.rc_context({"svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(len(panels), 1, figsize=(9, 3.6 * len(panels)), squeeze=False)
        for axis, panel in zip(axes[:, 0], panels, strict=True):
            panel(axis)
        figure.suptitle(result.last_words()[-1].partition(";")[0], fontsize=8)
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.98))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def _panels(result: Result) -> list[Callable[[Any], None]]:
    book, ranks = result.book, result.plan.ranks
    names = [entry.name for entry in result.entries if entry.missing is None]
    counts = [f"N={count}" for count in ranks]
    found: list[Callable[[Any], None]] = []

    def spreads(name: str, cells: list[Cell]) -> list[Spread | None]:
        series = [book.get(cell, name) for cell in cells]
        return [None if each is None else each.spread() for each in series]

    def points(title: str, unit: str, labels: list[str], cells: list[Cell], factors: list[float]) -> None:
        every = {name: spreads(name, cells) for name in names}
        shown = {name: values for name, values in every.items() if any(values)}
        if shown:
            found.append(lambda axis: _points(axis, title, unit, labels, shown, factors))

    micro = [1e6] * len(ranks)
    empty = [Cell("call", count, 0, Reply.ALL) for count in ranks]
    points("Round trip of an empty call, all ranks", "µs", counts, empty, micro)
    copies = [book.get(Cell("memcpy", payload=many), HERE) for many in result.plan.sizes]
    units = [None if each is None else each.spread() for each in copies]
    if all(units):
        cells = [Cell("call", max(ranks), many, Reply.ALL) for many in result.plan.sizes]
        labels = [size(many) for many in result.plan.sizes]
        factors = [1 / unit.median for unit in units if unit is not None]
        points(f"There and back, all ranks, N={max(ranks)}", "× memcpy", labels, cells, factors)
    many = max(result.plan.outstanding)
    cells = [Cell("pipeline", count, 0, Reply.ALL, many) for count in ranks]
    points(f"Empty calls a second, {many} outstanding", "calls/s", counts, cells, [1.0] * len(ranks))
    killed = [Cell("kill", count) for count in ranks]
    points("From SIGKILL of a worker to the caller's error", "ms", counts, killed, [1e3] * len(ranks))
    return found


def _points(
    axis: Any,
    title: str,
    unit: str,
    labels: list[str],
    shown: dict[str, list[Spread | None]],
    factors: list[float],
) -> None:
    width = 0.8 / len(shown)
    for order, (name, values) in enumerate(shown.items()):
        kept = [
            (place + (order + 0.5) * width - 0.4, value, factor)
            for place, (value, factor) in enumerate(zip(values, factors, strict=True))
            if value is not None
        ]
        heights = [value.median * factor for _, value, factor in kept]
        below = [(value.median - value.low) * factor for _, value, factor in kept]
        above = [(value.high - value.median) * factor for _, value, factor in kept]
        # Points, not bars: on a logarithmic axis the length of a bar means nothing.
        places = [at for at, _, _ in kept]
        axis.errorbar(places, heights, [below, above], fmt="o", ms=4, lw=0.8, capsize=2, label=name)
    axis.set_yscale("log")
    axis.set_xticks(range(len(labels)), labels)
    axis.set_ylabel(unit)
    axis.set_title(title, fontsize=10)
    axis.legend(fontsize=7, ncols=2, loc="upper left", bbox_to_anchor=(1.0, 1.0))
