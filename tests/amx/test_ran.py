"""What ran: the libraries' lines as data, the capture of descriptor 1, and real products on this machine."""

import os
import subprocess
import sys

import pytest

from procession.runtime.amx import Ran, choose, permit, probe, probe_apart, read_facts
from procession.runtime.amx.capture import captured
from procession.runtime.amx.ran import conclude
from procession.runtime.amx.verbose import Kernel, parse

# Lines as users posted them in oneDNN's tracker (issue numbers beside them), and as this project saw them.
AMX_V1 = (  # 3868, Xeon Platinum 8592+
    "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx10_1_512_amx,undef,src:bf16:a:blocked:ab::f0 "
    "wei:bf16:a:blocked:BA16a32b2a::f0 dst:bf16:a:blocked:ab::f0,,,4x14336:14336x4096,0.0820312\n"
)
F16_V1 = AMX_V1.replace("avx10_1_512_amx", "avx10_1_512").replace("bf16", "f16")  # 3868
BF16_LIMITED = AMX_V1.replace("avx10_1_512_amx", "avx512_core_bf16")  # 3868, under ONEDNN_MAX_CPU_ISA
F32_V0 = (  # 1549, oneDNN 3.0: no "v1", no "primitive"
    "onednn_verbose,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support\n"
    "onednn_verbose,exec,cpu,reorder,brgemm_matmul_matrix_B_reorder_t,undef,src_f32::blocked:ab:f0 "
    "dst_f32::blocked:BA16a64b:f0,,,1024x1024,0.10498\n"
    "onednn_verbose,exec,cpu,matmul,brg:avx512_core,undef,src_f32::blocked:ab:f0 wei_f32::blocked:BA16a64b:f0 "
    "dst_f32::blocked:ab:f0,,,1024x1024:1024x1024:1024x1024,2.64697\n"
)
CONSIDERED = (  # 1992: AMX in the header and among the candidates, and nothing executed
    "onednn_verbose,info,cpu,isa:Intel AVX-512 with float16, Intel DL Boost and bfloat16 support and Intel AMX with "
    "bfloat16 and 8-bit integer support\n"
    "onednn_verbose,create:dispatch,matmul,cpu,matmul,brg:avx512_core_amx_fp16,undef,src_bf16:a:any:any::f0 "
    "wei_bf16:a:any:any::f0 dst_bf16:a:any:any::f0,,,4096x5120:5120x15360,unsupported isa,brgemm_matmul.cpp:101\n"
)
EMULATED = (
    "onednn_verbose,v1,primitive,exec,cpu,matmul,gemm:jit:bf16,undef,src:bf16::blocked:ab::f0,,,64x64,0.1\n"
)
NAMELESS = "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src:s8::blocked:ab::f0,,,64x64:64x64,0.1\n"
MKL = (
    "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture Intel(R) Architecture "
    "processors, Lnx 2.45GHz lp64 gnu_thread\n"
    "MKL_VERBOSE SGEMM(T,N,64,64,64,0x7ffd38269610,0x5654,64,0x5654,64,0x7ffd,0x5654,64) 7.94ms CNR:OFF NThr:2\n"
)


@pytest.mark.parametrize(
    ("printed", "isa", "implementation"),
    [
        (AMX_V1, "amx", "brg_matmul:avx10_1_512_amx"),
        (AMX_V1.replace("brg_matmul:avx10_1_512_amx", "brg:avx512_core_amx"), "amx", "brg:avx512_core_amx"),
        (F16_V1, "avx10", "brg_matmul:avx10_1_512"),
        (BF16_LIMITED, "avx512_bf16", "brg_matmul:avx512_core_bf16"),
        (F32_V0, "avx512", "brg:avx512_core"),
        (EMULATED, None, "gemm:jit:bf16"),
        (NAMELESS, None, ""),
        (AMX_V1.replace("v1,primitive", "v1,1755.25,primitive"), "amx", "brg_matmul:avx10_1_512_amx"),
    ],
)
def test_the_instruction_set_is_read_from_what_was_executed(
    printed: str, isa: str | None, implementation: str
) -> None:
    ran = conclude("bfloat16", printed, "AVX512")
    assert ran.isa == isa
    assert [kernel.implementation for kernel in ran.kernels] == [implementation]


