"""Shutdown: stops that never end, ends that leave somebody, signals too early or too late, and failures told to nobody.

Theory of operation: see `variant`. The stop of the reference system waits at fixed places with fixed times; others
leave a stage out, or one of its waits without a limit. Each is one row, one effect or one coupling of the escalation.
"""

from __future__ import annotations

from ...protocol.core import Table
from ...protocol.core.coupling import When, when
from ...protocol.executor import ExecutorProtocol
from ...protocol.life import EXECUTOR_COUPLING, LIFE, Life, LifeDo, LifeOn
from ...protocol.queues import GateOn
from ...protocol.shutdown import (
    RANK_STOP,
    STOP,
    ListenerOn,
    RankStop,
    RankStopOn,
    Stop,
    StopDo,
    StopOn,
)
from ..models import LIFE as WHOLE_LIFE
from ..models import SHUTDOWN, serves
from ..mutants import with_rows
from ..world import Budgets
from .edit import added, changed, coupled, ignored, one_by_one
from .glue import (
    LastListener,
    MethodsMayHang,
    ParentUnwatched,
    ParentUnwatchedWhileBusy,
    ParentUnwatchedWhileIdle,
    SentinelIsDeath,
)
from .in_world import in_world
from .variant import LINT, Trial, Variant

_STOPPED = Budgets(stops=1)
_END = when(("stop", (Stop.DOWN, Stop.SURVIVORS)), then=("life", LifeOn.END))


def _instead(row: When, *others: When) -> ExecutorProtocol:
    """The protocol with one coupling row replaced by others."""
    if row not in EXECUTOR_COUPLING:
        raise LookupError(f"there is no coupling {row}")
    rows = tuple(r for one in EXECUTOR_COUPLING for r in (others if one == row else (one,)))
    return coupled(ExecutorProtocol(), rows)


def _signalled_at_once(dest: RankStop, signal: StopDo) -> Table:
    return changed(RANK_STOP, RankStopOn.ASK, RankStop.ALIVE, dest, StopDo.CLOSE_CONTROL, signal)


_GOODBYE = ignored(RANK_STOP, RankStopOn.DIED, RankStop.ASKED)
_UNARMED = changed(STOP, StopOn.STOP, Stop.RUNNING, Stop.CLOSING, StopDo.WAKE_BLOCKED)
# The graceful stage is there, and the flag that leads to it is never set: SIGKILL follows the ask.
_UNREACHED = with_rows(
    STOP,
    [
        {**row, "dest": Stop.KILLING, "after": [StopDo.ARM_KILL]} if row["dest"] is Stop.TERMINATING else row
        for row in one_by_one(STOP)
    ],
)
_ENDED_FAILURE = when(("life", (Life.FAILING, Life.FAILED)), then=("listener", ListenerOn.FAILURE))
_ENDING_STOPS = when(("life", (Life.STOPPING, Life.FAILING)), then=("stop", StopOn.STOP))


