"""Write the protocol reference from the tables.

Theory of operation. The pages are Markdown with Mermaid, which GitHub renders as they are. With --check nothing is
written, and a page that is not what its tables say is named.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..exits import Exit


@click.command("reference")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("docs"))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a page is out of date.")
def command(folder: Path, check: bool) -> Exit:
    """Write a page for each protocol into FOLDER (default: docs)."""
    from ..specs.reference import PAGES, page

    stale = []
    for name in PAGES:
        target, text = folder / f"{name}.md", page(name)
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        stale.append(target)
        if not check:
            folder.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    for target in stale:
        click.echo(f"{'out of date' if check else 'wrote'}: {target}")
    if not stale:
        click.echo(f"{len(PAGES)} pages are what their tables say")
    return Exit.ERROR if check and stale else Exit.OK
