"""`procession check`, `validate` and `diagram`: what they print, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from procession.cli import main
from procession.exits import Exit
from procession.specs import models
from procession.specs.diagrams import tables
from procession.specs.explore.simulate import random_walk
from procession.specs.trace import written
from procession.specs.world import Budgets, World

from .swapped import SWAPPED_EXECUTOR

Output = pytest.CaptureFixture[str]


def trace(folder: Path) -> Path:
    """A file with a trace that is accepted."""
    path = random_walk(World(2, Budgets(stops=1)), 1, fault_weight=0.01)
    file = folder / "run.ndjson"
    file.write_text("\n".join(written([step.label for step in path.steps], 2)) + "\n")
    return file


def test_check_holds(capsys: Output, tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"
    assert main(["check", "queues", "--junit", str(junit)]) == Exit.OK
    out = capsys.readouterr().out
    assert "the queues open or the start ends" in out
    assert " states in " in out
    assert "properties of 1 models" in out
    suites = ElementTree.fromstring(junit.read_text())
    assert [(s.get("name"), s.get("failures"), s.get("errors")) for s in suites] == [("queues", "0", "0")]


def test_check_as_json(capsys: Output) -> None:
    assert main(["check", "queues", "--workers", "1", "--crashes", "0", "--json"]) == Exit.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["exit_code"]) == ("holds", 0)
    assert [report["model"] for report in found["reports"]] == ["queues"]


def test_check_cut_short_is_not_established(capsys: Output) -> None:
    assert main(["check", "queues", "--max-states", "100"]) == Exit.NOT_ESTABLISHED
    assert "the search is incomplete" in capsys.readouterr().out


def test_check_of_a_broken_table_shows_the_run(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    broken = dataclasses.replace(models.AHEAD, executor=SWAPPED_EXECUTOR)
    monkeypatch.setitem(models.MODELS, "ahead", broken)
    assert main(["check", "ahead", "--max-states", "20000"]) == Exit.VIOLATED
    out = capsys.readouterr().out
    assert "violated a result is every rank's" in out
    assert "submits call 1" in out
    assert "```mermaid\nsequenceDiagram" in out


def test_a_counterexample_is_replayed_where_it_was_found_and_refused_once_it_is_mended(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import dataclasses

    right = models.MODELS["ahead"]
    monkeypatch.setitem(models.MODELS, "ahead", dataclasses.replace(models.AHEAD, executor=SWAPPED_EXECUTOR))
    arguments = ["ahead", "--max-states", "20000", "--workers", "2", "--json"]
    assert main(["check", *arguments]) == Exit.VIOLATED
    file = tmp_path / "report.json"
    file.write_text(capsys.readouterr().out)
    assert main(["validate", str(file)]) == Exit.OK
    assert "a result is every rank's: accepted: the model has this run of" in capsys.readouterr().out
    monkeypatch.setitem(models.MODELS, "ahead", right)
    assert main(["validate", str(file), "--json"]) == Exit.VIOLATED
    replays = json.loads(capsys.readouterr().out)
    assert {one["verdict"] for one in replays} == {"refused"}
    assert "step" in replays[0]["reason"]


def test_the_runs_of_variants_are_replayed(capsys: Output, tmp_path: Path) -> None:
    assert main(["check", "--variant", "vllm-0.11.2", "--json"]) == Exit.VIOLATED
    file = tmp_path / "variants.json"
    file.write_text(capsys.readouterr().out)
    assert main(["validate", str(file)]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert all(": accepted: " in line for line in lines)


def test_a_report_with_nothing_to_replay(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert main(["check", "queues", "--workers", "1", "--json"]) == Exit.OK
    file.write_text(capsys.readouterr().out)
    assert main(["validate", str(file)]) == Exit.ERROR
    assert "without a counterexample" in capsys.readouterr().err
    damaged = {"variant": "no-start-deadline", "counterexample": {"format": "procession.counterexample/1"}}
    file.write_text(json.dumps([damaged]))
    assert main(["validate", str(file)]) == Exit.ERROR
    assert "cannot be read" in capsys.readouterr().err
    file.write_text(json.dumps({"reports": [{"model": "queues"}]}))
    assert main(["validate", str(file)]) == Exit.ERROR
    assert "damaged (KeyError: 'properties')" in capsys.readouterr().err
    run: dict[str, object] = {"format": "procession.counterexample/1", "model": "queues", "property": "x"}
    run |= {"sentence": "", "reason": "", "start": 0, "stem": [], "cycle": None, "states": []}
    report = {"model": "queues", "properties": [{"counterexample": run}]}
    file.write_text(json.dumps({"reports": [report], "workers": "many"}))
    assert main(["validate", str(file)]) == Exit.ERROR
    assert "damaged: workers and crashes are ['many', None]" in capsys.readouterr().err


def test_check_lists_its_models(capsys: Output) -> None:
    assert main(["check", "--list"]) == Exit.OK
    out = capsys.readouterr().out
    assert all(name in out for name in models.MODELS)


@pytest.mark.parametrize(
    "arguments",
    [["nope"], ["queues", "--workers", "0"], ["queues", "--crashes", "-1"], ["--max-states", "x"]],
)
def test_check_used_wrongly(arguments: list[str], capsys: Output) -> None:
    assert main(["check", *arguments]) == Exit.USAGE
    assert "Error: Invalid value" in capsys.readouterr().err


def test_validate_accepts(capsys: Output, tmp_path: Path) -> None:
    file = trace(tmp_path)
    assert main(["validate", str(file)]) == Exit.OK
    assert capsys.readouterr().out.startswith("accepted: all ")
    assert main(["validate", str(file), "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["accepted"] is True


def test_validate_refuses(capsys: Output, tmp_path: Path) -> None:
    file = trace(tmp_path)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n")
    assert main(["validate", str(file)]) == Exit.VIOLATED
    assert "cut short" in capsys.readouterr().out


def test_what_is_no_file(capsys: Output, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for name, words in (
        (str(tmp_path / "none"), "there is no file"),
        (str(tmp_path), "is a folder"),
        (str(binary), "is no text"),
    ):
        for command in ("validate", "diagram"):
            assert main([command, name]) == Exit.ERROR
            assert words in capsys.readouterr().err


def test_diagram_of_every_table(capsys: Output) -> None:
    for name, table in tables().items():
        assert main(["diagram", name]) == Exit.OK
        out = capsys.readouterr().out
        assert out.startswith("stateDiagram-v2\n")
        assert all(state.name in out for state in table.states)


def test_diagram_of_everything(capsys: Output) -> None:
    assert main(["diagram"]) == Exit.OK
    out = capsys.readouterr().out
    assert out.count("```mermaid") == len(tables()) + 1
    assert main(["diagram", "coupling"]) == Exit.OK
    assert capsys.readouterr().out in out


def test_diagram_of_a_trace(capsys: Output, tmp_path: Path) -> None:
    assert main(["diagram", str(trace(tmp_path))]) == Exit.OK
    assert capsys.readouterr().out.startswith("sequenceDiagram\n")
    bad = tmp_path / "bad.ndjson"
    bad.write_text("{}\n")
    assert main(["diagram", str(bad)]) == Exit.ERROR
    assert "is not a trace: line 1: the header is missing" in capsys.readouterr().err


def test_diagram_of_nothing_known(capsys: Output) -> None:
    assert main(["diagram", "calls"]) == Exit.USAGE
    assert "Did you mean 'call'?" in capsys.readouterr().err.replace("'caller'", "'call'")
