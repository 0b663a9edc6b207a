"""The actions of the exported world: one for each fairness class, and one for each fault.

Theory of operation. An action is a `can_` and a `do_` function of the glue with constant arguments. Its arguments are
as fine as the labels of `World`, because weak fairness speaks of classes of labels: "reads HELLO of rank 0" and "reads
READY of rank 0" are two actions. An action that meets an illegal event stays in the class of its legal form, while
`World` gives it a label of its own; so fair runs agree as long as nothing illegal happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ...protocol.ready import RankStartOn
from ...protocol.shutdown import Stop
from ..models import Model
from ..world import World
from .glue.words import Only, Work
from .small import Value


@dataclass(frozen=True)
class Action:
    """One action; `reads` is the quiet reading that it may be, and its first argument then is the rank."""

    name: str
    arguments: tuple[Value, ...] = ()
    fair: bool = True
    budget: str = ""
    reads: Only = Only.NONE

    def __str__(self) -> str:
        words = (
            argument.name if isinstance(argument, RankStartOn | Work | Stop) else str(argument)
            for argument in self.arguments
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
    "ask_stop": "go_on",
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
    return [
        action for action in _all(model, world) if not action.budget or getattr(world.budgets, action.budget)
    ]


def _all(model: Model, world: World) -> list[Action]:
    ranks, numbers = range(world.size), range(1, sum(world.calls) + 1)
    threads = range(len(world.calls))
    found: list[Action] = []

    def add(
        name: str,
        *domains: range | tuple[Value, ...],
        fair: bool = True,
        budget: str = "",
        reads: Only = Only.NONE,
    ) -> None:
        for arguments in product(*domains):
            found.append(Action(name, arguments, fair and (not budget or budget == certain), budget, reads))

    certain = "start_deadlines" if model.deadline_is_certain else ""
    # Fair: what processes do by themselves, and the alarm.
    add("make", ranks)
    add("join", ranks)
    add("ring", _STAGES)
    add("read", ranks, _CONTROL, reads=Only.CONTROL)
    add("reap", ranks)
    add("read_joined", ranks, reads=Only.JOINED)
    add("read_opened", ranks, reads=Only.OPENED)
    add("be_born", ranks)
    add("end_phase", ranks, _PHASES)
    add("do_due", ranks, range(len(model.worker.agenda)))
    add("hear_joined", ranks)
    add("hear_opened", ranks, reads=Only.INTAKE)
    add("stop", ranks)
    add("be_clean", ranks)
    add("die_of_kill", ranks)
    add("die_of_term", ranks)
    if world.budgets.parents:  # else no line is ever GONE
        add("be_orphaned", ranks)
        add("end_with_executor", ranks)
    add("take_call", ranks, numbers)
    add("return", ranks, numbers)
    add("be_sent", ranks, numbers, reads=Only.SENT)
    add("take_returned", ranks, numbers, threads)
    add("take_raised", ranks, numbers, threads)
    for name in ("drain", "park", "look", "settle"):
        add(name, threads, numbers)
    # Not fair: faults, signals that do nothing, callers, deadlines.
    add("submit", threads, fair=False)
    add("die_late", ranks, fair=False)
    if world.budgets.freezes:
        add("thaw", ranks, fair=False)
    for name, budget in _FAULTS_OF_RANKS:
        add(name, ranks, budget=budget)
    for name, budget in _FAULTS:
        add(name, budget=budget)
    add("expire", numbers, budget="call_deadlines")
    add("cancel", numbers, budget="cancels")
    add("give_up", threads, numbers, budget="give_ups")
    add("run_out", threads, numbers, budget="give_ups")
    add("garble", ranks, numbers, threads, budget="raises")
    add("be_stale", ranks, _CONTROL, range(2), budget="stale")
    add("stray", ranks, range(3), numbers, threads, budget="stale")
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
