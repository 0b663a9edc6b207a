"""The reference's pages are what their tables say, and every table stands on one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from procession.specs.diagrams import tables
from procession.specs.reference import PAGES, page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_tables_say(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == page(name), "run: procession reference"


@pytest.mark.parametrize("table", tables())
def test_every_table_stands_on_one_page(table: str) -> None:
    assert sum(f"\n## `{table}`\n" in page(name) for name in PAGES) == 1


def test_every_row_and_every_state_is_shown() -> None:
    whole = "".join(page(name) for name in PAGES)
    for table in tables().values():
        for state in table.states:
            assert state.meaning in whole
        for row in table.rows:
            assert f"`{row['trigger'].value}`" in whole
