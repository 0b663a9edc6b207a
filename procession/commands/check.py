"""Check the protocol's models: every state, every property, the shortest counterexample.

Theory of operation. Each model is searched in turn, with the properties that belong to it; what a limit cuts short is
*not established*, and never green. The exit code is the worst verdict's. Progress goes to stderr, so that stdout is
the report alone, as a table or as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from ..specs.explore import Counterexample, Outcome, Progress, Report


def _models(names: Sequence[str]) -> list[Any]:
    from ..specs.models import MODELS

    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise click.BadParameter(f"no model is called {unknown[0]!r}. There are: {', '.join(MODELS)}.")
    return [MODELS[name] for name in names or MODELS]


def _list() -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "ranks", "what it is about", "properties")
    for model in _models(()):
        world = model.world()
        table.add_row(model.name, str(model.ranks), model.sentence, str(len(model.properties(world))))
    Console(highlight=False).print(table)


def _searched(
    models: list[Any], workers: int | None, crashes: int | None, states: int | None, seconds: float | None
) -> list[Report]:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    from ..specs.explore import Limits, check

    reports = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        for number, model in enumerate(models, start=1):
            task = bars.add_task(f"{model.name} ({number} of {len(models)})")

            def show(progress: Progress, name: str = model.name, task: Any = task) -> None:
                words = f"{name}: {progress.phase}, {progress.states:,} states, depth {progress.depth}"
                bars.update(task, description=f"{words}, {progress.rate:,.0f}/s")

            world = model.world(workers, crashes)
            limits = Limits(states=states, seconds=seconds)
            reports.append(check(world, model.properties(world), limits, show, symmetry=model.symmetric))
            bars.remove_task(task)
    return reports


_COLOURS = {"holds": "green", "violated": "red", "not established": "yellow"}


def _coloured(verdict: object) -> str:
    return f"[{_COLOURS[str(verdict)]}]{verdict}[/]"


def _print(reports: list[Report]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("model", "property", "verdict", "states", "seconds")
    for report in reports:
        for number, outcome in enumerate(report.outcomes):
            first = number == 0
            table.add_row(
                report.model if first else "",
                escape(outcome.name),
                _coloured(outcome.verdict),
                f"{report.states:,}" if first else "",
                f"{report.seconds:.1f}" if first else "",
            )
        table.add_section()
    console.print(table)
    wrong = [outcome for report in reports for outcome in report.outcomes if outcome.verdict.exit_code]
    for outcome in wrong:
        words = f"{_coloured(outcome.verdict)} {escape(outcome.name)}: {escape(outcome.reason)}"
        console.print(words, soft_wrap=True)
    shortest = _shortest(wrong)
    if shortest is not None:
        console.print()
        _print_run(console, shortest)
    total = sum(report.states for report in reports)
    seconds = sum(report.seconds for report in reports)
    rate = total / max(sum(explored.seconds for r in reports for explored in r.explored), 1e-9)
    checked = sum(len(report.outcomes) for report in reports)
    console.print(
        f"{checked} properties of {len(reports)} models, {total:,} states in {seconds:.1f} s "
        f"({rate:,.0f} states/s while searching): {_coloured(_worst(reports))}",
        soft_wrap=True,
    )


def _print_run(console: Console, run: Counterexample) -> None:
    console.print(run.to_text(), markup=False, soft_wrap=True)
    console.print("```mermaid\n" + run.to_mermaid() + "```\n", markup=False, soft_wrap=True)


def _shortest(outcomes: list[Outcome]) -> Counterexample | None:
    runs = [outcome.counterexample for outcome in outcomes if outcome.counterexample is not None]
    return min(runs, key=len, default=None)


def _worst(reports: list[Report]) -> Any:
    from ..specs.explore import worst

    return worst(report.verdict for report in reports)


def _at_least(lowest: int) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def checked(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if value is not None and value < lowest:
            raise click.BadParameter(f"{value} is less than {lowest}.")
        return value

    return checked


@click.command("check")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--workers", type=int, callback=_at_least(1), help="Ranks, instead of each model's own number.")
@click.option(
    "--crashes", type=int, callback=_at_least(0), help="Ranks that may crash, instead of the model's."
)
@click.option("--max-states", type=int, callback=_at_least(1), help="Stop a search at this many states.")
@click.option("--max-seconds", type=float, callback=_at_least(0), help="Stop each search after this long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML to this file, too."
)
@click.option("--list", "list_only", is_flag=True, help="List the models and stop.")
@click.option(
    "--variant", metavar="NAME", help="Convict a known-bad variant, or a bundle of them; `list` lists them."
)
def command(
    models: tuple[str, ...],
    workers: int | None,
    crashes: int | None,
    max_states: int | None,
    max_seconds: float | None,
    as_json: bool,
    junit: Path | None,
    list_only: bool,
    variant: str | None,
) -> Exit:
    """Explore every state of MODEL (default: all of them) and judge its properties.

    Exits with 0 when all hold, 2 when one is violated, 3 when a limit kept one from being established.
    """
    if variant is not None:
        from ..convictions import show

        return show(variant, as_json)
    if list_only:
        _models(models)
        _list()
        return Exit.OK
    from ..specs.explore import junit as to_junit

    reports = _searched(_models(models), workers, crashes, max_states, max_seconds)
    if junit is not None:
        junit.write_text(to_junit(reports))
    if as_json:
        verdict = _worst(reports)
        found = {
            "verdict": str(verdict),
            "exit_code": verdict.exit_code,
            "workers": workers,
            "crashes": crashes,
            "reports": [r.to_json() for r in reports],
        }
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _print(reports)
    return Exit(_worst(reports).exit_code)
