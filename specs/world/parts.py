"""What follows from a part of the world's state, or from two, computed once and remembered in the part.

Theory of operation: see `state` and `world`. Each remembered list is already filtered by the budgets that are left (a
mask of bits), so that the hot loop of the search copies lists and does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...protocol.core import Identity, Kind
from ...protocol.executor import ExecutorProtocol, ExecutorState
from ...protocol.futures import ReplyOn, ServeOn
from ...protocol.queues import ReaderOn, SeatOn
from ...protocol.ready import RankStartOn
from ...protocol.shutdown import RankStop, Stop
from ...protocol.worker import WorkerProtocol
from . import channel, ghost
from .callers import Threads, wake_parked
from .executor import Act, ExecutorRules
from .ghost import Ghost
from .rank import Rank, RankRules
from .state import Now
from .threads import ThreadRules
from .words import EPOCH, Budgets, Did, Mark, Message, Node, Status, did


class Next(NamedTuple):
    """A remembered action: what becomes of each part, where it changes."""

    label: Did
    executor: Node[ExecutorState]
    rank: Node[Rank] | None
    """The rank from which the executor learnt, after the action."""
    others: tuple[tuple[int, channel.Op], ...]
    """What is done to ranks beyond that."""
    record: tuple[ghost.Op, ...]
    wakes: bool
    threads: Node[Threads] | None = None
    quiet: bool = False
    """A reading that commutes with everything else that can happen (see theory, 6)."""


Afforded = tuple[str, Next]
"""An action and the budget that it costs."""
Moves = list[tuple[Did, Node[Rank], tuple[ghost.Op, ...]]]


class Parts:
    """The distinct parts met so far, and what follows from each."""

    def __init__(
        self,
        ranks: int,
        budgets: Budgets,
        ahead: int,
        eager: bool,
        deadline_is_certain: bool,
        executor: ExecutorProtocol,
        worker: WorkerProtocol,
    ) -> None:
        if eager and budgets.stale:
            raise ValueError("with stale messages a reading is never quiet: eager would miss runs")
        self.eager = eager
        self.deadline_is_certain = deadline_is_certain
        self.executor_rules = ExecutorRules(executor, ranks, budgets)
        self.rank_rules = RankRules(worker)
        self.thread_rules = ThreadRules(executor, self.executor_rules, ahead)
        self.executors: dict[ExecutorState, Node[ExecutorState]] = {}
        self.ranks: dict[Rank, Node[Rank]] = {}
        self.ghosts: dict[Ghost, Node[Ghost]] = {}
        self.threads: dict[Threads, Node[Threads]] = {}
        self._stale = _stale_messages(ranks) if budgets.stale else ()
        # What follows whatever budgets are left, by what it follows from.
        self._owned: dict[ExecutorState, list[Afforded]] = {}
        self._learned: dict[tuple[Node[ExecutorState], Node[Rank], int | None], list[Afforded]] = {}

    def hot(self, ghosts: Node[Ghost]) -> tuple[int, bool, bool, bool]:
        """Which budgets are left (as bits), whether the executor was killed, the alarm is armed, calls are accepted."""
        known: tuple[int, bool, bool, bool] | None = ghosts.memo.get("hot")
        if known is None:
            value = ghosts.value
            mask = sum(1 << position for position, left in enumerate(value.budgets) if left)
            known = ghosts.memo["hot"] = (
                mask,
                value.gone,
                value.alarm is not None,
                bool(value.marks & Mark.UP),
            )
        return known

    def rank_moves(self, rank: Node[Rank], mask: int) -> Moves:
        moves: Moves = [
            (
                move.label,
                node(self.ranks, move.after),
                (*spent(move.budget), *((int(move.offence),) if move.offence else ())),
            )
            for move in self.rank_rules.moves(rank.value)
            if affords(mask, move.budget)
        ]
        rank.memo["quiet"] = False
        if self.eager:
            quiet = [move for move in moves if not move[2] and _is_quiet_worker(move[0])]
            if quiet:
                moves, rank.memo["quiet"] = quiet[:1], True
        rank.memo[mask] = moves
        return moves

    def own(self, state: ExecutorState, mask: int) -> list[Next]:
        known = self._owned.get(state)
        if known is None:
            known = self._owned[state] = []
            for act in self._owns(state):
                if self.deadline_is_certain and act.budget == "start_deadlines":
                    label = did("executor", act.label.action, act.label.steps, act.label.sends)
                    act = act._replace(label=label)
                known.append((act.budget, self.next(act)))
        return [act for budget, act in known if affords(mask, budget)]

    def _owns(self, state: ExecutorState) -> Iterator[Act]:
        yield from self.executor_rules.own(state)
        if self._stale and state.stop[0] is not Stop.DOWN:
            for number, messages in enumerate(self._stale):
                if state.stop[number + 1] not in (RankStop.ABSENT, RankStop.REAPED):
                    for message in messages:
                        yield self.executor_rules.stale(state, number, message)

    def thread_moves(self, state: ExecutorState, threads: Threads, mask: int) -> list[Next]:
        return [
            self.next(act)._replace(threads=node(self.threads, after))
            for act, after in self.thread_rules.moves(state, threads)
            if affords(mask, act.budget)
        ]

    def learnt(
        self, executor: Node[ExecutorState], rank: Node[Rank], mask: int, drainer: int | None
    ) -> list[Next]:
        known = self._learned.get((executor, rank, drainer))
        if known is None:
            known = self._learned[executor, rank, drainer] = []
            for act in self._learns(executor.value, rank.value, drainer):
                mine = [op for number, op in act.ranks if number == rank.value.number]
                others = tuple(op for op in act.ranks if op[0] != rank.value.number)
                after = rank
                for op in mine:
                    after = self.done_to(after, op)
                quiet = self.eager and not others and _is_quiet(act)
                learnt = self.next(act)._replace(rank=after if mine else None, others=others, quiet=quiet)
                known.append((act.budget, learnt))
            known.sort(key=lambda pair: not pair[1].quiet)
        return [act for budget, act in known if affords(mask, budget)]

    def _learns(self, state: ExecutorState, rank: Rank, drainer: int | None) -> Iterator[Act]:
        """What the executor can learn from a rank as it is."""
        rules, number = self.executor_rules, rank.number
        if state.stop[0] is not Stop.DOWN:  # else the supervisor has left its loop
            yield from self._hears(state, rank)
        if drainer is not None:
            actor = f"caller {drainer}"
            if rank.replies and isinstance(rank.replies[0].word, ReplyOn):
                message = rank.replies[0]
                yield rules.reply(state, number, message, actor)
                if message.word is ReplyOn.RETURNED:
                    yield rules.garbled(state, number, message, actor)
            if self._stale:
                for message in self._stale_replies(state, number):
                    yield rules.stale_reply(state, number, message, actor)

    @staticmethod
    def _stale_replies(state: ExecutorState, rank: int) -> Iterator[Message]:
        """What might be read as an answer and is none: of another epoch or rank, or to a call that nobody made."""
        for identity, _ in state.calls[:1]:
            yield Message(ReplyOn.RETURNED, Identity(EPOCH - 1, rank, identity.call))
            yield Message(ReplyOn.RETURNED, Identity(EPOCH, rank + 1, identity.call))
            yield Message(ReplyOn.RETURNED, Identity(EPOCH, rank, identity.call + 1000))

    def _hears(self, state: ExecutorState, rank: Rank) -> Iterator[Act]:
        """What the supervisor can read of a rank, or of its death."""
        rules, number = self.executor_rules, rank.number
        if rank.control:
            yield rules.control(state, number, rank.control[0])
        elif rank.status is Status.DEAD and state.stop[number + 1] is not RankStop.REAPED:
            yield rules.died(state, number)
        if rank.joins:
            yield rules.joined(state, number)
        if rank.replies and rank.replies[0].word == ReaderOn.OPENED:
            yield rules.opened(state, number)

    def next(self, act: Act) -> Next:
        record = (*spent(act.budget), *act.record)
        return Next(act.label, node(self.executors, act.after), None, act.ranks, record, act.wakes)

    def acted(self, now: Now, act: Next, learnt: int = 0) -> Now:
        threads = now.threads if act.threads is None else act.threads
        if act.wakes:
            threads = node(self.threads, wake_parked(threads.value))
        ranks = now.ranks
        if act.others or act.rank is not None:
            changed = list(ranks)
            if act.rank is not None:
                changed[learnt] = act.rank
            for number, op in act.others:
                changed[number] = self.done_to(changed[number], op)
            ranks = tuple(changed)
        record = self.record(now.ghost, act.record) if act.record else now.ghost
        return Now(act.executor, threads, record, ranks)

    def done_to(self, rank: Node[Rank], op: channel.Op) -> Node[Rank]:
        known: Node[Rank] | None = rank.memo.get(op)
        if known is None:
            value = (
                self.rank_rules.made(rank.value) if op is channel.MAKE else channel.done_to(rank.value, op)
            )
            known = rank.memo[op] = node(self.ranks, value)
        return known

    def executor_node(self, state: ExecutorState) -> Node[ExecutorState]:
        """The part that is this state of the executor."""
        return node(self.executors, state)

    def rank_node(self, rank: Rank) -> Node[Rank]:
        """The part that is this state of a rank."""
        return node(self.ranks, rank)

    def record(self, record: Node[Ghost], ops: tuple[ghost.Op, ...]) -> Node[Ghost]:
        known: Node[Ghost] | None = record.memo.get(ops)
        if known is None:
            value = record.value
            for op in ops:
                value = ghost.noted(value, op)
            known = record.memo[ops] = node(self.ghosts, value)
        return known


def node(pool: dict[Any, Node[Any]], value: Any) -> Node[Any]:
    known = pool.get(value)
    if known is None:
        known = pool[value] = Node(value)
    return known


_QUIET_WORDS = frozenset(
    {RankStartOn.HELLO, RankStartOn.WEIGHTS, RankStartOn.QUEUES, SeatOn.JOINED, ReaderOn.OPENED}
)


def _is_quiet(act: Act) -> bool:
    if act.budget or act.record or len(act.label.steps) != 1:
        return False
    ((_, step),) = act.label.steps
    says = step.event in _QUIET_WORDS or step.dest is step.source
    return says and step.event.kind is Kind.MESSAGE and not step.effects


def _is_quiet_worker(label: Did) -> bool:
    if len(label.steps) != 1:
        return False
    ((_, step),) = label.steps
    return (step.cluster, step.event) in _QUIET_WORKER and not step.effects


_QUIET_WORKER = (("serve", ServeOn.SENT), ("intake", ReaderOn.OPENED))


def affords(mask: int, budget: str) -> bool:
    return not budget or bool(mask >> budget_bit(budget) & 1)


def budget_bit(name: str) -> int:
    return Budgets._fields.index(name) if name else -1


def spent(name: str) -> tuple[ghost.Op, ...]:
    return (ghost.Spend(budget_bit(name)),) if name else ()


def _stale_messages(ranks: int) -> tuple[tuple[Message, ...], ...]:
    """Per rank, what a process of an earlier epoch, or of another rank, might say on its control channel."""
    words = (
        RankStartOn.HELLO,
        RankStartOn.WEIGHTS,
        RankStartOn.QUEUES,
        RankStartOn.READY,
        RankStartOn.FAILED,
    )
    return tuple(
        tuple(
            Message(word, identity)
            for word in words
            for identity in (Identity(EPOCH - 1, rank), Identity(EPOCH, rank + 1))
        )
        for rank in range(ranks)
    )
