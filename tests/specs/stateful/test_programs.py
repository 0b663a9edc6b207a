"""Programs of the suite on our executor: what each may come to, and an oracle that finds things."""

from __future__ import annotations

from typing import Any

import pytest

from procession.runtime.draining import Draining
from procession.specs.stateful import Finding, Outcome
from procession.specs.stateful.adapter import Kind
from procession.specs.stateful.allowed import Facts, is_settled, outcomes
from procession.suite.ours import Ours

from .running import run

PROGRAMS = {
    "calls": "start ranks=2 patient=1; call; call size=300000; call merged=1; call reply=1; swarm threads=4 calls=8",
    "failures": "start ranks=2; call deed=raise who=0; call deed=unpicklable who=1; call deed=unreadable who=1; "
    "call deed=argument; call; stop threads=2",
    "gate": "start ranks=2; future deed=gate who=1; result call=1; future; open call=1; result call=2; each",
    "hold": "start ranks=2; hold rank=0 event=returned; future; watch call=1; release rank=0; result call=1",
    "cancel": "start ranks=2; pause rank=0; future; cancel call=1; resume rank=0; call; future brief=1; result call=3",
    "exit": "start ranks=2; listen; future deed=exit who=1; result call=1; call; listen; stop",
    "kill": "start ranks=3; listen then=stop; future deed=gate; kill rank=2; result call=1; stop",
    "told": "start ranks=1; listen; listen; call; kill rank=0; listen; stop",
    "last": "start ranks=1; call size=40000 merged=1; stop",
    "flaw": "start ranks=2 flaw=load_model who=1; start ranks=2 flaw=init_device deed=exit; start; call",
    "start": "start ranks=2 point=boot.boot:weights_up who=1 then=kill; start ranks=2 point=outlet.seat:joined; call",
    "stuck": "start ranks=2; pause rank=0; future; result call=1; stop threads=2",
    "orphan": "orphan ranks=2",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    run(PROGRAMS[name], Ours())


def test_an_answer_of_another_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: each answer is given out as the one before it, from the same rank."""
    before: dict[int, Any] = {}
    decoded = Draining._decoded

    def late(self: Draining, rank: int, message: Any) -> Any:
        answer = decoded(self, rank, message)
        old, before[rank] = before.get(rank, answer.value), answer.value
        return answer._replace(value=old)

    monkeypatch.setattr(Draining, "_decoded", late)
    with pytest.raises(Finding) as caught:
        run("start ranks=2; call; call", Ours())
    assert caught.value.invariant == "answer"
    assert caught.value.program == ["start ranks=2", "call", "call"]
    assert "sequenceDiagram" in caught.value.report()


def test_the_tables_say_what_a_call_may_come_to() -> None:
    answered = Kind.ANSWER
    both = Facts((answered, answered))
    assert outcomes(both) == {Outcome(Kind.ANSWER)}
    assert is_settled(both)
    assert outcomes(Facts((answered, None))) == set()
    assert not is_settled(Facts((answered, None)))
    assert outcomes(Facts((answered, Kind.RAISED))) == {Outcome(Kind.RAISED, 1)}
    assert outcomes(both._replace(deaths=frozenset({1}))) == {Outcome(Kind.ANSWER), Outcome(Kind.DIED, 1)}
    assert outcomes(Facts((None, None), stop=True)) == {Outcome(Kind.CLOSED)}
    assert is_settled(Facts((None, None), deadline=True))
