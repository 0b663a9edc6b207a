"""Compare our verdicts with those of rumur and spin, on models exported from the same tables.

Theory of operation. Each model is judged by our explorer, exported to Murphi and to Promela, and judged again by the
two tools (see specs/export/agree.py). One difference is a disagreement, and exits with 2. A tool that is missing or ran
out of time has established nothing: that is said, and exits with 3; it is never green. Progress goes to stderr.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit

if TYPE_CHECKING:
    from rich.console import Console

    from ..specs.export.agree import Comparison

_COLOURS = {"holds": "green", "violated": "red", "not established": "yellow"}
_WORDS = {"holds": "agree", "violated": "disagree", "not established": "not established"}


def _selected(names: Sequence[str], workers: int | None, quick: bool) -> list[tuple[Any, int]]:
    from ..specs.export.agree import FULL, QUICK
    from ..specs.models import MODELS

    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise click.BadParameter(f"no model is called {unknown[0]!r}. There are: {', '.join(MODELS)}.")
    sizes = QUICK if quick else FULL
    chosen = names or (tuple(sizes) if workers is None else tuple(MODELS))
    return [
        (MODELS[name], ranks)
        for name in chosen
        for ranks in ((workers,) if workers is not None else sizes.get(name, (1,)))
    ]


def _compared(selected: list[tuple[Any, int]], seconds: float) -> list[Comparison]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ..specs.export.agree import compare

    found = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        for number, (model, ranks) in enumerate(selected, start=1):
            words = f"{model.name}, {ranks} ranks ({number} of {len(selected)})"
            task = bars.add_task(words)

            def tell(who: str, words: str = words, task: Any = task) -> None:
                bars.update(task, description=f"{words}: {who}")

            found.append(compare(model, ranks, seconds=seconds, tell=tell))
            bars.remove_task(task)
    return found


def _print(found: list[Comparison]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(
        "model", "ranks", "states (ours, rumur)", "verdicts (ours, rumur, spin)", "seconds", "engines"
    )
    for one in found:
        table.add_row(*_row(one))
    console.print(table)
    for one in found:
        _print_details(console, one)
    total = sum(one.ours.states for one in found if one.ours is not None)
    asked = sum(len(one.ours.outcomes) for one in found if one.ours is not None)
    console.print(
        f"{len(found)} comparisons, {total:,} states, {asked} verdicts: {_coloured(_worst(found))}",
        soft_wrap=True,
    )


def _row(one: Comparison) -> list[str]:
    rumur, spin, ours = one.finding("rumur"), one.finding("spin"), one.ours
    counted = "–" if rumur is None or rumur.states is None else f"{rumur.states:,}"
    said = [
        "–" if ours is None else _tally(outcome.verdict for outcome in ours.outcomes),
        *("–" if part is None or part.silent else _tally(part.verdicts.values()) for part in (rumur, spin)),
    ]
    return [
        one.model,
        str(one.ranks),
        f"{'–' if ours is None else f'{ours.states:,}'}, {counted}",
        ", ".join(said),
        ", ".join("–" if part is None else f"{part.seconds:.0f}" for part in (ours, rumur, spin)),
        _coloured(one.verdict),
    ]


def _tally(verdicts: Iterable[object]) -> str:
    """How many verdicts there are, and how many of them are not *holds*: "24" or "24 (2 violated)"."""
    words = [str(verdict) for verdict in verdicts]
    bad = [f"{words.count(said)} {said}" for said in ("violated", "not established") if said in words]
    return f"{len(words)} ({', '.join(bad)})" if bad else str(len(words))


def _print_details(console: Console, one: Comparison) -> None:
    from rich.markup import escape

    for words, colour in ((one.differences, "red"), (one.gaps, "yellow")):
        for line in words:
            console.print(f"[{colour}]{one.model}, {one.ranks} ranks[/]: {escape(line)}", soft_wrap=True)


def _coloured(verdict: object) -> str:
    return f"[{_COLOURS[str(verdict)]}]{_WORDS[str(verdict)]}[/]"


def _worst(found: list[Comparison]) -> Any:
    from ..specs.explore import worst

    return worst(one.verdict for one in found)


@click.command("agree")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--workers", type=click.IntRange(min=1), help="Ranks, instead of the sizes of each model.")
@click.option("--quick", is_flag=True, help="Three models of one rank: half a minute of processor time.")
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=900.0,
    show_default=True,
    help="What each tool may take for one model.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def command(
    models: tuple[str, ...], workers: int | None, quick: bool, max_seconds: float, as_json: bool
) -> Exit:
    """Compare our verdicts on MODEL (default: all) with those of rumur (Murphi) and spin (Promela).

    Exits with 0 when all three agree on everything, 2 when two disagree, 3 when a tool is missing or out of time.
    """
    found = _compared(_selected(models, workers, quick), max_seconds)
    verdict = _worst(found)
    if as_json:
        whole = {
            "verdict": str(verdict),
            "exit_code": verdict.exit_code,
            "comparisons": [one.to_json() for one in found],
        }
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        _print(found)
    return Exit(verdict.exit_code)
