"""`procession run`: a real run that validates, and one clear message for each thing that cannot work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from procession.commands.run import command
from procession.exits import Exit


def run(*arguments: str, timeout: float = 90.0) -> subprocess.CompletedProcess[str]:
    """The command as a user calls it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "procession", "run", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.slow
def test_a_small_model_runs_and_its_trace_is_accepted(tmp_path: Path) -> None:
    trace = tmp_path / "trace.ndjson"
    done = run("--model", "tiny", "--prompt", "hello", "--max-tokens", "5", "--json", "--trace", str(trace))
    assert done.returncode == Exit.OK, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["tp"], facts["pp"]) == (2, 2)
    assert facts["verdict"] == "holds"
    assert facts["trace_verdict"] == "accepted"
    assert facts["left_behind"] == []
    assert 1 <= facts["tokens"] <= 5
    lines = trace.read_text().splitlines()
    assert len(lines) == facts["trace_lines"] + 1
    assert {json.loads(line)["p"] for line in lines[1:]} == {
        "executor",
        *(f"rank {rank}" for rank in range(4)),
    }


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode in (Exit.ERROR, Exit.USAGE), done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_no_such_file() -> None:
    assert "no such file: nowhere.gguf" in refused("--model", "nowhere.gguf")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("these are notes")
    assert "not a GGUF" in refused("--model", str(path))


def test_sizes_that_do_not_divide_and_those_that_do() -> None:
    assert "TP can be 1, 2 or 4" in refused("--model", "tiny", "--tensor-parallel-size", "3")


def test_a_prompt_beyond_the_context() -> None:
    assert "context" in refused("--model", "tiny", "--prompt", "word " * 5000)


def test_more_ranks_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("procession.runtime.llm.memory.available_memory", lambda: 100 << 20)
    done = CliRunner().invoke(command, ["--model", "tiny", "-tp", "4", "-pp", "4", "--start-method", "fork"])
    assert done.exit_code == Exit.ERROR
    assert "4 × PP 4 = 16 ranks" in done.output
    assert "are available; use fewer ranks" in done.output
