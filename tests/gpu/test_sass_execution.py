# SPDX-License-Identifier: Apache-2.0
"""Machine code executed: two implementations that share no decoder, PTX and machine code, must agree to the bit.

`RANDOM_PROGRAMS=1000 pytest tests/gpu/test_sass_execution.py` compares more of them, and `MANYSCALE_TEST_ISA=sass
pytest tests/gpu` runs all programs of `programs/` and each fixture of theirs as machine code.
"""

import os
import re

import numpy as np
import pytest
from programs_support import FIXTURES
from reference.programs import COUNTERS, THREAD_SLOTS, Generator, dumped_classes, registers_dumped
from test_random_programs import same_register, same_slots

from manyscale import InputError, KernelError, gpu
from manyscale.gpu.assembler import assemble, find_assembler

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        find_assembler() is None, reason="machine code needs ptxas: pip install nvidia-cuda-nvcc-cu12"
    ),
]

ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_90")


@pytest.fixture(scope="module")
def device() -> gpu.Device:
    return gpu.Device(isa="sass", maximum_instructions=10_000_000, echo=False)


def cubin(name: str, architecture: str = "sm_75") -> bytes:
    return assemble((FIXTURES / "sm_70" / f"{name}.ptx").read_bytes(), name, architecture)


@pytest.mark.parametrize("seed", range(int(os.environ.get("RANDOM_PROGRAMS", "12"))))
def test_a_random_program_leaves_the_same_as_its_ptx(device: gpu.Device, seed: int):
    generator = Generator(seed)
    text, shape = generator.program(), generator.shape
    text = re.sub(r"\.target \w+", f".target {ARCHITECTURES[seed % 4]}", text)
    threads = shape.grid * shape.block
    random = np.random.default_rng(seed)
    inputs = random.integers(0, 2**64, (threads, registers_dumped()), np.uint64)
    slots = random.integers(0, 2**64, (threads, THREAD_SLOTS), np.uint64)
    left = []
    for isa in ("ptx", "sass"):
        arrays = (inputs, np.zeros_like(inputs), slots, np.zeros(COUNTERS, np.uint32))
        placed = [device.array(each) for each in arrays]
        module = device.load(text, isa=isa)
        assert module.isa == isa
        module["program"][shape.grid, shape.block](*placed)
        left.append([each.numpy() for each in placed[1:]])
    (registers, memory, counters), (other_registers, other_memory, other_counters) = left
    letters = dumped_classes()
    faults = [
        f"thread {thread}: %{letters[place]}{place - letters.index(letters[place])} is "
        f"{int(other_registers[thread, place]):#x}, and {int(registers[thread, place]):#x} as PTX"
        for thread, place in zip(*np.nonzero(registers != other_registers), strict=True)
        if not same_register(
            int(registers[thread, place]), int(other_registers[thread, place]), letters[place]
        )
    ]
    assert not faults, f"seed {seed}, {shape}: {len(faults)} registers differ\n" + "\n".join(faults[:8])
    assert same_slots(memory, other_memory), f"seed {seed}: memory differs"
    assert (counters == other_counters).all(), f"seed {seed}: counters differ"
