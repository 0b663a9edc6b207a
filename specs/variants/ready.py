"""READY handshake: what start-ups of the reference system, and of others, got wrong.

Theory of operation: see `variant`. Most of these break rule 1: a start waits for *message or death or cancel or
deadline*, never for a message alone, and for all ranks at once.
"""

from __future__ import annotations

from ...protocol.core import Cluster, every, some
from ...protocol.core.coupling import each
from ...protocol.executor import ExecutorProtocol
from ...protocol.life import LifeOn
from ...protocol.queues import GATE, READER, SEAT, Gate, GateOn, Reader, ReaderOn, Seat, SeatOn
from ...protocol.ready import (
    BOOT,
    RANK_START,
    START,
    START_COUPLING,
    Boot,
    BootOn,
    RankStart,
    RankStartOn,
    ReadyDo,
    Start,
    StartOn,
    of_this_epoch,
)
from ..models import READY, STALE
from ..world import Budgets, Now
from .edit import changed, ignored, swapped, uncoupled, unguarded
from .glue import StartInRankOrder, WatchedFromReady
from .in_world import in_world
from .variant import Variant

_STARTING = (RankStart.SPAWNED, RankStart.DEVICE, RankStart.WEIGHTS, RankStart.QUEUES)
_DEAF = (
    ignored(RANK_START, RankStartOn.DIED, *_STARTING),
    ignored(SEAT, SeatOn.DIED, Seat.EXPECTED, Seat.JOINED, Seat.OPEN),
    ignored(READER, ReaderOn.DIED, Reader.UNKNOWN, Reader.JOINED, Reader.OPEN),
)
_TIMELESS = (
    ignored(START, StartOn.DEADLINE, Start.STARTING),
    ignored(GATE, GateOn.DEADLINE, Gate.GATHERING),
)
_QUEUES_FIRST = changed(
    changed(
        changed(BOOT, BootOn.BORN, Boot.BORN, Boot.QUEUES, ReadyDo.SEND_HELLO, ReadyDo.MAKE_QUEUES),
        BootOn.QUEUES_UP,
        Boot.QUEUES,
        Boot.DEVICE,
        ReadyDo.SEND_PHASE,
        ReadyDo.INIT_DEVICE,
    ),
    BootOn.WEIGHTS_UP,
    Boot.WEIGHTS,
    Boot.READY,
    ReadyDo.SEND_READY,
)
_ALIVE_IS_READY = Cluster(
    "start",
    START,
    RANK_START,
    (
        every(
            RANK_START,
            RankStart.DEVICE,
            RankStart.WEIGHTS,
            RankStart.QUEUES,
            RankStart.READY,
            then=StartOn.ALL_READY,
        ),
        *START_COUPLING[1:],
    ),
)
# A rank that is found dead is booked as given up, and the report of the failed start is built from the books.
_BOOKED_LATE = changed(RANK_START, RankStartOn.DIED, _STARTING, RankStart.CANCELLED)
_LATE_BOOKS = Cluster(
    "start",
    START,
    _BOOKED_LATE,
    (
        every(_BOOKED_LATE, RankStart.READY, then=StartOn.ALL_READY),
        some(_BOOKED_LATE, RankStart.FAILED, then=StartOn.RANK_FAILED),
        some(_BOOKED_LATE, RankStart.CANCELLED, then=StartOn.RANK_DIED),
        each(START, Start.FAILED, then=RankStartOn.CANCEL),
    ),
)
_FROZEN = Budgets(freezes=1, start_deadlines=1)


def _all_made(now: Now) -> bool:
    return RankStart.ABSENT not in now.executor.value.start[1:]


