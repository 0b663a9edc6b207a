"""The composed model: one executor, N workers, the channels between them, callers, and what may go wrong."""

from .callers import Thread, Threads
from .executor import Act, ExecutorRules
from .ghost import Ghost
from .rank import Rank, RankMove, RankRules
from .state import Now
from .words import (
    EPOCH,
    EXECUTOR,
    Budgets,
    Did,
    Line,
    Mark,
    Message,
    Node,
    Offence,
    Signal,
    Status,
    rank_name,
)
from .world import NoBeginningError, World

__all__ = [
    "EPOCH",
    "EXECUTOR",
    "Act",
    "Budgets",
    "Did",
    "ExecutorRules",
    "Ghost",
    "Line",
    "Mark",
    "Message",
    "NoBeginningError",
    "Node",
    "Now",
    "Offence",
    "Rank",
    "RankMove",
    "RankRules",
    "Signal",
    "Status",
    "Thread",
    "Threads",
    "World",
    "rank_name",
]
