"""Programs: steps as data and as text, so that what was found can be printed, read, and done again.

A step is a word and its options: `future deed=gate who=1`. Numbers are numbers; everything else is a word. Steps are
parted by line ends or semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Value = int | str


class Step(NamedTuple):
    """One step."""

    word: str
    options: Mapping[str, Value]

    def __str__(self) -> str:
        return " ".join([self.word, *(f"{name}={value}" for name, value in self.options.items())])


def step(word: str, **options: Value) -> Step:
    """A step; options of "" are left out, as are numbers of -1: both mean none."""
    return Step(word, {name: value for name, value in options.items() if value not in ("", -1)})


def parse(text: str) -> list[Step]:
    """Read a program. Raises `ValueError` where an option is no option."""
    found = []
    for part in re.split(r"[;\n]", text):
        words = part.split()
        if words and not words[0].startswith("#"):
            found.append(Step(words[0], dict(_option(word) for word in words[1:])))
    return found


def _option(text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{text!r} is no option: an option is name=value")
    return name, int(value) if re.fullmatch(r"-?\d+", value) else value
