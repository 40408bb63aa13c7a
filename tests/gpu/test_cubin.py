# SPDX-License-Identifier: Apache-2.0
"""Cubins: what they say of kernels, which lines instructions come from, and files that are broken."""

from __future__ import annotations

import contextlib
import random
import re
import struct
import subprocess
from pathlib import Path

import pytest
from sass_support import FIXTURES, needs_assembler

from manyscale import gpu
from manyscale.errors import InputError
from manyscale.gpu import assembler
from manyscale.gpu.assembler import AssemblyError, NoAssemblerError, assemble, with_line_marks
from manyscale.gpu.disassembly import Schedule, disassemble_cubin

pytestmark = pytest.mark.core

_PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 array, .param .f32 factor) {
  .reg .b64 %rd<4>;
  .reg .f32 %f<4>;
  .reg .b32 %r<4>;
  .shared .align 4 .b8 kept[256];
  .loc 1 5 0
  ld.param.u64 %rd1, [array];
  ld.param.f32 %f1, [factor];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  { // a block
  ld.global.f32 %f2, [%rd3]; mul.f32 %f3, %f2, %f1;
  }
  st.global.f32
    [%rd3], %f3;
  mov.u32 %r2, kept;
  st.shared.f32 [%r2], %f3;
  ret;
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _plain(ptx: bytes, architecture: str) -> bytes:
    """The SASS without any line marks."""
    command = assembler.find_assembler()
    assert command is not None
    messages, made = assembler._attempt(command, (f"-arch={architecture}",), ptx)
    assert made is not None, messages
    return made


@needs_assembler
@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_90"])
def test_instructions_name_their_line_of_ptx(architecture: str) -> None:
    function = gpu.disassemble(_PTX, architecture=architecture)["scale"]
    lines = {}
    for row in function.instructions:
        assert row.text is not None
        name = row.text.split()[0].split(".")[0]
        if name in ("LDG", "STG", "STS", "FMUL") and row.ptx is not None:
            lines[name] = row.ptx.line
    # Two instructions on one line, and one that goes over two.
    assert lines == {"LDG": 16, "FMUL": 16, "STG": 18, "STS": 21}
    assert function.is_kernel
    # From sm_90 on, the first 1024 bytes of a block's shared memory are the system's.
    assert function.shared_bytes == (256 if architecture != "sm_90" else 256 + 1024)


@needs_assembler
@pytest.mark.parametrize("name", ["sm_75/divergence", "sm_75/function_table", "sm_80-lineinfo/mandelbrot"])
def test_line_marks_do_not_change_the_code(name: str) -> None:
    ptx = re.sub(rb"\.version 9\.\d", b".version 8.8", (FIXTURES / f"{name}.ptx").read_bytes())
    plain = disassemble_cubin(_plain(ptx, "sm_80"), name)
    marked = disassemble_cubin(assemble(ptx, name, "sm_80"), name, ptx)
    for before, after in zip(plain.functions, marked.functions, strict=True):
        assert [row.words for row in before.instructions] == [row.words for row in after.instructions]
        assert any(row.ptx is not None for row in after.instructions)


@needs_assembler
def test_lines_of_the_source_come_through_the_ptx() -> None:
    listing = gpu.disassemble(FIXTURES / "sm_75-lineinfo" / "transpose.ptx", architecture="sm_75")
    loads = [row for row in listing["transpose"].instructions if row.text and "LDG" in row.text]
    assert loads
    for row in loads:
        assert row.ptx is not None
        assert row.ptx.text.startswith(("ld.global", "@"))
        assert row.source is not None
        assert row.source.file.endswith("transpose.cu")


@needs_assembler
def test_a_programs_own_line_table_names_source_and_ptx() -> None:
    ptx = _PTX.replace(".visible", '.file 1 "scale.cu"\n.visible')
    command = assembler.find_assembler()
    assert command is not None
    _, made = assembler._attempt(command, ("-arch=sm_80", "-lineinfo"), ptx.encode())
    assert made is not None
    rows = [row for row in disassemble_cubin(made, "own")["scale"].instructions if row.source is not None]
    assert {(row.source.file, row.source.line) for row in rows if row.source} == {("scale.cu", 5)}
    assert any(row.ptx is not None and row.ptx.text.startswith("st.global") for row in rows)


@needs_assembler
@pytest.mark.parametrize("name", ["transpose", "recursion", "gemm_tiled"])
def test_resources_are_those_the_assembler_names(name: str) -> None:
    path = FIXTURES / "sm_75" / f"{name}.ptx"
    ptx = re.sub(rb"\.version 9\.\d", b".version 8.8", path.read_bytes())
    listing = disassemble_cubin(_plain(ptx, "sm_75"), name)
    with_text = subprocess.run(
        [str(assembler.find_assembler()), "-arch=sm_75", "-v", "-o", "/dev/null", "/dev/stdin"],
        input=ptx,
        capture_output=True,
        check=True,
    ).stderr.decode()
    reported = re.findall(
        r"Compiling entry function '(\w+)'.*?Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?",
        with_text,
        re.DOTALL,
    )
    assert reported
    for kernel, registers, shared in reported:
        assert listing[kernel].registers == int(registers)
        assert listing[kernel].shared_bytes == int(shared or 0)


def test_schedules_have_their_usual_short_form() -> None:
    assert str(Schedule(4, True, None, None, (), 0)) == "B------:R-:W-:Y:S04"
    assert str(Schedule(15, False, 0, 5, (1, 3), 0)) == "B-1-3--:R5:W0:-:S15"


@needs_assembler
def test_what_was_assembled_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    first = assemble(_PTX.encode(), "scale", "sm_70")

    def fail(*_: object) -> bytes:
        raise AssertionError("it is assembled again")

    monkeypatch.setattr(assembler, "_run", fail)
    assert assemble(_PTX.encode(), "scale", "sm_70") == first
    with pytest.raises(AssertionError, match="assembled again"):
        assemble(_PTX.encode() + b"\n", "scale", "sm_75")


@needs_assembler
def test_newer_versions_and_targets_are_taken_if_they_can_be() -> None:
    newer = _PTX.replace(".version 8.0", ".version 9.9").replace("sm_70", "sm_120")
    assert gpu.disassemble(newer, architecture="sm_70").architecture == "sm_70"
    beyond = _PTX.replace("mul.f32 %f3", "tanh.approx.f32 %f3").replace("%f2, %f1", "%f2")
    with pytest.raises(AssemblyError, match=r"scale.*refuses it.*sm_70"):
        assemble(beyond.encode(), "scale", "sm_70")


def test_a_missing_assembler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "find_assembler", lambda: None)
    with pytest.raises(NoAssemblerError, match=r"scale: .*pip install nvidia-cuda-nvcc-cu12"):
        assemble(_PTX.encode(), "scale", "sm_70")
    with pytest.raises(InputError, match="sm_60 cannot be read; sm_70 to sm_90 can"):
        assemble(_PTX.encode(), "scale", "sm_60")
    with pytest.raises(InputError, match="write it like sm_80"):
        assemble(_PTX.encode(), "scale", "volta")


