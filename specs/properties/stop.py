"""What the shutdown escalation promises."""

from __future__ import annotations

from ...protocol.core import Effect, State
from ...protocol.executor import ExecutorState
from ...protocol.life import Life
from ...protocol.queues import Reader, Seat
from ...protocol.shutdown import Leave, Listener, RankStop, Stop, StopDo
from ..explore import Property, always, leads_to, never, sometimes
from ..world import Line, Mark, Now, Offence, Signal, Status, World
from ..world.rank import at_rest
from .ask import executor, never_done, record

_ENDING = (Life.STOPPING, Life.FAILING)
_ASKED = (RankStop.ASKED, RankStop.TERMINATED, RankStop.KILLED)
_ENDED = (Life.DOWN, Life.FAILED)
_EARLY: dict[State, tuple[Signal, ...]] = {
    Stop.CLOSING: (Signal.TERM, Signal.KILL),
    Stop.TERMINATING: (Signal.KILL,),
}


def _ended(state: ExecutorState) -> bool:
    return state.life[0] in _ENDED


def _nobody_left(now: Now) -> bool:
    if not _ended(now.executor.value):
        return True
    return all(
        not rank.value.alive or state is RankStop.SURVIVOR
        for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
    )


def _survivors_reported(now: Now) -> bool:
    reported = now.ghost.value.survivors
    return all(
        state is not RankStop.SURVIVOR or reported >> number & 1
        for number, state in enumerate(now.executor.value.stop[1:])
    )


def _asked_is_closed(now: Now) -> bool:
    return now.gone or all(
        state not in _ASKED or not rank.value.alive or rank.value.line is not Line.OPEN
        for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
    )


def _in_stage(now: Now) -> bool:
    if now.gone:
        return True
    forbidden = _EARLY.get(now.executor.value.stop[0], ())
    return not any(rank.value.signal in forbidden for rank in now.ranks)


def _collected(now: Now) -> bool:
    return now.gone or all(
        (state is not RankStop.REAPED or rank.value.status is Status.REAPED)
        and (state is not RankStop.ABSENT or rank.value.status is Status.ABSENT)
        for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
    )


def _had_sigkill(now: Now) -> bool:
    return now.gone or all(
        state is not RankStop.SURVIVOR
        or not rank.value.alive
        or rank.value.signal is Signal.KILL
        or rank.value.status is Status.WEDGED
        for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
    )


def _signalled(now: Now, signal: Signal) -> bool:
    return any(rank.value.signal is signal for rank in now.ranks)


def _lingers(now: Now) -> bool:
    return any(
        rank.value.alive and rank.value.worker is not None and rank.value.worker.leave[0] is Leave.GONE
        for rank in now.ranks
    )


def _asked_as_a_whole(now: Now) -> bool:
    return all(
        rank.value.worker is None
        or rank.value.worker.leave[0] is Leave.STAYING
        or (at_rest(rank.value.worker) and rank.value.work is StopDo.RUN_SHUTDOWN)
        for rank in now.ranks
    )


def _sees_no_death(now: Now) -> bool:
    return all(
        rank.value.worker is None
        or rank.value.line is Line.GONE
        or (rank.value.worker.intake[0] is not Reader.GONE and Seat.GONE not in rank.value.worker.outlet)
        for rank in now.ranks
    )


_TIMES: dict[State, Effect | None] = {
    Stop.RUNNING: None,
    Stop.CLOSING: StopDo.ARM_GRACE,
    Stop.TERMINATING: StopDo.ARM_TERM,
    Stop.KILLING: StopDo.ARM_KILL,
    Stop.SURVIVORS: None,
    Stop.DOWN: None,
}


