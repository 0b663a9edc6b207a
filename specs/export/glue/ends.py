"""Where a model goes no further, and where a run may end.

Theory of operation. As `until` in specs/models.py and `World.accepting` have it.
"""

from __future__ import annotations

from ....protocol.life import Life
from ....protocol.ready import Start
from ....protocol.shutdown import RankStop
from .channels import alive
from .executor import has_ended
from .words import (
    AHEAD,
    RANKS,
    THREADS,
    W,
)


def is_up(w: W) -> bool:
    """Every rank is READY."""
    return w.x_start is Start.UP


def is_decided(w: W) -> bool:
    """The start is up, or has failed."""
    return w.x_start is not Start.STARTING


def is_over(w: W) -> bool:
    """The executor serves no more and every caller has come back."""
    return w.x_life is not Life.SERVING and not anybody_waits(w)


def anybody_waits(w: W) -> bool:
    """Some thread has a call out."""
    return any(w.t_out[t * AHEAD] > 0 for t in range(THREADS))


def may_end(w: W) -> bool:
    """A run may end here."""
    return (w.gone and not any(alive(w, r) for r in range(RANKS))) or (
        not w.gone
        and not anybody_waits(w)
        and (w.x_life is Life.SERVING or (has_ended(w) and nobody_is_left(w)))
    )


def nobody_is_left(w: W) -> bool:
    """Every process is gone or reported."""
    return all(not alive(w, r) or w.x_stop_of[r] is RankStop.SURVIVOR for r in range(RANKS))


def ending(w: W) -> bool:
    """The executor is on its way to its end, or there."""
    return w.x_life in (Life.STOPPING, Life.FAILING, Life.DOWN, Life.FAILED)
