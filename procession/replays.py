"""Counterexamples that are read back: each is walked again through the model, or the variant, that it was found in.

Theory of operation. What `procession check --json` prints, with or without `--variant`, names the model and its size
beside each run. A run is accepted if the model still allows it, step by step and label by label, and if what it
repeats for ever is fair; it is refused at the first step that has become something else, as after a mended row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click


class Replay(NamedTuple):
    """One counterexample and what became of it."""

    model: str
    property: str
    steps: int
    refused: str
    """Why the model does not allow it any more; empty if it does."""

    def __str__(self) -> str:
        words = f"{self.model}: {self.property}: "
        if self.refused:
            return f"{words}refused: {self.refused}"
        return f"{words}accepted: the model has this run of {self.steps} steps"

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        verdict = "refused" if self.refused else "accepted"
        return {
            "model": self.model,
            "property": self.property,
            "steps": self.steps,
            "verdict": verdict,
            "reason": self.refused,
        }


def read(lines: list[str]) -> list[Replay] | None:
    """Replay each counterexample of a check's JSON; None if the text is none, but a trace perhaps.

    Raises click.ClickException if there is no counterexample in it, or one that cannot be read.
    """
    try:
        data = json.loads("\n".join(lines))
    except ValueError:
        return None
    if not _is_report(data):
        return None
    try:
        found = list(_found(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(f"a report that is damaged ({type(error).__name__}: {error}).") from error
    if not found:
        raise click.ClickException("a report without a counterexample: there is no run in it to replay.")
    return [_replayed(model, run) for model, run in found]


def _is_report(data: Any) -> bool:
    entries = data if isinstance(data, list) else [data]
    return bool(entries) and all(
        isinstance(entry, dict) and bool({"reports", "variant"} & entry.keys()) for entry in entries
    )


def _found(data: Any) -> Iterator[tuple[Callable[[], Any], dict[str, Any]]]:
    """Each stored run, and how its model is made."""
    for entry in data if isinstance(data, list) else [data]:
        if "variant" in entry:
            if entry.get("counterexample"):
                yield _variant(entry["variant"]), entry["counterexample"]
            continue
        for report in entry["reports"]:
            for outcome in report["properties"]:
                if outcome.get("counterexample"):
                    yield _model(report["model"], entry), outcome["counterexample"]


def _variant(name: str) -> Callable[[], Any]:
    def made() -> Any:
        from .specs.variants import VARIANTS

        if name not in VARIANTS:
            raise click.ClickException(f"it is of a variant {name!r}, and there is none of that name.")
        return VARIANTS[name].bad().model

    return made


def _model(name: str, entry: dict[str, Any]) -> Callable[[], Any]:
    def made() -> Any:
        from .specs.models import MODELS

        if name not in MODELS:
            raise click.ClickException(f"it is of a model {name!r}, and there is none of that name.")
        sizes = [entry.get("workers"), entry.get("crashes")]
        if not all(size is None or isinstance(size, int) for size in sizes):
            raise click.ClickException(f"a report that is damaged: workers and crashes are {sizes}.")
        return MODELS[name].world(*sizes)

    return made


def _replayed(made: Callable[[], Any], stored: dict[str, Any]) -> Replay:
    from .specs.explore import Counterexample, ReplayError, replay

    try:
        run = Counterexample.from_json(stored)
    except (KeyError, TypeError, ValueError) as error:
        raise click.ClickException(f"a counterexample in it cannot be read: {error}.") from error
    try:
        replay(made(), run)
    except ReplayError as error:
        return Replay(run.model, run.property_name, len(run), str(error))
    return Replay(run.model, run.property_name, len(run), "")
