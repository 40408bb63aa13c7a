# SPDX-License-Identifier: Apache-2.0
"""Damaged files and random bytes as code: a result or a clear error, never a crash; run with sanitizers, too.

`FUZZ_FILES=20000 pytest tests/cpu/test_bad_input_fuzz.py` tries more of them.
"""

import contextlib
import os
import struct

import pytest
from riscv import encoding as e
from riscv.elf import CODE, DATA, EXECUTE, READ, WRITE, Elf, Segment
from riscv.sequences import make_program
from riscv.values import Source

from manyscale import cpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core

COUNT = int(os.environ.get("FUZZ_FILES", "150"))
HEADER_BYTES = 64 + 2 * 56
INTERESTING = [0, 1, 2, 4096, 1 << 31, (1 << 32) - 1, 1 << 38, 1 << 39, 1 << 47, 1 << 63, -4096, -1]


def try_it(folder, content):
    """Runs the bytes of a file for a short while; every error must be one for people."""
    path = folder / "damaged"
    path.write_bytes(content)
    with contextlib.suppress(ManyscaleError):
        cpu.run_functional(cpu.Program(path, memory="16MiB"), limit=20_000)


@pytest.mark.parametrize("block", range(10))
def test_damaged_headers(block, tmp_path):
    """Random fields of the headers get random or interesting values."""
    source = Source(block)
    good = make_program(block, pieces=3).elf
    for _ in range(COUNT // 10):
        content = bytearray(good)
        for _ in range(source.between(1, 3)):
            size = source.one([1, 2, 4, 8])
            at = source.below(HEADER_BYTES // size) * size
            value = source.one(INTERESTING) if source.chance(60) else source.bits(64)
            if source.chance(20):
                value += int.from_bytes(content[at : at + size], "little")
            content[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if source.chance(20):
            del content[source.below(len(content)) :]
        try_it(tmp_path, bytes(content))


@pytest.mark.parametrize("block", range(10))
def test_random_bytes_as_code(block, tmp_path):
    """Code of random bytes, or of a random program with some bits turned; registers point to data, or anywhere."""
    source = Source(1000 + block)
    for _ in range(COUNT // 10):
        if source.chance(50):
            code = source.bits(8 * 512).to_bytes(512, "little")
            data = struct.pack(
                "<256Q", *(source.one([DATA, DATA + 2047, source.bits(64)]) for _ in range(256))
            )
            segments = [Segment(CODE, code, READ | EXECUTE | WRITE), Segment(DATA, data, READ | WRITE)]
            content = Elf(segments, CODE + 2 * source.below(200)).encoded()
        else:
            changed = bytearray(make_program(source.below(100), pieces=3).elf)
            for _ in range(8):
                at = source.between(HEADER_BYTES, len(changed) - 1)
                changed[at] ^= 1 << source.below(8)
            content = bytes(changed)
        try_it(tmp_path, content)


def test_random_system_calls(tmp_path):
    """Every number up to 500 with arguments at the edges; the program then ends by itself, or is refused by name."""
    source = Source(7)
    for number in range(500):
        code = []
        for register in range(10, 16):
            at = DATA + 8 * source.below(64)
            code += [e.upper("lui", register, at >> 12), e.load("ld", register, register, at & 0xFFF)]
        code += [e.immediate("addi", 17, 0, number), e.ecall()]
        code += [e.immediate("addi", 10, 0, 5), e.immediate("addi", 17, 0, 94), e.ecall()]
        choices = [0, 1, 2, 3, 4096, DATA, DATA + 3, DATA + 511, 1 << 40, (1 << 64) - 1, (1 << 64) - 100]
        data = struct.pack("<64Q", *(source.one(choices) for _ in range(64)))
        segments = [
            Segment(CODE, b"".join(each.encoded() for each in code), READ | EXECUTE),
            Segment(DATA, data, READ | WRITE),
        ]
        try_it(tmp_path, Elf(segments, CODE).encoded())