def _never() -> Trial:
    raise AssertionError("a table that lint refuses is not run")


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    good = ExecutorProtocol()
    return [
        in_world(
            "sigterm-without-grace",
            "The stop closes the control channels and sends SIGTERM in one breath (0.11.2): nobody leaves cleanly.",
            (),
            SHUTDOWN,
            "signals come in their stage",
            1,
            ranks=1,
            budgets=_STOPPED,
            table=_signalled_at_once(RankStop.TERMINATED, StopDo.SEND_SIGTERM),
        ),
        in_world(
            "sigkill-at-once",
            "The stop begins with SIGKILL: nobody can let go of what it holds.",
            ("sgl-project/sglang#16484",),
            SHUTDOWN,
            "signals come in their stage",
            1,
            ranks=1,
            budgets=_STOPPED,
            table=_signalled_at_once(RankStop.KILLED, StopDo.SEND_SIGKILL),
        ),
        Variant(
            "unreachable-grace",
            "The flag that leads to the graceful stage is never set: the code is there and never runs.",
            ("vllm-project/vllm#14053",),
            "lint",
            LINT,
            0,
            bad=_never,
            right=_never,
            table=_UNREACHED,
        ),
        in_world(
            "join-without-limit",
            "The stop asks the workers and joins them without a limit; one that is stuck holds it for ever.",
            ("pytorch/pytorch#39570", "vllm-project/vllm#7554"),
            SHUTDOWN,
            "a stop ends",
            2,
            ranks=1,
            budgets=Budgets(stops=1, freezes=1),
            table=_UNARMED,
        ),
        in_world(
            "sigterm-then-join",
            "After SIGTERM the join has no limit, and SIGKILL never follows; a handler that loops holds it for ever.",
            ("pytorch/pytorch#41694", "dask/distributed#1303"),
            SHUTDOWN,
            "a stop ends",
            3,
            ranks=1,
            budgets=Budgets(stops=1, freezes=1, stubborn=1),
            table=changed(STOP, StopOn.ALARM, Stop.CLOSING, Stop.TERMINATING, StopDo.DISARM),
        ),
        in_world(
            "sigkill-then-join",
            "After SIGKILL the join has no limit; a process in the kernel's hands holds it for ever.",
            ("pytorch/pytorch#185414",),
            SHUTDOWN,
            "a stop ends",
            4,
            ranks=1,
            budgets=Budgets(stops=1, wedged=1, freezes=1),
            table=changed(STOP, StopOn.ALARM, Stop.TERMINATING, Stop.KILLING, StopDo.DISARM),
        ),
        in_world(
            "waits-for-goodbye",
            "The stop waits for each worker's last word; one that dies in its own clean-up never says it.",
            ("NVIDIA/TensorRT-LLM#18310",),
            SHUTDOWN,
            "a stop ends",
            3,
            ranks=1,
            budgets=_STOPPED,
            executor=good.but(_GOODBYE).but(_UNARMED),
            table=_GOODBYE,
        ),
        in_world(
            "survivors-block-the-end",
            "When killing a worker times out, the supervisor stays in its closing state for ever.",
            ("dask/distributed#9317",),
            SHUTDOWN,
            "a stop ends",
            5,
            ranks=1,
            budgets=Budgets(stops=1, wedged=1, freezes=1),
            executor=_instead(_END, when(("stop", Stop.DOWN), then=("life", LifeOn.END))),
        ),
        in_world(
            "owner-leaves-first",
            "The one that escalates leaves when SIGTERM is sent; a worker that hangs in its clean-up is nobody's.",
            ("flagos-ai/vllm-plugin-FL#531",),
            SHUTDOWN,
            "the end leaves nobody",
            2,
            ranks=1,
            budgets=_STOPPED,
            executor=_instead(
                _END, when(("stop", (Stop.TERMINATING, Stop.DOWN, Stop.SURVIVORS)), then=("life", LifeOn.END))
            ),
        ),
        in_world(
            "second-stop-ends-the-wait",
            "A second signal during the escalation breaks out of it: the process leaves, the workers do not.",
            ("MooreThreads/vllm-musa#46", "deepseek-ai/DeepGEMM#301"),
            SHUTDOWN,
            "the end leaves nobody",
            2,
            ranks=1,
            budgets=Budgets(stops=2),
            table=added(LIFE, LifeOn.STOP, Life.STOPPING, Life.DOWN, LifeDo.ANNOUNCE_END),
        ),
        in_world(
            "gives-up-at-sigterm",
            "A worker that outlives SIGTERM is dropped from the books without a SIGKILL.",
            ("vllm-project/vllm-omni#7126",),
            SHUTDOWN,
            "a survivor had its SIGKILL",
            4,
            ranks=1,
            budgets=Budgets(stops=1, wedged=1, freezes=1),
            table=changed(RANK_STOP, RankStopOn.KILL, RankStop.TERMINATED, RankStop.KILLED),
        ),
        in_world(
            "never-asked",
            "The stop does not release the workers that wait for the next call; only signals would end them.",
            ("vllm-project/vllm#5987",),
            SHUTDOWN,
            "who is asked can know",
            1,
            ranks=1,
            budgets=_STOPPED,
            table=changed(RANK_STOP, RankStopOn.ASK, RankStop.ALIVE, RankStop.ASKED),
        ),
        in_world(
            "failure-leaves-siblings",
            "One rank fails and the launcher is told; the other ranks are left where they are.",
            ("deepspeedai/DeepSpeed#714",),
            SHUTDOWN,
            "a stop ends",
            2,
            ranks=2,
            budgets=Budgets(crashes=1),
            executor=_instead(_ENDING_STOPS, when(("life", Life.STOPPING), then=("stop", StopOn.STOP))),
        ),
        in_world(
            "crash-ends-as-success",
            "The way out after a crash is the way out after a stop: whoever watches sees a success.",
            ("sgl-project/sglang#29284",),
            SHUTDOWN,
            "what happened is announced",
            2,
            ranks=1,
            budgets=Budgets(crashes=1),
            table=changed(LIFE, LifeOn.FAULT, Life.SERVING, Life.STOPPING, LifeDo.ANNOUNCE_FAILURE),
        ),
        in_world(
            "own-signals-are-failures",
            "A worker that the stop itself ended is reported as a failure, and hides what came first.",
            ("pytorch/pytorch#61602",),
            SHUTDOWN,
            "a failure has a cause",
            4,
            ranks=1,
            budgets=Budgets(stops=1, crashes=1),
            # The queues are not given up by the stop, so that what closes them is a death, and a fault.
            executor=coupled(
                good.but(added(LIFE, LifeOn.FAULT, Life.STOPPING, Life.FAILING, LifeDo.ANNOUNCE_FAILURE)),
                tuple(row for row in EXECUTOR_COUPLING if row.then is not GateOn.CLOSE),
            ),
        ),
        in_world(
            "status-dropped",
            "The monitor learns that a worker ended and drops how: no exit code, no signal, in any report.",
            ("vllm-project/vllm#53157",),
            SHUTDOWN,
            "who is reaped is collected",
            2,
            ranks=1,
            budgets=Budgets(crashes=1),
            table=changed(
                RANK_STOP,
                RankStopOn.DIED,
                (RankStop.ALIVE, RankStop.ASKED, RankStop.TERMINATED),
                RankStop.REAPED,
            ),
        ),
        in_world(
            "sentinel-is-death",
            "A readable sentinel is taken for a death, though the process lives: healthy workers are shut down.",
            ("vllm-project/vllm#54211",),
            SHUTDOWN,
            "the dead are left alone",
            1,
            ranks=1,
            budgets=Budgets(crashes=1, faults=1),
            parts=SentinelIsDeath,
        ),
        in_world(
            "late-listener",
            "A failure callback that is registered after the failure is kept for the next one, which never comes.",
            ("joblib/loky#75",),
            SHUTDOWN,
            "a failure is told",
            3,
            ranks=1,
            budgets=Budgets(crashes=1, listeners=1),
            executor=_instead(
                _ENDED_FAILURE, when(("life", Life.FAILING), then=("listener", ListenerOn.FAILURE))
            ),
        ),
        in_world(
            "callback-after-the-end",
            "The failure callback is called when the whole shutdown is over, seconds after the failure is known.",
            (),
            SHUTDOWN,
            "a failure is told",
            2,
            ranks=1,
            budgets=Budgets(crashes=1, faults=1, listeners=1),
            executor=_instead(
                _ENDED_FAILURE, when(("life", Life.FAILED), then=("listener", ListenerOn.FAILURE))
            ),
        ),
        in_world(
            "last-listener-only",
            "There is room for one failure callback: the second that is registered takes the first one's place.",
            (),
            SHUTDOWN,
            "a failure is told",
            4,
            ranks=1,
            budgets=Budgets(crashes=1, listeners=2),
            executor=LastListener(),
        ),
        in_world(
            "parent-unwatched",
            "Workers do not watch the process that started them: its SIGKILL leaves them running, with their devices.",
            ("vllm-project/vllm#55510", "sgl-project/sglang#27190"),
            WHOLE_LIFE,
            "no orphan",
            7,
            ranks=1,
            budgets=Budgets(parents=1),
            parts=ParentUnwatched,
            right_parts=MethodsMayHang,
        ),
        in_world(
            "parent-unwatched-while-idle",
            "The watch of the parent sets a flag, and the loop that waits for the next call never looks at it.",
            ("vllm-project/vllm-omni#5595",),
            WHOLE_LIFE,
            "no orphan",
            1,
            ranks=1,
            budgets=Budgets(parents=1),
            begin=serves,
            parts=ParentUnwatchedWhileIdle,
            right_parts=MethodsMayHang,
        ),
        in_world(
            "parent-unwatched-while-busy",
            "A worker sees its parent's end at its next read; one that computes for ever does not read.",
            ("ai-dynamo/aiperf#1175",),
            WHOLE_LIFE,
            "no orphan",
            3,
            ranks=1,
            budgets=Budgets(parents=1),
            begin=serves,
            parts=ParentUnwatchedWhileBusy,
            right_parts=MethodsMayHang,
        ),
    ]
