# SPDX-License-Identifier: Apache-2.0
"""Libraries are scanned for SASS that is not executed, by architecture, whatever their images are packed with."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import zstandard
from kernels import HEAD
from typer.testing import CliRunner

from manyscale.cli.app import app
from manyscale.cuda.fatbin import MAGIC
from manyscale.cuda.library_scan import ArchitectureScan, is_library, scan_library
from manyscale.gpu.assembler import assemble, find_assembler

pytestmark = [
    pytest.mark.skipif(find_assembler() is None, reason="there is no ptxas"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="libraries are linked by g++"),
]

PTX = (
    HEAD
    + """
.visible .entry first(.param .u64 to) {
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;
}
.visible .entry second(.param .u64 to) {
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.y; st.global.u32 [%rd1], %r1; ret;
}
"""
).encode()
NOP = 0x918  # its opcode and form
NOP_REST = bytes.fromhex("00000000000000000000 00c00f00")  # the bytes after opcode and guard
NOTHING = 0xFFF  # no instruction
ZSTD, LZ4 = 0x8000, 0x2000


def literals(data: bytes) -> bytes:
    """A block of LZ4 that is one run of literals."""
    rest = len(data) - 15
    return bytes([0xF0]) + b"\xff" * (rest // 255) + bytes([rest % 255]) + data


def entry(cubin: bytes, architecture: int, packing: int) -> bytes:
    packed = {0: cubin, ZSTD: zstandard.ZstdCompressor().compress(cubin), LZ4: literals(cubin)}[packing]
    padded = packed + b"\0" * (-len(packed) % 8)
    compressed, unpacked = (len(packed), len(cubin)) if packing else (0, 0)
    fields = (2, 0x101, 64, len(padded), compressed, 0, 0, 9, architecture, 0, 0, 0x11 | packing, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + padded


def library(folder: Path, section: str, *entries: bytes) -> Path:
    """A shared library with fat binaries, one for each entry, in a section."""
    data = b"".join(struct.pack("<IHHQ", MAGIC, 1, 16, len(one)) + one + bytes(8) for one in entries)
    (folder / "code").write_bytes(data)
    (folder / "code.s").write_text(f'.section {section}, "a"\n.balign 8\n.incbin "{folder}/code"\n')
    path = folder / "libkernels.so.1"
    subprocess.run(["g++", "-shared", "-nostdlib", str(folder / "code.s"), "-o", str(path)], check=True)
    return path


def broken(cubin: bytes, times: int) -> bytes:
    """The cubin with so many of its NOPs, the last ones of the file, made no instructions."""
    made = bytearray(cubin)
    at = len(made) // 16 * 16
    while times:
        at -= 16
        word = int.from_bytes(made[at : at + 2], "little")
        if word & 0xFFF == NOP and made[at + 2 : at + 16] == NOP_REST:
            made[at : at + 2] = (word & 0xF000 | NOTHING).to_bytes(2, "little")
            times -= 1
    return bytes(made)


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return assemble(PTX, "kernels.ptx", "sm_80")


def scanned(path: Path, target: str | None = None) -> dict[str, ArchitectureScan]:
    return {scan.target: scan for scan in scan_library(path, target)}


@pytest.mark.parametrize("packing", [0, ZSTD, LZ4], ids=["plain", "zstd", "lz4"])
def test_kernels_are_counted_by_architecture(tmp_path: Path, cubin: bytes, packing: int) -> None:
    turing = assemble(PTX, "kernels.ptx", "sm_75")
    path = library(
        tmp_path, ".nv_fatbin", entry(cubin, 80, packing), entry(turing, 75, packing), entry(cubin, 120, 0)
    )
    assert is_library(path)
    scans = scanned(path)
    assert list(scans) == ["sm_75", "sm_80", "sm_120"]
    assert [(scan.kernels, scan.supported, scan.readable) for scan in scans.values()] == [
        (2, 2, True),
        (2, 2, True),
        (0, 0, False),
    ]


def test_an_instruction_that_is_not_known_is_counted_with_its_kernels(tmp_path: Path, cubin: bytes) -> None:
    path = library(tmp_path, ".nv_fatbin", entry(broken(cubin, 3), 80, 0), entry(cubin, 80, ZSTD))
    (scan,) = scan_library(path)
    assert (scan.images, scan.kernels, scan.supported) == (2, 4, 3)
    (missing,) = scan.missing
    assert missing.instruction == "opcode 0xfff"
    assert (missing.instructions, missing.kernels, missing.alone) == (3, 1, 1)
    assert missing.kernel in ("first", "second")
    assert missing.words[0] & 0xFFF == NOTHING


def test_fat_binaries_that_a_library_loads_by_itself_are_found(tmp_path: Path, cubin: bytes) -> None:
    path = library(tmp_path, ".cask_resource", entry(cubin, 80, ZSTD))
    assert scanned(path)["sm_80"].kernels == 2


def test_an_image_that_cannot_be_read_is_reported_and_the_others_are_counted(
    tmp_path: Path, cubin: bytes
) -> None:
    path = library(tmp_path, ".nv_fatbin", entry(cubin[:2000], 80, 0), entry(cubin, 80, 0))
    (scan,) = scan_library(path)
    assert scan.kernels == 2
    (error,) = scan.errors
    assert "cut off" in error
    assert not scan.is_supported


def test_the_command_prints_libraries_by_architecture(tmp_path: Path, cubin: bytes) -> None:
    path = library(tmp_path, ".nv_fatbin", entry(broken(cubin, 1), 80, 0), entry(cubin, 86, 0))
    run = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert run.exit_code == 1
    (file,) = json.loads(run.stdout)["files"]
    assert [(one["target"], one["supported"]) for one in file["architectures"]] == [
        ("sm_80", 1),
        ("sm_86", 2),
    ]
    text = CliRunner().invoke(app, ["check", str(path)]).stdout
    assert "sm_86" in text
    assert "0xfff" in text


def test_the_command_takes_one_architecture(tmp_path: Path, cubin: bytes) -> None:
    path = library(tmp_path, ".nv_fatbin", entry(broken(cubin, 1), 80, 0), entry(cubin, 86, 0))
    run = CliRunner().invoke(app, ["check", str(path), "--target", "sm_86", "--json"])
    (file,) = json.loads(run.stdout)["files"]
    assert [one["target"] for one in file["architectures"]] == ["sm_86"]
