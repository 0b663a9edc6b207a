"""The scenario table: complete, consistent with the variants, and the page of the docs is up to date."""

from __future__ import annotations

import re
from pathlib import Path

from procession.specs.scenarios import GROUPS, ROWS
from procession.specs.scenarios.page import page
from procession.specs.variants import VARIANTS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "scenarios.md"
REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def test_each_row_is_shown_or_left_out_for_a_reason() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) == 136
    for row in ROWS:
        assert row.covered != bool(row.why), row
        assert row.sentence.endswith("."), row
        assert REPORT.fullmatch(row.report), row


def test_what_is_covered_is_pinned() -> None:
    assert {title: (sum(row.covered for row in rows), len(rows)) for title, rows in GROUPS.items()} == {
        "READY handshake and start-up": (18, 21),
        "Queue readiness and order of set-up": (8, 9),
        "Futures, replies, deadlines, aggregation": (23, 28),
        "Shutdown, monitors, signals, orphans": (40, 51),
        "Queue internals": (14, 25),
        "Run and pause, agreed between engines": (2, 2),
    }


def test_every_variant_named_exists() -> None:
    assert not {name for row in ROWS for name in row.by} - set(VARIANTS)


def test_a_report_that_a_variant_names_is_in_a_row_that_names_the_variant() -> None:
    for variant in VARIANTS.values():
        for report in variant.reports:
            rows = [row for row in ROWS if row.report == report]
            assert not rows or any(variant.name in row.by for row in rows), (variant.name, report)
    first = {row.by[0]: row for row in ROWS if row.covered}
    assert all(VARIANTS[name].reports for name in first)


def test_only_rules_seen_in_measurements_are_in_no_row() -> None:
    used = {name for row in ROWS for name in row.by}
    assert set(VARIANTS) - used == {
        "reordered-waits",
        "crossed-waits",
        "drainer-leaves-quietly",
        "monitor-before-queue",
        "sigterm-without-grace",
        "callback-after-the-end",
        "last-listener-only",
    }


def test_the_page_of_the_docs_is_what_would_be_written_now() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: procession scenarios --markdown"


def test_links_within_the_page_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= headings
