"""Break every row of every table in turn, and say which property convicts each defect.

Theory of operation. The defects, their trial and the reasons of survivors are `procession.specs.mutation`; here they
are chosen, counted and printed. The exit code is that of a checker that is itself being checked: 2 if a defect survives
that nobody has explained (or an explanation is stale, or too few are killed), 3 if the campaign was cut short.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit
from ..options import writes_page

if TYPE_CHECKING:
    from rich.console import Console

    from ..specs.mutation import Campaign

PAGE = "docs/mutants.md"
_LIMIT = 300.0


def _known(names: Sequence[str]) -> set[str]:
    from ..specs.mutation import defects

    known = list(dict.fromkeys(defect.where for defect in defects()))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(
            f"no table or list of rows is called {unknown[0]!r}. There are: {', '.join(known)}."
        )
    return set(names)


def _tried(names: Sequence[str], sample: int | None, seed: int, limit: float) -> Campaign:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..specs.mutation import run

    wanted = _known(names) if names else set()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None)

        def show(where: str, done: int, total: int) -> None:
            bar.update(task, description=where, completed=done, total=total)

        return run(
            lambda defect: not names or defect.where in wanted,
            sample=sample,
            seed=seed,
            limit=limit or None,
            show=show,
        )


def _print(campaign: Campaign, every: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(_table(campaign))
    if every:
        for one in campaign.fates:
            by = f" by {one.by!r} ({one.model}, {one.steps} steps)" if one.model else ""
            words = f": {one.by}" if one.by and not one.model else ""
            shown = f": {one.shown}" if one.shown else ""
            console.print(
                f"{one.defect}: {one.outcome.value}{by}{words}{shown}", markup=False, soft_wrap=True
            )
    _print_survivors(console, campaign)
    for wrong in campaign.wrong:
        console.print(f"[red]wrong reason[/]: {escape(wrong)}", soft_wrap=True)
    if campaign.untried:
        console.print(
            f"[yellow]not established[/]: the time limit left {len(campaign.untried):,} defects untried",
            soft_wrap=True,
        )
    cpu = sum(one.seconds for one in campaign.fates)
    console.print(
        f"{len(campaign.fates):,} defects in {campaign.seconds:.0f} s ({cpu:.0f} s of work): {campaign.share:.1%} of "
        "those that lint lets pass and that are not equivalent are killed by a property",
        soft_wrap=True,
    )


def _table(campaign: Campaign) -> Any:
    from rich.table import Table

    from ..specs.mutation.counts import by_table, in_all

    heads = (
        "defects",
        "refused by lint",
        "killed",
        "equivalent",
        "explained",
        "unexplained",
        "undecided",
        "share",
    )
    table = Table("table")
    for head in heads:
        table.add_column(head, justify="right")
    rows = by_table(campaign)
    for counts in (*rows, in_all(campaign)):
        if counts.where == "all":
            table.add_section()
        numbers = (
            counts.defects,
            counts.lint,
            counts.killed,
            counts.equivalent,
            counts.explained,
            counts.unexplained,
            counts.undecided,
        )
        share = "" if counts.share is None else f"{counts.share:.1%}"
        table.add_row(counts.where, *(f"{number:,}" for number in numbers), share)
    return table


def _print_survivors(console: Console, campaign: Campaign) -> None:
    from rich.markup import escape

    from ..specs.mutation import Outcome
    from ..specs.mutation.counts import by_reason

    for why, names in by_reason(campaign):
        console.print(f"\n[yellow]survived[/]: {escape(why)}", soft_wrap=True)
        for name in names:
            console.print(f"  {name}", markup=False, soft_wrap=True)
    for one in campaign.those(Outcome.UNDECIDED):
        console.print(f"[yellow]undecided[/] in {one.model}: {escape(one.defect)}", soft_wrap=True)
    for one in campaign.unexplained:
        console.print(f"[red]survived, unexplained[/]: {escape(one.defect)}", soft_wrap=True)
    console.print()


def _json(campaign: Campaign, verdict: Exit) -> dict[str, Any]:
    from ..specs.mutation.counts import by_table, in_all

    return {
        "exit_code": int(verdict),
        "seconds": round(campaign.seconds, 3),
        "counts": [asdict(one) | {"share": one.share} for one in (*by_table(campaign), in_all(campaign))],
        "defects": [
            asdict(one) | {"outcome": one.outcome.value, "reason": campaign.reasons.get(one.defect)}
            for one in campaign.fates
        ],
        "wrong_reasons": list(campaign.wrong),
        "untried": list(campaign.untried),
    }


def _verdict(campaign: Campaign, whole: bool) -> Exit:
    from ..specs.mutation import Outcome
    from ..specs.mutation.counts import BAR

    if campaign.unexplained or campaign.wrong:
        return Exit.VIOLATED
    if campaign.untried or campaign.those(Outcome.UNDECIDED):
        return Exit.NOT_ESTABLISHED
    return Exit.VIOLATED if whole and campaign.share < BAR else Exit.OK


@click.command("mutate")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--sample", type=click.IntRange(min=1), help="Try this many, drawn by the seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the sample.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    default=_LIMIT,
    show_default=True,
    help="Stop after this many seconds; 0: never.",
)
@click.option("--all", "every", is_flag=True, help="List every defect and what became of it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@writes_page(PAGE, ", too")
def command(
    tables: tuple[str, ...],
    sample: int | None,
    seed: int,
    time_limit: float,
    every: bool,
    as_json: bool,
    markdown: Path | None,
) -> Exit:
    """Make every single-row defect of every table and coupling (or of TABLE alone), and ask the checker.

    Exits with 0 when each is killed, equivalent, or survives for a known reason, 2 when one survives without, 3 when
    the time limit kept some from being tried.
    """
    whole = not tables and sample is None
    if markdown is not None and not whole:
        raise click.UsageError("--markdown writes about a whole campaign: leave out TABLE and --sample.")
    campaign = _tried(tables, sample, seed, time_limit)
    verdict = _verdict(campaign, whole)
    if markdown is not None and not campaign.untried:
        from ..specs.mutation.page import page

        markdown.write_text(page(campaign), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(_json(campaign, verdict), indent=2, ensure_ascii=False))
    else:
        _print(campaign, every)
    return verdict
