"""Which instruction set a matrix product really used: run one, and read the libraries' own report.

Theory of operation. `probe` multiplies two small matrices with oneDNN's and MKL's verbose mode on, catches what they
print (`capture`), and reads it (`verbose`). "amx" is said only when it is in the name of the implementation that
multiplied. float32 usually goes to MKL, whose line names the routine and no instruction set; where neither library
printed, ATen's own code ran, at the level that torch names. Nothing is concluded from the processor.

The product starts torch's threads, and a process must not fork after that: `probe` is for workers, `probe_apart`,
which takes a fresh process and two seconds, for everybody else.
"""

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass

from .capture import captured
from .verbose import Kernel, is_verbose, parse

_SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a small matrix product ran on."""

    dtype: str
    """The name of the torch data type."""
    isa: str | None
    """The instruction set in the name of oneDNN's implementation, such as "amx"; None where no name carries one."""
    kernels: tuple[Kernel, ...]
    """What multiplied, as the libraries report it; empty when neither oneDNN nor MKL ran."""
    aten_level: str
    """The level of ATen's own loops, such as "AVX2" (`torch.backends.cpu.get_cpu_capability`)."""

    @property
    def sentence(self) -> str:
        """The finding in words, such as "f32 by MKL (oneDNN ran nothing); ATen's level is AVX2"."""
        short = _SHORT.get(self.dtype, self.dtype)
        onednn = [k for k in self.kernels if k.library == "oneDNN"]
        if onednn:
            names = ", ".join(dict.fromkeys(k.implementation or k.primitive for k in onednn))
            isa = self.isa or "the name carries no instruction set"
            said = f"{short} by oneDNN's {names}: {isa}"
        elif self.kernels:
            said = f"{short} by MKL (oneDNN ran nothing)"
        else:
            said = f"{short} by ATen itself (neither oneDNN nor MKL ran)"
        return f"{said}; ATen's level is {self.aten_level}"

    def to_json(self) -> str:
        """One line of JSON that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Ran":
        """Read back what `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        plain = json.loads(text)
        return cls(**(plain | {"kernels": tuple(Kernel(**kernel) for kernel in plain["kernels"])}))


def conclude(dtype: str, printed: str, aten_level: str) -> Ran:
    """What follows from the text the libraries printed during one product. Pure."""
    multiplied = tuple(kernel for kernel in parse(printed) if kernel.multiplies)
    isas = [kernel.isa for kernel in multiplied if kernel.isa]
    return Ran(dtype, "amx" if "amx" in isas else next(iter(isas), None), multiplied, aten_level)


def _already_on(*variables: str) -> bool:
    return any(os.environ.get(name, "0") not in ("", "0") for name in variables)


def probe(dtype: str = "float32", size: int = 64) -> Ran:
    """Multiply two `size` × `size` matrices of `dtype` in this process and say what ran. Milliseconds after torch.

    Swaps descriptor 1 for the duration (see `capture`); call it where no other thread prints and no fork follows.
    What others printed meanwhile is passed on. Raises ImportError without torch, ValueError for a `dtype` that names
    no torch data type.
    """
    import torch

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"{dtype!r} names no torch data type")
    matrix = torch.ones(size, size, dtype=kind)
    # These contexts end with verbose *off*; a user who turned it on by environment keeps it on.
    onednn: AbstractContextManager[object] = nullcontext()
    if torch.backends.mkldnn.is_available() and not _already_on("ONEDNN_VERBOSE", "DNNL_VERBOSE"):
        onednn = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)
    mkl: AbstractContextManager[object] = nullcontext()
    if torch.backends.mkl.is_available() and not _already_on("MKL_VERBOSE"):
        mkl = torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON)

    def product() -> None:
        with torch.no_grad(), onednn, mkl:
            torch.nn.functional.linear(matrix, matrix)

    printed = captured(product)
    foreign = "".join(line for line in printed.splitlines(keepends=True) if not is_verbose(line))
    if foreign:
        os.write(1, foreign.encode())
    return conclude(dtype, printed, torch.backends.cpu.get_cpu_capability())


def probe_apart(dtype: str = "float32", timeout: float = 60.0) -> Ran:
    """`probe` in a process of its own, within `timeout` seconds; takes about two, the import of torch.

    Raises RuntimeError with the process's last words when it fails, and subprocess.TimeoutExpired.
    """
    command = [sys.executable, "-m", __package__, dtype]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise RuntimeError(f"the probe for {dtype} exited with {done.returncode}: {last}")
    return Ran.from_json(lines[-1])
