"""One executor and N workers, composed from the very tables that the runtime steps.

Theory of operation:

1. An action is one fact for one process, or one fault; it is atomic. What it does to others is done at once, except
   that messages and signals then lie on their way, and are read or delivered by an action of the other side.
2. The parts of the state (see state.py) are stored once, and whatever follows from one part, or from two, is
   remembered in it. So an action costs a few look-ups, although it steps real tables.
3. The supervisor reads all that a rank said on its control channel before it takes the rank for dead: a FAILED with its
   traceback beats the death. It reads OPEN and JOINED as well; answers are read by the caller that drains, and by
   nobody once no caller waits.
4. What is fair: everything that a process does by itself, and the alarm of the stop while it is armed. What is not:
   faults, signals ignored, callers who may or may not call, and deadlines, unless `deadline_is_certain`. The alarm
   may come before anything else: a process that SIGKILL has ended may be reported as a survivor, and is reaped late.
5. A killed executor leaves nothing but its workers, who notice sooner or later.
6. With `eager`, a *quiet* reading is taken at once and alone: one that takes a single step, has no effect, and says
   HELLO, WEIGHTS, QUEUES, JOINED or OPEN, or changes nothing; and so is a worker's step that its answer was sent, or
   that the broadcast queue is open. Whatever else may happen in that state may as well happen
   after it, and leads to the same state: a rank's death waits for its messages, and giving up overrides any of those
   words in either order. No property looks at the words themselves. So every run is one of the reduced model with
   readings moved forward (an ample set of one). A stale message breaks this: its harm depends on what was read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...protocol.executor import ExecutorProtocol
from ...protocol.life import Life
from ...protocol.shutdown import RankStop
from ...protocol.worker import WorkerProtocol
from . import channel, ghost
from .callers import Thread, Threads, waits
from .executor import ENDED
from .ghost import Ghost
from .parts import Moves, Next, Parts, budget_bit, node
from .rank import Rank
from .state import Now, in_words
from .symmetry import Symmetry
from .words import Budgets, Did, did

_FAR = 200  # steps a rank within which a run without faults comes to where a model begins


class NoBeginningError(ValueError):
    """The faultless run of a broken protocol never comes to where the model begins."""


_EXECUTOR_PROTOCOL, _WORKER_PROTOCOL = ExecutorProtocol(), WorkerProtocol()


class World:
    """A model for the explorer; see the module's theory of operation.

    `calls` says how many calls each thread makes, and `ahead` how many of them it submits before it waits. The model
    starts at the first state of a faultless run that satisfies `begin`, and goes no further than one that satisfies
    `until`. `parts` is the glue: who reads what, and when; known-bad variants put their own. If `symmetric`, it has a
    canonical form (see symmetry.py), and may be searched modulo the order of its ranks. Raises ValueError if it cannot.
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
        executor: ExecutorProtocol = _EXECUTOR_PROTOCOL,
        worker: WorkerProtocol = _WORKER_PROTOCOL,
        name: str = "world",
        begin: Callable[[Now], bool] | None = None,
        until: Callable[[Now], bool] | None = None,
        parts: type[Parts] = Parts,
        symmetric: bool = False,
    ) -> None:
        if symmetric and (calls or budgets.stale or budgets.listeners or until is None):
            raise ValueError(f"{name}: calls, stale words and survivors tell its ranks apart")
        self.name = name
        self.size = ranks
        self._all = list(range(ranks))
        self.budgets = budgets
        self.calls = calls
        self._parts = parts(ranks, budgets, ahead, eager, deadline_is_certain, executor, worker)
        self._begin, self._until = begin, until
        if symmetric:
            self.canonical = Symmetry(self._parts)
            self.distinct_actions = self._distinct_actions

    @property
    def parts(self) -> Parts:
        """The distinct parts met so far, and what was asked of each."""
        return self._parts

    # --- the model ----------------------------------------------------------------------------------------------

    def first(self, budgets: Budgets) -> Now:
        """Nothing has been made yet."""
        threads = Threads(tuple(Thread(left=calls) for calls in self.calls))
        return Now(
            node(self._parts.executors, self._parts.executor_rules.protocol.initial(self.size)),
            node(self._parts.threads, threads),
            node(self._parts.ghosts, Ghost(budgets)),
            tuple(node(self._parts.ranks, Rank(number)) for number in range(self.size)),
        )

    def initial(self) -> Iterable[Now]:
        """The beginning; with `begin`, the first state that satisfies it on a run without faults."""
        if self._begin is None:
            return [self.first(self.budgets)]
        now = self.first(Budgets())
        steps = 0
        while not self._begin(now):
            ways = (after for label, after in self.following(now) if label.fair and after != now)
            after = next(ways, None)
            steps += 1
            if after is None or steps > _FAR * self.size:  # a mutant may run in circles
                raise NoBeginningError(
                    f"{self.name}: no run leads to where it is to begin; after {steps} steps it is in {in_words(now)}"
                )
            now = after
        return [now._replace(ghost=node(self._parts.ghosts, now.ghost.value._replace(budgets=self.budgets)))]

    def actions(self, now: Now) -> list[tuple[Did, Now]]:
        """Everything that can happen next; nothing, where the model ends."""
        return [] if self._until is not None and self._until(now) else self.following(now)

    def _distinct_actions(self, now: Now) -> list[tuple[Did, Now]]:
        if self._until is not None and self._until(now):
            return []
        return self.following(now, self.canonical.distinct(now))

    def following(self, now: Now, among: list[int] | None = None) -> list[tuple[Did, Now]]:
        """Everything that can happen next, in any rank or `among` some. The hot loop: look-ups only, wherever a part
        has been met before.
        """
        executor, threads, ghosts, ranks = now
        mask, gone, alarm, up = self._parts.hot(ghosts)
        acts: list[Next] | None
        drainer = threads.memo.get("drainer", -1)
        if drainer == -1:
            drainer = threads.memo["drainer"] = threads.value.drainer
        learnt = []
        if among is None:
            among = self._all
        if not gone:
            for number in among:
                rank = ranks[number]
                key = (rank, mask, drainer)
                acts = executor.memo.get(key)
                if acts is None:
                    acts = executor.memo[key] = self._parts.learnt(executor, rank, mask, drainer)
                if acts and acts[0].quiet:
                    changed = (*ranks[:number], acts[0].rank, *ranks[number + 1 :])
                    return [(acts[0].label, _new(Now, (acts[0].executor, threads, ghosts, changed)))]
                learnt.append(acts)
        found: list[tuple[Did, Now]] = []
        for number in among:
            rank = ranks[number]
            moves: Moves | None = rank.memo.get(mask)
            if moves is None:
                moves = self._parts.rank_moves(rank, mask)
            if rank.memo["quiet"]:
                changed = (*ranks[:number], moves[0][1], *ranks[number + 1 :])
                return [(moves[0][0], _new(Now, (executor, threads, ghosts, changed)))]
            for label, moved, record in moves:
                after = self._parts.record(ghosts, record) if record else ghosts
                changed = (*ranks[:number], moved, *ranks[number + 1 :])
                found.append((label, _new(Now, (executor, threads, after, changed))))
        if gone:
            return found
        for number, acts in zip(among, learnt, strict=True):
            for act in acts:
                if act.others or act.wakes:
                    found.append((act.label, self._parts.acted(now, act, number)))
                    continue
                after = self._parts.record(ghosts, act.record) if act.record else ghosts
                changed = ranks if act.rank is None else (*ranks[:number], act.rank, *ranks[number + 1 :])
                found.append((act.label, _new(Now, (act.executor, threads, after, changed))))
        acts = executor.memo.get(mask)
        if acts is None:
            acts = executor.memo[mask] = self._parts.own(executor.value, mask)
        for act in acts:
            found.append((act.label, self._parts.acted(now, act)))
        if alarm:
            act = executor.memo.get("alarm")
            if act is None:
                act = executor.memo["alarm"] = self._parts.next(
                    self._parts.executor_rules.alarm(executor.value)
                )
            found.append((act.label, self._parts.acted(now, act)))
        if self.calls:
            waiting = (threads, mask)
            acts = executor.memo.get(waiting)
            if acts is None:
                acts = executor.memo[waiting] = self._parts.thread_moves(executor.value, threads.value, mask)
            for act in acts:
                if up or not act.others:
                    found.append((act.label, self._parts.acted(now, act)))
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

    def _parent_killed(self, now: Now) -> Now:
        record = self._parts.record(now.ghost, (ghost.Spend(budget_bit("parents")), ghost.KILLED))
        return Now(
            node(self._parts.executors, self._parts.executor_rules.protocol.initial(self.size)),
            node(self._parts.threads, Threads()),
            record,
            tuple(node(self._parts.ranks, channel.orphaned(rank.value)) for rank in now.ranks),
        )


_PARENTS = 1 << Budgets._fields.index("parents")
_new: Any = tuple.__new__  # a NamedTuple's own constructor is a Python function, and this is the hot loop
_PARENT_KILLED = did("executor", "is killed", actor="executor", fair=False)
