"""The small language: what it reads, what it refuses, and how it is printed."""

from __future__ import annotations

from enum import Enum

import pytest

from procession.protocol.core import Identity
from procession.protocol.futures import of_this_call
from procession.protocol.ready import of_this_epoch, of_this_rank
from procession.specs.export.guards import guard_text
from procession.specs.export.small import Program
from procession.specs.export.tree import FALSE, TRUE, Call, Const, ExportError, For, If, Local, Op, Set, Var


class Light(Enum):
    RED = "red"
    GREEN = "green"


TEXT = '''
def is_red(w, r):
    """An expression."""
    return w.light[r] is Light.RED

def any_red(w):
    return any(is_red(w, q) for q in range(LIGHTS))

def none(w):
    return any(is_red(w, q) for q in range(0))

def turn(w, r):
    if LIGHTS > 2 and is_red(w, r):
        w.light[r] = Light.GREEN
    elif w.count in (1, 2):
        w.count += 1
    else:
        for q in range(LIGHTS):
            set_red(w, q)

def set_red(w, r):
    w.light[r] = Light.RED
'''


def program(text: str = TEXT) -> Program:
    return Program(text, {"Light": Light, "LIGHTS": 2})


def red(at: int) -> Op:
    return Op("==", (Var("light", Const(at)), Const(Light.RED)))


def test_expressions_are_written_out_and_folded() -> None:
    assert program().expression("any_red") == Op("or", (red(0), red(1)))
    assert program().expression("none") == FALSE
    assert program().expression("is_red", 1) == red(1)


def test_procedures_come_after_those_that_they_call() -> None:
    first, second = program().procedures(["turn"])
    assert (first.name, second.name) == ("set_red", "turn")
    count = Var("count")
    cases = Op("or", (Op("==", (count, Const(1))), Op("==", (count, Const(2)))))
    # The first arm can never be taken with two lights, and is gone.
    assert second.body == (
        If(
            (
                (cases, (Set(count, Op("+", (count, Const(1)))),)),
                (TRUE, (For("q", 0, 2, (Call("set_red", (Local("q"),)),)),)),
            )
        ),
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("w.a = [1]", "has no"),
        ("print(w.a)", "has no"),
        ("w.a = w.b if w.c else 1", "has no"),
        ("for q in w.a:\n        pass", "only a range"),
        ("w.a = unknown", "has no"),
        ("w.a = 1 in w.b", "takes a tuple"),
        ("proc(w)", "calls itself"),
        ("for q in range(w.a):\n        pass", "constant bounds"),
        ("3 = 4", "cannot assign"),
    ],
)
def test_anything_else_is_refused(body: str, why: str) -> None:
    with pytest.raises((ExportError, SyntaxError), match=why):
        program(f"def proc(w):\n    {body}\n").procedures(["proc"])


def test_every_function_has_a_name_of_its_own() -> None:
    with pytest.raises(ExportError, match="one name"):
        program("def a(w):\n    pass\n\ndef a(w):\n    pass\n")


def test_guards() -> None:
    assert guard_text(of_this_epoch) == "(w.same_epoch)"
    assert guard_text(of_this_rank) == "(w.same_rank)"
    assert guard_text(of_this_call) == "(w.same_call)"
    assert guard_text(lambda _own, _message: True) == "(True)"
    assert guard_text(lambda _own, _message: False) == "(False)"
    assert guard_text(lambda own, message: not of_this_rank(own, message)) == "(not w.same_rank)"
    both = guard_text(lambda own, message: of_this_rank(own, message) and of_this_epoch(own, message))
    assert both == "(w.same_epoch and w.same_rank)"


def test_a_guard_that_asks_for_more_is_refused() -> None:
    def of_rank_one(_own: Identity, message: Identity) -> bool:
        return message.rank == 1

    with pytest.raises(ExportError, match="of_rank_one"):
        guard_text(of_rank_one)
