# SPDX-License-Identifier: Apache-2.0
"""Random sequences of instructions leave the registers, flags and memory that qemu-riscv64 gives them.

`RANDOM_SEQUENCES=10000 pytest tests/cpu/test_instructions.py` compares more of them, where qemu is installed.
"""

import json
import os
import shutil
import subprocess

import pytest
from riscv.make_digests import DIGESTS, checksum, run_under_qemu
from riscv.sequences import differences, make_program, snapshots

from manyscale import cpu

pytestmark = pytest.mark.core

STORED = json.loads(DIGESTS.read_text())["sequences"]
FRESH = range(1000, 1000 + int(os.environ.get("RANDOM_SEQUENCES", "40")))


def run_simulated(program, folder):
    """What a random program writes on the simulator."""
    path = folder / "sequence"
    path.write_bytes(program.elf)
    result = cpu.run_functional(cpu.Program(path), limit=1_000_000)
    assert result.exit_code == program.seed % 64
    return result.processes[0].stdout


@pytest.mark.parametrize("seed", [int(seed) for seed in STORED])
def test_stored_sequence(seed, tmp_path):
    program = make_program(seed)
    stored = STORED[str(seed)]
    assert checksum(program.elf) == stored["elf"], (
        "sequences are made otherwise now: run riscv/make_digests.py"
    )
    found = snapshots(run_simulated(program, tmp_path))
    expected = [stored["snapshots"][at : at + 8] for at in range(0, len(stored["snapshots"]), 8)]
    for number, snapshot in enumerate(found):
        assert checksum(snapshot) == expected[number], (
            f"after snapshot {number - 1} came:\n{program.text(number)}"
        )
    assert len(found) == len(expected)


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