def test_amx_in_a_header_or_among_candidates_is_not_amx_that_ran() -> None:
    assert parse(CONSIDERED) == ()
    assert conclude("bfloat16", CONSIDERED + EMULATED, "AVX512").isa is None


def test_a_reorder_does_not_say_what_multiplied() -> None:
    reorder = AMX_V1.replace("cpu,matmul,", "cpu,reorder,")
    assert conclude("bfloat16", reorder + EMULATED, "AVX512").isa is None


def test_lines_cut_short_prove_nothing() -> None:
    for cut in range(AMX_V1.index("_amx")):
        assert conclude("bfloat16", AMX_V1[:cut], "AVX512").isa != "amx"


def test_a_word_of_the_lines_elsewhere_proves_nothing() -> None:
    assert parse("the exec,cpu,matmul,amx said\nMKL_VERBOSE nothing\n") == ()


def test_sentences_say_who_multiplied() -> None:
    said = conclude("float32", MKL, "AVX2")
    assert said.kernels == (Kernel("MKL", "SGEMM", ""),)
    assert said.sentence == "f32 by MKL (oneDNN ran nothing); ATen's level is AVX2"
    assert conclude("bfloat16", AMX_V1, "AVX512").sentence == (
        "bf16 by oneDNN's brg_matmul:avx10_1_512_amx: amx; ATen's level is AVX512"
    )
    assert "the name carries no instruction set" in conclude("bfloat16", EMULATED, "AVX512").sentence
    assert "neither oneDNN nor MKL ran" in conclude("bfloat16", "", "AVX2").sentence


def test_json_round_trip() -> None:
    for printed in (AMX_V1, MKL, ""):
        ran = conclude("bfloat16", printed, "AVX512")
        assert Ran.from_json(ran.to_json()) == ran


def test_capture_takes_c_output_and_gives_descriptor_1_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = os.fstat(1)
    assert captured(lambda: os.write(1, b"from C\n")) == "from C\n"
    print("after", flush=True)
    assert os.path.samestat(before, os.fstat(1))
    assert capfd.readouterr().out == "after\n"


def test_capture_gives_descriptor_1_back_after_an_exception() -> None:
    before = os.fstat(1)
    with pytest.raises(ZeroDivisionError):
        captured(lambda: 1 // 0)
    assert os.path.samestat(before, os.fstat(1))


def test_capture_works_with_descriptor_1_closed() -> None:
    code = (
        "import os, sys; from procession.runtime.amx.capture import captured\n"
        "os.close(1); text = captured(lambda: os.write(1, b'x'))\n"
        "try: os.fstat(1); text += ' left open'\n"
        "except OSError: pass\n"
        "sys.stderr.write(text); sys.stderr.flush(); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == "x"


def test_a_real_product_claims_nothing_that_did_not_run(capfd: pytest.CaptureFixture[str]) -> None:
    facts = read_facts(with_torch=True)
    for dtype in ("float32", "bfloat16"):
        ran = probe(dtype)
        assert ran.dtype == dtype
        assert ran.aten_level in ran.sentence
        if facts.tiles != "offered":
            assert ran.isa != "amx"
    assert capfd.readouterr().out == "", "the libraries' lines do not reach the user"


def test_verbose_mode_stays_on_for_a_user_who_asked_for_it() -> None:
    code = "from procession.runtime.amx import probe; import torch; probe(); x = torch.ones(64, 64); x @ x"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MKL_VERBOSE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    if not probe().kernels:
        pytest.skip("this torch is built without MKL, so float32 leaves no line")
    assert "MKL_VERBOSE SGEMM(" in done.stdout


def test_an_unknown_data_type_is_refused() -> None:
    for name in ("float33", "nn", "Tensor"):
        with pytest.raises(ValueError, match="names no torch data type"):
            probe(name)


def test_the_probe_in_a_process_of_its_own() -> None:
    assert probe_apart("float32") == probe("float32")
    with pytest.raises(RuntimeError, match="names no torch data type"):
        probe_apart("float33")


@pytest.mark.amx
def test_amx_really_runs_where_it_is_chosen() -> None:
    facts = read_facts(with_torch=True)
    if choose(facts).expects != "amx":
        pytest.skip("no AMX on this machine: " + facts.tiles)
    assert permit() == "granted"
    assert probe("bfloat16").isa == "amx"
