"""`procession.protocol` is pure: importing it brings nothing heavy and nothing of ours; and every word is explained."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import procession.protocol
from procession.protocol.core import Effect, Event, State, Table

FORBIDDEN = ("torch", "zmq", "transitions", "hypothesis", "numpy", "pytest", "multiprocessing", "socket")
NAMES = [
    "procession.protocol",
    *(
        found.name
        for found in pkgutil.walk_packages(procession.protocol.__path__, prefix="procession.protocol.")
    ),
]
MODULES = [importlib.import_module(name) for name in NAMES]
SCRIPT = """
import importlib, json, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def unwanted(loaded: list[str]) -> list[str]:
    """Modules that the protocol must not bring along."""
    ours = [
        name
        for name in loaded
        if name.partition(".")[0] == "procession"
        and name not in ("procession", "procession.protocol")
        and not name.startswith("procession.protocol.")
    ]
    return [*ours, *(name for name in loaded if name.partition(".")[0] in FORBIDDEN)]


def brought(name: str, *path: Path) -> list[str]:
    """The modules that `import name` brings, in a fresh interpreter."""
    extra = f"sys.path[:0] = {[str(entry) for entry in path]!r}\n"
    script = SCRIPT.replace("before =", extra + "before =") if path else SCRIPT
    done = subprocess.run(
        [sys.executable, "-c", script, name], capture_output=True, text=True, check=True, timeout=60
    )
    loaded: list[str] = json.loads(done.stdout)
    assert name in loaded
    return loaded


def test_all_of_it_brings_nothing_else(tmp_path: Path) -> None:
    """All modules in one fresh interpreter; if that is clean, each of them is."""
    (tmp_path / "all_of_it.py").write_text("".join(f"import {name}\n" for name in NAMES))
    loaded = brought("all_of_it", tmp_path)
    assert set(NAMES) <= set(loaded)
    assert unwanted(loaded) == []


def test_what_is_unwanted_is_seen(tmp_path: Path) -> None:
    (tmp_path / "impure.py").write_text(
        "import procession.protocol.core, procession.cli, socket, transitions\n"
    )
    found = unwanted(brought("impure", tmp_path))
    assert {"procession.cli", "socket", "transitions"} <= set(found)
    assert not [name for name in found if name.startswith("procession.protocol")]


def test_the_modules_that_are_looked_at() -> None:
    assert {
        "procession.protocol.core.table",
        "procession.protocol.life",
        "procession.protocol.worker",
    } <= set(NAMES)


# --- everything is explained ------------------------------------------------------------------------------------------


def tables() -> dict[str, Table]:
    """Every table there is."""
    found: dict[str, Table] = {}
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, Table):
                assert found.setdefault(value.name, value) is value, f"two tables are named {value.name}"
    return found


def sentence(text: str) -> bool:
    """It begins large, ends with a full stop, and is more than a word."""
    return text[:1].isupper() and text.endswith(".") and len(text.split()) >= 2 and text == text.strip()


def named() -> list[tuple[str, State | Event | Effect]]:
    """Every state, event and effect, by `table.NAME`."""
    return [
        (f"{table.name}.{word.name}", word)
        for table in tables().values()
        for group in (table.states, table.events, table.effects)
        for word in group
    ]


def test_every_table_has_a_purpose() -> None:
    assert len(tables()) >= 15
    assert [table.name for table in tables().values() if not sentence(table.purpose)] == []
    purposes = [table.purpose for table in tables().values()]
    assert len(purposes) == len(set(purposes))


def test_every_word_is_explained_by_a_sentence() -> None:
    assert [name for name, word in named() if not sentence(word.meaning)] == []


def test_every_effect_is_had_by_some_row() -> None:
    used = {
        (type(effect), effect) for table in tables().values() for row in table.rows for effect in row["after"]
    }
    assert {
        f"{type(word).__name__}.{word.name}"
        for _, word in named()
        if isinstance(word, Effect) and (type(word), word) not in used
    } == set()


def test_what_a_sentence_is() -> None:
    assert sentence("It is shut.")
    for text in ("", "shut", "Shut.", "it is shut.", "It is shut", "It is shut. "):
        assert not sentence(text)


def undocumented(module: types.ModuleType) -> list[str]:
    """Public classes, functions and methods without a docstring of their own."""
    found = [] if inspect.getdoc(module) else [module.__name__]
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        if inspect.isclass(value):
            members = {name: value, **{f"{name}.{key}": entry for key, entry in vars(value).items()}}
        else:
            members = {name: value}
        for path, entry in members.items():
            if path.rpartition(".")[2].startswith("_"):
                continue
            plain = entry.fget if isinstance(entry, property) else getattr(entry, "__func__", entry)
            own = inspect.isfunction(plain) or inspect.isclass(plain)
            if own and plain.__module__ == module.__name__ and not (plain.__doc__ or "").strip():
                found.append(f"{module.__name__}.{path}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_everything_public_has_a_docstring(module: types.ModuleType) -> None:
    assert undocumented(module) == []


def test_a_missing_docstring_is_seen() -> None:
    module = types.ModuleType("bare")
    exec(
        "class Told:\n"
        "    'Said.'\n"
        "    def said(self): 'Said.'\n"
        "    def silent(self): pass\n"
        "    @property\n"
        "    def mute(self): pass\n"
        "    def _hidden(self): pass\n"
        "class Silent: pass\n"
        "def silent(): pass\n",
        vars(module),
    )
    assert undocumented(module) == [
        "bare",
        "bare.Told.silent",
        "bare.Told.mute",
        "bare.Silent",
        "bare.silent",
    ]
