"""Measure the executor beside its peers, in one run, and compare.

Theory of operation. The command checks its options, warms the fork server from which every peer but loky and vLLM
starts its processes, runs the rounds (see `procession.bench`), looks for what is left behind, and writes. Progress
goes to stderr; the tables, or the last words alone if they go into a file, go to stdout. It judges nothing: the exit
code is 0 unless something was left behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..exits import Exit

if TYPE_CHECKING:
    from ..bench.peer import Entry
    from ..bench.plan import Plan
    from ..bench.report import Result

_WIDE = 132  # columns of the tables, where nobody's terminal is narrower
_FILE = click.Path(dir_okay=False, path_type=Path)


def _some(text: str | None, known: list[str], what: str) -> list[str]:
    if text is None:
        return known
    # A name may hold a comma, so the longest known name that the rest begins with is taken.
    found, rest = [], text.strip()
    while rest:
        name = max((each for each in known if rest.startswith(each)), key=len, default=None)
        after = "" if name is None else rest[len(name) :].lstrip()
        if name is None or (after and not after.startswith(",")):
            raise click.BadParameter(f"no {what} is called {rest!r}. There are: {'; '.join(known)}.")
        found.append(name)
        rest = after.removeprefix(",").strip()
    if not found:
        raise click.BadParameter(f"name at least one {what} of: {'; '.join(known)}.")
    return [each for each in known if each in found]


def _ranks(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        counts = tuple(sorted({int(word) for word in text.split(",")}))
    except ValueError:
        raise click.BadParameter(f"--ranks takes numbers like 1,2,4, not {text!r}.") from None
    if counts[0] < 1 or counts[-1] > 64:
        raise click.BadParameter(f"--ranks takes numbers from 1 to 64, not {text!r}.")
    return counts


def _writable(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise click.ClickException(
                f"{path} cannot be written: there is no folder {path.absolute().parent}."
            )


def _own_folder() -> None:
    """Temporary files of this run go where nobody else's are, so that what is left behind is known to be its own."""
    from multiprocessing.util import Finalize

    folder = tempfile.mkdtemp(prefix="procession-bench-")
    # After multiprocessing has removed its own, which it does with priority -100.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-1000)
    tempfile.tempdir = os.environ["TMPDIR"] = folder


def _run(plan: Plan, entries: list[Entry]) -> Result:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ..bench.machine import machine
    from ..bench.peers import close
    from ..bench.peers.ours import PRELOAD
    from ..bench.report import Result
    from ..bench.rounds import Rounds
    from ..bench.stepping import stepping
    from ..runtime.fork_server import warm
    from ..runtime.leftovers import left_behind, snapshot

    _own_folder()
    warm(PRELOAD)
    before, things, began = machine(), snapshot(), time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Drawn between the bursts: a thread that draws by itself would hold the interpreter in the middle of them.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("")
        rounds = Rounds(plan, entries, lambda what: progress.update(task, description=what, refresh=True))
        book = rounds.run()
        about_steps = "stepping" in plan.measures
        steps = {ranks: stepping(ranks) for ranks in plan.ranks} if about_steps else {}
    close()
    took = time.monotonic() - began
    return Result(plan, entries, book, steps, rounds.done, took, before, machine(), left_behind(things))


@click.command("bench")
@click.option("--quick", is_flag=True, help="Under a minute: fewer rounds, and nothing above 1 MiB.")
@click.option("--only", metavar="MEASURE,...", help="Only these measures; --list names them.")
@click.option("--peers", metavar="PEER,...", help="Only these peers, and ours; --list names them.")
@click.option("--ranks", metavar="N,...", help="Numbers of worker processes.  [default: 1,2,4]")
@click.option("--json", "json_file", type=_FILE, help="Write everything to this file.")
@click.option(
    "--markdown", type=_FILE, help="Write the tables to this file, between the marks if it has them."
)
@click.option("--plot", type=_FILE, help="Draw an SVG; needs matplotlib.")
@click.option("--list", "list_only", is_flag=True, help="List measures and peers, and stop.")
def command(
    quick: bool,
    only: str | None,
    peers: str | None,
    ranks: str | None,
    json_file: Path | None,
    markdown: Path | None,
    plot: Path | None,
    list_only: bool,
) -> Exit:
    """Measure our executor and its peers side by side, interleaved in one run.

    It takes up to six minutes. Every figure comes with its range, and as a ratio that was made within the run.
    """
    from ..bench.peers import OURS, entries
    from ..bench.plan import MEASURES, Plan

    every = entries()
    if list_only:
        _list(every, MEASURES)
        return Exit.OK
    plan = Plan().quick() if quick else Plan()
    plan = replace(
        plan,
        measures=frozenset(_some(only, list(MEASURES), "measure")),
        ranks=_ranks(ranks) or plan.ranks,
    )
    chosen = _some(peers, [entry.name for entry in every], "peer")
    _writable(json_file, markdown, plot)
    if plot is not None:
        _check_plot()
    result = _run(plan, [entry for entry in every if entry.name in {OURS, *chosen}])
    _write(result, json_file, markdown, plot)
    return Exit.ERROR if result.left else Exit.OK


def _list(every: list[Entry], measures: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("measure", "what is measured")
    for name, what in measures.items():
        table.add_row(name, what)
    console.print(table)
    table = Table("peer", "what it is", "here")
    for entry in every:
        table.add_row(entry.name, entry.what, entry.missing or "installed")
    console.print(table)


def _check_plot() -> None:
    import importlib.util

    from ..bench.plot import MISSING

    if importlib.util.find_spec("matplotlib") is None:
        raise click.ClickException(MISSING)


def _write(result: Result, json_file: Path | None, markdown: Path | None, plot: Path | None) -> None:
    from rich.console import Console

    from ..bench.plot import draw
    from ..bench.report import put_in

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    if json_file is not None:
        json_file.write_text(result.to_json() + "\n", encoding="utf-8")
    if markdown is not None:
        page = markdown.read_text(encoding="utf-8") if markdown.exists() else ""
        markdown.write_text(put_in(page, result.to_markdown()), encoding="utf-8")
    if plot is not None:
        draw(result, plot)
    if markdown is None:
        result.print(console)
        return
    for line in result.last_words():
        console.print(line, markup=False, soft_wrap=True)
