"""List what users of executors met, and the known-bad variant that the checker convicts for it.

Theory of operation. The table is data (`procession.specs.scenarios`), and printing it runs nothing. With `--check` each
variant is tried with its right twin: a conviction stands if the variant violates its property in the pinned number of
steps, and the twin keeps it. The exit code is 2 if one does not stand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit
from ..options import writes_page

if TYPE_CHECKING:
    from ..specs.variants import Conviction

PAGE = "docs/scenarios.md"


def _tried() -> dict[str, Conviction]:
    from rich.console import Console
    from rich.progress import Progress

    from ..specs.variants import VARIANTS, convict

    found = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for variant in bar.track(list(VARIANTS.values()), description="convicting"):
            found[variant.name] = convict(variant)
    return found


def _print(found: dict[str, Conviction]) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..specs.scenarios import GROUPS, ROWS
    from ..specs.variants import VARIANTS

    table = Table("", "report", "what happened", "variant", "property violated", "steps")
    for title, rows in GROUPS.items():
        table.add_row("", "", f"[bold]{title}[/]")
        for row in rows:
            if not row.covered:
                table.add_row(row.id, row.report, row.sentence, f"[dim]left out: {row.why}[/]")
            for number, name in enumerate(row.by):
                head = (row.id, row.report, row.sentence) if number == 0 else ("", "", "")
                variant = VARIANTS[name]
                table.add_row(*head, name, variant.violates, _steps(name, found))
        table.add_section()
    console = Console(highlight=False)
    console.print(table)
    covered = sum(row.covered for row in ROWS)
    console.print(
        f"{len(ROWS)} scenarios: {covered} by {len(VARIANTS)} variants, {len(ROWS) - covered} left out",
        soft_wrap=True,
    )
    if found:
        fallen = [one for one in found.values() if not one.stands]
        for one in fallen:
            console.print(
                f"[red]does not stand[/]: {one.variant.name}: {one.verdict} ({one.reason}), {one.length} steps for "
                f"{one.variant.length}; without the change: {one.right}",
                soft_wrap=True,
            )
        console.print(f"{len(found) - len(fallen)} of {len(found)} convictions stand", soft_wrap=True)


def _steps(name: str, found: dict[str, Conviction]) -> str:
    from ..specs.variants import VARIANTS

    if name not in found:
        return str(VARIANTS[name].length)
    return f"[green]{found[name].length}[/]" if found[name].stands else "[red]not convicted[/]"


def _json(found: dict[str, Conviction]) -> dict[str, Any]:
    from ..convictions import to_json
    from ..specs.scenarios import GROUPS, ROWS
    from ..specs.variants import VARIANTS

    return {
        "scenarios": len(ROWS),
        "covered": sum(row.covered for row in ROWS),
        "left_out": sum(not row.covered for row in ROWS),
        "rows": [
            {
                "id": row.id,
                "group": title,
                "report": row.report,
                "sentence": row.sentence,
                "why_left_out": row.why or None,
                "variants": [
                    {"name": name, "property": VARIANTS[name].violates, "steps": VARIANTS[name].length}
                    for name in row.by
                ],
            }
            for title, rows in GROUPS.items()
            for row in rows
        ],
        "convictions": [to_json(one) for one in found.values()],
    }


@click.command("scenarios")
@click.option("--check", "try_all", is_flag=True, help="Try every conviction again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@writes_page(PAGE, " and stop")
def command(try_all: bool, as_json: bool, markdown: Path | None) -> Exit:
    """Print each scenario, the variant that shows it, and the property that convicts it.

    Exits with 2 if, with --check, a conviction does not stand.
    """
    if markdown is not None:
        from ..specs.scenarios.page import page

        markdown.write_text(page(), encoding="utf-8")
        return Exit.OK
    found = _tried() if try_all else {}
    if as_json:
        click.echo(json.dumps(_json(found), indent=2, ensure_ascii=False))
    else:
        _print(found)
    return Exit.OK if all(one.stands for one in found.values()) else Exit.VIOLATED
