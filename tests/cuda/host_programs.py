# SPDX-License-Identifier: Apache-2.0
"""CUDA programs that the host's compiler makes, without nvcc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import HEAD
from wire_client import container

from manyscale.cuda.loader import library_folder

FIXTURES = Path(__file__).parent / "fixtures"
EMPTY = (HEAD + ".visible .entry empty() { ret; }\n").encode()
SPIN = (
    HEAD
    + """
.visible .entry empty(.param .u32 rounds) { ret; }
.visible .entry spin(.param .u32 rounds) {
  .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u32 %r1, [rounds]; mov.u32 %r2, 0;
again:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra again;
  ret;
}
"""
).encode()

_INDEX = """
  .reg .b32 %r<6>; .reg .b64 %rd<5>; .reg .f32 %f<3>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd1, %r4, 4;"""
SUMS = (
    f"""{HEAD}
.visible .entry add(.param .u64 x, .param .u64 y) {{{_INDEX}
  ld.param.u64 %rd2, [x]; ld.param.u64 %rd3, [y]; add.u64 %rd2, %rd2, %rd1; add.u64 %rd3, %rd3, %rd1;
  ld.global.f32 %f1, [%rd2]; ld.global.f32 %f2, [%rd3];
  add.f32 %f2, %f1, %f2; st.global.f32 [%rd3], %f2; ret;
}}
.visible .entry twice(.param .u64 y) {{{_INDEX}
  ld.param.u64 %rd3, [y]; add.u64 %rd3, %rd3, %rd1;
  ld.global.f32 %f1, [%rd3]; add.f32 %f1, %f1, %f1;
{"  add.f32 %f1, %f1, 0f00000000;" * 512}
  st.global.f32 [%rd3], %f1; ret;
}}
"""
).encode()


def compiled(folder: Path, source: str, data: bytes, name: str, *libraries: str) -> Path:
    """A program with a fat binary."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("programs are compiled by g++")
    numbers = ",".join(map(str, data))
    section = '__attribute__((section(".nv_fatbin"), used)) ' if not libraries else ""
    (folder / "container.h").write_text(
        f"{section}alignas(8) static const unsigned char container[] = {{{numbers}}};\n"
    )
    (folder / f"{name}.cpp").write_text(source)
    command = [compiler, f"-I{folder}", str(folder / f"{name}.cpp"), "-o", str(folder / name), *libraries]
    subprocess.run(command, check=True)
    return folder / name


def lives_program(folder: Path) -> Path:
    """`fixtures/lives.cpp`: a program that ends in every way there is."""
    runtime = str(library_folder() / "libcudart.so.13")
    source = (FIXTURES / "lives.cpp").read_text()
    return compiled(folder, source, container((SPIN, 70)), "lives", "-std=c++17", "-pthread", runtime)


def sums_program(folder: Path) -> Path:
    """`fixtures/sums.cpp`: a program with two kernels, whose output needs all launches."""
    runtime = str(library_folder() / "libcudart.so.13")
    source = (FIXTURES / "sums.cpp").read_text()
    return compiled(folder, source, container((SUMS, 70)), "sums", runtime)
