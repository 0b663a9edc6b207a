"""From the book to tables of text: one table a question, a row a peer and number of ranks.

Theory of operation. A table is made once, as text, and written by two writers: for a terminal (rich) and as Markdown.
A peer that could not be measured has its row all the same, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .figures import Book, Cell, Series, Spread, ratio
from .peer import Entry
from .peers import BARE, BARE_SPINNING, OURS, OURS_SPINNING, RECORDING
from .plan import size
from .rounds import CALLER, HERE
from .stepping import Stepping

DASH = "–"


@dataclass
class Table:
    """Words. `notes` come below it."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def seconds(value: float) -> str:
    """A time with three digits and its unit."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value)} s"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _time_range(found: Spread) -> str:
    return f"{seconds(found.low)} – {seconds(found.high)}"


def times(found: Spread | None) -> str:
    """0.42 (0.40 – 0.44), for a ratio."""
    if found is None:
        return DASH
    return f"{found.median:.2f} ({found.low:.2f} – {found.high:.2f})"


class Tables:
    """All tables of a run."""

    def __init__(self, book: Book, entries: Iterable[Entry], steps: dict[int, Stepping]) -> None:
        self._book = book
        self._entries = list(entries)
        self._steps = steps

    def all(self) -> list[Table]:
        """In the order in which they are shown; those without a cell are left out."""
        found = [self._peers()]
        found += [self._calls(*key) for key in self._call_keys()]
        found += [
            self._pipeline(many) for many in sorted({c.outstanding for c in self._book.cells("pipeline")})
        ]
        words = {
            "idle": "Idle: cores used from 100 ms after the last call on",
            "first": "First call after a pause",
            "start": "Start, until the first call is answered by all ranks",
            "stop": "Shutdown, until every process is gone",
            "kill": "SIGKILL of a worker in mid-call, until the caller's error; the other ranks compute",
        }
        found += [self._simple(measure, title) for measure, title in words.items()]
        found.append(self._stepping())
        return [table for table in found if table.rows]

    def _peers(self) -> Table:
        rows = [[entry.name, entry.what, entry.missing or "measured"] for entry in self._entries]
        return Table("Peers", ["peer", "what it is", "here"], rows)

    def _rows(self, cells: Iterable[Cell], peers: Sequence[str]) -> Iterable[tuple[Cell, str, Series]]:
        for cell in cells:
            for peer in peers:
                series = self._book.get(cell, peer)
                if series is not None:
                    yield cell, peer, series

    def _names(self) -> list[str]:
        return [entry.name for entry in self._entries]

    def _ratios(self, cell: Cell, peer: str) -> list[str]:
        both = (OURS, OURS_SPINNING)
        return ["1" if peer == ours else times(self._book.ratio(cell, ours, peer)) for ours in both]

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call_keys(self) -> list[tuple[int, str]]:
        order = {"all ranks": 0, "one rank": 1, "one way": 2}
        keys = {(cell.payload, cell.reply) for cell in self._book.cells("call")}
        return sorted(keys, key=lambda key: (key[0], order.get(key[1], 9)))

    def _calls(self, payload: int, reply: str) -> Table:
        table = Table(
            f"Round trip, {size(payload)}, {reply}",
            ["N", "peer", "median", "range", "p99", *(["× memcpy"] if payload else []), *_RATIOS],
        )
        unit = self._book.get(Cell("memcpy", payload=payload), HERE)
        copy = unit.spread() if unit is not None else None
        cells = [c for c in self._book.cells("call") if (c.payload, c.reply) == (payload, reply)]
        for cell, peer, series in self._rows(cells, self._names()):
            found = series.spread()
            if found is None:
                table.rows.append(_absent(cell, peer, series, len(table.columns)))
                continue
            p99 = series.p99()
            row = [str(cell.ranks), peer, seconds(found.median), _time_range(found)]
            row.append(DASH if p99 is None else seconds(p99))
            if payload:
                row.append(DASH if copy is None else f"{found.median / copy.median:.3g}")
            table.rows.append(row + self._ratios(cell, peer))
        if copy is not None:
            table.notes.append(
                f"One memcpy of {size(payload)}: {seconds(copy.median)} ({_time_range(copy)})."
            )
        return table

    def _pipeline(self, outstanding: int) -> Table:
        table = Table(
            f"Calls a second, empty, all ranks, {outstanding} outstanding",
            ["N", "peer", "median", "range", *_RATIOS],
        )
        cells = [c for c in self._book.cells("pipeline") if c.outstanding == outstanding]
        for cell, peer, series in self._rows(cells, self._names()):
            found = series.spread()
            if found is None:
                table.rows.append(_absent(cell, peer, series, len(table.columns)))
                continue
            span = f"{found.low:,.0f} – {found.high:,.0f}"
            table.rows.append(
                [str(cell.ranks), peer, f"{found.median:,.0f}", span, *self._ratios(cell, peer)]
            )
        table.notes.append("Here more is better, so a ratio above 1 is in our favour.")
        return table

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _simple(self, measure: str, title: str) -> Table:
        cores = measure == "idle"
        last = ["÷ warm"] if measure == "first" else []
        table = Table(title, ["N", "peer", "median", "range", *([] if cores else _RATIOS), *last])
        names = [*self._names(), *([CALLER] if cores else [])]
        for cell, peer, series in self._rows(self._book.cells(measure), names):
            found = series.spread()
            if found is None:
                table.rows.append(_absent(cell, peer, series, len(table.columns)))
                continue
            if cores:
                span = f"{found.low:.3f} – {found.high:.3f}"
                table.rows.append([str(cell.ranks), peer, f"{found.median:.3f}", span])
                continue
            row = [str(cell.ranks), peer, seconds(found.median), _time_range(found)]
            row += self._ratios(cell, peer)
            if last:
                row.append(times(ratio(series, self._book.get(Cell("warm", cell.ranks), peer))))
            table.rows.append(row)
        return table

    def _stepping(self) -> Table:
        table = Table(
            "What tables and recording cost, in an empty call to all ranks", ["N", "what", "figure"]
        )
        for ranks, steps in sorted(self._steps.items()):
            cell = Cell("call", ranks, 0, "all ranks")
            ours, bare = self._book.get(cell, OURS), self._book.get(cell, BARE)
            whole = ours.spread() if ours else None
            floor = bare.spread() if bare else None
            both = steps.executor + steps.worker
            share = f", {both / whole.median:.1%} of the round trip" if whole else ""
            words = f"{seconds(steps.executor)} executor + {seconds(steps.worker)} worker{share}"
            table.rows.append([str(ranks), "stepping the tables", words])
            if whole and floor:
                over = times(self._book.ratio(cell, OURS, BARE))
                part = 1 - floor.median / whole.median
                table.rows.append(
                    [
                        str(ranks),
                        "all that is not bare transport",
                        f"{part:.0%} of the round trip; ours ÷ bare {over}",
                    ]
                )
            spinning = self._book.ratio(cell, OURS_SPINNING, BARE_SPINNING)
            if spinning is not None:
                table.rows.append([str(ranks), "the same, both spinning", f"ours ÷ bare {times(spinning)}"])
            recording = self._book.ratio(cell, RECORDING, OURS)
            if recording is not None:
                table.rows.append([str(ranks), "recording on ÷ off", times(recording)])
        return table


_RATIOS = ("ours ÷ it", "ours spinning ÷ it")


def _absent(cell: Cell, peer: str, series: Series, columns: int) -> list[str]:
    row = [str(cell.ranks), peer, "; ".join(series.problems) or "no samples"]
    return row + [""] * (columns - len(row))
