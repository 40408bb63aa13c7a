# SPDX-License-Identifier: Apache-2.0
"""Files that are no programs for this machine: each is refused with a message that says why."""

import contextlib

import pytest
from riscv import encoding as e
from riscv.elf import CODE, EXECUTE, READ, WRITE, X86_64, Elf, Segment, small_elf

from manyscale import cpu
from manyscale.errors import InputError, ManyscaleError

pytestmark = pytest.mark.core

RETURN_5 = [e.immediate("addi", 10, 0, 5), e.immediate("addi", 17, 0, 93), e.ecall()]
CODE_BYTES = b"".join(each.encoded() for each in RETURN_5)


def run(folder, content):
    """Runs the bytes of a file."""
    path = folder / "program"
    path.write_bytes(content)
    return cpu.run_functional(path, limit=100_000)


def elf(**changes):
    """A good executable with some fields made otherwise."""
    made = small_elf(RETURN_5)
    for name, value in changes.items():
        setattr(made, name, value)
    return made.encoded()


def with_segment(**changes):
    """A good executable with fields of its one segment made otherwise."""
    made = small_elf(RETURN_5)
    for name, value in changes.items():
        setattr(made.segments[0], name, value)
    return made.encoded()


def test_the_good_one_runs(tmp_path):
    """So that what follows is refused for the reason that is named."""
    assert run(tmp_path, elf()).exit_code == 5


BAD_FILES = {
    "empty": (b"", "not an ELF file"),
    "text": (b"#!/bin/sh\necho hello\n", "not an ELF file"),
    "zeros": (bytes(4096), "not an ELF file"),
    "magic_only": (b"\x7fELF", "ends within its ELF header"),
    "x86": (elf(machine=X86_64), "for x86-64, not for RISC-V"),
    "arm": (elf(machine=183), "for AArch64, not for RISC-V"),
    "32_bits": (elf(bits=1), "not a 64-bit"),
    "strange_class": (elf(bits=7), "not a 64-bit"),
    "big_endian": (elf(order=2), "is big-endian"),
    "relocatable": (elf(file_type=1), "not an executable"),
    "core_dump": (elf(file_type=4), "not an executable"),
    "shared": (
        Elf(
            [Segment(0, b"/lib/ld.so\0", READ, kind=3), Segment(CODE, CODE_BYTES, READ | EXECUTE)], CODE
        ).encoded(),
        "dynamically linked",
    ),
    "no_segments": (Elf([], CODE).encoded(), "nothing to load"),
    "headers_outside": (elf(header_offset=1 << 40), "ends within its program headers"),
    "headers_far_outside": (elf(header_offset=(1 << 64) - 8), "ends within its program headers"),
    "header_size_0": (elf(header_bytes=0), "headers of 0 bytes"),
    "header_size_odd": (elf(header_bytes=57), "headers of 57 bytes"),
    "65535_headers": (elf(header_count=65535), "ends within its program headers"),
    "content_outside": (with_segment(offset=1 << 30), "segment 0 lies beyond the end"),
    "content_far_outside": (with_segment(offset=(1 << 64) - 4096), "segment 0 lies beyond the end"),
    "smaller_in_memory": (with_segment(size=4), "larger in the file than in memory"),
    "one_exabyte": (with_segment(size=1 << 60), "segment 0 does not fit into the address space"),
    "wraps_around": (with_segment(size=(1 << 64) - 1), "segment 0 does not fit into the address space"),
    "kernel_half": (
        Elf([Segment((1 << 64) - 65536, CODE_BYTES, READ | EXECUTE)], CODE).encoded(),
        "segment 0 does not fit into the address space",
    ),
    "overlapping": (
        Elf(
            [Segment(CODE, CODE_BYTES, READ | EXECUTE), Segment(CODE + 4, CODE_BYTES, READ | WRITE)], CODE
        ).encoded(),
        "segments that overlap",
    ),
    "entry_outside": (elf(entry=0x123456), "entry point lies in no executable segment"),
    "entry_not_executable": (with_segment(flags=READ | WRITE), "entry point lies in no executable segment"),
    "entry_odd": (elf(entry=CODE + 1), "entry point is at an odd address"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_refused(name, tmp_path):
    content, words = BAD_FILES[name]
    with pytest.raises(ManyscaleError, match=words) as refusal:
        run(tmp_path, content)
    assert "program" in str(refusal.value)  # the name of the file
    assert isinstance(refusal.value, InputError)


def test_truncated_anywhere(tmp_path):
    """A file cut at any byte is refused: all of this one is needed."""
    made = Elf([Segment(CODE + 120, CODE_BYTES, READ | EXECUTE)], CODE + 120).encoded()
    assert run(tmp_path, made).exit_code == 5
    for length in range(len(made)):
        with pytest.raises(InputError):
            run(tmp_path, made[:length])


def test_real_program_truncated(tmp_path, binaries):
    """Cut in its code it is refused; cut in its symbols it runs, or is refused."""
    content = binaries["assembly_integer"].read_bytes()
    for length in range(0, len(content), 97):
        with contextlib.suppress(InputError):
            assert run(tmp_path, content[:length]).stdout == "c55049b2f0325cc1\n"


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        cpu.run_functional(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        cpu.run_functional(tmp_path / "absent")
