# SPDX-License-Identifier: Apache-2.0
"""Random sequences of instructions leave the registers, flags and memory that qemu-riscv64 gives them.

`RANDOM_SEQUENCES=10000 pytest tests/cpu/test_instructions.py` compares more of them, where qemu is installed.
"""

import json
import os
import shutil
import subprocess

import pytest
from riscv import encoding as e
from riscv.code import call, word
from riscv.elf import DATA, small_program
from riscv.make_digests import DIGESTS, checksum, run_under_qemu
from riscv.sequences import differences, make_program, snapshots

from manyscale import cpu

pytestmark = pytest.mark.core

STORED = json.loads(DIGESTS.read_text())["sequences"]
FRESH = range(1000, 1000 + int(os.environ.get("RANDOM_SEQUENCES", "40")))


def run_simulated(program, folder, timed=False):
    """What a random program writes on the simulator."""
    path = folder / "sequence"
    path.write_bytes(program.elf)
    result = cpu.run(path, machine="boom", cores=1) if timed else cpu.run_functional(path, limit=1_000_000)
    assert result.exit_code == program.seed % 64
    return result.processes[0].stdout


def check_stored(seed, folder, timed=False):
    """That a stored sequence leaves what qemu left after each of its pieces."""
    program = make_program(seed)
    stored = STORED[str(seed)]
    assert checksum(program.elf) == stored["elf"], (
        "sequences are made otherwise now: run riscv/make_digests.py"
    )
    found = snapshots(run_simulated(program, folder, timed))
    expected = [stored["snapshots"][at : at + 8] for at in range(0, len(stored["snapshots"]), 8)]
    for number, snapshot in enumerate(found):
        assert checksum(snapshot) == expected[number], (
            f"after snapshot {number - 1} came:\n{program.text(number)}"
        )
    assert len(found) == len(expected)


@pytest.mark.parametrize("seed", [int(seed) for seed in STORED])
def test_stored_sequence(seed, tmp_path):
    check_stored(seed, tmp_path)


@pytest.mark.parametrize("seed", [int(seed) for seed in STORED][:6])
def test_stored_sequence_with_time(seed, tmp_path):
    """A run with time executes instructions in another way: with records of them, one thread ahead of its core."""
    check_stored(seed, tmp_path, timed=True)


@pytest.mark.parametrize(
    ("value", "zeros"), [(0, 32), (1, 0), (0x80, 7), (1 << 31, 31), (1 << 40, 32), (-1 << 32, 32)]
)
def test_trailing_zeros_of_a_word(value, zeros, tmp_path):
    """ctzw looks at the lower 32 bits alone, and gives 32 where they are zero."""
    data = (value & (2**64 - 1)).to_bytes(8, "little")
    code = [
        e.upper("lui", 5, DATA >> 12),
        e.load("ld", 5, 5, DATA & 0xFFF),
        e.unary("ctzw", 10, 5),
        *call(93, None),
    ]
    assert cpu.run_functional(small_program(tmp_path, code, data)).exit_code == zeros


def test_conditional_zero(tmp_path):
    """Zicond, which older versions of qemu lack: czero.eqz gives 0 if rs2 is 0, czero.nez if it is not, else rs1."""
    code = [e.immediate("addi", 5, 0, 21), e.immediate("addi", 6, 0, 1), e.immediate("addi", 10, 0, 0)]
    for funct3, condition, weight in ((5, 0, 0), (5, 6, 1), (7, 0, 1), (7, 6, 0)):
        code += [word(0x07 << 25 | condition << 20 | 5 << 15 | funct3 << 12 | 7 << 7 | 0x33)]
        code += [e.immediate("addi", 7, 7, -21 * weight), e.register("or", 10, 10, 7)]
    code += call(93, None)
    assert cpu.run_functional(small_program(tmp_path, code)).exit_code == 0


@pytest.mark.skipif(shutil.which("qemu-riscv64") is None, reason="qemu-riscv64 is not installed")
@pytest.mark.parametrize("block", range(0, len(FRESH), 20))
def test_fresh_sequences(block, tmp_path):
    """20 sequences that are not stored."""
    for seed in FRESH[block : block + 20]:
        program = make_program(seed)
        expected = snapshots(run_under_qemu(program, tmp_path))
        found = snapshots(run_simulated(program, tmp_path))
        for number, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
            assert theirs == ours, "\n".join(
                [f"seed {seed}:", program.text(number), *differences(theirs, ours)]
            )


@pytest.mark.skipif(
    shutil.which("riscv64-linux-gnu-as") is None, reason="the cross assembler is not installed"
)
def test_encodings_are_those_of_the_assembler(tmp_path):
    """The encodings the sequences are made with, checked against the GNU assembler."""
    code = [each for seed in range(20) for piece in make_program(seed).pieces for each in piece]
    lines, size = [".option norelax"], 0
    for each in code:
        if each.size != size:
            size = each.size
            lines.append(".option rvc" if size == 2 else ".option norvc")
        lines.append(each.text)
    source, object_file, binary = (tmp_path / f"code.{suffix}" for suffix in ("s", "o", "bin"))
    source.write_text("\n".join(lines) + "\n")
    architecture = "-march=rv64imafdc_zicsr_zifencei_zba_zbb_zbs"
    subprocess.run(["riscv64-linux-gnu-as", architecture, str(source), "-o", str(object_file)], check=True)
    copy = ["riscv64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", str(object_file), str(binary)]
    subprocess.run(copy, check=True)
    assembled, at = binary.read_bytes(), 0
    for each in code:
        assert assembled[at : at + each.size] == each.encoded(), each.text
        at += each.size
    assert at == len(assembled)