def stop(world: World) -> list[Property[Now]]:
    """The properties of every model in which a stop can come about."""
    found: list[Property[Now]] = [
        leads_to(
            "a stop ends",
            "Once the executor is stopping or failing, it comes to its end.",
            lambda now: not now.gone and now.life in _ENDING,
            lambda now: now.gone or now.life in _ENDED,
        ),
        always(
            "the end leaves nobody",
            "When the executor has come to its end, every process is gone, or was reported as a survivor.",
            _nobody_left,
            twin=executor(_ended),
        ),
        never(
            "the dead are left alone",
            "No signal is sent to a process that was reaped, and none is reaped alive or twice.",
            lambda now: any(rank.value.wronged for rank in now.ranks),
            twin=lambda now: any(rank.value.status is Status.REAPED for rank in now.ranks),
        ),
        never(
            "a worker that left is gone",
            "A worker whose leave is taken has ended its process.",
            _lingers,
            twin=executor(lambda state: state.stop[0] is Stop.CLOSING),
        ),
        always(
            "the blocked are woken",
            "As soon as a stop begins, callers that wait for a reply are woken.",
            lambda now: (
                now.gone
                or now.executor.value.stop[0] is Stop.RUNNING
                or bool(now.ghost.value.marks & Mark.WOKEN)
            ),
            twin=executor(lambda state: state.stop[0] is not Stop.RUNNING),
        ),
    ]
    found += [
        never_done(
            "stages come in order, by time",
            "Close, grace, SIGTERM, time, SIGKILL, time: no stage is skipped, none comes twice, and nothing but time "
            "leads on.",
            Offence.SKIPPED,
            executor(lambda state: state.stop[0] is Stop.KILLING),
        ),
        always(
            "each stage has its time",
            "In each stage of the stop its own alarm is set, and none before and after.",
            lambda now: now.gone or now.ghost.value.alarm is _TIMES[now.executor.value.stop[0]],
            twin=executor(lambda state: state.stop[0] is Stop.KILLING),
        ),
        always(
            "a worker is asked as a whole",
            "A worker that takes its leave does nothing but its own clean-up: no call, no queue, no phase, no peer.",
            _asked_as_a_whole,
            twin=lambda now: any(
                rank.value.worker is not None and rank.value.worker.leave[0] is Leave.LEAVING
                for rank in now.ranks
            ),
        ),
        always(
            "a worker buries nobody alive",
            "A worker takes the executor for gone only if it is.",
            _sees_no_death,
            twin=executor(lambda state: state.stop[0] is Stop.CLOSING),
        ),
        always(
            "nobody left is the end",
            "As soon as the last process of a stop is reaped, the stop is over, however much time is left.",
            executor(
                lambda state: (
                    state.stop[0] in (Stop.RUNNING, Stop.DOWN)
                    or any(rank not in (RankStop.REAPED, RankStop.ABSENT) for rank in state.stop[1:])
                )
            ),
            twin=executor(lambda state: state.stop[0] is Stop.DOWN),
        ),
        never_done(
            "a worker ends at rest",
            "A worker's process ends by its own account only when it has left, with every machine at rest.",
            Offence.UNFINISHED,
            executor(lambda state: RankStop.REAPED in state.stop[1:]),
        ),
        always(
            "who is asked can know",
            "The control channel of a rank that was asked to stop is closed.",
            _asked_is_closed,
            twin=executor(lambda state: RankStop.ASKED in state.stop[1:]),
        ),
        always(
            "signals come in their stage",
            "No SIGTERM is sent before the grace is over, and no SIGKILL before the time after SIGTERM is.",
            _in_stage,
            twin=lambda now: _signalled(now, Signal.KILL),
        ),
        always(
            "who is reaped is collected",
            "A rank that counts as reaped has had its exit status collected; one that counts as not made was not.",
            _collected,
            twin=executor(lambda state: RankStop.REAPED in state.stop[1:]),
        ),
        sometimes(
            "SIGTERM is sent",
            "Whoever does not leave is sent SIGTERM.",
            lambda now: _signalled(now, Signal.TERM),
        ),
        sometimes(
            "SIGKILL is sent",
            "Whoever outlives SIGTERM is sent SIGKILL.",
            lambda now: _signalled(now, Signal.KILL),
        ),
    ]
    if world.budgets.wedged:
        found.append(
            always(
                "a survivor had its SIGKILL",
                "Nobody is given up before SIGKILL was sent to it.",
                _had_sigkill,
                twin=executor(lambda state: RankStop.SURVIVOR in state.stop[1:]),
            )
        )
        found.append(
            always(
                "survivors are reported",
                "A process that outlives SIGKILL is reported.",
                _survivors_reported,
                twin=executor(lambda state: RankStop.SURVIVOR in state.stop[1:]),
            )
        )
    return found


def listeners(_world: World) -> list[Property[Now]]:
    """The properties of every model in which failure callbacks are registered."""
    told = executor(lambda state: Listener.TOLD in state.listeners)
    return [
        never_done(
            "a listener is told once", "No failure callback is called twice.", Offence.TOLD_TWICE, told
        ),
        always(
            "a failure is told",
            "Whenever the executor has failed, every listener has been called, however late it was registered.",
            lambda now: (
                now.life not in (Life.FAILING, Life.FAILED)
                or now.ghost.value.told == (1 << len(now.executor.value.listeners)) - 1
            ),
            twin=told,
        ),
        always(
            "who counts as told was called",
            "A listener counts as told exactly if it was called.",
            lambda now: all(
                (state is Listener.TOLD) == bool(now.ghost.value.told >> number & 1)
                for number, state in enumerate(now.executor.value.listeners)
            ),
            twin=told,
        ),
        never(
            "a stop is no failure",
            "A stop that was asked for calls no listener.",
            lambda now: now.life in (Life.STOPPING, Life.DOWN) and bool(now.ghost.value.told),
            twin=lambda now: now.life is Life.DOWN and bool(now.executor.value.listeners),
        ),
    ]


def orphans(_world: World) -> list[Property[Now]]:
    """The properties of every model in which the executor's process can be killed."""
    return [
        leads_to(
            "no orphan",
            "When the executor's process is killed, every worker ends.",
            record(lambda ghost: ghost.gone),
            lambda now: now.gone and not any(rank.value.alive for rank in now.ranks),
        )
    ]
