"""Hold a recorded run against the model: each line must be the next step of an action that is possible there.

Theory of operation:

1. The file's order is an order in which everything could have happened (see `format`), so there is nothing to search:
   the lines are followed, and the first that the model does not allow is the verdict.
2. An action may take several steps. Its first line chooses it; the rest must follow, in their order, in the lines of
   the same process; lines of other processes may stand between. What the action does to others counts from its first
   line on.
3. A crash writes nothing. It is assumed where it must be: when the executor says that a rank died, the rank has not
   left by its own account, and its log has no further line. A step is written down before its effects are done, so
   what the last step said may have been lost with it. An exit status of 0 is no crash: the log must have come to GONE.
4. In the end the executor must be DOWN or FAILED, nobody may be draining, and every process that was made must be
   reaped or reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...protocol.core import Step
from ...protocol.executor import ExecutorProtocol
from ...protocol.futures import Caller
from ...protocol.life import Life
from ...protocol.shutdown import RankStop
from ...protocol.worker import WorkerProtocol
from ..world import Rank, Status
from .format import EXECUTOR, Header, Line, TraceError, read
from .group import Change, Group
from .verdict import TraceVerdict

Pending = list[tuple[int, Step]]


class _RefusedError(Exception):
    """A line, or the end, that the model does not allow."""


def validate(
    lines: Iterable[str], executor: ExecutorProtocol | None = None, worker: WorkerProtocol | None = None
) -> TraceVerdict:
    """Hold the lines of a trace against the model of these protocols (default: those that are shipped)."""
    text = list(lines)
    total = sum(1 for line in text if line.strip())
    try:
        trace = read(text, executor, worker)
    except TraceError as error:
        said = text[error.number - 1].strip() if error.number <= len(text) else ""
        return TraceVerdict(
            accepted=False,
            lines=total,
            matched=max(sum(1 for line in text[: error.number - 1] if line.strip()), 0),
            number=error.number,
            line=said[:200],
            reason=error.message,
        )
    return Replay(trace.header, trace.lines, executor, worker).run()


class Replay:
    """One trace and how far it has been followed."""

    def __init__(
        self,
        header: Header,
        lines: list[Line],
        executor: ExecutorProtocol | None = None,
        worker: WorkerProtocol | None = None,
    ) -> None:
        self.header = header
        self.lines = lines
        self.group = Group(header.ranks, executor or ExecutorProtocol(), worker or WorkerProtocol())
        self.pending: dict[str, Pending] = {}
        self.said = [line for line in lines if line.process == EXECUTOR]
        self.left = Counter(line.process for line in lines)
        self.last_said = [0] * header.ranks
        """Per rank, how many words its last action said on the control channel."""

    def run(self) -> TraceVerdict:
        """Follow the lines to the end, or to the first that is refused."""
        for index, line in enumerate(self.lines):
            try:
                self.follow(line)
            except _RefusedError as error:
                return self._refused(index, line, str(error))
        try:
            self._end()
        except _RefusedError as error:
            return self._refused(len(self.lines), None, str(error))
        return TraceVerdict(accepted=True, lines=len(self.lines) + 1, matched=len(self.lines) + 1)

    def follow(self, line: Line) -> None:
        """One line."""
        pending = self.pending.get(line.process)
        if pending:
            if not matches(line, *pending[0]):
                raise _RefusedError(f"an action is under way whose next step is {described(*pending[0])}")
            pending.pop(0)
        elif line.process == EXECUTOR:
            self._executor(line)
        else:
            self._worker(line)
        self.left[line.process] -= 1

    def _executor(self, line: Line) -> None:
        if (line.machine, line.event) == ("stop.rank_stop", "died") and 0 <= line.slot < self.header.ranks:
            self._death(line)
        change = self._chosen(line)
        if change is None:
            raise _RefusedError("the executor could not do this here")
        self.group.take(change)
        self.pending[EXECUTOR] = list(change.act.label.steps[1:])

    def _chosen(self, line: Line) -> Change | None:
        """The action that begins with the line: one whose steps all follow, if there is one.

        Listeners are registered without a step, so nothing is written then; they are told in the midst of an action.
        How many there are shows in the lines that follow: they are registered here, before the action.
        """
        follow = self.said[len(self.said) - self.left[EXECUTOR] :]
        before, first = self.group.executor, None
        for more in range(1 + sum(one.machine == "listener.listener" for one in follow)):
            if more:
                registered = self.group.rules.listen(self.group.executor)
                if registered.label.steps:  # told at once: that is an action, with a line of its own
                    break
                self.group.executor = registered.after
            for change in self.group.acts(line):
                steps = change.act.label.steps
                if steps and matches(line, *steps[0]):
                    if all(matches(said, *step) for said, step in zip(follow, steps, strict=False)):
                        return change
                    first = first or (change if not more else None)
        self.group.executor = before
        return first

    def _worker(self, line: Line) -> None:
        number = int(line.process.removeprefix("rank "))
        if self.group.ranks[number].status in (Status.DEAD, Status.REAPED):
            raise _RefusedError(f"{line.process} had ended")
        for move in self.group.moves(number):
            steps = move.label.steps
            if steps and matches(line, *steps[0]):
                self.last_said[number] = self.group.move(number, move)
                self.pending[line.process] = list(steps[1:])
                return
        raise _RefusedError(f"{line.process} could not do this here")

    def _death(self, line: Line) -> None:
        """The executor says that a rank died: see whether it can have."""
        number, process = line.slot, f"rank {line.slot}"
        rank = self.group.ranks[number]
        if rank.status in (Status.ABSENT, Status.REAPED) and not self._made(number):
            return  # refused for that reason
        left = rank.status is Status.DEAD and not self.pending.get(process)
        if not left and self.left[process]:
            raise _RefusedError(f"{process} lives: its log goes on, with {self.left[process]} more lines")
        if not left and line.exit_status == 0:
            raise _RefusedError(
                f"{process} ended with exit status 0, but its log does not come to leave GONE"
            )
        unread = len(rank.control)
        if unread and (line.exit_status == 0 or unread > self.last_said[number]):
            raise _RefusedError(
                f"{process} said {', '.join(map(str, rank.control))}, and that is read before its death is told"
            )
        self.pending.pop(process, None)
        dead = rank if rank.status is Status.DEAD else self._existing(number).dead()
        self.group.ranks[number] = dead._replace(control=())

    def _made(self, number: int) -> bool:
        return self.group.executor.stop[number + 1] not in (RankStop.ABSENT, RankStop.REAPED)

    def _existing(self, number: int) -> Rank:
        rank = self.group.ranks[number]
        return self.group.rank_rules.made(rank) if rank.status is Status.ABSENT else rank

    # --- the end ------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        state = self.group.executor
        if self.pending.get(EXECUTOR):
            words = described(*self.pending[EXECUTOR][0])
            raise _RefusedError(f"the trace is cut short: the executor's next step would be {words}")
        if state.life[0] not in (Life.DOWN, Life.FAILED):
            raise _RefusedError(
                f"the trace is cut short: the executor's life is {state.life[0]}, which is not its end"
            )
        for number, waiter in self.group.waiters.items():
            if waiter.state is Caller.DRAINING:
                raise _RefusedError(f"the trace is cut short: caller {number} is still draining")
        for number, rank in enumerate(self.group.ranks):
            known = state.stop[number + 1]
            if known is RankStop.ABSENT and rank.status is not Status.ABSENT:
                raise _RefusedError(f"rank {number} wrote lines, but the executor never made it")
            if known not in (RankStop.ABSENT, RankStop.REAPED, RankStop.SURVIVOR):
                raise _RefusedError(f"rank {number} is {known} in the end: neither reaped nor reported")

    # --- refusal ------------------------------------------------------------------------------------------------

    def _refused(self, index: int, line: Line | None, reason: str) -> TraceVerdict:
        last = self.lines[index - 1] if index else None
        concerned = [EXECUTOR] if line is None else [line.process]
        return TraceVerdict(
            accepted=False,
            lines=len(self.lines) + 1,
            matched=index + 1,
            number=(last.number + 1 if last else 2) if line is None else line.number,
            line="(the end of the trace)" if line is None else str(line),
            reason=reason,
            last="" if last is None else f"line {last.number}: {last}",
            allowed={process: self._allowed(process) for process in concerned},
            states=self.group.states(),
        )

    def _allowed(self, process: str) -> list[str]:
        pending = self.pending.get(process)
        if pending:
            return [described(*pending[0])]
        if process == EXECUTOR:
            steps = [change.act.label.steps for change in self.group.all_acts()]
        else:
            steps = [move.label.steps for move in self.group.moves(int(process.removeprefix("rank ")))]
        return list(dict.fromkeys(described(*taken[0]) for taken in steps if taken))


def matches(line: Line, call: int, step: Step) -> bool:
    """Whether the line is this step."""
    return (
        line.event == step.event.value
        and line.source == step.source.name
        and line.dest == step.dest.name
        and line.slot == step.slot
        and line.machine == f"{step.cluster}.{step.machine}"
        and line.call == call
    )


def described(call: int, step: Step) -> str:
    """The step in words."""
    about = f" (call {call})" if call else ""
    return f"{step}{about}"
