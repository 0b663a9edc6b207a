"""Groups 1 and 2: the start, and the set-up of queues."""

from __future__ import annotations

from .row import left, shown

READY = (
    shown(
        "B01",
        "vllm-project/vllm#11737",
        "A child that dies hard sends no failure message; the parent waits on.",
        "failure-message-only",
    ),
    shown(
        "B02",
        "vllm-project/vllm#47422",
        "The reason of a failed start stays in the worker's own log.",
        "silent-raise",
    ),
    shown(
        "B04",
        "vllm-project/vllm#28053",
        "A forked sibling keeps a worker's death pipe open.",
        "inherited-ends",
    ),
    shown(
        "B05",
        "vllm-project/vllm#32116",
        "The one with the deadline gives up; the workers start on.",
        "deadline-leaves-workers",
    ),
    shown(
        "B07",
        "vllm-project/vllm#50039",
        "A start without a deadline hangs on a rank that lives and is stuck.",
        "no-start-deadline",
    ),
    shown(
        "B08", "vllm-project/vllm#48871", "The report of a failed start names no rank.", "report-before-look"
    ),
    shown(
        "B10",
        "vllm-project/vllm#21538",
        "A coordinator publishes before every engine has subscribed.",
        "publish-before-joined",
        "open-at-first-join",
    ),
    shown(
        "B11",
        "vllm-project/vllm#15906",
        "READY overtakes the connection that the work will use.",
        "ready-on-another-channel",
    ),
    shown("B13", "vllm-project/vllm#50960", "Two queues find the same port free.", "probe-then-bind"),
    shown(
        "B14",
        "vllm-project/vllm#17676",
        "The parent says every ten seconds that it waits, and waits without end.",
        "no-start-deadline",
    ),
    shown(
        "B16",
        "sgl-project/sglang#20287",
        "The launcher blocks on rank 0's pipe while a later rank is dead.",
        "start-read-in-rank-order",
    ),
    shown(
        "B17",
        "sgl-project/sglang#34233",
        "The parent's own copy of the last writer keeps the end of file away.",
        "own-writer-kept",
    ),
    shown(
        "B19",
        "NVIDIA/TensorRT-LLM#17578",
        "A worker is known, and so watched, only from its READY on.",
        "watched-from-ready",
    ),
    shown(
        "B20",
        "hw-native-sys/simpler#1396",
        "The parent spins on a word that a dead child will never write.",
        "failure-message-only",
    ),
    left(
        "B22",
        "python/cpython#75489",
        "The fork server is gone and no further process can be made.",
        "the interpreter's fork server: no machine of ours makes processes through a third one",
    ),
    left(
        "B23",
        "python/cpython#141860",
        "A module that the fork server should preload is missing, in silence.",
        "packaging: an import, not an event",
    ),
    shown(
        "B25",
        "deepspeedai/DeepSpeed-MII#258",
        "The client polls a port and never looks at the process behind it.",
        "failure-message-only",
    ),
    left(
        "B26",
        "vllm-project/vllm#8576",
        "Fork with threads or a device that is up hangs the child.",
        "what fork copies inside a process: tried on real processes, with each start method",
    ),
    shown(
        "B28",
        "determined-ai/determined#1242",
        "A worker connects and never says READY; nothing watches the time.",
        "no-start-deadline",
    ),
    shown(
        "B29",
        "NVIDIA/TensorRT-LLM#7646",
        "READY is sent once, before the other end listens, and is lost.",
        "publish-before-joined",
    ),
    shown(
        "B31",
        "pytorch/pytorch#13518",
        "Joining in start order hides the failure of a later child.",
        "start-read-in-rank-order",
    ),
)

QUEUES = (
    shown(
        "B32",
        "NVIDIA/Megatron-LM#6715",
        "The first broadcast misses a subscriber that had not joined.",
        "publish-before-joined",
    ),
    shown(
        "B34",
        "vllm-project/vllm#50835",
        "A message is lost between nodes; both sides wait for each other, unaware.",
        "no-sequence",
    ),
    left(
        "B35",
        "vllm-project/vllm#43420",
        "A notice that a side waits is read as a fault.",
        "the words of a notice",
    ),
    shown(
        "B37",
        "vllm-project/vllm#58059",
        "A worker exits between two readiness steps; the wait cannot be cancelled.",
        "readiness-blind-to-death",
        "readiness-blind-to-cancel",
    ),
    shown(
        "B38",
        "vllm-project/vllm#36389",
        "Queues are built before the groups that they need.",
        "queues-before-device",
    ),
    shown(
        "B40",
        "NVIDIA/Megatron-LM#5370",
        "A group is made when it is first used, by some ranks only.",
        "group-made-on-first-use",
    ),
    shown(
        "B41",
        "NVIDIA/apex#19",
        "Ranks issue collectives in the order of their own dictionaries.",
        "collectives-permuted",
    ),
    shown(
        "B43", "zeromq/pyzmq#1203", "An operation uses up the edge that announced a message.", "edge-used-up"
    ),
    shown(
        "B44",
        "NVIDIA/TensorRT-LLM#17906",
        "A worker of an earlier engine takes the place of ours.",
        "no-epoch",
    ),
)

AGREEMENT = (
    shown(
        "B202",
        "vllm-project/vllm#51476",
        "'Running' is set when a wake is sent, and cleared only by one who ran.",
        "flag-set-on-prediction",
    ),
    shown(
        "B203",
        "vllm-project/vllm#51983",
        "Equal wave numbers are taken for 'runs already'; the first wave never starts.",
        "equal-waves-are-running",
        "wake-without-wave",
    ),
)
