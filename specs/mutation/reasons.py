"""Why each surviving mutant is none: by hand, and held to account.

Theory of operation. A reason names its mutants one by one. One that names a mutant that is killed, or that does not
exist, is an error: nobody's reasons outlive what they explain.
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """Why these defects change nothing."""

    why: str
    defects: tuple[str, ...]


REASONS: tuple[Reason, ...] = ()
