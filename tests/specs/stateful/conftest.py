"""Where programs run: nothing may seem left that is not a program's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker

import pytest

from procession.runtime.fork_server import warm
from procession.suite.ours import PRELOAD


@pytest.fixture(scope="module", autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary folder of our own, and Python's helpers started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)
        resource_tracker.ensure_running()
        warm(PRELOAD)
        yield
