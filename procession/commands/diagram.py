"""Draw a table, the coupling, or a recorded trace, as Mermaid.

Theory of operation. Everything is drawn from what runs: a table from its rows, the coupling from its rows, a trace from
its lines. Mermaid is text that GitHub, editors and documentation tools render; so this prints, and renders nothing.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from ..exits import Exit
from .validate import read_lines


def _everything() -> str:
    from ..specs.diagrams import coupling_diagram, state_diagram, tables

    parts = [
        f"## {name}\n\n{table.purpose}\n\n```mermaid\n{state_diagram(table)}```"
        for name, table in tables().items()
    ]
    return "\n\n".join([*parts, f"## coupling\n\n```mermaid\n{coupling_diagram()}```"]) + "\n"


def _trace(path: Path) -> str:
    from ..specs.trace import TraceError, sequence_diagram

    try:
        return sequence_diagram(read_lines(path))
    except TraceError as error:
        raise click.ClickException(f"{str(path)!r} is not a trace: {error}.") from None


@click.command("diagram")
@click.argument("what", default="all", metavar="[TABLE|coupling|TRACE|all]")
def command(what: str) -> Exit:
    """Print a Mermaid diagram of a table, of the coupling, of a recorded TRACE, or of every table.

    A name of a table comes before a file of that name; write ./NAME for the file.
    """
    from ..specs.diagrams import coupling_diagram, state_diagram, tables

    known = tables()
    if what == "all":
        click.echo(_everything(), nl=False)
    elif what == "coupling":
        click.echo(coupling_diagram(), nl=False)
    elif what in known:
        click.echo(state_diagram(known[what]), nl=False)
    elif Path(what).exists() or "/" in what or "." in what:
        click.echo(_trace(Path(what)), nl=False)
    else:
        close = difflib.get_close_matches(what, [*known, "coupling"], n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Tables: {', '.join(known)}."
        raise click.BadParameter(f"{what!r} is neither a table, 'coupling', 'all', nor a file. {hint}")
    return Exit.OK
