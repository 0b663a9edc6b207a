"""Run and pause, agreed between engines: the fifth model.

Theory of operation:

1. Engines of a data-parallel group run in step, or all rest. A coordinator wakes them when a request comes, and keeps a
   flag that says whether they run. The flag is about *others*: it changes on their word alone.
2. A wake may be discarded, for a paused engine takes none. If the flag was set when the wake was sent, nobody is left
   to clear it, and a drain that waits for it never ends.
3. Waves are numbered, so that a wake that comes late is not taken for one of the next wave. A fresh group and its
   first request have the same number; whoever starts a wave only when the numbers differ never starts the first.
4. A request that comes while the flag is still set, though the engines rest already, wakes them when the coordinator
   hears of their rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...protocol.core import Event, Identity, Kind, State, Table, on, stay
from ..explore import Label, Property, always, leads_to
from .edit import unguarded
from .small import NoEffect, Small, put
from .variant import Trial, Variant


def of_this_wave(own: Identity, message: Identity) -> bool:
    """The wake starts the wave that is next for this engine. (A wave is the group's epoch of running.)"""
    return own.epoch == message.epoch


class Engine(State):
    """One engine of a data-parallel group."""

    RESTING = "The engine has nothing to do and waits to be woken."
    RUNNING = "The engine steps, with work of its own or empty."
    PAUSED = "The engine was told to take no work; what wakes it is discarded."


class EngineOn(Event):
    """What can happen to an engine."""

    WAKE = "wake", Kind.MESSAGE, "The coordinator starts a wave."
    FINISHED = "finished", Kind.WORK, "No engine has work left."
    PAUSE = "pause", Kind.CANCEL, "Somebody pauses the engines."
    RESUME = "resume", Kind.WORK, "Somebody lets them go on."


ENGINE = Table(
    name="engine",
    purpose="One engine of a group that runs in step or rests.",
    states=Engine,
    events=EngineOn,
    effects=NoEffect,
    initial=Engine.RESTING,
    final=frozenset(),
    rows=(
        on(EngineOn.WAKE, Engine.RESTING, Engine.RUNNING, conditions=[of_this_wave]),
        # Of a wave that is over: taken, it would make one engine run while the others rest, for ever.
        on(EngineOn.WAKE, Engine.RESTING, None, unless=[of_this_wave]),
        on(EngineOn.FINISHED, Engine.RUNNING, Engine.RESTING),
        on(EngineOn.PAUSE, Engine.RESTING, Engine.PAUSED),
        on(EngineOn.RESUME, Engine.PAUSED, Engine.RESTING),
        *stay(Engine.PAUSED, EngineOn.WAKE),
        *stay(Engine.RUNNING, EngineOn.WAKE),
    ),
)


class Flag(State):
    """What the coordinator believes of the engines."""

    RESTING = "No engine has said that it runs since the last one said that it rests."
    RUNNING = "An engine has said that it runs."


class FlagOn(Event):
    """What can happen to the flag."""

    WOKEN = "woken", Kind.WORK, "The coordinator sent a wake."
    RUNS = "runs", Kind.MESSAGE, "An engine says that it runs."
    RESTS = "rests", Kind.MESSAGE, "The engines say that they rest."


FLAG = Table(
    name="flag",
    purpose="The coordinator's flag: a belief about others, changed by their word alone.",
    states=Flag,
    events=FlagOn,
    effects=NoEffect,
    initial=Flag.RESTING,
    final=frozenset(),
    rows=(
        on(FlagOn.WOKEN, Flag.RESTING, None),
        on(FlagOn.RUNS, Flag.RESTING, Flag.RUNNING),
        on(FlagOn.RESTS, Flag.RUNNING, Flag.RESTING),
        *stay(Flag.RUNNING, FlagOn.WOKEN, FlagOn.RUNS),
        *stay(Flag.RESTING, FlagOn.RESTS),
    ),
)
# The flag is set on a prediction: what was woken will run.
PREDICTED = Table(
    name="flag",
    purpose=FLAG.purpose,
    states=Flag,
    events=FlagOn,
    effects=NoEffect,
    initial=Flag.RESTING,
    final=frozenset(),
    rows=(on(FlagOn.WOKEN, Flag.RESTING, Flag.RUNNING), *FLAG.rows[1:]),
)


UNNUMBERED = unguarded(ENGINE, of_this_wave)


class Waves(NamedTuple):
    """The engines, the flag, wakes and words on their way, and the request that waits."""

    flag: State
    engines: tuple[State, ...]
    wakes: tuple[tuple[int, ...], ...]
    """What lies before each engine: the waves that it is woken for."""
    words: tuple[FlagOn, ...] = ()
    """What engines have said and the coordinator has not heard."""
    wave: int = 0
    """The wave that is next for the engines."""
    heard: int = 0
    """The wave that is next as far as the coordinator has heard."""
    waiting: bool = False
    draining: bool = False
    requests: int = 1
    pauses: int = 0


@dataclass(frozen=True)
class Rules:
    """`flag`: the coordinator's table. `starts_when_idle`: else it starts only a wave of another number."""

    flag: Table = FLAG
    engine: Table = ENGINE
    starts_when_idle: bool = True
    engines: int = 2
    requests: int = 1
    pauses: int = 0

    def start(self) -> Waves:
        """Everybody rests, in wave 0."""
        resting: tuple[State, ...] = (Engine.RESTING,) * self.engines
        return Waves(Flag.RESTING, resting, ((),) * self.engines, requests=self.requests, pauses=self.pauses)

    def moves(self, now: Waves) -> Iterator[tuple[Label, Waves]]:
        """What the front end, the coordinator and the engines can do."""
        if now.requests and not now.waiting:
            after = now._replace(waiting=True, requests=now.requests - 1)
            yield Label("front end", "a request comes", fair=False), self._wake(after)
        if now.words:
            yield Label("coordinator", f"hears: {now.words[0].value}"), self._hear(now, now.words[0])
        for number, state in enumerate(now.engines):
            if now.wakes[number]:
                yield Label(f"engine {number}", "takes a wake"), self._woken(now, number, state)
        if all(state is Engine.RUNNING for state in now.engines):
            rest = tuple(ENGINE.step(state, EngineOn.FINISHED).dest for state in now.engines)
            after = now._replace(
                engines=rest, waiting=False, wave=now.wave + 1, words=(*now.words, FlagOn.RESTS)
            )
            yield Label("engines", "have no work left, and rest"), after
        if now.pauses and all(state is Engine.RESTING for state in now.engines):
            paused = tuple(ENGINE.step(state, EngineOn.PAUSE).dest for state in now.engines)
            yield Label("somebody", "pauses", fair=False), now._replace(engines=paused, pauses=now.pauses - 1)
        if now.engines[0] is Engine.PAUSED:
            # Wakes that were sent before are of a wave that is over, for some were discarded and some not.
            going = tuple(ENGINE.step(state, EngineOn.RESUME).dest for state in now.engines)
            after = now._replace(engines=going, wave=now.wave + 1, words=(*now.words, FlagOn.RESTS))
            yield Label("somebody", "lets them go on", fair=False), after
        if not now.draining:
            yield Label("somebody", "drains", fair=False), now._replace(draining=True)

    def _hear(self, now: Waves, word: FlagOn) -> Waves:
        flag = self.flag.step(now.flag, word).dest
        after = now._replace(flag=flag, words=now.words[1:])
        if word is not FlagOn.RESTS:
            return after
        after = after._replace(heard=now.heard + 1)
        return self._wake(after) if after.waiting else after

    def _wake(self, now: Waves) -> Waves:
        """The coordinator learns of a request; its wave is the number that the front end knows."""
        starts = now.flag is Flag.RESTING and (self.starts_when_idle or now.heard != 0)
        if not starts:
            return now
        flag = self.flag.step(now.flag, FlagOn.WOKEN).dest
        return now._replace(flag=flag, wakes=tuple((*wakes, now.heard) for wakes in now.wakes))

    def _woken(self, now: Waves, number: int, state: State) -> Waves:
        first, *rest = now.wakes[number]
        dest = self.engine.step(state, EngineOn.WAKE, Identity(now.wave), Identity(first)).dest
        says = (FlagOn.RUNS,) if dest is Engine.RUNNING and state is not dest else ()
        return now._replace(
            engines=put(now.engines, number, dest),
            wakes=put(now.wakes, number, tuple(rest)),
            words=(*now.words, *says),
        )


def _quiet(now: Waves) -> bool:
    return not any(now.wakes) and not now.words and Engine.RUNNING not in now.engines


def properties(rules: Rules) -> list[Property[Waves]]:
    """What run and pause promise."""
    return [
        leads_to(
            "a drain ends",
            "Whoever waits for the engines to rest comes to see them rest.",
            lambda now: now.draining,
            lambda now: now.draining and now.flag is Flag.RESTING,
        ),
        always(
            "the flag is true in the end",
            "When nothing is on its way and no engine runs, the coordinator does not believe that one does.",
            lambda now: not _quiet(now) or now.flag is Flag.RESTING,
            twin=lambda now: now.flag is Flag.RUNNING,
        ),
        leads_to(
            "a request is served",
            "A request that comes while no engine is paused is served.",
            lambda now: now.waiting and not rules.pauses,
            lambda now: not now.waiting,
            twin=lambda now: now.waiting,
        ),
    ]


def _trial(rules: Rules) -> Trial:
    return Trial(Small("waves", rules.start(), rules.moves), properties(rules))


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    return [
        Variant(
            "flag-set-on-prediction",
            "The coordinator's flag says 'running' when a wake is sent; the engines are paused, and nobody clears it.",
            ("vllm-project/vllm#51476", "vllm-project/vllm#51481"),
            "waves",
            "a drain ends",
            5,
            bad=lambda: _trial(Rules(flag=PREDICTED, pauses=1)),
            right=lambda: _trial(Rules(pauses=1)),
        ),
        Variant(
            "equal-waves-are-running",
            "A request of the current wave is taken for one that engines run already; the first wave never starts.",
            ("vllm-project/vllm#51983", "vllm-project/vllm#54762"),
            "waves",
            "a request is served",
            1,
            bad=lambda: _trial(Rules(starts_when_idle=False)),
            right=lambda: _trial(Rules()),
        ),
        Variant(
            "wake-without-wave",
            "A wake says nothing of its wave: one that comes late makes one engine run while the others rest.",
            ("vllm-project/vllm#16277",),
            "waves",
            "a drain ends",
            18,
            bad=lambda: _trial(Rules(engine=UNNUMBERED, requests=2)),
            right=lambda: _trial(Rules(requests=2)),
            table=UNNUMBERED,
        ),
    ]
