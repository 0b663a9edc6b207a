"""How convictions of known-bad variants are shown on a terminal and as JSON.

Theory of operation. `procession check --variant` and `procession scenarios` share this; what is tried, and what must
come of it, is in `procession.specs.variants`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .exits import Exit

if TYPE_CHECKING:
    from rich.console import Console

    from .specs.variants import Conviction, Variant


def named(name: str) -> list[Variant]:
    """The variants that a name stands for: one, or a bundle. Raises click.BadParameter if there is none."""
    import difflib

    from .specs.variants import BUNDLES, VARIANTS

    names = BUNDLES.get(name, (name,) if name in VARIANTS else ())
    if not names:
        close = difflib.get_close_matches(name, [*BUNDLES, *VARIANTS], n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise click.BadParameter(f"no variant is called {name!r}.{hint} `--variant list` lists them.")
    return [VARIANTS[one] for one in names]


def list_variants() -> None:
    """Print every variant, and the bundles."""
    from rich.console import Console
    from rich.table import Table

    from .specs.variants import BUNDLES, VARIANTS

    table = Table("variant", "model", "steps", "what it does")
    for variant in VARIANTS.values():
        table.add_row(variant.name, variant.model, str(variant.length), variant.sentence)
    console = Console(highlight=False)
    console.print(table)
    for bundle, names in BUNDLES.items():
        console.print(f"{bundle}: {', '.join(names)}", soft_wrap=True)


def show(name: str, as_json: bool) -> Exit:
    """Try the variants that `name` stands for and print what came of it; the exit code is the worst verdict's."""
    from .specs.explore import worst
    from .specs.variants import convict

    if name == "list":
        list_variants()
        return Exit.OK
    found = [convict(variant) for variant in named(name)]
    if as_json:
        click.echo(json.dumps([to_json(one) for one in found], indent=2, ensure_ascii=False))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        for one in found:
            print_run(console, one)
        if len(found) > 1:
            print_table(console, found)
    return Exit(worst(one.verdict for one in found).exit_code)


def print_run(console: Console, conviction: Conviction) -> None:
    """Print one conviction, its counterexample as text and as a Mermaid diagram."""
    variant, run = conviction.variant, conviction.counterexample
    console.print(f"[bold]{variant.name}[/]: {variant.sentence}", soft_wrap=True)
    reports = ", ".join(variant.reports) or "seen in measurements of ours"
    console.print(f"  reports: {reports}", markup=False, soft_wrap=True)
    console.print(
        f"  {conviction.verdict}: {variant.violates}: {conviction.reason}", markup=False, soft_wrap=True
    )
    console.print(f"  without the change: {conviction.right}", markup=False, soft_wrap=True)
    if variant.lint:
        console.print(f"  lint refuses it already: {'; '.join(variant.lint)}", markup=False, soft_wrap=True)
    console.print()
    if run is not None:
        console.print(run.to_text(), markup=False, soft_wrap=True)
        console.print("```mermaid\n" + run.to_mermaid() + "```\n", markup=False, soft_wrap=True)


def print_table(console: Console, convictions: list[Conviction]) -> None:
    """Print a line a conviction."""
    from rich.table import Table

    table = Table("variant", "verdict", "property", "steps", "without the change")
    for one in convictions:
        wanted = "red" if one.verdict.exit_code == Exit.VIOLATED else "yellow"
        table.add_row(
            one.variant.name,
            f"[{wanted}]{one.verdict}[/]",
            one.variant.violates,
            "-" if one.length is None else str(one.length),
            str(one.right),
        )
    console.print(table)


def to_json(conviction: Conviction) -> dict[str, Any]:
    """One conviction as JSON data; its counterexample is one that `procession validate` reads."""
    variant, run = conviction.variant, conviction.counterexample
    return {
        "variant": variant.name,
        "sentence": variant.sentence,
        "reports": list(variant.reports),
        "model": variant.model,
        "property": variant.violates,
        "verdict": str(conviction.verdict),
        "reason": conviction.reason,
        "without_the_change": str(conviction.right),
        "steps": conviction.length,
        "pinned": variant.length,
        "stands": conviction.stands,
        "states": conviction.states,
        "lint": list(variant.lint),
        "counterexample": None if run is None else run.to_json(),
    }
