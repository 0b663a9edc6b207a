"""One action: give the fact to the machines, follow the coupling to its rest, and perform each row's effects.

Theory of operation. `ExecutorProtocol`, `WorkerProtocol` and `World` do the same in other words: all events of a fact
must have rows, or none happens (`check`); after each event its cluster comes to rest (`inner`), after all of them the
protocols do (`outer`). Effects are performed row by row, which comes to the same as all of them at the end, since no
machine depends on what an effect changes. What a table or a coupling says is in the procedures of `written`.
"""

from __future__ import annotations

from ....protocol.futures import Caller, Reply, Serve, ServeOn
from ....protocol.life import LifeOn
from ....protocol.queues import ReaderOn, SeatOn
from ....protocol.ready import Boot, RankStartOn
from ....protocol.shutdown import Leave, Stop
from ...world import Line, Status
from .channels import alive, dies, empty_up
from .judge import judge, judge_heard, judge_said, look_before, weigh_calls
from .rank import can_hear_opened
from .threads import go_on, submitted
from .words import CALLS, EAGER, PLACES, RANKS, THREADS, WORDS, Fact, Machine, Only, W, Work
from .written import (
    at_rest,
    fault_has_row,
    following,
    inner,
    load,
    look,
    outer,
    perform,
    reset_reply,
    reset_worker,
    store,
)


def check(w: W) -> None:
    """Whether some event of the fact is `illegal`."""
    w.illegal = False
    w.done = 0
    w.found = True
    while w.found:
        w.found = False
        following(w)
        if w.found:
            load(w)
            look(w)
            if not w.legal:
                w.illegal = True
                w.found = False
    w.done = 0


def take_offer(w: W) -> None:
    """Offer the answer to the calls that its rank owes, oldest first; it becomes a fact for the one that takes it."""
    w.machine = Machine.CALL_OF
    w.slot = w.f_slot
    w.event = w.f_event
    w.fact = Fact.NOTHING
    w.found = False
    for c in range(1, CALLS + 1):
        if not w.found and w.x_here[c] and w.x_call_of[c * RANKS + w.slot] is Reply.OWED:
            w.number = c
            w.same_call = w.of_call == c
            load(w)
            look(w)
            if not (w.legal and w.passes):
                w.found = True
                w.message = True
                w.fact = Fact.ONE
                w.f_machine = Machine.CALL_OF
                w.f_number = c


def run(w: W) -> None:
    """The whole action of the machines."""
    if CALLS > 0 and w.offered:
        take_offer(w)
    check(w)
    if w.illegal:
        w.o_illegal = True
        w.message = False
        w.timed = False
        if w.works:
            dies(w, w.rank)
            w.fact = Fact.NOTHING
        elif w.by_message and fault_has_row(w):
            w.fact = Fact.ONE
            w.f_machine = Machine.LIFE
            w.f_event = LifeOn.FAULT
            w.settles = True
        else:
            w.fact = Fact.NOTHING
            w.settles = False
            w.acts = False
    look_before(w)
    w.found = not (w.works and w.illegal)
    w.turns = 0
    while w.found:
        w.found = False
        w.turns += 1
        if w.done > 0:
            inner(w)
        if not w.found:
            following(w)
        if not w.found:
            weigh_calls(w)
            forget_answered(w)
            if w.settles or w.works:
                outer(w)
        if w.found:
            load(w)
            look(w)
            judge(w)
            store(w)
            perform(w)
        if w.turns > 200:  # a mutant's coupling that runs in circles
            w.overflow = True
            w.found = False
    if w.works:
        finish_worker(w, w.rank)
    if w.acts:
        judge_said(w)
        judge_heard(w)


def quiet_word(w: W) -> bool:
    """The word says nothing that anybody waits for alone."""
    return w.machine is not Machine.START_OF or w.event in (
        RankStartOn.HELLO,
        RankStartOn.WEIGHTS,
        RankStartOn.QUEUES,
    )


def resolve(w: W) -> None:
    """The results are handed over; judge whether they were due."""
    if any(c < w.number and w.open_before[c] and not w.settled_now[c] for c in range(1, CALLS + 1)):
        w.o_out_of_order = True
    if any(w.x_call_of[w.number * RANKS + q] is not Reply.RETURNED for q in range(RANKS)):
        w.o_unearned = True
    hand_over(w)


def hand_over(w: W) -> None:
    """The call has an outcome."""
    w.settled_now[w.number] = True
    if w.settled[w.about]:
        w.o_twice = True
    w.settled[w.about] = True


def call_back(w: W) -> None:
    """A listener is called."""
    if w.told[w.about]:
        w.o_told_twice = True
    w.told[w.about] = True


