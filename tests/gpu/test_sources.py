# SPDX-License-Identifier: Apache-2.0
"""Where PTX comes from: text, files, and CUDA C++ through nvcc or NVRTC."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from manyscale import InputError, KernelError, gpu
from manyscale.gpu import cuda_compiler

pytestmark = pytest.mark.core

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry first() { ret; }
.visible .entry second() { ret; }
"""
CUDA = 'extern "C" __global__ void fill(int *out, int value) { out[threadIdx.x] = value; }\n'


@pytest.fixture(autouse=True)
def _compilers_of_their_own(monkeypatch):
    """Compilers run without the library of a sanitizer, which is loaded first here: nvcc would crash with it."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)


@pytest.fixture
def device() -> gpu.Device:
    return gpu.Device()


def test_text_and_files_are_sources(tmp_path, device):
    path = tmp_path / "kernels.ptx"
    path.write_text(PTX)
    for source in (path, str(path), PTX, PTX.encode()):
        assert device.load(source).kernels == ["first", "second"]
    assert device.load(path).name == "kernels.ptx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "<ptx>:1:1: expected '.version' at the start of the module, found the end of the text"),
        ("something\n", "<ptx>:1:1: expected '.version' at the start of the module, found 'something'"),
        (PTX + ".visible .entry broken( {", r"<ptx>:\d+:\d+: "),
    ],
)
def test_text_that_is_no_ptx(device, text, message):
    with pytest.raises(InputError, match=message):
        device.load(text)


def test_files_that_are_no_source(device, tmp_path):
    binary = tmp_path / "kernel.ptx"
    binary.write_bytes(b"PTX\0\0")
    machine = tmp_path / "kernel.cubin"
    machine.write_bytes(b"\x7fELF\0\0")
    for source, message in (
        (tmp_path / "none.ptx", "none.ptx: there is no such file"),
        (tmp_path, "this is a folder"),
        (binary, "kernel.ptx: this is not text; give a file with PTX, or CUDA C\\+\\+ named .cu"),
        (machine, "kernel.cubin: this is no cubin"),
    ):
        with pytest.raises(InputError, match=message):
            device.load(source)


@pytest.mark.parametrize("kind", ["file", "text"])
def test_cuda_without_a_compiler_names_what_to_install(device, tmp_path, monkeypatch, kind):
    path = tmp_path / "fill.cu"
    path.write_text(CUDA)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cuda_compiler, "_find_nvrtc", lambda: None)
    with pytest.raises(InputError) as caught:
        device.load(path if kind == "file" else CUDA)
    assert str(caught.value) == (
        f"{'fill' if kind == 'file' else 'source'}.cu: this is CUDA C++; "
        "pip install 'manyscale[cuda]' brings a compiler (NVRTC), or put nvcc on the PATH"
    )


def test_a_target_that_is_none(device):
    with pytest.raises(InputError, match=r"source\.cu: 'ampere' is not a target; write it like sm_80"):
        device.load(CUDA, target="ampere")


# A stand-in for nvcc, so that what is asked of it and what is made of its answers is tested where it is missing.
NVCC = """#!{python}
import pathlib, sys
arguments = sys.argv[1:]
if "-arch=compute_75" in arguments:
    sys.exit("nvcc fatal   : Unsupported gpu architecture 'compute_75'")
text = pathlib.Path(arguments[-1]).read_text()
if "#error" in text:
    sys.exit(arguments[-1] + '(1): error: #error directive')
out = arguments[arguments.index("-o") + 1]
ptx = pathlib.Path({ptx!r}).read_text().replace("sm_80", "sm_" + arguments[1].partition("_")[2])
file = f'.file 1 "{{pathlib.Path(arguments[-1]).resolve()}}"'
pathlib.Path(out).write_text(ptx + file)
"""


@pytest.fixture
def nvcc(tmp_path, monkeypatch) -> Path:
    """A folder in which the stand-in is the only program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "compiled.ptx").write_text(PTX)
    command = folder / "nvcc"
    command.write_text(NVCC.format(python=sys.executable, ptx=str(tmp_path / "compiled.ptx")))
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(cuda_compiler, "_find_nvrtc", lambda: None)
    return tmp_path


