"""Every known-bad variant is convicted, in the pinned number of steps, and its right twin is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from procession.protocol.core import Table, TableError
from procession.protocol.ready import START, Start, StartOn
from procession.specs.explore import Counterexample, Verdict, check
from procession.specs.explore import replay as replayed
from procession.specs.variants import BUNDLES, LINT, VARIANTS, Variant, convict, judged
from procession.specs.variants.edit import added, changed, ignored, uncoupled, unguarded

WORLD = ("ready", "stale", "queues", "futures", "ahead", "shutdown", "life")


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_it_is_convicted_and_its_right_twin_is_not(variant: Variant) -> None:
    found = convict(variant)
    assert found.verdict is Verdict.VIOLATED, found.reason
    assert found.right is Verdict.HOLDS
    assert found.length == variant.length
    assert found.stands


@pytest.mark.parametrize(
    "variant", [one for one in VARIANTS.values() if one.violates != LINT], ids=lambda one: str(one.name)
)
def test_its_counterexample_is_a_run_of_the_bad_model_alone(variant: Variant) -> None:
    run = judged(variant.bad(), variant.violates).counterexample
    assert run is not None
    again = Counterexample.loads(run.dumps())
    assert len(replayed(variant.bad().model, again).steps) == variant.length
    assert "sequenceDiagram" in again.to_mermaid()


@pytest.mark.parametrize(
    "variant",
    [one for one in VARIANTS.values() if one.model not in (*WORLD, "lint")],
    ids=lambda one: str(one.name),
)
def test_every_property_of_the_right_small_model_holds(variant: Variant) -> None:
    trial = variant.right()
    report = check(trial.model, list(trial.properties))
    wrong = [f"{one.name}: {one.reason}" for one in report.outcomes if one.verdict is not Verdict.HOLDS]
    # A trial may be too small for another property's twin; nothing else may be wrong.
    assert all("vacuous" in one for one in wrong), wrong


def test_all_have_a_sentence_and_a_name_of_their_own() -> None:
    sentences = [variant.sentence for variant in VARIANTS.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert len(VARIANTS) == 98


def test_bundles_hold_what_the_versions_differ_by() -> None:
    assert all(name in VARIANTS for names in BUNDLES.values() for name in names)
    older, newer = (set(BUNDLES[f"vllm-{version}"]) for version in ("0.11.2", "0.15.1"))
    assert older - newer == {"sigterm-without-grace", "monitor-before-queue"}
    assert not newer - older


# --- a conviction can fail ------------------------------------------------------------------------------------------

SOME = VARIANTS["untagged-replies"]


def test_a_variant_that_does_nothing_wrong_is_not_convicted() -> None:
    found = convict(replace(SOME, bad=SOME.right))
    assert found.verdict is Verdict.HOLDS
    assert found.length is None
    assert not found.stands


def test_a_property_that_the_shipped_tables_break_convicts_nobody() -> None:
    found = convict(replace(SOME, right=SOME.bad))
    assert found.verdict is Verdict.VIOLATED
    assert not found.stands


def test_another_length_is_another_counterexample() -> None:
    assert not convict(replace(SOME, length=SOME.length + 1)).stands


def test_a_table_that_lint_accepts_is_not_refused() -> None:
    found = convict(replace(VARIANTS["unreachable-grace"], table=START))
    assert found.verdict is Verdict.HOLDS
    assert not found.stands


def test_a_property_that_is_not_asked_is_named_with_those_that_are() -> None:
    with pytest.raises(LookupError, match="a call has one outcome"):
        judged(SOME.right(), "no such property")


# --- edits ----------------------------------------------------------------------------------------------------------


def _rows(table: Table) -> set[tuple[Any, ...]]:
    return {(s, row["trigger"], row["dest"]) for row in table.rows for s in row["source"]}


def test_an_edit_changes_the_rows_it_names_and_no_other() -> None:
    bad = ignored(START, StartOn.DEADLINE, Start.STARTING)
    removed, new = _rows(START) - _rows(bad), _rows(bad) - _rows(START)
    assert removed == {(Start.STARTING, StartOn.DEADLINE, Start.FAILED)}
    assert new == {(Start.STARTING, StartOn.DEADLINE, None)}
    assert _rows(added(bad, StartOn.DEADLINE, Start.STARTING, Start.FAILED)) == _rows(START)


def test_an_edit_of_a_row_that_is_gone_is_refused() -> None:
    from procession.protocol.executor import ExecutorProtocol
    from procession.protocol.ready import of_this_epoch

    with pytest.raises(LookupError):
        changed(START, StartOn.ALL_READY, Start.UP, Start.FAILED)
    with pytest.raises(LookupError):
        unguarded(START, of_this_epoch)
    with pytest.raises(LookupError):
        uncoupled(ExecutorProtocol(), "start", StartOn.ALL_READY)


def test_lint_refuses_the_tables_that_break_the_waiting_rule() -> None:
    refused = {name for name, variant in VARIANTS.items() if variant.lint}
    assert {
        "failure-message-only",
        "no-start-deadline",
        "readiness-blind-to-death",
        "readiness-blind-to-cancel",
        "unreachable-grace",
    } <= refused
    table = VARIANTS["no-start-deadline"].table
    assert table is not None
    with pytest.raises(TableError, match="no way out on deadline"):
        table.but(rows=table.rows)
