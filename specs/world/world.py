"""One executor and N workers, composed from the very tables that the runtime steps.

Theory of operation:

1. An action is one fact for one process, or one fault; it is atomic. What it does to others is done at once, except
   that messages and signals then lie on their way, and are read or delivered by an action of the other side.
2. The parts of the state (see state.py) are stored once, and whatever follows from one part, or from two, is
   remembered in it. So an action costs a few look-ups, although it steps real tables.
3. The supervisor reads all that a rank said on its control channel before it takes the rank for dead: a FAILED with its
   traceback beats the death. It reads OPEN and JOINED as well; answers are read by the caller that drains, and by
   nobody once the executor is ending.
4. What is fair: everything that a process does by itself, and the alarm of the stop while it is armed. What is not:
   faults, signals ignored, callers who may or may not call, and deadlines, unless `deadline_is_certain`. The alarm
   may come before anything else, with one exception: with `kill_is_prompt` the time after SIGKILL is long enough for a
   process that SIGKILL ends to be reaped. Without it, an executor may report as a survivor what is already dead.
5. A killed executor leaves nothing but its workers, who notice sooner or later.
6. With `eager`, a *quiet* reading is taken at once and alone: one that takes a single step, has no effect, and says
   HELLO, WEIGHTS, QUEUES, JOINED or OPEN, or changes nothing; and so is a worker's step that its answer was sent, or
   that the broadcast queue is open. Whatever else may happen in that state may as well happen
   after it, and leads to the same state: a rank's death waits for its messages, and giving up overrides any of those
   words in either order. No property looks at the words themselves. So every run is one of the reduced model with
   readings moved forward (an ample set of one). A stale message breaks this: its harm depends on what was read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ...protocol.core import Identity, Kind
from ...protocol.executor import ExecutorProtocol, ExecutorState
from ...protocol.futures import ReplyOn, ServeOn
from ...protocol.life import Life
from ...protocol.queues import ReaderOn, SeatOn
from ...protocol.ready import RankStartOn
from ...protocol.shutdown import RankStop, Stop
from ...protocol.worker import WorkerProtocol
from . import channel, ghost
from .callers import Thread, Threads, waits, wake_parked
from .executor import ENDED, Act, ExecutorRules
from .ghost import Ghost
from .rank import Rank, RankRules
from .state import Now, in_words
from .threads import ThreadRules
from .words import EPOCH, Budgets, Did, Mark, Message, Node, Status, did

_EXECUTOR_PROTOCOL, _WORKER_PROTOCOL = ExecutorProtocol(), WorkerProtocol()


def _killable(now: Now) -> bool:
    """Whether a process is left that SIGKILL ends, or has ended, and that is not reaped yet."""
    return any(
        rank.value.status in (Status.ALIVE, Status.FROZEN, Status.DEAD) and state is not RankStop.REAPED
        for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
    )


class _Next(NamedTuple):
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


_Moves = list[tuple[Did, Node[Rank], tuple[ghost.Op, ...]]]


class World:
    """A model for the explorer; see the module's theory of operation.

    `calls` says how many calls each thread makes, and `ahead` how many of them it submits before it waits. The model
    starts at the first state of a faultless run that satisfies `begin`, taking only actions that `before` lets pass,
    and goes no further than a state that satisfies `until`.
    """

    def __init__(
        self,
        ranks: int,
        budgets: Budgets = Budgets(),  # noqa: B008 - a NamedTuple, immutable
        *,
        calls: tuple[int, ...] = (),
        ahead: int = 1,
        deadline_is_certain: bool = False,
        eager: bool = False,
        kill_is_prompt: bool = True,
        executor: ExecutorProtocol = _EXECUTOR_PROTOCOL,
        worker: WorkerProtocol = _WORKER_PROTOCOL,
        name: str = "world",
        begin: Callable[[Now], bool] | None = None,
        before: Callable[[Did], bool] | None = None,
        until: Callable[[Now], bool] | None = None,
    ) -> None:
        self.name = name
        self.size = ranks
        self.budgets = budgets
        self.calls = calls
        self.deadline_is_certain = deadline_is_certain
        if eager and budgets.stale:
            raise ValueError("with stale messages a reading is never quiet: eager would miss runs")
        self.eager = eager
        self.kill_is_prompt = kill_is_prompt
        self.executor_rules = ExecutorRules(executor, ranks)
        self.rank_rules = RankRules(worker)
        self.thread_rules = ThreadRules(executor, self.executor_rules, ahead)
        self._begin, self._before, self._until = begin, before, until
        self._executors: dict[ExecutorState, Node[ExecutorState]] = {}
        self._ranks: dict[Rank, Node[Rank]] = {}
        self._ghosts: dict[Ghost, Node[Ghost]] = {}
        self._threads: dict[Threads, Node[Threads]] = {}
        self._stale = _stale_messages(ranks) if budgets.stale else ()

    # --- the model ----------------------------------------------------------------------------------------------

    def first(self, budgets: Budgets) -> Now:
        """Nothing has been made yet."""
        threads = Threads(tuple(Thread(left=calls) for calls in self.calls))
        return Now(
            _node(self._executors, self.executor_rules.protocol.initial(self.size)),
            _node(self._threads, threads),
            _node(self._ghosts, Ghost(budgets)),
            tuple(_node(self._ranks, Rank(number)) for number in range(self.size)),
        )

    def initial(self) -> Iterable[Now]:
        """The beginning; with `begin`, the first state that satisfies it on a run without faults."""
        if self._begin is None:
            return [self.first(self.budgets)]
        now = self.first(Budgets())
        while not self._begin(now):
            for label, after in self.following(now):
                if label.fair and (self._before is None or self._before(label)):
                    now = after
                    break
            else:
                raise ValueError(
                    f"{self.name}: no run leads to where it is to begin; stuck in {in_words(now)}"
                )
        return [now._replace(ghost=_node(self._ghosts, now.ghost.value._replace(budgets=self.budgets)))]

    def actions(self, now: Now) -> list[tuple[Did, Now]]:
        """Everything that can happen next; nothing, where the model ends."""
        return [] if self._until is not None and self._until(now) else self.following(now)

    def following(self, now: Now) -> list[tuple[Did, Now]]:
        """Everything that can happen next. The hot loop: look-ups only, wherever a part has been met before."""
        executor, threads, ghosts, ranks = now
        mask, gone, alarm, up = self._hot(ghosts)
        acts: list[_Next] | None
        drainer = threads.memo.get("drainer", -1)
        if drainer == -1:
            drainer = threads.memo["drainer"] = threads.value.drainer
        learnt = []
        if not gone:
            for number, rank in enumerate(ranks):
                key = (rank, mask, drainer)
                acts = executor.memo.get(key)
                if acts is None:
                    acts = executor.memo[key] = self._learnt(executor, rank, mask, drainer)
                if acts and acts[0].quiet:
                    changed = (*ranks[:number], acts[0].rank, *ranks[number + 1 :])
                    return [(acts[0].label, _new(Now, (acts[0].executor, threads, ghosts, changed)))]
                learnt.append(acts)
        found: list[tuple[Did, Now]] = []
        for number, rank in enumerate(ranks):
            moves: _Moves | None = rank.memo.get(mask)
            if moves is None:
                moves = self._rank_moves(rank, mask)
            if rank.memo["quiet"]:
                changed = (*ranks[:number], moves[0][1], *ranks[number + 1 :])
                return [(moves[0][0], _new(Now, (executor, threads, ghosts, changed)))]
            for label, moved, record in moves:
                after = self._record(ghosts, record) if record else ghosts
                changed = (*ranks[:number], moved, *ranks[number + 1 :])
                found.append((label, _new(Now, (executor, threads, after, changed))))
        if gone:
            return found
        for number, acts in enumerate(learnt):
            for act in acts:
                if act.others or act.wakes:
                    found.append((act.label, self._acted(now, act, number)))
                    continue
                after = self._record(ghosts, act.record) if act.record else ghosts
                changed = ranks if act.rank is None else (*ranks[:number], act.rank, *ranks[number + 1 :])
                found.append((act.label, _new(Now, (act.executor, threads, after, changed))))
        acts = executor.memo.get(mask)
        if acts is None:
            acts = executor.memo[mask] = self._own(executor.value, mask)
        for act in acts:
            found.append((act.label, self._acted(now, act)))
        if alarm and not (self.kill_is_prompt and executor.value.stop[0] is Stop.KILLING and _killable(now)):
            act = executor.memo.get("alarm")
            if act is None:
                act = executor.memo["alarm"] = self._next(self.executor_rules.alarm(executor.value))
            found.append((act.label, self._acted(now, act)))
        if self.calls:
            waiting = (threads, mask)
            acts = executor.memo.get(waiting)
            if acts is None:
                acts = executor.memo[waiting] = self._thread_moves(executor.value, threads.value, mask)
            for act in acts:
                if up or not act.others:
                    found.append((act.label, self._acted(now, act)))
        if mask & _PARENTS and executor.value.life[0] not in ENDED:
            found.append((_PARENT_KILLED, self._parent_killed(now)))
        return found

    def accepting(self, now: Now) -> bool:
        """Whether a run may end here: the executor came to its end, or serves and nobody waits for anything."""
        if self._until is not None and self._until(now):
            return True
        alive = any(rank.value.alive for rank in now.ranks)
        if now.ghost.value.gone:
            return not alive
        if waits(now.threads.value):
            return False
        life = now.life
        if life in ENDED:
            return all(
                not rank.value.alive or state is RankStop.SURVIVOR
                for rank, state in zip(now.ranks, now.executor.value.stop[1:], strict=True)
            )
        return life is Life.SERVING

    def describe(self, now: Now) -> str:
        """The state in words."""
        return in_words(now)

    # --- what follows from parts of the state, remembered ---------------------------------------------------------

    def _hot(self, ghosts: Node[Ghost]) -> tuple[int, bool, bool, bool]:
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

    def _rank_moves(self, rank: Node[Rank], mask: int) -> _Moves:
        moves: _Moves = [
            (
                move.label,
                _node(self._ranks, move.after),
                (*_spent(move.budget), *((int(move.offence),) if move.offence else ())),
            )
            for move in self.rank_rules.moves(rank.value)
            if _affords(mask, move.budget)
        ]
        rank.memo["quiet"] = False
        if self.eager:
            quiet = [move for move in moves if not move[2] and _is_quiet_worker(move[0])]
            if quiet:
                moves, rank.memo["quiet"] = quiet[:1], True
        rank.memo[mask] = moves
        return moves

    def _own(self, state: ExecutorState, mask: int) -> list[_Next]:
        found = []
        for act in self._owns(state):
            if self.deadline_is_certain and act.budget == "start_deadlines":
                label = did("executor", act.label.action, act.label.steps, act.label.sends)
                act = act._replace(label=label)
            if _affords(mask, act.budget):
                found.append(self._next(act))
        return found

    def _owns(self, state: ExecutorState) -> Iterator[Act]:
        yield from self.executor_rules.own(state)
        if self._stale and state.life[0] not in ENDED:
            for number, messages in enumerate(self._stale):
                if state.stop[number + 1] not in (RankStop.ABSENT, RankStop.REAPED):
                    for message in messages:
                        yield self.executor_rules.stale(state, number, message)

    def _thread_moves(self, state: ExecutorState, threads: Threads, mask: int) -> list[_Next]:
        return [
            self._next(act)._replace(threads=_node(self._threads, after))
            for act, after in self.thread_rules.moves(state, threads)
            if _affords(mask, act.budget)
        ]

    def _learnt(
        self, executor: Node[ExecutorState], rank: Node[Rank], mask: int, drainer: int | None
    ) -> list[_Next]:
        found = []
        for act in self._learns(executor.value, rank.value, drainer):
            if _affords(mask, act.budget):
                mine = [op for number, op in act.ranks if number == rank.value.number]
                others = tuple(op for op in act.ranks if op[0] != rank.value.number)
                after = rank
                for op in mine:
                    after = self._done_to(after, op)
                quiet = self.eager and not others and _is_quiet(act)
                found.append(
                    self._next(act)._replace(rank=after if mine else None, others=others, quiet=quiet)
                )
        return sorted(found, key=lambda act: not act.quiet)

    def _learns(self, state: ExecutorState, rank: Rank, drainer: int | None) -> Iterator[Act]:
        """What the executor can learn from a rank as it is."""
        rules, number = self.executor_rules, rank.number
        if state.life[0] in ENDED:
            return  # it has left its loop
        if rank.control:
            yield rules.control(state, number, rank.control[0])
        elif rank.status is Status.DEAD and state.stop[number + 1] is not RankStop.REAPED:
            yield rules.died(state, number)
        if rank.joins:
            yield rules.joined(state, number)
        if rank.replies and rank.replies[0].word == ReaderOn.OPENED:
            yield rules.opened(state, number)
        if drainer is not None and state.life[0] is Life.SERVING:
            actor = f"caller {drainer}"
            if rank.replies and isinstance(rank.replies[0].word, ReplyOn):
                yield rules.reply(state, number, rank.replies[0], actor)
            if self._stale:
                for message in _stale_replies(state, number):
                    yield rules.stale_reply(state, number, message, actor)

    def _next(self, act: Act) -> _Next:
        record = (*_spent(act.budget), *act.record)
        return _Next(act.label, _node(self._executors, act.after), None, act.ranks, record, act.wakes)

    def _acted(self, now: Now, act: _Next, learnt: int = 0) -> Now:
        threads = now.threads if act.threads is None else act.threads
        if act.wakes:
            threads = _node(self._threads, wake_parked(threads.value))
        ranks = now.ranks
        if act.others or act.rank is not None:
            changed = list(ranks)
            if act.rank is not None:
                changed[learnt] = act.rank
            for number, op in act.others:
                changed[number] = self._done_to(changed[number], op)
            ranks = tuple(changed)
        record = self._record(now.ghost, act.record) if act.record else now.ghost
        return Now(act.executor, threads, record, ranks)

    def _done_to(self, rank: Node[Rank], op: channel.Op) -> Node[Rank]:
        known: Node[Rank] | None = rank.memo.get(op)
        if known is None:
            value = (
                self.rank_rules.made(rank.value) if op is channel.MAKE else channel.done_to(rank.value, op)
            )
            known = rank.memo[op] = _node(self._ranks, value)
        return known

    def _record(self, record: Node[Ghost], ops: tuple[ghost.Op, ...]) -> Node[Ghost]:
        known: Node[Ghost] | None = record.memo.get(ops)
        if known is None:
            value = record.value
            for op in ops:
                value = ghost.noted(value, op)
            known = record.memo[ops] = _node(self._ghosts, value)
        return known

    def _parent_killed(self, now: Now) -> Now:
        record = self._record(now.ghost, (ghost.Spend(_budget("parents")), ghost.KILLED))
        return Now(
            _node(self._executors, self.executor_rules.protocol.initial(self.size)),
            _node(self._threads, Threads()),
            record,
            tuple(_node(self._ranks, channel.orphaned(rank.value)) for rank in now.ranks),
        )


_PARENTS = 1 << Budgets._fields.index("parents")
_new: Any = tuple.__new__  # a NamedTuple's own constructor is a Python function, and this is the hot loop
_PARENT_KILLED = did("executor", "is killed", actor="executor", fair=False)


def _node(pool: dict[Any, Node[Any]], value: Any) -> Node[Any]:
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


def _affords(mask: int, budget: str) -> bool:
    return not budget or bool(mask >> _budget(budget) & 1)


def _budget(name: str) -> int:
    return Budgets._fields.index(name) if name else -1


def _spent(name: str) -> tuple[ghost.Op, ...]:
    return (ghost.Spend(_budget(name)),) if name else ()


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


def _stale_replies(state: ExecutorState, rank: int) -> Iterator[Message]:
    """What might be read as an answer and is none: of an earlier epoch, or for a call that nobody made."""
    for identity, _ in state.calls[:1]:
        yield Message(ReplyOn.RETURNED, Identity(EPOCH - 1, rank, identity.call))
        yield Message(ReplyOn.RETURNED, Identity(EPOCH, rank, identity.call + 1000))
