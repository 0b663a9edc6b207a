"""What oneDNN and MKL print about the kernels they run, as data. Pure.

Theory of operation. With verbose on, oneDNN prints a line for every primitive it executes:

    onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx10_1_512_amx,undef,src:bf16::blocked:ab::f0 ...

The fields before `exec` differ between versions (`v1`, `primitive`, a time stamp), so fields are counted from `exec`:
engine, primitive, implementation. Lines of creation and dispatch name implementations that were *considered*, AMX
among them, and lines of `reorder` only shuffle bytes; neither says what multiplied. MKL prints one line a BLAS call:

    MKL_VERBOSE SGEMM(T,N,64,64,64,...) 7.94ms CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2
"""

import re
from dataclasses import dataclass

_MULTIPLIES = frozenset({"matmul", "inner_product", "gemm_api", "brgemm", "convolution"})
_MKL = re.compile(r"^MKL_VERBOSE (?P<routine>[A-Za-z0-9_]+)\(")
# Most telling first: a name may hold several ("avx10_1_512_amx" is AMX; "avx512_core_bf16" is more than AVX-512).
_ISAS = (
    ("amx", "amx"),
    ("avx512_core_bf16", "avx512_bf16"),
    ("avx512_core_fp16", "avx512_fp16"),
    ("avx512_core_vnni", "avx512_vnni"),
    ("avx10", "avx10"),
    ("avx512", "avx512"),
    ("avx2_vnni", "avx_vnni"),
    ("avx2", "avx2"),
    ("sse41", "sse41"),
    ("sve", "sve"),
    ("acl", "acl"),
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel that a library says it ran."""

    library: str
    """"oneDNN" or "MKL"."""
    primitive: str
    """oneDNN's primitive (matmul, reorder, ...) or MKL's routine (SGEMM)."""
    implementation: str
    """oneDNN's implementation name; empty where it gives none, and for MKL."""

    @property
    def multiplies(self) -> bool:
        """Whether this kernel does arithmetic on matrices, rather than moving bytes."""
        return self.library == "MKL" or self.primitive in _MULTIPLIES

    @property
    def isa(self) -> str | None:
        """The instruction set in the implementation's name; None where the name carries none ("gemm:jit:bf16")."""
        return next((isa for part, isa in _ISAS if part in self.implementation), None)


def is_verbose(line: str) -> bool:
    """Whether a line of output is one that these libraries print when verbose."""
    return line.startswith(("onednn_verbose,", "dnnl_verbose,", "MKL_VERBOSE "))


def _onednn(line: str) -> Kernel | None:
    fields = line.split(",")
    if "exec" not in fields[:5]:  # beyond the head, a field is a memory descriptor or a problem
        return None
    rest = fields[fields.index("exec") + 1 :]
    return Kernel("oneDNN", rest[1], rest[2]) if len(rest) >= 3 else None


def parse(text: str) -> tuple[Kernel, ...]:
    """The kernels that were executed, in order. Lines of anything else, or cut short, are passed over."""
    kernels: list[Kernel] = []
    for line in text.splitlines():
        if line.startswith(("onednn_verbose,", "dnnl_verbose,")):
            kernel = _onednn(line)
            if kernel is not None:
                kernels.append(kernel)
        elif match := _MKL.match(line):
            kernels.append(Kernel("MKL", match["routine"], ""))
    return tuple(kernels)