def test_nvcc_compiles_for_the_target(nvcc):
    source = nvcc / "kernels.cu"
    source.write_text(CUDA)
    parsed = gpu.parse(source)
    assert (parsed.name, parsed.target, parsed.kernels) == ("kernels.ptx", "sm_80", ["first", "second"])
    assert gpu.parse(source, target="sm_90").target == "sm_90"
    assert gpu.parse(CUDA).name == "source.ptx"
    assert sorted(path.name for path in nvcc.iterdir()) == ["bin", "compiled.ptx", "kernels.cu"]


def test_what_does_not_compile_has_the_messages_of_the_compiler(nvcc):
    source = nvcc / "wrong.cu"
    source.write_text("#error\n")
    with pytest.raises(InputError) as caught:
        gpu.parse(source)
    assert str(caught.value) == "wrong.cu does not compile:\nwrong.cu(1): error: #error directive"


def test_a_target_that_nvcc_does_not_know(nvcc):
    with pytest.raises(InputError) as caught:
        gpu.parse(CUDA, target="sm_75")
    assert str(caught.value) == (
        "source.cu: nvcc cannot compile it for compute_75:\n"
        "nvcc fatal   : Unsupported gpu architecture 'compute_75'\n"
        "pip install 'manyscale[cuda]' brings a compiler with other targets (NVRTC)"
    )


# The compilers themselves, where they are.


@pytest.fixture(params=["nvcc", "NVRTC"])
def compiler(request, monkeypatch) -> str:
    """One compiler, alone."""
    if request.param == "nvcc":
        if shutil.which("nvcc") is None:
            pytest.skip("there is no nvcc")
        monkeypatch.setattr(cuda_compiler, "_find_nvrtc", lambda: None)
    else:
        if cuda_compiler._find_nvrtc() is None:
            pytest.skip("there is no NVRTC: pip install 'manyscale[cuda]'")
        monkeypatch.setenv("PATH", "")
    return request.param


def test_cuda_is_compiled_and_runs(device, compiler):
    out = device.zeros(32, np.int32)
    module = device.load(CUDA, target="sm_90")
    assert gpu.parse(CUDA, target="sm_90").target == "sm_90"
    module["fill"][1, 32](out, 7)
    assert out.numpy().tolist() == [7] * 32


def test_a_fault_names_the_line_of_the_source(device, compiler):
    with pytest.raises(KernelError, match=r"\n  at source.ptx:\d+ \(source.cu:1\): st.global.u32$"):
        device.load(CUDA)["fill"][1, 32](0, 7)


def test_headers_are_found(device, compiler, tmp_path):
    """Those of the toolkit, the usual ones of the host, and those beside the file."""
    (tmp_path / "own.cuh").write_text("#pragma once\n__device__ inline int own() { return 5; }\n")
    source = tmp_path / "headers.cu"
    source.write_text("""
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <assert.h>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <math.h>
#include <stdint.h>
#include <type_traits>
#include <cuda/std/array>
#include <own.cuh>
#include "own.cuh"
extern "C" __global__ void use(int32_t *out, float x) {
  assert(out != nullptr);
  cooperative_groups::this_thread_block().sync();
  static_assert(std::is_same<std::uint8_t, uint8_t>::value, "");
  out[0] = own() + int(sqrtf(x)) + int(__half2float(__float2half(x)));
  out[1] = std::numeric_limits<int>::digits;
}
""")
    out = device.zeros(2, np.int32)
    device.load(source)["use"][1, 1](out, 4.0)
    assert out.numpy().tolist() == [5 + 2 + 4, 31]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["headers.cu", "own.cuh"]


def test_mistakes_are_shown_without_folders(compiler, tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text("__global__ void f(int *p) { *p = undeclared; }\n")
    with pytest.raises(
        InputError, match=r'^wrong.cu does not compile:\nwrong.cu\(1\): error: identifier "undeclared"'
    ) as caught:
        gpu.parse(source)
    assert str(tmp_path) not in str(caught.value)


def test_a_target_that_the_compiler_does_not_know(compiler):
    with pytest.raises(InputError, match=f"source.cu: {compiler} cannot compile it for compute_20"):
        gpu.parse(CUDA, target="sm_20")


def test_nvrtc_compiles_what_nvcc_cannot(compiler, nvcc, monkeypatch):
    """The stand-in for nvcc does not support sm_75."""
    if compiler != "NVRTC":
        pytest.skip("about NVRTC")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(nvcc / "bin"))
    assert gpu.parse(CUDA, target="sm_75").target == "sm_75"
    assert gpu.parse(CUDA, target="sm_75").kernels == ["fill"]
