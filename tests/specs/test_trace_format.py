"""What is no trace is refused with its line and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from procession.specs.trace import TraceError, read, validate

HEADER = '{"trace": 1, "ranks": 2, "epoch": 1}'


def line(**changes: Any) -> str:
    """A first line that is well formed, but for `changes`; None takes a key away."""
    entry: dict[str, Any] = {
        "p": "executor",
        "n": 0,
        "t": 5,
        "m": "stop.rank_stop",
        "r": 0,
        "c": 0,
        "e": "spawned",
        "from": "ABSENT",
        "to": "ALIVE",
    }
    return json.dumps({key: value for key, value in {**entry, **changes}.items() if value != "-"})


@pytest.mark.parametrize(
    ("lines", "number", "words"),
    [
        ([], 1, "the trace is empty"),
        (["", "  "], 1, "the trace is empty"),
        (["{"], 1, "not JSON"),
        (["[1]"], 1, "no object"),
        ([line()], 1, "the header is missing"),
        (['{"trace": 2, "ranks": 2, "epoch": 1}'], 1, "format 2"),
        (['{"trace": 1, "ranks": 0, "epoch": 1}'], 1, "'ranks' is 0"),
        (['{"trace": 1, "ranks": true, "epoch": 1}'], 1, "'ranks' is True"),
        (['{"trace": 1, "ranks": 2}'], 1, "'epoch' is None"),
        ([HEADER, line(), "half a li"], 3, "not JSON"),
        ([HEADER, line(m="-")], 2, "'m' is missing"),
        ([HEADER, line(n="0")], 2, "'n' is '0', not int"),
        ([HEADER, line(r="0")], 2, "'r' is '0'"),
        ([HEADER, line(x="-9")], 2, "'x' is '-9'"),
        ([HEADER, line(p="rank 2")], 2, "no process 'rank 2' in a group of 2"),
        ([HEADER, line(m="stop.rank_stpo")], 2, "no executor has a machine 'stop.rank_stpo'"),
        ([HEADER, line(p="rank 0")], 2, "no worker has a machine 'stop.rank_stop'"),
        ([HEADER, line(e="spawn")], 2, "knows no event 'spawn'"),
        ([HEADER, line(to="LIVING")], 2, "has no state 'LIVING'"),
        ([HEADER, line(), line(n=2)], 3, "counts 2 here, and 1 comes next"),
        ([HEADER, line(), line(n=0)], 3, "counts 0 here, and 1 comes next"),
        ([HEADER, line(), line(n=1, t=4)], 3, "is before that of the line before"),
    ],
)
def test_what_is_no_trace(lines: list[str], number: int, words: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(lines)
    assert caught.value.number == number
    assert words in str(caught.value)
    verdict = validate(lines)
    assert not verdict.accepted
    assert verdict.number == number
    assert words in str(verdict)


def test_empty_lines_are_nothing() -> None:
    assert len(read([HEADER, "", line(), ""]).lines) == 1
