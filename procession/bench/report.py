"""A run's result, and its three forms: tables on a terminal, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .. import __version__
from .figures import Book
from .machine import closing_line
from .peer import Entry
from .plan import Plan
from .stepping import Stepping
from .tables import Table, Tables

if TYPE_CHECKING:
    from rich.console import Console

BEGIN = "<!-- procession bench: begin -->"
END = "<!-- procession bench: end -->"


@dataclass
class Result:
    """Everything that a run found. `took`: seconds. `left`: sentences about what was left behind."""

    plan: Plan
    entries: list[Entry]
    book: Book
    steps: dict[int, Stepping]
    rounds: int
    took: float
    before: dict[str, Any]
    after: dict[str, Any]
    left: list[str]

    def tables(self) -> list[Table]:
        """As text."""
        return Tables(self.book, self.entries, self.steps).all()

    def last_words(self) -> list[str]:
        """What stands under the tables."""
        left = "nothing" if not self.left else "; ".join(self.left)
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        return [
            f"{rounds} in {self.took:.0f} s; left behind: {left}.",
            closing_line(self.before, self.after),
        ]

    def to_json(self) -> str:
        """One object."""
        plan = {**asdict(self.plan), "measures": sorted(self.plan.measures)}
        peers = [{"name": e.name, "what": e.what, "missing": e.missing} for e in self.entries]
        found = {
            "procession": __version__,
            "machine": self.before,
            "load_after": self.after["load"],
            "plan": plan,
            "rounds": self.rounds,
            "seconds": round(self.took, 1),
            "peers": peers,
            "figures": self.book.to_json(),
            "ratios": self._ratios(),
            "stepping": {str(ranks): steps._asdict() for ranks, steps in self.steps.items()},
            "left_behind": self.left,
        }
        return json.dumps(found, indent=1, ensure_ascii=False)

    def _ratios(self) -> list[dict[str, Any]]:
        ours = [entry.name for entry in self.entries if entry.name.startswith("procession")]
        found = []
        for cell in self.book.cells():
            for mine in ours:
                for theirs in self.book.peers(cell):
                    spread = self.book.ratio(cell, mine, theirs)
                    if spread is not None and mine != theirs:
                        found.append({**vars(cell), "ours": mine, "peer": theirs, **spread._asdict()})
        return found

    def to_markdown(self) -> str:
        """The tables and the last words."""
        parts = [_markdown(table) for table in self.tables()]
        return "\n\n".join([*parts, *self.last_words()]) + "\n"

    def print(self, console: Console) -> None:
        """On a terminal."""
        from rich.markup import escape
        from rich.table import Table as Drawn

        for table in self.tables():
            drawn = Drawn(*table.columns, title=table.title, title_justify="left")
            before = None
            for row in table.rows:
                if before not in (None, row[0]) and table.columns[0] == "N":
                    drawn.add_section()
                before = row[0]
                drawn.add_row(*(escape(word) for word in row))
            console.print(drawn)
            for note in table.notes:
                console.print(escape(note), soft_wrap=True)
            console.print()
        for line in self.last_words():
            console.print(escape(line), soft_wrap=True)


def _markdown(table: Table) -> str:
    def line(words: Sequence[str]) -> str:
        return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"

    rows = [line(table.columns), line(["---"] * len(table.columns)), *(line(row) for row in table.rows)]
    return "\n\n".join([f"### {table.title}", "\n".join(rows), *table.notes])


def put_in(page: str, tables: str) -> str:
    """The page with the tables between its marks; a page without marks gets them at its end."""
    if BEGIN in page and END in page:
        head, _, rest = page.partition(BEGIN)
        tail = rest.partition(END)[2]
    else:
        head, tail = (page.rstrip() + "\n\n" if page.strip() else ""), "\n"
    return f"{head}{BEGIN}\n\n{tables}\n{END}{tail}"
