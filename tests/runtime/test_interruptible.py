"""A Ctrl-C at any moment of a wait leaves nothing held that another thread needs."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from procession.runtime.interruptible import Condition, Latch, Thread


def interrupted_at(moment: int, work: Callable[[], object]) -> bool:
    """Do `work` with a Ctrl-C at the moment of that number; whether there was such a moment.

    The moments are those of Python 3.11 to 3.13: where a Python function begins or ends, and after a call of one in C.
    """
    moments = itertools.count()
    inside: set[FrameType] = set()
    came = False

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal came
        if event == "call" and (frame.f_code is work.__code__ or frame.f_back in inside):
            inside.add(frame)
        if event != "c_call" and frame in inside and next(moments) == moment:
            came = True
            raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    except (KeyboardInterrupt, RuntimeError):  # the library's locks may say that they are not held
        pass
    finally:
        sys.setprofile(before)
    return came


def moments_that_hang(make: Callable[[], Any], seconds: float) -> list[int]:
    """At which moments of a wait an interruption keeps another thread from setting the event within `seconds`."""
    found: list[int] = []
    for moment in itertools.count():
        event = make()

        def wait(event: Any = event) -> None:
            event.wait(0.0)

        if not interrupted_at(moment, wait):
            assert moment > 3, "nothing was tried"
            return found
        setter = threading.Thread(target=event.set, daemon=True)
        setter.start()
        setter.join(seconds)
        if setter.is_alive():
            found.append(moment)
            event._cond.release()  # as the interrupted thread should have done
            setter.join(20)
    raise AssertionError("unreachable")


def test_the_librarys_event_can_be_left_held() -> None:
    """So these tests can fail: the interruptions fall where they do harm."""
    assert moments_that_hang(threading.Event, 0.2)


def test_a_latch_cannot() -> None:
    assert moments_that_hang(Latch, 20) == []


def test_a_condition_cannot() -> None:
    for moment in itertools.count():
        condition = Condition()

        def use(condition: Condition = condition) -> None:
            with condition:
                condition.notify_all()

        if not interrupted_at(moment, use):
            assert moment > 3, "nothing was tried"
            return
        user = threading.Thread(target=use, daemon=True)
        user.start()
        user.join(20)
        assert not user.is_alive(), moment


def test_a_thread_whose_start_is_interrupted_runs() -> None:
    for moment in itertools.count():
        ran = threading.Event()
        thread = Thread(ran.set, "a thread that is started")

        def start(thread: Thread = thread) -> None:
            thread.start()

        if not interrupted_at(moment, start):
            break
        if thread.ident is None and not ran.wait(0.05):
            # It came before the thread was made; the library lists it as one that begins.
            threading._limbo.pop(thread, None)  # type: ignore[attr-defined]  # typeshed hides it
            continue
        assert ran.wait(20), moment
        thread.join(20)
    assert moment > 3, "nothing was tried"


def test_a_latch_wakes_every_waiter_and_stays_set() -> None:
    latch = Latch()
    assert latch.wait(0.0) is False
    assert latch.wait(0.01) is False
    woken: list[bool] = []
    waiters = [threading.Thread(target=lambda: woken.append(latch.wait(20))) for _ in range(8)]
    setters = [threading.Thread(target=latch.set) for _ in range(8)]
    for thread in (*waiters, *setters):
        thread.start()
    for thread in (*waiters, *setters):
        thread.join(20)
    assert woken == [True] * 8
    assert latch.is_set()
    assert latch.wait()


@pytest.mark.parametrize("seconds", [-1.0, 0.0])
def test_a_deadline_in_the_past_does_not_wait(seconds: float) -> None:
    assert Latch().wait(seconds) is False


def test_a_fork_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Latch()
    thread = Thread(end.wait, "a thread that a fork does not have")
    thread.start()
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    child = os.fork()
    if child == 0:
        os._exit(len(complaints) + thread.is_alive())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    end.set()
    thread.join(20)