def forget_answered(w: W) -> None:
    """Calls that nobody owes a reply leave the books."""
    for c in range(1, CALLS + 1):
        if w.x_here[c] and not any(w.x_call_of[c * RANKS + q] is Reply.OWED for q in range(RANKS)):
            w.x_here[c] = False
            for q in range(RANKS):
                reset_reply(w, c, q)


def end_action(w: W) -> None:
    """What is left to do when the machines are at rest."""
    if w.stray and (w.changed or w.illegal):
        w.o_stale_harm = True
    if w.wakes:
        for t in range(THREADS):
            if w.t_waits[t] and w.t_caller[t] is Caller.PARKED:
                w.t_woken[t] = True
    look_ahead(w)


def look_ahead(w: W) -> None:
    """Find the quiet reading that comes before everything else, if there is one (see specs/world/world.py, 6)."""
    w.only = Only.NONE
    w.only_rank = 0
    if EAGER:
        for side in range(2):
            for r in range(RANKS):
                for k in range(3):
                    if w.only is Only.NONE:
                        w.f_slot = r
                        w.f_number = k
                        w.fact = Fact.NOTHING
                        if side == 0:
                            may_read(w, r, k)
                        else:
                            may_go_on(w, r, k)
                        if w.fact is Fact.ONE:
                            try_quiet(w)


def may_read(w: W, r: int, k: int) -> None:
    """What the supervisor would read of a rank."""
    w.works = False
    if not w.gone and w.x_stop is not Stop.DOWN:
        if k == 0 and w.controls[r] > 0:
            w.fact = Fact.ONE
            w.f_machine = Machine.START_OF
            w.event = w.control[r * WORDS]
        if k == 1 and w.joins[r] > 0:
            w.fact = Fact.ONE
            w.f_machine = Machine.BROADCAST_OF
            w.event = SeatOn.JOINED
        if k == 2 and w.replies[r] > 0 and w.reply[r * PLACES] == 0:
            w.fact = Fact.ONE
            w.f_machine = Machine.REPLIES_OF
            w.event = ReaderOn.OPENED


def may_go_on(w: W, r: int, k: int) -> None:
    """What the worker would do that nobody else can see."""
    w.works = True
    w.rank = r
    if k == 0 and w.status[r] is Status.ALIVE and w.work[r] in (Work.SEND_REPLY, Work.SEND_FAILURE):
        w.fact = Fact.ONE
        w.f_machine = Machine.SERVE
        w.event = ServeOn.SENT
    if k == 1 and can_hear_opened(w, r):
        w.fact = Fact.ONE
        w.f_machine = Machine.INTAKE
        w.event = ReaderOn.OPENED


def try_quiet(w: W) -> None:
    """Whether it would be a single step that says nothing: take it, look whether a coupling acts, and take it back."""
    w.machine = w.f_machine
    w.slot = w.f_slot
    w.same_epoch = True
    w.same_rank = True
    w.same_call = True
    load(w)
    look(w)
    if w.legal and w.does == 0 and (w.works or (w.by_message and (quiet_word(w) or w.dest is w.source))):
        store(w)
        w.found = False
        inner(w)
        if not w.found:
            outer(w)
        w.machine = w.f_machine
        w.slot = w.f_slot
        w.dest = w.source
        store(w)
        if not w.found:
            w.only_rank = w.f_slot
            if w.works:
                w.only = Only.SENT
                if w.f_number == 1:
                    w.only = Only.INTAKE
            else:
                w.only = Only.CONTROL
                if w.f_number == 1:
                    w.only = Only.JOINED
                if w.f_number == 2:
                    w.only = Only.OPENED


def finish_worker(w: W, r: int) -> None:
    """What holds of a worker after each of its steps; a process that exits does so when its machines are at rest."""
    if w.exits:
        if w.w_leave[r] is not Leave.GONE or not (w.w_boot[r] is Boot.FAILED or at_rest(w, r)):
            w.o_unfinished = True
        dies(w, r)
    if not alive(w, r):
        reset_worker(w, r)
    elif w.again:
        w.work[r] = w.work_before
    if w.line[r] is Line.GONE:
        empty_up(w, r)
    if w.w_serve[r] is Serve.IDLE:
        w.running[r] = 0


def conclude(w: W) -> None:
    """Everything that follows once an action has said what its fact is."""
    if THREADS > 0 and w.waits:
        go_on(w, w.f_slot)
    else:
        run(w)
    if THREADS > 0 and w.submits:
        submitted(w, w.f_slot)
    end_action(w)
