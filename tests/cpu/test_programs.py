# SPDX-License-Identifier: Apache-2.0
"""Programs in C, C++ and assembly print and return what they do under qemu-riscv64."""

import shutil
import subprocess

import pytest
from program_cases import CASES
from riscv import encoding as e
from riscv.elf import small_program

from manyscale import cpu
from manyscale.errors import ProgramError

pytestmark = pytest.mark.core


def by_name(cases):
    """Parameters of a test, one for each run."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


FAULTS = {128 + 4: "illegal instruction", 128 + 5: "breakpoint", 128 + 11: "store to 0x10"}  # by signal


@by_name([case for case in CASES if case.exit_code not in FAULTS])
def test_same_as_qemu(case, binaries, tmp_path):
    case.check(cpu.run_functional(case.program(binaries, tmp_path), cores=4))


@by_name([case for case in CASES if case.exit_code in FAULTS and case.binary == "c"])
def test_ended_by_a_fault(case, binaries, tmp_path):
    """Where the system would end a program with a signal, the simulator says what it did, and where."""
    with pytest.raises(ProgramError, match=FAULTS[case.exit_code]) as error:
        cpu.run_functional(case.program(binaries, tmp_path))
    assert "end_by" in str(error.value) or "run_signals" in str(error.value)
    assert "signals.c:" in str(error.value)


@by_name([case for case in CASES if case.binary == "parallel" and case.arguments[1] in ("4", "16")])
def test_threads_on_one_core(case, binaries, tmp_path):
    """More threads than cores take turns; what they compute is the same."""
    case.check(cpu.run_functional(case.program(binaries, tmp_path), cores=1))


@pytest.mark.skipif(shutil.which("qemu-riscv64") is None, reason="qemu-riscv64 is not installed")
@by_name([case for case in CASES if case.binary in ("c", "cpp") and case.error is not None][::2])
def test_stored_output_is_that_of_qemu(case, binaries, tmp_path):
    result = subprocess.run(
        ["qemu-riscv64", str(binaries[case.binary]), *case.arguments],
        input=case.given.encode(),
        capture_output=True,
        cwd=tmp_path,
        env=dict(case.environment),
        timeout=60,
        check=False,
    )
    assert (result.stdout.decode(), result.returncode) == (case.output, case.exit_code)


def test_instructions_are_counted(tmp_path):
    """A loop of 3 instructions, n times, and 3 more around it: 3 n + 4 with the call that ends it."""
    counts = []
    for rounds in (1, 10, 1000):
        code = [
            e.immediate("addi", 5, 0, rounds),
            *[e.immediate("addi", 6, 6, 1), e.immediate("addi", 5, 5, -1)],
        ]
        code += [
            e.branch("bne", 5, 0, -8),
            e.immediate("addi", 10, 0, 0),
            e.immediate("addi", 17, 0, 93),
            e.ecall(),
        ]
        counts.append(cpu.run_functional(small_program(tmp_path, code)).instructions)
    assert counts == [3 * rounds + 4 for rounds in (1, 10, 1000)]


def test_the_folder_of_a_program_does_not_matter(tmp_path):
    """What a program does depends neither on the folder it lies in nor on whether it is packed."""
    packed = cpu.sample("heat")
    elsewhere = tmp_path / ("deep/" * 20) / "heat"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(cpu.Program(packed).data)
    here, there = (cpu.run_functional(cpu.Program(path, ["1", "64", "4"])) for path in (packed, elsewhere))
    assert here.instructions == there.instructions


def test_files_stay_in_the_root(binaries, tmp_path):
    """Without a writable root the program cannot make its folder, and nothing appears on the host."""
    result = cpu.run_functional(cpu.Program(binaries["c"], ["files"], root=tmp_path))
    assert result.stdout.startswith("mkdir -1")
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []
