"""The same programs on another executor: what it offers it keeps, and what it would break it declares."""

from __future__ import annotations

from typing import Any

import pytest

from procession.specs.stateful import Finding
from procession.specs.stateful.adapter import Ask
from procession.suite.pools import Pools

from .running import run

PROGRAMS = {
    "calls": "start ranks=2; call; call size=300000; call merged=1; call reply=1; swarm threads=4 calls=8",
    "failures": "start ranks=2; call deed=raise who=0; call deed=raise who=1 reply=0; call; stop threads=2",
    "gate": "start ranks=2; future deed=gate who=1; result call=1; future; open call=1; result call=2; each",
    "again": "start ranks=1; future deed=gate; stop; start ranks=3; call; future; watch call=2; wait",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    run(PROGRAMS[name], Pools())


class Copying(Pools):
    """A fault of an adapter, or of an executor: it gives out the first rank's answer for every rank's."""

    def call(self, ask: Ask) -> Any:
        return super().call(ask)[:1] * 2


def test_a_wrong_answer_is_found() -> None:
    with pytest.raises(Finding) as caught:
        run("start ranks=2; call", Copying())
    assert caught.value.invariant == "answer"
