"""The fifth model: run and pause, agreed between engines."""

from __future__ import annotations

import pytest

from procession.specs.explore import Verdict, check
from procession.specs.variants.small import Small
from procession.specs.variants.waves import PREDICTED, UNNUMBERED, Rules, properties


@pytest.mark.parametrize(
    ("rules", "states"),
    [
        (Rules(), 26),
        (Rules(pauses=1), 102),
        (Rules(engines=3, requests=2), 0),
        (Rules(engines=3, requests=2, pauses=2), 0),
    ],
)
def test_the_right_rules_hold_at_every_size(rules: Rules, states: int) -> None:
    asked = properties(rules)
    if rules.pauses:  # a request that comes while the engines are paused is not promised anything
        asked = [one for one in asked if one.name != "a request is served"]
    report = check(Small("waves", rules.start(), rules.moves), asked)
    assert report.verdict is Verdict.HOLDS, report.to_text()
    assert not states or report.states == states


@pytest.mark.parametrize(
    ("rules", "violated"),
    [
        (Rules(flag=PREDICTED, pauses=1), ["a drain ends", "the flag is true in the end"]),
        (Rules(starts_when_idle=False), ["a request is served"]),
        (Rules(engine=UNNUMBERED, requests=2), ["a drain ends"]),
    ],
)
def test_each_fault_breaks_its_own_promises(rules: Rules, violated: list[str]) -> None:
    report = check(Small("waves", rules.start(), rules.moves), properties(rules))
    broken = [
        one.name for one in report.outcomes if one.verdict is Verdict.VIOLATED and "vacuous" not in one.reason
    ]
    assert broken == violated
