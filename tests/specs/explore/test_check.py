"""Verdicts, twins and reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from procession.specs.explore import (
    Counterexample,
    Graph,
    Kind,
    Limits,
    Property,
    Verdict,
    always,
    check,
    eventually,
    junit,
    leads_to,
    never,
    no_deadlock,
    no_stall,
    recoverable,
    replay,
    sometimes,
)
from procession.specs.explore.bench import FLOOR, Handshake, main, properties

CHAIN = Graph({n: [("on", n + 1)] for n in range(10)})


def yes(_: int) -> bool:
    return True


def no(_: int) -> bool:
    return False


HOLDING: list[Property[int]] = [
    always("always", "", yes),
    never("never", "", no),
    eventually("eventually", "", lambda s: s == 10),
    leads_to("leads to", "", lambda s: s == 1, lambda s: s == 10),
    recoverable("recoverable", "", lambda s: s == 10),
    no_deadlock(),
    no_stall(),
]
BROKEN: list[Property[int]] = [
    always("always", "", lambda s: s < 2),
    never("never", "", lambda s: s == 2),
    sometimes("sometimes", "", no),
    eventually("eventually", "", no),
    leads_to("leads to", "", lambda s: s == 1, lambda s: s == 1_000),
    recoverable("recoverable", "", lambda s: s == 1),
]


@pytest.mark.parametrize("prop", HOLDING, ids=lambda p: p.name)
def test_each_kind_holds_and_is_not_established_by_an_incomplete_search(prop: Property[int]) -> None:
    assert check(CHAIN, [prop])[prop.name].verdict is Verdict.HOLDS
    for limits in (Limits(states=3), Limits(depth=3), Limits(seconds=0.0), Limits(memory=1)):
        outcome = check(Graph({n: [("on", n + 1)] for n in range(200)}), [prop], limits)[prop.name]
        assert outcome.verdict is Verdict.NOT_ESTABLISHED
        assert "incomplete: it stopped at the limit of" in outcome.reason


@pytest.mark.parametrize("prop", BROKEN, ids=lambda p: p.name)
def test_each_kind_is_violated_by_a_run_that_replays(prop: Property[int]) -> None:
    outcome = check(CHAIN, [prop])[prop.name]
    assert outcome.verdict is Verdict.VIOLATED
    if prop.kind is Kind.SOMETIMES:
        assert outcome.counterexample is None
    else:
        assert outcome.counterexample is not None
        assert replay(CHAIN, outcome.counterexample).states[0] == 0


@pytest.mark.parametrize("built_in", [no_deadlock, no_stall])
def test_the_built_in_properties_are_violated_too(built_in: Callable[[], Property[int]]) -> None:
    outcome = check(Graph(CHAIN.arrows, ends=frozenset()), [built_in()]).outcomes[0]
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.states[-1] == "state 10"


def test_what_an_incomplete_search_found_stands() -> None:
    limits = Limits(depth=4)
    report = check(CHAIN, [BROKEN[0], sometimes("three", "", lambda s: s == 3), BROKEN[2]], limits)
    assert [o.verdict for o in report.outcomes] == [Verdict.VIOLATED, Verdict.HOLDS, Verdict.NOT_ESTABLISHED]
    assert report.verdict is Verdict.VIOLATED


def test_a_property_whose_twin_is_never_met_is_vacuous() -> None:
    for prop in (
        always("p", "", yes, twin=no),
        never("p", "", no, twin=no),
        leads_to("p", "", no, yes),
        eventually("p", "", lambda s: s == 10, twin=no),
        recoverable("p", "", yes, twin=no),
        no_deadlock("p", twin=no),
        no_stall("p", twin=no),
    ):
        outcome = check(CHAIN, [prop])["p"]
        assert outcome.verdict is Verdict.VIOLATED
        assert outcome.reason == "vacuous: its twin is met in none of 11 states"


def test_a_violated_property_keeps_its_counterexample_whatever_its_twin() -> None:
    outcome = check(CHAIN, [never("p", "", lambda s: s == 3, twin=no)])["p"]
    assert outcome.reason == "after 3 steps it happens"
    assert outcome.counterexample is not None


def test_a_lasso_is_told_by_its_lengths() -> None:
    graph = Graph({0: [("in", 1)], 1: [("on", 2)], 2: [("on", 1)]})
    outcome = check(graph, [eventually("p", "", no)])["p"]
    assert outcome.reason == "after 1 step a fair run repeats 2 steps for ever without the goal"
    assert check(CHAIN, [BROKEN[3]])["eventually"].reason == (
        "after 10 steps a fair run rests for ever without the goal"
    )


def test_a_twin_that_is_met_changes_nothing() -> None:
    assert check(CHAIN, [always("p", "", yes, twin=lambda s: s == 10)]).verdict is Verdict.HOLDS


def test_a_twin_that_an_incomplete_search_did_not_meet_is_told() -> None:
    outcome = check(CHAIN, [always("p", "", yes, twin=lambda s: s == 10)], Limits(depth=2))["p"]
    assert outcome.verdict is Verdict.NOT_ESTABLISHED
    assert outcome.reason.endswith("its twin was not met")


def test_the_default_twin_of_leads_to_is_its_premise() -> None:
    assert leads_to("p", "", no, yes).twin is no
    assert leads_to("p", "", no, yes, twin=yes).twin is yes


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="two properties are named 'always'"):
        check(CHAIN, [HOLDING[0], BROKEN[0]])


def test_nothing_asked_is_nothing_established() -> None:
    report = check(CHAIN, [])
    assert (report.exit_code, report.states, report.transitions, report.depth) == (3, 11, 10, 10)


def test_symmetry_is_not_assumed() -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        check(CHAIN, [], symmetry=True)


def test_the_first_violation_may_end_the_check() -> None:
    endless = Graph({n: [("on", n + 1)] for n in range(5_000)}, ends=frozenset())
    report = check(endless, [BROKEN[3], BROKEN[0], HOLDING[1]], first_violation=True)
    assert [o.verdict for o in report.outcomes] == [
        Verdict.NOT_ESTABLISHED,
        Verdict.VIOLATED,
        Verdict.NOT_ESTABLISHED,
    ]
    assert report.states < 100
    both = check(CHAIN, [BROKEN[3], BROKEN[5]], first_violation=True)
    assert [o.verdict for o in both.outcomes] == [Verdict.VIOLATED, Verdict.NOT_ESTABLISHED]


def test_a_report_as_text_and_json() -> None:
    report = check(CHAIN, [HOLDING[1], BROKEN[0], sometimes("three", "", lambda s: s == 3)])
    assert report.exit_code == 2
    assert report.to_text().splitlines()[:7] == [
        "graph: violated",
        f"  {report.explored[0]}",
        "  holds: never: in all 11 states",
        "  violated: always: after 2 steps it is false",
        "  holds: three: it happens after 3 steps",
        "",
        "graph: always",
    ]
    data = json.loads(json.dumps(report.to_json()))
    assert (data["format"], data["verdict"], data["exit_code"]) == ("procession.report/1", "violated", 2)
    assert (data["explored"][0]["states"], data["explored"][0]["truncated"]) == (11, None)
    assert [p["verdict"] for p in data["properties"]] == ["holds", "violated", "holds"]
    assert (
        Counterexample.from_json(data["properties"][1]["counterexample"]) == report.outcomes[1].counterexample
    )
    assert Counterexample.from_json(data["properties"][2]["witness"]) == report.outcomes[2].witness


def test_a_report_as_junit() -> None:
    properties = [
        HOLDING[0],
        never("bad \x00 <name>", "", lambda s: s == 1),
        eventually("far", "", lambda s: s == 9),
    ]
    report = check(CHAIN, properties, Limits(depth=5))
    suite = ElementTree.fromstring(report.to_junit().encode()).find("testsuite")
    assert suite is not None
    assert [suite.get(k) for k in ("tests", "failures", "errors")] == ["3", "1", "2"]
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [
        ["error", "system-out"],
        ["failure", "system-out"],
        ["error", "system-out"],
    ]
    assert cases[1].get("name") == "bad � <name>"
    failure = cases[1].find("failure")
    assert failure is not None
    assert "graph  on" in (failure.text or "")
    assert len(ElementTree.fromstring(junit([report, report]).encode()).findall("testsuite")) == 2


def test_a_bad_start_is_a_run_of_no_steps() -> None:
    report = check(CHAIN, [always("always", "", no)])
    run = report["always"].counterexample
    assert run
    assert (len(run), run.states) == (0, ("state 0",))
    assert report["always"].reason == "after 0 steps it is false"
    assert "from state 0" in report.to_junit()


def test_an_unknown_property_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        check(CHAIN, [])["nothing"]


def test_the_bench_command_measures_and_judges(capsys: pytest.CaptureFixture[str]) -> None:
    # Too small a model to hold the rate to; that is what the command itself is for.
    main(["--workers", "3", "--crashes", "1", "--runs", "1"])
    printed = capsys.readouterr().out
    assert "413 states, 934 transitions" in printed
    assert "handshake: holds" in printed
    assert FLOOR == 100_000


def test_the_handshake_is_judged_violated_when_blind() -> None:
    report = check(Handshake(3, 1, blind=True), properties(1))
    assert {o.name for o in report.outcomes if o.verdict is Verdict.VIOLATED} == {"no deadlock", "decides"}
