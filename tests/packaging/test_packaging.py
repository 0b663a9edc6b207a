"""The package as others get it: built, installed elsewhere, imported in children.

Theory of operation. `procession/` holds links to `protocol/`, `runtime/` and `specs/`, and a build tool may follow
them, drop them, or visit a folder only once; each of these failed in some variant that was tried. So both ways to a
wheel are built (from the tree, and from the sdist) from one snapshot of the tree, and compared; then the one that went
through the sdist is installed into a folder of its own and used from outside the repository.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import procession

pytest.importorskip("build", reason="the builds need the extra `dev`")
pytest.importorskip("hatchling", reason="the builds need the extra `dev`")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
IMPORT_LIMIT = 0.05
"""Seconds that `import procession.protocol` may take."""


@dataclass(frozen=True)
class Built:
    tree: Path
    sdist: Path
    from_sdist: Path
    from_tree: Path
    target: Path

    def python(self, *words: str) -> str:
        """Run Python outside the repository with the installed package first on its path; its standard output."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.target.parent,
            env=os.environ | {"PYTHONPATH": str(self.target)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout


def build(tree: Path, out: Path, *which: str) -> list[Path]:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, *which, tree],
        capture_output=True,
        timeout=200,
        check=True,
    )
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    base = tmp_path_factory.mktemp("packaging")
    tree = base / "tree"
    # A snapshot, so that an edit between the two builds is not mistaken for a fault of one.
    skip = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", "build", "dist")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=skip)
    sdist, from_sdist = build(tree, base / "through-sdist")[::-1]
    if sdist.suffix == ".whl":
        sdist, from_sdist = from_sdist, sdist
    (from_tree,) = build(tree, base / "from-tree", "--wheel")
    target = base / "target"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            target,
            from_sdist,
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return Built(tree, sdist, from_sdist, from_tree, target)


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_both_ways_to_a_wheel_give_the_same_package(built: Built) -> None:
    assert names(built.from_sdist) == names(built.from_tree)
    with zipfile.ZipFile(built.from_sdist) as one, zipfile.ZipFile(built.from_tree) as other:
        differing = [name for name in one.namelist() if one.read(name) != other.read(name)]
    assert differing == []


def test_the_wheel_holds_every_module_and_nothing_else(built: Built) -> None:
    inside = {name for name in names(built.from_sdist) if ".dist-info/" not in name}
    sources = {"procession/py.typed"}
    for folder in ("procession", "protocol", "runtime", "specs"):
        for file in (built.tree / folder).rglob("*.py"):  # does not walk into the links
            path = file.relative_to(built.tree)
            sources.add(str(path if folder == "procession" else "procession" / path))
    assert {name for name in inside if name.endswith((".py", "py.typed"))} == sources
    assert all(name.startswith("procession/") for name in inside)
    assert not any("tests/" in name or "__pycache__" in name for name in inside)


def test_the_sdist_holds_what_a_contributor_needs(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Makefile",
        "constraints.txt",
        ".ci/run",
        "procession/protocol/__init__.py",
        "tests/packaging/test_packaging.py",
    } <= inside
    assert not any(member.issym() or member.islnk() for member in members), (
        "links would not survive everywhere"
    )


def test_the_metadata_names_the_script_the_licence_and_the_version(built: Built) -> None:
    with zipfile.ZipFile(built.from_sdist) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        (scripts,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        text, script = archive.read(metadata).decode(), archive.read(scripts).decode()
    assert "License-Expression: Apache-2.0" in text
    assert f"Version: {procession.__version__}" in text
    assert "procession = procession.cli:main" in script
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == procession.__version__


def test_importing_the_protocol_is_quick_and_brings_nothing_heavy(built: Built) -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import procession.protocol; "
        "print(time.perf_counter() - start, procession.protocol.__file__, "
        "*sorted({'torch', 'zmq', 'transitions', 'numpy', 'multiprocessing'} & set(sys.modules)))"
    )
    seconds: list[float] = []
    for _ in range(7):
        taken, file, *heavy = built.python("-c", code).split()
        assert Path(file).is_relative_to(built.target)
        assert heavy == []
        seconds.append(float(taken))
    assert min(seconds) < IMPORT_LIMIT


CHILDREN = """
import multiprocessing, sys
import procession.protocol

def where(queue):
    import procession.protocol, procession.runtime, procession.specs
    queue.put(procession.protocol.__file__)

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        child = context.Process(target=where, args=(queue,))
        child.start()
        child.join(30)
        print(child.exitcode, queue.get() == procession.protocol.__file__)
"""


def test_children_of_every_start_method_import_the_installed_package(built: Built) -> None:
    script = built.target.parent / "children.py"
    script.write_text(CHILDREN)
    assert built.python(str(script)).split() == ["0", "True"] * 3


def test_a_users_own_protocol_module_does_no_harm(built: Built) -> None:
    folder = built.target.parent / "user"
    folder.mkdir()
    (folder / "protocol.py").write_text("MINE = True\n")
    (folder / "main.py").write_text("import protocol, procession.protocol\nprint(protocol.MINE)\n")
    assert built.python(str(folder / "main.py")).strip() == "True"


def test_the_installed_command_runs(built: Built) -> None:
    assert built.python("-m", "procession", "--version").strip().endswith(procession.__version__)
    assert "doctor" in built.python("-m", "procession", "--help")
