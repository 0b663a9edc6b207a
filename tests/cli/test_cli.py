"""The command line: lazy commands, and one exit code and one message for whatever happens.

The commands under test are written into a folder that is added to `procession.commands`, as a user's file would be,
so that these tests hold for any command and depend on none.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from procession import __version__, commands
from procession.cli import main
from procession.exits import Exit
from procession.interrupts import SAID

ROOT = Path(__file__).resolve().parents[2]
HEAD = '"""{doc}"""\nimport click\nfrom procession.exits import Exit\n@click.command()\n'


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Add":
    """A function that adds a command file with the given source."""
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    return Add(tmp_path, monkeypatch)


class Add:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch

    def __call__(self, name: str, source: str) -> None:
        (self.folder / f"{name}.py").write_text(source)
        module = f"procession.commands.{name}"
        # Recorded as absent, so that the module a test imports is forgotten after it.
        self.monkeypatch.setitem(sys.modules, module, None)
        self.monkeypatch.delitem(sys.modules, module)

    def body(self, name: str, body: str, doc: str = "A command.") -> None:
        self(name, HEAD.format(doc=doc) + f"def command():\n    {body}\n")


def run(*words: str, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "procession", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | environment,
    )


def test_help_is_quick_and_imports_neither_torch_nor_rich() -> None:
    code = (
        "import sys; from procession.cli import main; code = main(['--help'])\n"
        "heavy = {'torch', 'rich', 'numpy', 'transitions', 'gguf'} & set(sys.modules)\n"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        best = min(best, time.perf_counter() - start)
        assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout
    assert best < 0.5, f"{best:.2f} s; 0.1 s on an idle machine"


def test_the_installed_script_and_the_module_are_the_same_program() -> None:
    script = Path(sys.executable).with_name("procession")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == run("--version").stdout == f"procession, version {__version__}\n"


@pytest.mark.parametrize(
    "words", [["no-such-command"], ["--no-such-option"], ["doctor", "--bad"], ["doctor", "surplus"], []]
)
def test_wrong_usage_exits_with_64_and_says_so_on_stderr(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == Exit.USAGE
    assert done.stdout == ""
    assert "Usage: procession" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_command_names_its_neighbour(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docter"]) == Exit.USAGE
    assert "Did you mean 'doctor'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pass", Exit.OK),
        ("return Exit.OK", Exit.OK),
        ("return Exit.VIOLATED", Exit.VIOLATED),
        ("return Exit.NOT_ESTABLISHED", Exit.NOT_ESTABLISHED),
        ("click.get_current_context().exit(3)", Exit.NOT_ESTABLISHED),
        ("raise click.BadParameter('no')", Exit.USAGE),
        ("raise click.ClickException('no')", Exit.ERROR),
        ("raise KeyboardInterrupt", Exit.INTERRUPTED),
        ("raise EOFError", Exit.ERROR),
        ("raise MemoryError", Exit.ERROR),
    ],
)
def test_what_a_command_does_decides_the_exit_code(add: Add, body: str, code: Exit) -> None:
    add.body("probe", body)
    assert main(["probe"]) == code


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('sizes do not divide')", "procession: ValueError: sizes do not divide"),
        ("raise KeyError", "procession: KeyError"),
        ("open('/no/such/file')", "procession: [Errno 2] No such file or directory: '/no/such/file'"),
        ("import no_such_module", "procession: No module named 'no_such_module'"),
    ],
)
def test_an_error_is_one_message_without_a_traceback(
    add: Add, capsys: pytest.CaptureFixture[str], body: str, says: str
) -> None:
    add.body("probe", body)
    assert main(["probe"]) == Exit.ERROR
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [says, "(PROCESSION_DEBUG=1 shows the traceback.)"]


def test_debug_lets_the_traceback_through(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    add.body("probe", "raise ValueError('deep')")
    monkeypatch.setenv("PROCESSION_DEBUG", "1")
    with pytest.raises(ValueError, match="deep"):
        main(["probe"])


def test_a_command_stopped_by_a_signal_keeps_its_own_exit(add: Add) -> None:
    add.body("probe", "raise SystemExit(143)")
    with pytest.raises(SystemExit) as caught:
        main(["probe"])
    assert caught.value.code == 143


def test_a_file_is_a_command_listed_in_order_with_its_first_line(
    add: Add, capsys: pytest.CaptureFixture[str]
) -> None:
    add.body("a_first", "pass", doc="Comes first.\n\nMore.")
    add.body("_helper", "pass", doc="Hidden.")
    assert main(["--help"]) == Exit.OK
    listed = capsys.readouterr().out.partition("Commands:")[2].split()
    assert listed[:3] == ["a-first", "Comes", "first."]
    assert "Hidden." not in listed
    assert main(["a-first"]) == Exit.OK


def test_help_works_while_a_command_is_broken(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    add("broken", "def (")
    add("failing", '"""Fails at import."""\nraise RuntimeError("at import")\n')
    add("empty", "")
    add("mistaken", '"""Holds none."""\ncommand = 3\n')
    assert main(["--help"]) == Exit.OK
    out = capsys.readouterr().out
    assert "does not parse" in out
    assert "Fails at import." in out
    for name, says in (
        ("broken", "SyntaxError"),
        ("failing", "at import"),
        ("empty", "click command"),
        ("mistaken", "3"),
    ):
        assert main([name]) == Exit.ERROR
        assert says in capsys.readouterr().err


def test_ctrl_c_exits_with_130_and_no_traceback(tmp_path: Path) -> None:
    source = (
        HEAD.format(doc="Waits.")
        + "def command():\n    import signal\n    print('up', flush=True)\n    signal.pause()\n"
    )
    (tmp_path / "wait.py").write_text(source)
    code = (
        f"import sys; from procession import commands; commands.__path__ = [{str(tmp_path)!r}]\n"
        "from procession.cli import main; sys.exit(main(['wait']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "up\n"
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == Exit.INTERRUPTED
    assert err.strip() == SAID


def test_a_ctrl_c_that_a_library_swallows_is_not_lost(add: "Add", capfd: pytest.CaptureFixture[str]) -> None:
    source = HEAD.format(doc="Swallows.") + (
        "def command():\n    import signal\n    from procession.interrupts import heed\n"
        "    try:\n        signal.raise_signal(signal.SIGINT)\n    except BaseException:\n        pass\n"
        "    print('swallowed')\n    HEED\n    print('went on')\n"
    )
    add("swallows", source.replace("HEED", "heed()"))
    add("heedless", source.replace("HEED", "pass"))
    handler = signal.getsignal(signal.SIGINT)
    assert main(["swallows"]) == Exit.INTERRUPTED
    out, err = capfd.readouterr()
    assert out == "swallowed\n"
    assert err.strip() == SAID
    assert main(["heedless"]) == Exit.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_closed_pipe_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "procession", "--help"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    "module", ["protocol", "runtime", "specs", "runtime.amx", "protocol.core", "specs.explore"]
)
def test_importing_a_folder_of_the_repository_is_refused(module: str) -> None:
    """It would be a second copy of each module, whose classes are not equal to the first's."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    folder = module.partition(".")[0]
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: {folder} is a folder of this repository: import procession.{folder} instead"


def test_the_real_names_import_from_the_repository_too() -> None:
    code = "import procession.protocol, procession.runtime, procession.specs"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=True)
