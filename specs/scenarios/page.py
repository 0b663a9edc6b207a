"""The page of the docs: every scenario, what convicts it, and the runs that convict the reference system.

Theory of operation. The page is made from the table and from the convictions themselves, and a test compares it with
what is committed, so it cannot say what the checker does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..variants import BUNDLES, VARIANTS, Conviction, Variant, convict
from ..variants.order import all_orders, deadlocks
from . import GROUPS, ROWS
from .row import Scenario

_SIZES = (1, 2, 3)
_HEAD = """<!-- Written by `procession scenarios --markdown`; do not edit. -->

# Scenarios

What users of multiprocess executors, and of what they are built from, have met; and for each, the rule behind it as a
*known-bad variant* that the checker convicts. A variant is the shipped protocol with one rule changed (a table's row, a
coupling, or who reads what and when), or a small model of its own where the fault lies below the protocol. It is
convicted by a property that the unchanged protocol, at the same size, keeps. *Steps* is the length of the
counterexample, from where the model begins.

- `procession scenarios` prints the table, `procession scenarios --check` tries every conviction again.
- `procession check --variant NAME` shows a counterexample; `--variant list` lists the variants.
"""
_ORDERS = """The reference system waits for one queue after the other, and warns that this deadlocks if re-ordered.
Every order of the executor (the broadcast queue B, a reply queue R of each rank) against every order of every worker (B
first, or its own R first), local readers or remote:
"""
_RULE = """
Where readers join when their end is made, as there, an order deadlocks exactly if some rank waits for B first while
the executor waits for that rank's R before B. Where they join only when they wait, every rank must wait in the
executor's own order. With a writer that counts nobody (PUB/SUB), every order can lose OPEN. The runtime waits for
everything at once, and has no order. The orders of one rank:
"""
_REFERENCE = """Its own rules, version by version, each tried alone. The diagrams are the counterexamples; what need not
have happened (a fault, a caller who calls) stands in a red box.
"""


def page() -> str:
    """The page as Markdown. Tries the variants of the reference system, which takes some seconds."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    covered = sum(row.covered for row in ROWS)
    yield f"{len(ROWS)} scenarios: {covered} convicted by {len(VARIANTS)} variants, {len(ROWS) - covered} left out."
    for title, rows in GROUPS.items():
        shown = [row for row in rows if row.covered]
        yield f"\n## {title}\n"
        yield f"{len(shown)} of {len(rows)}.\n"
        yield "| | report | what happened | variant | property violated | steps |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for row in shown:
            yield from _row(row)
    yield "\n## Left out\n"
    yield "| | report | what happened | why |"
    yield "| --- | --- | --- | --- |"
    for row in ROWS:
        if not row.covered:
            yield f"| {row.id} | {_link(row.report)} | {row.sentence} | {row.why} |"
    yield from _orders()
    yield from _reference()
    yield from _catalogue()


def _row(row: Scenario) -> Iterator[str]:
    for number, name in enumerate(row.by):
        variant = VARIANTS[name]
        first = f"{row.id} | {_link(row.report)} | {row.sentence}" if number == 0 else " | | "
        yield f"| {first} | [{name}](#{name}) | {variant.violates} | {variant.length} |"


def _orders() -> Iterator[str]:
    yield "\n## Orders in which queues are waited for\n"
    yield _ORDERS
    yield "| ranks | orders | deadlock, if readers join when made | deadlock, if they join when they wait |"
    yield "| --- | --- | --- | --- |"
    for ranks in _SIZES:
        orders = list(all_orders(ranks))
        early = sum(map(deadlocks, orders))
        late = sum(map(deadlocks, all_orders(ranks, late=True)))
        yield f"| {ranks} | {len(orders)} | {early} | {late} |"
    yield _RULE
    yield "| order | readers join when made | readers join when they wait |"
    yield "| --- | --- | --- |"
    for one, late_one in zip(all_orders(1), all_orders(1, late=True), strict=True):
        yield f"| {one} | {_opens(deadlocks(one))} | {_opens(deadlocks(late_one))} |"


def _opens(deadlock: bool) -> str:
    return "deadlock" if deadlock else "opens"


def _reference() -> Iterator[str]:
    yield "\n## The reference system\n"
    yield _REFERENCE
    for version, names in BUNDLES.items():
        yield f"- `{version}`: {', '.join(f'[{name}](#{name})' for name in names)}"
    tried = list(dict.fromkeys(name for names in BUNDLES.values() for name in names))
    for name in tried:
        yield from _run(convict(VARIANTS[name]))


def _run(conviction: Conviction) -> Iterator[str]:
    variant, run = conviction.variant, conviction.counterexample
    assert run is not None
    reports = f" ({', '.join(map(_link, variant.reports))})" if variant.reports else ""
    yield f"\n<details><summary>{variant.name}: {_steps(variant)}</summary>\n"
    yield f"{variant.sentence}{reports} Violated: *{variant.violates}*.\n"
    yield "```mermaid"
    yield run.to_mermaid().rstrip()
    yield "```\n"
    yield "</details>"


def _catalogue() -> Iterator[str]:
    yield "\n## Variants\n"
    for variant in VARIANTS.values():
        yield f"### {variant.name}\n"
        yield f"{variant.sentence}\n"
        yield _told(variant)


def _told(variant: Variant) -> str:
    reports = ", ".join(map(_link, variant.reports)) or "seen in measurements of ours"
    lint = f" Lint refuses it already: {'; '.join(variant.lint)}." if variant.lint else ""
    return (
        f"Model `{variant.model}`, violates *{variant.violates}* after {_steps(variant)}; {reports}.{lint}\n"
    )


def _steps(variant: Variant) -> str:
    return "1 step" if variant.length == 1 else f"{variant.length} steps"


def _link(report: str) -> str:
    repository, number = report.split("#")
    return f"[{report}](https://github.com/{repository}/issues/{number})"
