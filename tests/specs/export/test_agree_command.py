"""`procession agree`: what it prints, and how it exits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from procession.cli import main
from procession.exits import Exit
from procession.specs.export import agree
from procession.specs.export.agree import FULL, QUICK, Comparison
from procession.specs.models import MODELS, Model

Output = pytest.CaptureFixture[str]


def stub(
    monkeypatch: pytest.MonkeyPatch, gaps: tuple[str, ...] = (), differences: tuple[str, ...] = ()
) -> list[tuple[str, int]]:
    """Engines that say this of everything; returns what they are asked."""
    called: list[tuple[str, int]] = []

    def compare(model: Model, ranks: int, **_: Any) -> Comparison:
        called.append((model.name, ranks))
        return Comparison(model.name, ranks, None, (), gaps, differences)

    monkeypatch.setattr(agree, "compare", compare)
    return called


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    stub(monkeypatch)
    assert main(["agree", "--quick"]) == Exit.OK
    assert capsys.readouterr().out.rstrip().endswith("agree")
    stub(monkeypatch, gaps=("rumur: rumur not installed",))
    assert main(["agree", "--quick"]) == Exit.NOT_ESTABLISHED
    out = capsys.readouterr().out
    assert "ready, 1 ranks: rumur: rumur not installed" in out
    assert out.rstrip().endswith("not established")
    stub(monkeypatch, gaps=("spin: out of time",), differences=("rumur finds 2 states, our explorer 1",))
    assert main(["agree", "ready"]) == Exit.VIOLATED
    assert capsys.readouterr().out.rstrip().endswith("disagree")


def test_selections(monkeypatch: pytest.MonkeyPatch) -> None:
    called = stub(monkeypatch)
    main(["agree"])
    assert called == [(name, ranks) for name, sizes in FULL.items() for ranks in sizes]
    assert {name for name, _ in called} == set(MODELS)
    called.clear()
    main(["agree", "--quick"])
    assert called == [(name, ranks) for name, sizes in QUICK.items() for ranks in sizes]
    called.clear()
    main(["agree", "life", "queues", "--workers", "3"])
    assert called == [("life", 3), ("queues", 3)]


def test_as_json(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    stub(monkeypatch, gaps=("spin: out of time",))
    assert main(["agree", "queues", "--workers", "1", "--json"]) == Exit.NOT_ESTABLISHED
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["exit_code"]) == ("not established", 3)
    (comparison,) = found["comparisons"]
    assert (comparison["model"], comparison["ranks"]) == ("queues", 1)
    assert comparison["gaps"] == ["spin: out of time"]


def test_wrong_usage(capsys: Output) -> None:
    assert main(["agree", "nothing"]) == Exit.USAGE
    assert "no model is called 'nothing'" in capsys.readouterr().err
    assert main(["agree", "--workers", "0"]) == Exit.USAGE
