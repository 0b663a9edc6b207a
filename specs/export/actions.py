"""The actions of the exported world: one for each fairness class, and one for each fault.

Theory of operation. An action is a `can_` and a `do_` function of the glue with constant arguments. Its arguments are
as fine as the labels of `World`, because weak fairness speaks of classes of labels: "reads HELLO of rank 0" and "reads
READY of rank 0" are two actions. An action that meets an illegal event stays in the class of its legal form, while
`World` gives it a label of its own; so fair runs agree as long as nothing illegal happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product

from ...protocol.futures import ReplyOn
from ...protocol.ready import RankStartOn
from ...protocol.shutdown import Stop
from ..models import Model
from ..world import World
from ..world.handshake import AT_A_QUEUE, Handshake
from ..world.late import Late
from .glue.words import Only, Work
from .tree import Value


@dataclass(frozen=True)
class Action:
    """One action; `reads` is the quiet reading that it may be."""

    name: str
    arguments: tuple[tuple[str, Value], ...] = ()
    """By name of parameter; each function takes those that it has a parameter for."""
    fair: bool = True
    budget: str = ""
    reads: Only = Only.NONE

    def __str__(self) -> str:
        words = (
            argument.name if isinstance(argument, Enum) else str(argument) for _, argument in self.arguments
        )
        return " ".join((self.name, *words))

    @property
    def can(self) -> str:
        """The function that says when it may happen."""
        return f"can_{_CAN.get(self.name, self.name)}"

    @property
    def do(self) -> str:
        """The procedure that says what it does."""
        return f"do_{self.name}"


_CAN = {
    "expire": "give_up_call",
    "cancel": "give_up_call",
    "run_out": "give_up",
}
_CONTROL = (
    RankStartOn.HELLO,
    RankStartOn.WEIGHTS,
    RankStartOn.QUEUES,
    RankStartOn.READY,
    RankStartOn.FAILED,
)
_PHASES = (Work.INIT_DEVICE, Work.LOAD_MODEL, Work.MAKE_QUEUES)
_STAGES = (Stop.RUNNING, Stop.CLOSING, Stop.TERMINATING, Stop.KILLING, Stop.DOWN, Stop.SURVIVORS)


def actions(model: Model, world: World) -> list[Action]:
    """Every action that the model's size and budgets leave possible."""
    found = [
        action for action in _all(model, world) if not action.budget or getattr(world.budgets, action.budget)
    ]
    return (
        [action for action in found if not _begins_at_a_queue(action, model)]
        if model.parts is Handshake
        else found
    )


def _begins_at_a_queue(action: Action, model: Model) -> bool:
    if action.name == "do_due":
        place = dict(action.arguments)["k"]
        return isinstance(place, int) and model.worker.agenda[place].cluster in AT_A_QUEUE
    return action.name in ("join", "read_joined", "read_opened", "hear_joined", "hear_opened")


def _all(model: Model, world: World) -> list[Action]:
    ranks, numbers = range(world.size), range(1, sum(world.calls) + 1)
    threads = range(len(world.calls))
    found: list[Action] = []

    def add(
        name: str,
        fair: bool = True,
        budget: str = "",
        reads: Only = Only.NONE,
        **domains: range | tuple[Value, ...],
    ) -> None:
        is_fair = fair and (not budget or budget == certain)
        for values in product(*domains.values()):
            arguments = tuple(zip(domains, values, strict=True))
            found.append(Action(name, arguments, is_fair, budget, reads))

    certain = "start_deadlines" if model.deadline_is_certain else ""
    # Fair: what processes do by themselves, and the alarm.
    add("make", r=ranks)
    add("join", r=ranks)
    add("ring", stage=_STAGES)
    add("read", reads=Only.CONTROL, r=ranks, word=_CONTROL)
    add("reap", r=ranks)
    add("read_joined", reads=Only.JOINED, r=ranks)
    add("read_opened", reads=Only.OPENED, r=ranks)
    add("be_born", r=ranks)
    add("end_phase", r=ranks, phase=_PHASES)
    add("do_due", r=ranks, k=range(len(model.worker.agenda)))
    add("hear_joined", r=ranks)
    add("hear_opened", reads=Only.INTAKE, r=ranks)
    add("stop", r=ranks)
    add("be_clean", r=ranks)
    add("die_of_kill", r=ranks)
    add("die_of_term", r=ranks)
    if world.budgets.parents:  # else no line is ever GONE
        add("be_orphaned", r=ranks)
        add("end_with_executor", r=ranks)
    add("take_call", r=ranks, n=numbers)
    # Number 0 is work for no call, which only a broken table brings about.
    add("return", r=ranks, n=range(len(numbers) + 1 if numbers else 0))
    add("be_sent", reads=Only.SENT, r=ranks, n=range(len(numbers) + 1 if numbers else 0))
    add("take_returned", r=ranks, n=numbers, t=threads)
    add("take_raised", r=ranks, n=numbers, t=threads)
    for name in ("drain", "park", "look", "settle"):
        add(name, t=threads, c=numbers)
    # Not fair: faults, signals that do nothing, callers, deadlines.
    add("submit", fair=False, t=threads)
    add("die_late", fair=False, r=ranks)
    if world.budgets.freezes:
        add("thaw", fair=False, r=ranks)
    for name, budget in _FAULTS_OF_RANKS:
        add(name, budget=budget, r=ranks)
    for name, budget in _FAULTS:
        add(name, budget=budget)
    add("expire", budget="call_deadlines", c=numbers)
    add("cancel", budget="cancels", c=numbers)
    add("give_up", budget="give_ups", t=threads, c=numbers)
    add("run_out", budget="give_ups", t=threads, c=numbers)
    add("garble", budget="raises", r=ranks, n=numbers, t=threads)
    add("be_stale", budget="stale", r=ranks, word=_CONTROL, epoch=range(2))
    words: tuple[Value, ...] = (ReplyOn.RETURNED,)
    if model.parts is Late:
        add("reap_early", budget="faults", r=ranks)
        add("stop_again", budget="faults", r=ranks)
        words = (ReplyOn.RETURNED, ReplyOn.RAISED)
    add("stray", budget="stale", r=ranks, word=words, kind=range(3), c=numbers, t=threads)
    return found


_FAULTS_OF_RANKS = (
    ("crash", "crashes"),
    ("raise", "raises"),
    ("wedge", "wedged"),
    ("ignore_term", "stubborn"),
    ("freeze", "freezes"),
)
_FAULTS = (
    ("start_deadline", "start_deadlines"),
    ("ask_stop", "stops"),
    ("fault", "faults"),
    ("listen", "listeners"),
    ("be_killed", "parents"),
)
