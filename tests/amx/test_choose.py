"""The choice of data type, on recorded and constructed facts of several machines."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from procession.runtime.amx import CpuFacts, choose
from procession.runtime.amx.choose import amx_sentence

RECORDED = Path(__file__).parent / "recorded"


def load(name: str) -> CpuFacts:
    return CpuFacts.from_json(json.dumps(json.loads((RECORDED / f"{name}.json").read_text())["facts"]))


AMX = load("intel-xeon-8488c-amx")
HIDDEN = load("intel-model-207-amx-hidden")
ZEN3 = load("amd-epyc-zen3-kvm")


def without_torch(facts: CpuFacts) -> CpuFacts:
    return replace(facts, torch_version=None, torch_capabilities=None)


def torch_without(facts: CpuFacts, *names: str) -> CpuFacts:
    known = dict(facts.torch_capabilities or {})
    return replace(facts, torch_capabilities=known | dict.fromkeys(names, False))


def flags_without(facts: CpuFacts, *names: str) -> CpuFacts:
    return replace(facts, flags=tuple(flag for flag in facts.flags if flag not in names))


def test_every_file_says_whether_it_was_recorded() -> None:
    files = sorted(RECORDED.glob("*.json"))
    assert len(files) == 3
    for file in files:
        assert json.loads(file.read_text())["origin"].startswith(("Recorded ", "CONSTRUCTED, not recorded"))


@pytest.mark.parametrize("facts", [AMX, without_torch(AMX)], ids=["torch agrees", "torch was not asked"])
def test_amx_where_all_witnesses_agree(facts: CpuFacts) -> None:
    choice = choose(facts)
    assert (choice.dtype, choice.expects) == ("bfloat16", "amx")
    assert amx_sentence(facts).startswith("AMX can be used")


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (replace(AMX, xcomp_mask=0x2E7), "not offered"),
        (replace(AMX, xcomp_mask=0x202E7), "not offered"),
        (replace(AMX, xcomp_mask=None, xcomp_error="kernel too old"), "kernel too old"),
        (replace(AMX, xcomp_mask=None, xcomp_error="EPERM"), "EPERM"),
        (torch_without(AMX, "amx_bf16"), "torch 2.13.0+cpu does not see it"),
        (flags_without(AMX, "amx_bf16"), "does not show"),
        (flags_without(AMX, "amx_tile"), "hypervisor hides it"),
    ],
)
def test_one_witness_against_amx_is_enough_and_is_named(facts: CpuFacts, says: str) -> None:
    choice = choose(facts)
    assert (choice.dtype, choice.expects) == ("bfloat16", "avx512_bf16"), "the next best on this machine"
    assert says in amx_sentence(facts)


@pytest.mark.parametrize(
    "facts",
    [
        HIDDEN,
        ZEN3,
        without_torch(HIDDEN),
        flags_without(AMX, "amx_bf16", "avx512_bf16"),
        torch_without(AMX, "amx_bf16", "avx512_bf16"),
        replace(
            AMX, architecture="aarch64", flags=("asimd", "bf16"), xcomp_mask=None, xcomp_error="not x86-64"
        ),
    ],
)
def test_float32_where_bfloat16_would_be_emulated(facts: CpuFacts) -> None:
    choice = choose(facts)
    assert (choice.dtype, choice.expects) == ("float32", None)
    assert "times slower" in choice.reason


def test_reasons_are_one_sentence_that_begins_with_the_choice() -> None:
    for facts in (AMX, HIDDEN, ZEN3, flags_without(AMX, "amx_tile")):
        choice = choose(facts)
        assert choice.reason.startswith(f"{choice.dtype}, because ")
        assert choice.reason.endswith(".")
        assert "\n" not in choice.reason
