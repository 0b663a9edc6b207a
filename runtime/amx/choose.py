"""The data type to compute in: facts in, choice and reason out. Pure.

Theory of operation. bfloat16 halves the bytes of a weight, which tempts one to choose it everywhere. But without an
instruction that multiplies it, it is emulated, and was measured 5 times slower than float32 with AVX-512 and 8 times
slower with AVX2 (512³ product, one thread: 30 against 153 GFLOP/s, and 7 against 62). So bfloat16 is chosen only where
all witnesses agree that it is native: the processor's flag; for AMX the kernel's offer of tiles; and torch, when it was
asked. torch's `_is_mkldnn_bf16_supported` is no witness: it is True on any AVX-512.
"""

from dataclasses import dataclass

from .facts import CpuFacts


@dataclass(frozen=True, slots=True)
class Choice:
    """What to compute in."""

    dtype: str
    """"bfloat16" or "float32", the name of a torch data type."""
    expects: str | None
    """The instruction set that makes it fast, "amx" or "avx512_bf16"; None for float32. A hope, until `ran` says so."""
    reason: str
    """One sentence."""


def _torch_denies(facts: CpuFacts, *names: str) -> bool:
    known = facts.torch_capabilities
    return known is not None and not all(known.get(name, False) for name in names)


def _has_amx(facts: CpuFacts) -> bool:
    return {"amx_tile", "amx_bf16"} <= set(facts.flags)


def amx_sentence(facts: CpuFacts) -> str:
    """One sentence on whether AMX can be used for bfloat16, and if not, who stands in the way."""
    if facts.architecture != "x86_64":
        return f"No AMX: it is an x86-64 extension, and this is {facts.architecture}."
    if not _has_amx(facts):
        hidden = " (or the hypervisor hides it)" if "hypervisor" in facts.flags else ""
        return f"No AMX: the processor does not show amx_tile and amx_bf16{hidden}."
    if facts.tiles != "offered":
        return f"AMX cannot be used: the processor has it, but the kernel says of the tiles: {facts.tiles}."
    if _torch_denies(facts, "amx_tile", "amx_bf16"):
        return f"AMX cannot be used: processor and kernel offer it, but torch {facts.torch_version} does not see it."
    return "AMX can be used for bfloat16: the processor has it and the kernel offers its tiles."


def choose(facts: CpuFacts) -> Choice:
    """The data type that is fastest on these facts among those that are correct. Raises nothing."""
    if (
        facts.architecture == "x86_64"
        and _has_amx(facts)
        and facts.tiles == "offered"
        and not _torch_denies(facts, "amx_tile", "amx_bf16")
    ):
        reason = "bfloat16, because the processor multiplies it in AMX tiles and the kernel offers them."
        return Choice("bfloat16", "amx", reason)
    if "avx512_bf16" in facts.flags and not _torch_denies(facts, "avx512_bf16"):
        reason = (
            "bfloat16, because the processor multiplies it natively with avx512_bf16 (AMX cannot be used)."
        )
        return Choice("bfloat16", "avx512_bf16", reason)
    return Choice(
        "float32",
        None,
        "float32, because neither AMX nor avx512_bf16 can be used here, "
        "and emulated bfloat16 was measured 5 to 8 times slower.",
    )
