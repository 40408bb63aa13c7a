# SPDX-License-Identifier: Apache-2.0
"""Programs that go wrong while they run: each is ended with what went wrong and where."""

import resource

import pytest
from riscv import encoding as e
from riscv.code import call, constant, word
from riscv.elf import CODE, DATA, small_program

from manyscale import cpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core


NOTHING = [e.immediate("addi", 0, 0, 0)]
# name: instructions, the index of the one at fault, what the message says
WRONG = {
    "all_zero": ([*NOTHING, word(0)], 1, "illegal instruction 0x0"),
    "all_ones": ([*NOTHING, word(0xFFFFFFFF)], 1, "illegal instruction 0xffffffff"),
    "vector": ([word(0x0D0572D7)], 0, "extension that is not implemented"),
    "vector_load": ([word(0x02050007)], 0, "extension that is not implemented"),
    "half_precision": ([word(0x04B50553)], 0, "extension that is not implemented"),
    "reserved_rounding": ([word(0x00B55553)], 0, "illegal instruction"),
    "privileged": ([word(0x30200073)], 0, "illegal instruction"),
    "machine_register": ([word(0x30002573)], 0, "illegal instruction"),
    "read_only_register": ([word(0xC0051073)], 0, "illegal instruction"),
    "null_load": ([e.load("lw", 5, 0, 0)], 0, "load from 0x0,.*null pointer"),
    "null_store": ([e.store("sd", 5, 0, 16)], 0, "store to 0x10,.*null pointer"),
    "wild_load": ([*constant(5, 0x7FFF0000), e.load("ld", 6, 5, 8)], 2, "load from 0x7fff0008"),
    "kernel_load": (
        [e.immediate("addi", 5, 0, -8), e.load("ld", 6, 5, 0)],
        1,
        "load from 0xfffffffffffffff8",
    ),
    "store_to_code": ([*constant(5, CODE), e.store("sw", 6, 5, 0)], 2, "store to 0x10000"),
    "misaligned_atomic": (
        [*constant(5, DATA + 1), e.atomic("amoadd", True, 0, 6, 5, 7)],
        2,
        "0x20001, which is not a multiple",
    ),
    "atomic_on_nothing": ([e.atomic("amoadd", True, 0, 6, 0, 7)], 0, "to 0x0,.*null pointer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_fault(name, tmp_path):
    """The message has the address of the instruction."""
    code, at, words = WRONG[name]
    path = small_program(tmp_path, code, bytes(64))
    address = CODE + sum(each.size for each in code[:at])
    with pytest.raises(ManyscaleError, match=words) as error:
        cpu.run_functional(path, limit=1000)
    assert f"{address:#x}" in str(error.value)


@pytest.mark.parametrize("target", [0, 0x7FFF0000, DATA])
def test_wild_jump(target, tmp_path):
    path = small_program(tmp_path, [*constant(5, target), e.jalr(1, 5, 0)], bytes(64))
    with pytest.raises(ManyscaleError, match=f"{target:#x}"):
        cpu.run_functional(path, limit=1000)


def test_off_the_end_of_the_code(tmp_path):
    """The rest of the last page is zeros, which is no instruction."""
    path = small_program(tmp_path, NOTHING)
    with pytest.raises(ManyscaleError, match=f"{CODE + 4:#x}"):
        cpu.run_functional(path, limit=10_000)


def test_unknown_system_call(tmp_path):
    path = small_program(tmp_path, call(4242))
    with pytest.raises(ManyscaleError, match="4242") as error:
        cpu.run_functional(path, limit=1000)
    assert f"{CODE + 8:#x}" in str(error.value)


def test_endless_loop_is_given_up(tmp_path):
    path = small_program(tmp_path, [e.jal(0, 0)])
    with pytest.raises(ManyscaleError, match="given up"):
        cpu.run_functional(path, limit=100_000)


def test_waiting_for_nobody(tmp_path):
    """A futex wait (98, FUTEX_WAIT) that nobody can end."""
    path = small_program(tmp_path, [*call(98, DATA, 0, 0, 0)], bytes(64))
    with pytest.raises(ManyscaleError, match=r"wait|deadlock|asleep|sleep"):
        cpu.run_functional(path, limit=100_000)


def test_stack_overflow(tmp_path):
    """Recursion without end."""
    body = [e.immediate("addi", 2, 2, -2032), e.store("sd", 1, 2, 0), e.jal(1, -8)]
    with pytest.raises(ManyscaleError, match=f"{CODE + 4:#x}") as error:
        cpu.run_functional(small_program(tmp_path, body), limit=100_000_000)
    assert "stack" in str(error.value).lower()


@pytest.mark.long
def test_memory_exhausted(tmp_path):
    """Each round maps (222) a megabyte more and touches all its pages."""
    code = [*call(222, 0, 1 << 20, 3, 0x22, -1, 0), e.immediate("addi", 5, 10, 0), *constant(6, 256)]
    code += [*constant(7, 4096), e.store("sd", 7, 5, 0), e.register("add", 5, 5, 7)]
    code += [e.immediate("addi", 6, 6, -1), e.branch("bne", 6, 0, -12)]
    code.append(e.jal(0, -sum(each.size for each in code)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ManyscaleError, match="memory"):
        cpu.run_functional(cpu.Program(small_program(tmp_path, code), memory="64MiB"), limit=100_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # kilobytes


def test_huge_mapping_costs_nothing(tmp_path):
    """64 GiB that are mapped but not touched are no memory; more than the address space is refused."""
    code = [e.immediate("addi", 11, 0, 1), e.shift("slli", 11, 11, 36), e.immediate("addi", 10, 0, 0)]
    code += [
        *constant(12, 3),
        *constant(13, 0x4022),
        *constant(14, -1),
        *constant(15, 0),
        *constant(17, 222),
        e.ecall(),
    ]
    code += [e.shift("srai", 10, 10, 63), e.immediate("addi", 10, 10, 7), *constant(17, 93), e.ecall()]
    assert cpu.run_functional(small_program(tmp_path, code)).exit_code in (6, 7)


@pytest.mark.long
def test_endless_output(tmp_path):
    """Writes a kilobyte again and again; the host's memory must not fill."""
    code = [*call(64, 1, DATA, 1024)]
    code.append(e.jal(0, -sum(each.size for each in code)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ManyscaleError, match=r"output|wrote|written"):
        cpu.run_functional(small_program(tmp_path, code, bytes(1024)), limit=50_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 800 << 10  # kilobytes


BAD_ARGUMENTS = {
    "write": (64, (1, 0x7FFF0000, 100)),
    "read": (63, (0, 0x7FFF0000, 100)),
    "mmap": (222, (1, -4096, 7, 0x32, -1, 0)),
}


@pytest.mark.parametrize(("number", "arguments"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_are_errors_to_the_program(number, arguments, tmp_path):
    """As on Linux: the call returns an error number, the program goes on."""
    code = [*call(number, *arguments), e.shift("srai", 10, 10, 63), e.immediate("andi", 10, 10, 9)]
    code += [*constant(17, 93), e.ecall()]
    program = cpu.Program(small_program(tmp_path, code, bytes(64)), stdin=b"some input")
    assert cpu.run_functional(program, limit=1000).exit_code == 9


def test_markers_with_wild_names(tmp_path):
    """Region marks whose name is nowhere, never begun, or never ended are no reason to fail."""
    code = [
        each for rs1 in (0, 5) for number in range(-8, 9) for each in [e.immediate("slti", 0, rs1, number)]
    ]
    code += [*constant(5, 0x7FFF0000), *code, e.immediate("addi", 10, 0, 3), *constant(17, 93), e.ecall()]
    assert cpu.run_functional(small_program(tmp_path, code), limit=10_000, regions=True).exit_code == 3
