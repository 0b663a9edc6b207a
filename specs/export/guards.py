"""Guards, as conditions of the small language.

Theory of operation. A guard is a Python function of two identities, the machine's own and the message's. It is tried on
all identities of a small domain, and must be a function of whether epoch, rank and call are equal; then it is written
as such, in as few words as it needs, and otherwise the export refuses. So a mutant's guard is exported like any other.
"""

from __future__ import annotations

from itertools import product

from ...protocol.core import Guard, Identity
from ...protocol.core.table import Compiled
from .tree import ExportError

_PARTS = ("w.same_epoch", "w.same_rank", "w.same_call")
_IDENTITIES = [Identity(*parts) for parts in product(range(2), range(3), range(3))]


def guarded(row: Compiled) -> str:
    """When a row of several applies, if none before it does."""
    parts = [*(guard_text(guard) for guard in row.conditions), *(f"not {guard_text(g)}" for g in row.unless)]
    return " and ".join(parts) or "True"


def guard_text(guard: Guard) -> str:
    """A guard as a condition on whether epoch, rank and call are equal.

    Raises ExportError if it depends on anything else.
    """
    truth: dict[tuple[bool, ...], bool] = {}
    for own, message in product(_IDENTITIES, repeat=2):
        equal = tuple(one == two for one, two in zip(own, message, strict=True))
        if truth.setdefault(equal, bool(guard(own, message))) != bool(guard(own, message)):
            name = getattr(guard, "__name__", repr(guard))
            raise ExportError(f"guard {name} is no function of which parts of two identities are equal")
    needed = [
        place
        for place in range(len(_PARTS))
        if any(value != truth[_flipped(equal, place)] for equal, value in truth.items())
    ]
    cases = {tuple(equal[place] for place in needed) for equal, value in truth.items() if value}
    words = [
        " and ".join(
            _PARTS[place] if is_equal else f"not {_PARTS[place]}"
            for place, is_equal in zip(needed, case, strict=True)
        )
        or "True"
        for case in sorted(cases, reverse=True)
    ]
    return f"({' or '.join(words) or 'False'})"


def _flipped(equal: tuple[bool, ...], place: int) -> tuple[bool, ...]:
    return tuple(not value if number == place else value for number, value in enumerate(equal))