def test_marks_stand_before_instructions_only() -> None:
    marked = with_line_marks(_PTX.encode()).decode()
    assert marked.count(".loc") == 11
    assert '.address_size 64\n.file 1 "module.ptx"\n' in marked
    assert ".loc 1 5 0" not in marked
    # Text that is no module at all comes out whole.
    for text in (b"", b"}", b"{{{", b".loc", b".entry { .loc 1 2", b"/*", b'"', b".section .debug {"):
        assert with_line_marks(text)


@needs_assembler
def test_broken_files_are_refused() -> None:
    whole = assemble(_PTX.encode(), "scale", "sm_80")
    generator = random.Random(7)
    (table,) = struct.unpack_from("<Q", whole, 40)  # of sections, behind all of them
    for size in [*range(128), *(generator.randrange(table) for _ in range(200))]:
        with pytest.raises(InputError, match="this is no cubin"):
            disassemble_cubin(whole[:size], "cut")
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(generator.choice((1, 1, 2, 8))):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        with contextlib.suppress(InputError):
            disassemble_cubin(bytes(damaged), "damaged")


@needs_assembler
def test_sections_that_share_bytes_are_refused() -> None:
    """Thousands of sections that each claim the whole file would take memory without end."""
    whole = assemble(_PTX.encode(), "scale", "sm_80")
    (table,) = struct.unpack_from("<Q", whole, 40)
    (count,) = struct.unpack_from("<H", whole, 60)
    section = bytearray(whole[table + 64 : table + 128])
    struct.pack_into("<QQ", section, 24, 0, len(whole))
    grown = bytearray(whole)
    more = 20_000
    struct.pack_into("<Q", grown, 40, len(whole))
    struct.pack_into("<H", grown, 60, count + more)
    grown += whole[table : table + 64 * count] + bytes(section) * more
    with pytest.raises(InputError, match="sections overlap"):
        disassemble_cubin(bytes(grown), "hostile")
