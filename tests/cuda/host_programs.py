# SPDX-License-Identifier: Apache-2.0
"""CUDA programs that the host's compiler makes, without nvcc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import HEAD
from wire_client import container

from manyscale.cuda.program import library_folder

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
