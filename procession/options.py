"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def writes_page(page: str, then: str) -> Callable[[F], F]:
    """`--markdown [PATH]`: write a page of the docs, by default its own; `then` says what the command does besides."""
    return click.option(
        "--markdown",
        is_flag=False,
        flag_value=page,
        metavar="[PATH]",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Write the page of the docs ({page}){then}.",
    )
