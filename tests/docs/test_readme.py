"""What the README shows is what is there: its code runs, its tables and diagrams are the repository's own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from procession.cli import procession

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language; "" is those without one."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_example_is_the_file() -> None:
    assert (ROOT / "examples/echo.py").read_text(encoding="utf-8") in blocks("python")


@pytest.mark.slow
def test_the_example_prints_what_the_readme_says() -> None:
    done = subprocess.run(
        [sys.executable, "examples/echo.py"], cwd=ROOT, capture_output=True, text=True, timeout=90, check=True
    )
    shown = next(block for block in blocks("") if block.startswith("[(0, 49)"))

    def comparable(text: str) -> str:
        text = re.sub(r"\(2, \d+\)", "(2, PID)", text)
        return re.sub(
            r"rank \d failed", "rank R failed", text
        )  # all three raise; the first to be heard is told

    assert comparable(done.stdout) == comparable(shown)


def test_the_rows_are_the_files_rows() -> None:
    rows = next(block for block in blocks("python") if block.lstrip().startswith("rows=("))
    assert rows in (ROOT / "protocol/shutdown.py").read_text(encoding="utf-8")


def test_the_diagram_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(procession, ["diagram", "rank_stop"], catch_exceptions=False).output
    without_title = "".join(line + "\n" for line in printed.splitlines() if "%%" not in line)
    assert without_title in blocks("mermaid")


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_counterexample_is_what_the_command_prints() -> None:
    done = CliRunner().invoke(procession, ["check", "--variant", "untagged-replies"])
    drawn = next(block for block in blocks("mermaid") if block.startswith("sequenceDiagram"))
    assert drawn in done.output


def test_every_command_is_listed() -> None:
    listed = set(re.findall(r"^\| `procession ([a-z]+)", README, flags=re.MULTILINE))
    assert listed == set(procession.list_commands(click.Context(procession)))
