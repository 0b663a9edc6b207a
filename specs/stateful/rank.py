"""How far a rank must have come by now, and how far it may have: the worker's `serve` table, run ahead.

Theory of operation:

1. A rank alone is deterministic: it takes its calls in order, and answers each. So it is run ahead over the rows of
   its own table, as far as nothing holds it up: a gate in a method, a hold before the effects of a step, its end.
   An answer is said by the effect of a step, so a rank that is held at that step has not said it.
2. A signal comes at any moment of that run. From then on two bounds are kept: what the rank has surely said (what
   somebody has seen), and what it may have said (all that it could have).
"""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.core.cluster import AGGREGATE, ClusterState
from ...protocol.futures import SERVE_CLUSTER, FuturesDo, ServeOn
from .adapter import Ask, Deed

HOLDS = ("call", "returned", "raised", "sent")
"""Events of the `serve` table before whose effects a rank can be held."""

_RAISING = frozenset({Deed.RAISE, Deed.UNPICKLABLE})
_SAYS = frozenset({FuturesDo.SEND_REPLY, FuturesDo.SEND_FAILURE})
_IDLE: ClusterState = SERVE_CLUSTER.apply(SERVE_CLUSTER.initial(), AGGREGATE, ServeOn.BEGIN)[0]


class Reach(NamedTuple):
    """How far a rank comes: so many answers said; it ended by itself; it is held up."""

    said: int
    ended: bool = False
    stuck: bool = False
    held: bool = False


def _events(deed: Deed) -> tuple[ServeOn, ...]:
    return (ServeOn.CALL, ServeOn.RAISED if deed in _RAISING else ServeOn.RETURNED, ServeOn.SENT)


class RankModel:
    """One rank of a running executor."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.asks: list[Ask] = []
        self.opened: set[int] = set()  # tokens of gates that are open
        self.hold: tuple[int, str] | None = None  # index of the call, and event
        self.stopped = False
        self.killed = False
        self._seen = 0  # answers that somebody has seen
        self._cap: Reach | None = None  # what it may have reached when the signal came

    def reach(self) -> Reach:
        """How far it comes if no signal keeps it."""
        said = 0
        for index, ask in enumerate(self.asks):
            state = _IDLE
            for event in _events(ask.does(self.number)):
                state, steps = SERVE_CLUSTER.apply(state, AGGREGATE, event)
                if self.hold == (index, event.value):
                    return Reach(said, stuck=True, held=True)
                said += any(effect in _SAYS for step in steps for effect in step.effects)
                if event is not ServeOn.CALL:
                    continue
                deed = ask.does(self.number)
                if deed is Deed.GATE and ask.token not in self.opened:
                    return Reach(said, stuck=True)
                if deed is Deed.EXIT:
                    return Reach(said, ended=True, stuck=True)
        return Reach(said)

    def may(self) -> Reach:
        """The most that it may have reached."""
        return self.reach() if self._cap is None else self._cap

    def must(self) -> Reach:
        """The least that it reaches, given time."""
        return self.reach() if self._cap is None else Reach(self._seen, stuck=True)

    @property
    def may_be_dead(self) -> bool:
        """Whether its process may have ended before it was asked to."""
        return self.killed or self.may().ended

    @property
    def must_be_dead(self) -> bool:
        """Whether it has, or will by itself."""
        return self.killed or self.must().ended

    @property
    def free(self) -> bool:
        """Whether it answers whatever comes."""
        return self._cap is None and self.hold is None and not self.reach().stuck

    def saw(self, token: int) -> None:
        """Somebody has every rank's answer to that call."""
        for index, ask in enumerate(self.asks):
            if ask.token == token:
                self._seen = max(self._seen, index + 1)

    def stop(self) -> None:
        """SIGSTOP."""
        if self._cap is None:
            self._cap = self.reach()
            self.stopped = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.stopped and not self.killed:
            self._cap = None
        self.stopped = False

    def kill(self) -> None:
        """SIGKILL."""
        self._cap = self.may()
        self.killed = True
        self.stopped = False
