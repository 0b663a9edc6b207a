"""Every test of the runtime is bounded in time, and leaves nothing behind."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from procession.runtime.fork_server import warm
from procession.runtime.leftovers import left_behind, snapshot

# Both pytest and the processes that tests start import `tests.runtime.workers`. At the path's end, so that the
# repository's folders never stand in front of an installed package.
sys.path.append(str(Path(__file__).parents[2]))


@pytest.fixture(scope="session", autouse=True)
def _helpers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary folder of our own, and Python's helper processes: no test seems to leave what is not its own."""
    folder = tmp_path_factory.mktemp("t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        resource_tracker.ensure_running()
        warm(("procession.runtime.worker_proc",))
        gc.collect()
        gc.freeze()  # what was imported stays; each test's own collection need not look through it
        yield


@pytest.fixture(autouse=True)
def _nothing_left(_helpers: None) -> Iterator[None]:
    """No process, thread, descriptor, shared memory or temporary file may be left by a test."""
    from tests.runtime.support import eventually

    gc.collect()
    before = snapshot()
    yield
    gc.collect()
    # A thread or a process that is ending is not left behind; one that is there after two seconds is.
    eventually(lambda: not left_behind(before), 2.0)
    assert left_behind(before) == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A hang is the very thing these tests exist to catch: none may last longer than a minute.

    Tests with torch come last: the others fork, and what forks should be small and have no native threads.
    """
    items.sort(key=lambda item: item.path.name == "test_codec.py" and "tests/runtime" in item.path.as_posix())
    for item in items:
        if "tests/runtime" in item.path.as_posix() and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60))
