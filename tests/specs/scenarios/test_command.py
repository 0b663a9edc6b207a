"""`procession scenarios` and `procession check --variant`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from procession.cli import main
from procession.exits import Exit
from procession.specs.explore import Counterexample, replay
from procession.specs.variants import BUNDLES, VARIANTS


def test_the_table_is_printed_without_running_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["scenarios"]) == Exit.OK
    out = capsys.readouterr().out
    assert "136 scenarios: 105 by 98 variants, 31 left out" in out
    assert "B203" in out
    assert "convictions stand" not in out


def test_json_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "--json"]) == Exit.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["scenarios"], found["covered"], found["left_out"]) == (136, 105, 31)
    row = next(one for one in found["rows"] if one["id"] == "B46")
    assert row["variants"] == [
        {"name": "negative-deadline", "property": "a caller comes back in the end", "steps": 4}
    ]
    assert found["convictions"] == []


def test_check_tries_each_and_fails_if_one_does_not_stand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = VARIANTS["negative-deadline"]
    monkeypatch.setenv("COLUMNS", "200")
    from procession.specs import scenarios, variants

    monkeypatch.setattr(variants, "VARIANTS", {some.name: some})

    kept = tuple(row for row in scenarios.ROWS if row.by == (some.name,))
    monkeypatch.setattr(scenarios, "GROUPS", {"one": kept})
    assert main(["scenarios", "--check"]) == Exit.OK
    assert "1 of 1 convictions stand" in capsys.readouterr().out
    monkeypatch.setattr(variants, "VARIANTS", {some.name: replace(some, bad=some.right)})
    assert main(["scenarios", "--check"]) == Exit.VIOLATED
    out = capsys.readouterr().out
    assert "0 of 1 convictions stand" in out
    assert "does not stand: negative-deadline: holds" in out


def test_the_page_is_written_where_asked(tmp_path: Path) -> None:
    assert main(["scenarios", "--markdown", str(tmp_path / "page.md")]) == Exit.OK
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("<!-- Written by")


def test_a_variant_is_convicted_in_words_and_as_a_diagram(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--variant", "untagged-replies"]) == Exit.VIOLATED
    out = capsys.readouterr().out
    assert "violated: a call takes only its own replies: after 9 steps it happens" in out
    assert "without the change: holds" in out
    assert "sequenceDiagram" in out


def test_a_conviction_as_json_can_be_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--variant", "two-drain", "--json"]) == Exit.VIOLATED
    (found,) = json.loads(capsys.readouterr().out)
    assert found["stands"]
    assert found["steps"] == found["pinned"] == 4
    run = Counterexample.from_json(found["counterexample"])
    assert len(replay(VARIANTS["two-drain"].bad().model, run).steps) == 4


def test_a_bundle_convicts_each_of_its_rules(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUNDLES, "two", ("negative-deadline", "second-waiter"))
    assert main(["check", "--variant", "two", "--json"]) == Exit.VIOLATED
    found = json.loads(capsys.readouterr().out)
    assert [one["variant"] for one in found] == ["negative-deadline", "second-waiter"]
    assert all(one["stands"] for one in found)


def test_variants_are_listed_with_their_bundles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--variant", "list"]) == Exit.OK
    out = capsys.readouterr().out
    assert "vllm-0.11.2: " in out
    assert "vllm-0.15.1: " in out


def test_an_unknown_variant_names_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--variant", "untagged-reply"]) == Exit.USAGE
    assert "Did you mean 'untagged-replies'?" in capsys.readouterr().err
