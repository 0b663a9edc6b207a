"""The kernel's word on AMX tiles: what it offers, and the permission a process must ask for.

Theory of operation. Tile registers are 8 KiB of state a thread, so Linux (5.16 and later, x86-64) gives them only to
a process that asks. `arch_prctl(ARCH_GET_XCOMP_SUPP)` answers a mask of the state components that processor,
hypervisor and kernel offer together; asking is free. `arch_prctl(ARCH_REQ_XCOMP_PERM, 18)` asks for the tiles; the
permission holds for the whole process, is inherited over fork and is lost at exec. oneDNN asks by itself on its first
use of a tile, but then a refusal only shows as a slower kernel; asking early gives the refusal a name.
"""

import ctypes
import errno
import platform
import sys

_SYS_ARCH_PRCTL = 158  # x86-64
_ARCH_GET_XCOMP_SUPP = 0x1021
_ARCH_REQ_XCOMP_PERM = 0x1023
TILE_CONFIG = 17
"""Bit of the tile configuration in the mask of state components."""
TILE_DATA = 18
"""Bit of the tile registers in that mask, and the component that `permit` asks for."""

NOT_X86_64 = "not x86-64"
TOO_OLD = "kernel too old"
NOT_OFFERED = "not offered"
GRANTED = "granted"


def _arch_prctl(code: int, argument: "ctypes.c_uint64 | int") -> str | None:
    """Make the call; None when it succeeded, else the name of its errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    where = ctypes.c_long(argument) if isinstance(argument, int) else ctypes.byref(argument)
    if libc.syscall(ctypes.c_long(_SYS_ARCH_PRCTL), ctypes.c_long(code), where) == 0:
        return None
    number = ctypes.get_errno()
    return errno.errorcode.get(number, str(number))


def supported_components() -> tuple[int | None, str | None]:
    """Ask which extended state components the kernel offers: (mask, None), or (None, why there is no answer).

    The reason is "not x86-64", "kernel too old" (before 5.16), or the name of an errno, such as EPERM under a seccomp
    filter. Changes nothing; raises nothing.
    """
    if platform.machine() != "x86_64" or sys.maxsize < 2**32:
        return None, NOT_X86_64
    mask = ctypes.c_uint64()
    error = _arch_prctl(_ARCH_GET_XCOMP_SUPP, mask)
    if error is None:
        return mask.value, None
    return None, TOO_OLD if error == "EINVAL" else error


def offers_tiles(mask: int) -> bool:
    """Whether a mask of state components has the tile configuration and the tile registers."""
    return bool(mask >> TILE_CONFIG & 1 and mask >> TILE_DATA & 1)


def permit() -> str:
    """Ask the kernel to let this process use AMX tiles, and say what it answered. Changes the process.

    "granted"; "not offered" (by processor, hypervisor or kernel); "kernel too old"; "not x86-64"; or the name of an
    errno: ENOSPC means that some thread's alternate signal stack is too small for tile state (faulthandler installs
    such a stack), EPERM a seccomp filter. To be called early in each worker, before threads exist; asking twice does
    no harm. Raises nothing: without tiles everything still computes, only slower.
    """
    mask, error = supported_components()
    if mask is None:
        return error or NOT_OFFERED
    if not offers_tiles(mask):
        return NOT_OFFERED
    return _arch_prctl(_ARCH_REQ_XCOMP_PERM, TILE_DATA) or GRANTED
