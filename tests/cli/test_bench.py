"""`procession bench`: the arithmetic is right, every installed peer is measured, and nothing stays behind."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from procession.bench import peers
from procession.bench.figures import Book, Cell, Series, Spread, quantile, ratio, spread
from procession.bench.guard import guarded
from procession.bench.machine import machine
from procession.bench.measures import killed_in_call, round_trips, timed_start, timed_stop
from procession.bench.peer import Entry, GaveUpError, Reply, Request, check_sum, payload, wrong
from procession.bench.peers.ours import PRELOAD
from procession.bench.plan import MEASURES, Plan
from procession.bench.report import BEGIN, END, Result, put_in
from procession.bench.rounds import HERE, Rounds
from procession.bench.stepping import stepping
from procession.cli import main
from procession.exits import Exit
from procession.runtime.fork_server import warm
from procession.runtime.leftovers import left_behind, snapshot

TINY = replace(
    Plan(),
    ranks=(2,),
    sizes=(4096,),
    outstanding=(2,),
    rounds=1,
    budget=60.0,
    burst=0.005,
    pause=0.05,
    idle=0.05,
    busy=0.3,
    patience=0.4,
)
INSTALLED = [entry for entry in peers.entries() if entry.missing is None and entry.name != "vllm"]


@pytest.fixture
def nothing_left() -> Iterator[None]:
    warm(PRELOAD)
    before = snapshot()
    yield
    peers.close()
    assert left_behind(before) == []


def entry(name: str) -> Entry:
    return next(each for each in peers.entries() if each.name == name)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_a_figure_is_the_median_of_the_rounds_medians_with_their_range() -> None:
    series = Series({0: [1.0, 2.0, 30.0], 1: [5.0], 2: [3.0, 4.0]})
    assert series.spread() == Spread(3.5, 2.0, 5.0)
    assert series.count() == 6
    assert spread([]) is None
    assert Series().spread() is None


def test_a_p99_needs_a_hundred_samples_and_is_over_all_of_them() -> None:
    few = Series({0: [1.0] * 99})
    assert few.p99() is None
    enough = Series({0: [float(n) for n in range(1, 51)], 1: [float(n) for n in range(51, 101)]})
    assert enough.p99() == 99.0


def test_a_quantile_is_a_sample_that_so_many_do_not_exceed() -> None:
    found = [quantile([4.0, 1.0, 3.0, 2.0], part) for part in (0.0, 0.25, 0.26, 0.5, 0.99, 1.0)]
    assert found == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


def test_a_ratio_is_made_round_by_round_of_the_rounds_that_both_have() -> None:
    ours = Series({0: [2.0], 1: [10.0], 2: [7.0]})
    theirs = Series({0: [4.0], 1: [40.0], 3: [1.0]})
    # Of the medians over rounds it would be 7 ÷ 4: the second round was five times slower for all.
    assert ratio(ours, theirs) == Spread(0.375, 0.25, 0.5)
    assert ratio(ours, Series({5: [1.0]})) is None
    assert ratio(ours, None) is None
    assert ratio(ours, Series({0: [0.0]})) is None


def test_the_book_keeps_samples_and_problems_apart() -> None:
    book = Book()
    cell = Cell("call", 2, 0, Reply.ALL)
    book.put(cell, "bare", 0, [1.0])
    book.put(cell, "bare", 0, [3.0])
    book.fail(cell, "zeromq", "it raised")
    book.fail(cell, "zeromq", "it raised")
    (bare, zeromq) = book.to_json()
    assert (bare["median"], bare["samples"], bare["rounds"]) == (2.0, 2, {"0": 2.0})
    assert (zeromq["median"], zeromq["problems"]) == (None, ["it raised"])


def test_every_answer_is_looked_at_and_stepping_is_timed_on_both_sides() -> None:
    array = payload(3 * 4096)
    assert array is not None
    total = check_sum(array)
    assert total == sum(int(array[at]) for at in (0, 4096, 8192))
    everybody = Request(Reply.ALL, array)
    assert wrong(everybody, 2, [array, array], total) is None
    assert "1 answers instead of 2" in str(wrong(everybody, 2, [array], total))
    stale = array.copy()
    stale[0] += 1
    assert "check sums" in str(wrong(everybody, 2, [array, stale], total))
    assert wrong(Request(Reply.ONE, array), 2, [array], total) is None
    assert wrong(Request(Reply.SUM, array), 2, [total, total], total) is None
    found = stepping(2)
    assert 0.0 < found.worker < found.executor < 0.01


# --- peers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each.name for each in INSTALLED])
@pytest.mark.usefixtures("nothing_left")
def test_each_peer_answers_rightly_and_ends(name: str) -> None:
    chosen = entry(name)
    running, took = timed_start(chosen, 2)
    try:
        assert 0.0 < took < 60.0
        assert len(running.peer.pids) == 2
        for reply in (Reply.ALL, Reply.ONE, Reply.SUM):
            for array in (None, payload(4096), payload(1 << 18)):
                if array is None or chosen.largest is None or array.nbytes <= chosen.largest:
                    assert len(round_trips(running, reply, array, 0.0, 3, 1)) == 3
    finally:
        assert timed_stop(running) < 30.0


@pytest.mark.usefixtures("nothing_left")
def test_a_tiny_run_measures_everything_of_ours_and_the_floor() -> None:
    chosen = [entry(name) for name in (peers.OURS, peers.RECORDING, peers.BARE)]
    book = Rounds(TINY, chosen, lambda _: None).run()
    assert [row for row in book.to_json() if row["problems"]] == []
    measures = {cell.measure for cell in book.cells()}
    assert measures == {"call", "pipeline", "memcpy", "idle", "first", "warm", "start", "stop", "kill"}
    for cell in book.cells("call"):
        assert book.get(cell, peers.OURS) is not None
        assert (book.get(cell, peers.RECORDING) is not None) == (cell == Cell("call", 2, 0, Reply.ALL))
        assert book.ratio(cell, peers.OURS, peers.BARE) is not None
    assert book.get(Cell("memcpy", payload=4096), HERE) is not None


@pytest.mark.usefixtures("nothing_left")
def test_a_peer_that_hangs_is_freed_by_its_guard() -> None:
    running, _ = timed_start(entry("pipe"), 2)
    try:
        with pytest.raises(TimeoutError, match="killed"), guarded(running.peer.pids, 0.2):
            running.peer.call(Request(Reply.ALL, busy=20.0), 30.0)
    finally:
        timed_stop(running)


@pytest.mark.usefixtures("nothing_left")
def test_who_never_learns_of_a_death_is_said_to_have_given_up() -> None:
    zeromq = entry("zeromq")
    if zeromq.missing is not None:
        pytest.skip("pyzmq is an optional extra, and is not installed")
    running, _ = timed_start(zeromq, 2)
    try:
        with pytest.raises(GaveUpError, match="no error within"):
            killed_in_call(running, 0.1, 0.3)
    finally:
        timed_stop(running)


class Broken:
    """A peer that answers with what it was sent the last time."""

    pids: list[int] = []  # noqa: RUF012 - the protocol's attribute, never changed

    def __init__(self) -> None:
        self.last: Any = None

    def start(self, ranks: int) -> None: ...

    def call(self, request: Request, timeout: float) -> list[Any]:
        answers = [self.last, self.last]
        self.last = None if request.payload is None else request.payload.copy()
        return answers

    def submit(self, request: Request) -> None:
        raise RuntimeError("it cannot")

    def collect(self, timeout: float) -> list[Any]:
        raise RuntimeError("it cannot")

    def stop(self) -> None: ...


def test_a_peer_with_stale_answers_fails_and_the_rest_goes_on() -> None:
    broken = Entry("broken", "a peer that lies", Broken)
    rounds = Rounds(replace(TINY, measures=frozenset({"payload", "life"})), [broken], lambda _: None)
    book = rounds.run()
    (problem,) = {problem for row in book.to_json() for problem in row["problems"]}
    assert "wrong answer" in problem
    assert book.get(Cell("start", 2), "broken") is not None


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "procession", "bench", *words],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def test_the_command_writes_tables_json_and_a_plot(tmp_path: Path) -> None:
    page, data, drawing = tmp_path / "page.md", tmp_path / "run.json", tmp_path / "run.svg"
    page.write_text(f"# Kept\n\n{BEGIN}\nold\n{END}\n\nkept, too\n")
    words = ["--quick", "--only", "latency,stepping,kill", "--peers", "bare", "--ranks", "1"]
    plot = ["--plot", str(drawing)] if importlib.util.find_spec("matplotlib") else []
    done = run(*words, "--markdown", str(page), "--json", str(data), *plot)
    assert done.returncode == Exit.OK, done.stderr
    assert "left behind: nothing" in done.stdout
    assert "Compare ratios" in done.stdout
    text = page.read_text()
    assert text.startswith("# Kept")
    assert text.endswith("kept, too\n")
    assert "old" not in text
    assert "### Round trip, empty, all ranks" in text
    found = json.loads(data.read_text())
    assert {row["peer"] for row in found["figures"]} == {"procession", "bare"}
    assert found["ratios"]
    assert not done.stderr.count("Traceback")
    assert found["stepping"].keys() == {"1"}
    assert len(found["machine"]["load"]) == 3
    assert not plot or "<svg" in drawing.read_text()


def test_what_is_not_installed_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    absent = {"zmq", "loky", "vllm", "matplotlib"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else found(name))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["bench", "--list"]) == Exit.OK
    assert capsys.readouterr().out.count("not installed") == 3
    assert main(["bench", "--plot", "x.svg"]) == Exit.ERROR
    assert "matplotlib, which is not installed: pip install" in capsys.readouterr().err
    missing = [each for each in peers.entries() if each.missing]
    before = machine()
    result = Result(TINY, missing, Book(), {}, 1, 1.0, before, machine(), ["a thread"])
    assert result.to_markdown().count("not installed") == 3
    assert "left behind: a thread" in result.to_markdown()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "speed"], "no measure is called 'speed'"),
        (["--only", ""], "at least one measure"),
        (["--peers", "bare,mpi"], "no peer is called 'mpi'"),
        (["--ranks", "0"], "from 1 to 64"),
        (["--ranks", "two"], "numbers like 1,2,4"),
    ],
)
def test_wrong_words_are_refused(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == Exit.USAGE
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "--json", "/nowhere/at/all.json"]) == Exit.ERROR
    assert "there is no folder /nowhere/at" in capsys.readouterr().err


def test_names_with_a_comma_are_understood() -> None:
    from procession.commands.bench import _some

    known = ["bare", "bare, spin", "pipe"]
    assert _some("bare, spin,pipe", known, "peer") == ["bare, spin", "pipe"]
    assert _some("pipe, bare", known, "peer") == ["bare", "pipe"]
    assert _some(None, list(MEASURES), "measure") == list(MEASURES)


def test_a_page_without_marks_gets_them_at_its_end() -> None:
    page = put_in("# A page\n", "tables")
    assert page == f"# A page\n\n{BEGIN}\n\ntables\n{END}\n"
    assert put_in(page, "others") == page.replace("tables", "others")
