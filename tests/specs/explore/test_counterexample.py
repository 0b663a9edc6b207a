"""Runs as text, as sequence diagrams and as JSON that is replayed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from procession.specs.explore import (
    Counterexample,
    Graph,
    Label,
    ReplayError,
    Step,
    check,
    eventually,
    no_deadlock,
    replay,
    sometimes,
    walk,
)
from procession.specs.explore.bench import Handshake, properties

BLIND = Handshake(3, 1, blind=True)


def deadlock() -> Counterexample:
    run = check(BLIND, [no_deadlock()])["no deadlock"].counterexample
    assert run is not None
    return run


def test_the_golden_text_of_the_blind_executor() -> None:
    assert deadlock().to_text() == (
        "handshake: no deadlock\n"
        "  Every state has a way on, or is one where a run may end.\n"
        "  after 9 steps nothing can move, where no run may end\n"
        "  from executor await READY (rank 0), 0 crashes, ranks boot, boot, boot\n"
        "   1  rank 0    send READY  [READY → executor]\n"
        "   2  rank 0    ✗ crash\n"
        "   3  rank 1    send READY  [READY → executor]\n"
        "   4  rank 1    send SUB  [SUB → executor]\n"
        "   5  rank 2    send READY  [READY → executor]\n"
        "   6  rank 2    send SUB  [SUB → executor]\n"
        "   7  executor  receive READY  (from rank 0)\n"
        "   8  executor  receive READY  (from rank 1)\n"
        "   9  executor  receive READY  (from rank 2)\n"
        "  in executor await SUB (rank 0), 1 crashes, ranks dead, subscribed+SUB, subscribed+SUB\n"
    )


def test_the_golden_diagram_of_the_blind_executor() -> None:
    assert deadlock().to_mermaid() == (
        "sequenceDiagram\n"
        "    participant p0 as rank 0\n"
        "    participant p1 as executor\n"
        "    participant p2 as rank 1\n"
        "    participant p3 as rank 2\n"
        "    p0->>p1: READY\n"
        "    rect rgb(255, 220, 220)\n"
        "    Note over p0: ✗ crash\n"
        "    end\n"
        "    p2->>p1: READY\n"
        "    p2->>p1: SUB\n"
        "    p3->>p1: READY\n"
        "    p3->>p1: SUB\n"
        "    Note over p1: receive READY<br/>from rank 0\n"
        "    Note over p1: receive READY<br/>from rank 1\n"
        "    Note over p1: receive READY<br/>from rank 2\n"
        "    Note over p0,p3: after 9 steps nothing can move, where no run may #101;nd\n"
    )


def test_json_comes_back_as_it_went_and_replays() -> None:
    run = deadlock()
    again = Counterexample.loads(run.dumps())
    assert again == run
    path = replay(BLIND, again)
    assert tuple(map(BLIND.describe, path.states)) == run.states
    assert not list(BLIND.actions(path.last))
    assert walk(BLIND, [step.index for step in run.steps]) == path


def test_a_lasso_in_all_three_forms() -> None:
    graph = Graph({0: [("in", 1)], 1: [("round", 2)], 2: [("drop!", 1), ("out", 9)]})
    run = check(graph, [eventually("out", "It ends.", lambda s: s == 9)])["out"].counterexample
    assert run is not None
    assert run.cycle is not None
    text = run.to_text()
    assert (
        text.index("1  graph  in") < text.index("again and again for ever:") < text.index("2  graph  round")
    )
    diagram = run.to_mermaid().splitlines()
    opened = diagram.index("    loop for ever")
    assert diagram[opened + 1 : opened + 6] == [
        "    Note over p0: round",
        "    rect rgb(255, 220, 220)",
        "    Note over p0: ✗ drop!",
        "    end",
        "    end",
    ]
    assert Counterexample.loads(run.dumps()) == run
    assert replay(graph, run).states == (0, 1, 2, 1)
    with pytest.raises(ReplayError, match="does not close"):
        replay(graph, replace(run, cycle=run.cycle[:1]))


def test_a_cycle_or_a_rest_that_has_become_unfair_is_no_counterexample() -> None:
    graph = Graph({0: [("round", 1)], 1: [("round", 0), ("out", 9)]})
    run = check(graph, [eventually("out", "It ends.", lambda s: s == 9)])["out"].counterexample
    assert run is not None
    assert replay(graph, run)
    with pytest.raises(ReplayError, match="is unfair: out of graph"):
        replay(Graph({**graph.arrows, 0: [("round", 1), ("out", 9)]}), run)
    with pytest.raises(ReplayError, match="is unfair: round of graph"):
        replay(graph, replace(run, stem=(), cycle=()))


def test_a_run_that_rests_says_so_in_all_three_forms() -> None:
    run = check(Graph({}), [eventually("out", "It ends.", lambda s: s == 9)])["out"].counterexample
    assert run is not None
    assert run.cycle == ()
    assert "there it rests for ever" in run.to_text()
    assert "rests here for ever" in run.to_mermaid()
    assert run.to_json()["cycle"] == []
    assert len(run) == 0


def test_a_witness_is_a_run_too() -> None:
    outcome = check(BLIND, properties(1))["up"]
    assert outcome.counterexample is None
    assert outcome.witness is not None
    assert replay(BLIND, outcome.witness).last[0] == 5


def test_replay_finds_out_that_the_model_has_moved_on() -> None:
    run = deadlock()
    renamed = replace(run.stem[0], label=run.stem[0].label._replace(action="send HELLO"))
    with pytest.raises(ReplayError, match=r"step 1 was \(rank 0 send HELLO.*now has \(rank 0 send READY"):
        replay(BLIND, replace(run, stem=(renamed, *run.stem[1:])))
    with pytest.raises(
        ReplayError, match=r"step 1 takes action 99, but in state \(executor.*allows 0 rank 0 send READY"
    ):
        replay(BLIND, replace(run, stem=(Step(99, renamed.label),)))
    with pytest.raises(ReplayError, match="1 initial states, none at position 3"):
        replay(BLIND, replace(run, start=3))
    with pytest.raises(ReplayError, match="allows none"):
        walk(Graph({}), [0])


def test_what_is_no_counterexample_is_refused() -> None:
    with pytest.raises(ValueError, match="not a counterexample"):
        Counterexample.loads(json.dumps({"format": "something/2"}))


class Awkward(Graph):
    """Says everything that Mermaid could take for syntax."""

    def actions(self, state: int) -> Iterable[tuple[Label, int]]:
        if state:
            return []
        words = "end; #1 %% <b>\nEnd: ended"
        return [(Label(words, words, ((words, "participant", words),), words), 1)]


def test_a_diagram_survives_awkward_words() -> None:
    run = check(Awkward({}), [sometimes("met", "end; it %% is", lambda s: s == 1)])["met"].witness
    assert run is not None
    body = run.to_mermaid().splitlines()
    assert len(body) == 6
    for line in body[1:]:
        said = line.split(" as ", 1)[1] if " as " in line else line.split(": ", 1)[1]
        bare = re.sub(r"#\d+;", "", said).replace("<br/>", "")
        assert not re.search(r"[;#%<>]|\bend\b", bare, re.IGNORECASE)
    assert "ended" in body[1]


def test_a_step_that_sends_shows_the_arrow_and_its_note_alone() -> None:
    class Sender(Graph):
        def actions(self, state: int) -> Iterable[tuple[Label, int]]:
            return [] if state else [(Label("a", "post", (("a", "b", "M1"), ("a", "c", "M2")), "busy"), 1)]

    run = check(Sender({}), [sometimes("met", "", lambda s: s == 1)])["met"].witness
    assert run is not None
    assert run.to_mermaid().splitlines()[4:7] == [
        "    p0->>p1: M1",
        "    p0->>p2: M2",
        "    Note over p0: busy",
    ]
