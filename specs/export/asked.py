"""What is asked of the other engines: our properties, as conditions on the program's variables.

Theory of operation. Each property is found in the glue by its name (see glue/holds.py). What an engine answers is a
verdict in our own words, made from raw findings by our own rules: an invariant is violated if some state breaks it, a
property whose twin no state meets is vacuous, and so violated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..explore import Property
from ..explore.property import Kind
from ..world import Now
from .program import Exported
from .promela import Formula
from .tree import Expr, disjunction, negated


@dataclass(frozen=True)
class Asked:
    """One property with its parts, as far as the glue knows it."""

    prop: Property[Now]
    predicate: Expr | None
    premise: Expr | None
    twin: Expr | None
    known: bool

    @property
    def bad(self) -> Expr | None:
        """For properties of single states: the states that violate it, or (of *sometimes*) that satisfy it."""
        if self.predicate is None:
            return None
        return negated(self.predicate) if self.prop.kind is Kind.ALWAYS else self.predicate

    @property
    def formula(self) -> Formula | None:
        """For properties of runs: what spin is asked."""
        if not self.prop.kind.needs_fairness or self.predicate is None:
            return None
        return Formula(self.prop.name, self.predicate, self.premise)


_STATES = (Kind.ALWAYS, Kind.NEVER, Kind.SOMETIMES)


def asked(model: Exported) -> list[Asked]:
    """Every property of the model."""
    return [_asked(model, prop) for prop in model.properties]


def parts_of(name: str) -> tuple[str, list[int]]:
    """A property's name as the glue spells it, and the numbers in it: "caller 0 comes back" is caller_n_comes_back."""
    numbers = [int(digits) for digits in re.findall(r"\d+", name)]
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"\d+", "n", name.lower())).strip("_"), numbers


def _asked(model: Exported, prop: Property[Now]) -> Asked:
    slug, numbers = parts_of(prop.name)

    def part(letter: str) -> Expr | None:
        name = f"{letter}_{slug}"
        if name not in model.program.functions:
            return None
        return model.program.expression(name, *numbers)

    if prop.kind is Kind.NO_DEADLOCK:
        return Asked(prop, None, None, None, True)
    if prop.kind is Kind.NO_STALL:
        fair = [model.guard(action) for action in model.actions if action.fair]
        return Asked(prop, negated(disjunction([*fair, model.accepting])), None, None, True)
    predicate, premise, twin = part("p"), part("q"), part("t")
    known = predicate is not None and (premise is not None or prop.premise is None)
    if twin is None and prop.kind is Kind.LEADS_TO:
        twin = premise
    known = known and (twin is not None or prop.twin is None)
    return Asked(prop, predicate, premise, twin, known)


def covers(questions: Sequence[Asked]) -> list[tuple[str, Expr]]:
    """The conditions that rumur counts: each by what it is and the number of its property."""
    found = []
    for place, one in enumerate(questions):
        if one.bad is not None and not one.prop.kind.needs_fairness:
            found.append((f"bad {place}", one.bad))
        if one.twin is not None and one.prop.twin is not None:
            found.append((f"twin {place}", one.twin))
    return found