def variants() -> list[Variant]:
    """All of them, in the order of the docs."""
    good = ExecutorProtocol()
    return [
        in_world(
            "failure-message-only",
            "The executor waits for READY or for a message that says FAILED; a process that dies hard sends neither.",
            ("vllm-project/vllm#11737", "deepspeedai/DeepSpeed-MII#258"),
            READY,
            "start decides",
            3,
            ranks=1,
            budgets=Budgets(crashes=1),
            # In every machine that would learn of the death: a lost seat fails the start as well.
            executor=good.but(_DEAF[0]).but(_DEAF[1]).but(_DEAF[2]),
            table=_DEAF[0],
        ),
        in_world(
            "silent-raise",
            "A worker whose start raises logs the reason on its own side and leaves; the executor sees an end of file.",
            ("vllm-project/vllm#47422",),
            READY,
            "who raises says so",
            3,
            ranks=1,
            budgets=Budgets(raises=1),
            table=changed(
                BOOT, BootOn.RAISED, (Boot.BORN, Boot.DEVICE, Boot.WEIGHTS, Boot.QUEUES), Boot.FAILED
            ),
        ),
        in_world(
            "deadline-leaves-workers",
            "The one that gives the start up at its deadline is not the one that ends the workers: they go on.",
            ("vllm-project/vllm#32116",),
            READY,
            "a failed start leaves no worker",
            11,
            ranks=1,
            budgets=Budgets(start_deadlines=1),
            executor=uncoupled(good, "life", LifeOn.FAULT),
            begin=_all_made,
        ),
        in_world(
            "no-start-deadline",
            "The wait for a start has no limit: a rank that lives and says nothing holds it for ever.",
            ("vllm-project/vllm#50039", "vllm-project/vllm#17676", "determined-ai/determined#1242"),
            READY,
            "start decides",
            3,
            ranks=1,
            budgets=_FROZEN,
            executor=good.but(_TIMELESS[0]).but(_TIMELESS[1]),
            table=_TIMELESS[0],
            deadline_is_certain=True,
        ),
        in_world(
            "report-before-look",
            "A failed start is reported before it was seen which rank is dead: the report names nobody.",
            ("vllm-project/vllm#48871",),
            READY,
            "a failed start names its cause",
            3,
            ranks=2,
            budgets=Budgets(crashes=1),
            executor=swapped(good, start=_LATE_BOOKS),
        ),
        in_world(
            "start-read-in-rank-order",
            "Readiness is read from rank 0, then rank 1, and so on: a later rank's death is unseen while rank 0 waits.",
            ("sgl-project/sglang#20287", "sgl-project/sglang#21626", "pytorch/pytorch#13518"),
            READY,
            "a death ends the start",
            4,
            ranks=2,
            budgets=Budgets(crashes=1, freezes=1),
            parts=StartInRankOrder,
        ),
        in_world(
            "watched-from-ready",
            "A worker's process is registered when its READY comes, so a death before it is nobody's business.",
            ("NVIDIA/TensorRT-LLM#17578",),
            READY,
            "a death ends the start",
            2,
            ranks=1,
            budgets=Budgets(crashes=1),
            parts=WatchedFromReady,
        ),
        in_world(
            "alive-is-ready",
            "A sign of life is taken for readiness: the start is up while ranks still load.",
            ("Kludex/uvicorn#3023",),
            READY,
            "up means every rank is READY",
            3,
            ranks=1,
            budgets=Budgets(crashes=1),
            executor=swapped(good, start=_ALIVE_IS_READY),
        ),
        in_world(
            "queues-before-device",
            "A worker makes its queues before the device and the groups that they belong to.",
            ("vllm-project/vllm#36389", "vllm-project/vllm#37202"),
            READY,
            "no illegal event",
            3,
            ranks=1,
            budgets=Budgets(crashes=1),
            table=_QUEUES_FIRST,
        ),
        in_world(
            "no-epoch",
            "Nothing says which group a message belongs to: a process left from an earlier one is taken for ours.",
            ("NVIDIA/TensorRT-LLM#17906",),
            STALE,
            "a stale message is never taken",
            2,
            ranks=1,
            budgets=Budgets(crashes=1, stale=1),
            table=unguarded(RANK_START, of_this_epoch),
        ),
    ]
