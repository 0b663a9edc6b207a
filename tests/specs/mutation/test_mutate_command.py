"""`procession mutate`: what it prints, its exit codes, and the page of the docs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from procession.cli import main
from procession.exits import Exit
from procession.specs import mutation
from procession.specs.mutation import Campaign, Fate, Outcome, defects, run
from procession.specs.mutation.baseline import STAGES
from procession.specs.mutation.page import page
from procession.specs.mutation.reasons import REASONS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mutants.md"
SMALL = tuple(stage for stage in STAGES if stage.name in ("ready/1", "shutdown/1"))
SURVIVOR = Fate("stop", "stop: a defect", Outcome.SURVIVED)
KILLED = Fate("stop", "stop: another", Outcome.PROPERTY, "ready/1", "no stall", 3)


def give(monkeypatch: pytest.MonkeyPatch, *fates: Fate, **changes: Any) -> None:
    """Let the command find these fates, whatever it asks for."""
    made: dict[str, Any] = {"reasons": {}, "wrong": (), "seconds": 1.0} | changes
    monkeypatch.setattr(mutation, "run", lambda *_, **__: Campaign(fates, **made))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try in a few small models only: each process searches them first."""
    monkeypatch.setattr(mutation, "run", partial(run, processes=1, stages=SMALL))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("small")
def test_one_list_of_rows_is_tried_and_each_defect_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "rank_made", "--all"]) == Exit.OK
    out = capsys.readouterr().out
    assert "rank_made: start spawned before stop spawned: equivalent: the same steps" in out
    assert "rank_made: drop stop spawned: killed by a property by" in out


@pytest.mark.usefixtures("small")
def test_the_same_seed_draws_the_same_sample(capsys: pytest.CaptureFixture[str]) -> None:
    def drawn(seed: str) -> list[str]:
        main(["mutate", "start", "--sample", "3", "--seed", seed, "--json"])
        return [one["defect"] for one in json.loads(capsys.readouterr().out)["defects"]]

    assert drawn("1") == drawn("1") != drawn("2")


def test_an_unexplained_survivor_is_a_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, SURVIVOR, *[KILLED] * 99)
    assert main(["mutate"]) == Exit.VIOLATED
    assert "survived, unexplained: stop: a defect" in capsys.readouterr().out


def test_an_explained_survivor_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, SURVIVOR, *[KILLED] * 99, reasons={SURVIVOR.defect: "It is so."})
    assert main(["mutate"]) == Exit.OK
    assert "survived: It is so.\n  stop: a defect\n" in capsys.readouterr().out


def test_too_few_kills_or_a_stale_reason_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, SURVIVOR, *[KILLED] * 9, reasons={SURVIVOR.defect: "It is so."})
    assert main(["mutate"]) == Exit.VIOLATED
    assert main(["mutate", "stop"]) == Exit.OK  # the bar is for the whole campaign
    give(monkeypatch, KILLED, wrong=("no defect is called 'x'",))
    assert main(["mutate"]) == Exit.VIOLATED


def test_what_was_not_decided_is_not_established(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, *[KILLED] * 99, Fate("stop", "stop: endless", Outcome.UNDECIDED, "life"))
    assert main(["mutate"]) == Exit.NOT_ESTABLISHED


def test_a_time_limit_leaves_the_rest_untried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "start", "--time-limit", "0.01", "--json"]) == Exit.NOT_ESTABLISHED
    found = json.loads(capsys.readouterr().out)
    assert found["defects"] == []
    assert len(found["untried"]) == sum(one.where == "start" for one in defects())


def test_an_unknown_table_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutate", "strat"]) == Exit.USAGE
    assert "There are: life, " in capsys.readouterr().err


def test_the_page_is_of_a_whole_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["mutate", "start", "--markdown", str(tmp_path / "page.md")]) == Exit.USAGE
    give(monkeypatch, KILLED)
    assert main(["mutate", "--markdown", str(tmp_path / "page.md")]) == Exit.OK
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| stop | 1 | 0 | 1 | 0 | 0 | 0 | 100.0% |" in written
    assert written == page(Campaign((KILLED,), {}, (), 2.0))


def test_the_committed_page_counts_the_defects_that_there_are() -> None:
    """A whole campaign takes minutes; its size, what lint refuses and the reasons are quick to compare."""
    text = PAGE.read_text(encoding="utf-8")
    tables: dict[str, list[int]] = {}
    for one in defects():
        counts = tables.setdefault(one.where, [0, 0])
        counts[0] += 1
        counts[1] += bool(one.lint)
    shown = {
        cells[0]: [int(cells[1]), int(cells[2])]
        for cells in ([cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines())
        if len(cells) == 8 and cells[1].isdigit()
    }
    assert {name: counts for name, counts in shown.items() if name != "all"} == tables, (
        "run: procession mutate --markdown"
    )
    for reason in REASONS:
        assert reason.why in text
        assert all(f"- `{name}`" in text for name in reason.defects)
