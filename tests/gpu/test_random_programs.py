# SPDX-License-Identifier: Apache-2.0
"""Random programs on the simulator and on the reference interpreter: all registers and memory equal at the end.

`RANDOM_PROGRAMS=5000 pytest tests/gpu/test_random_programs.py` runs more of them.
"""

import os

import numpy as np
import pytest
from reference.interpreter import Program
from reference.programs import COUNTERS, THREAD_SLOTS, Generator, dumped_classes, registers_dumped
from reference.rounding import FORMATS, is_nan

from manyscale import gpu

pytestmark = pytest.mark.core

FLOATS = {"f": ("f32", 32), "g": ("f64", 64), "e": ("f16", 16)}


@pytest.fixture(scope="module")
def devices():
    """One that finds races and uninitialised reads, and one without, on two host threads."""
    return gpu.Device(check=True, maximum_instructions=10_000_000), gpu.Device(
        threads=2, maximum_instructions=10_000_000
    )


def same_register(expected: int, actual: int, letter: str) -> bool:
    """Equal bits, or both a NaN in a register of floats."""
    if expected == actual:
        return True
    if letter not in FLOATS:
        return False
    name, width = FLOATS[letter]
    low = (1 << width) - 1
    return is_nan(expected & low, FORMATS[name]) and is_nan(actual & low, FORMATS[name])


def same_slots(expected: np.ndarray, actual: np.ndarray) -> bool:
    """The lower half of a thread's slots holds integers, the upper half f32."""
    half = THREAD_SLOTS // 2
    floats = [np.ascontiguousarray(each[:, half:]).view(np.float32) for each in (expected, actual)]
    return bool((expected[:, :half] == actual[:, :half]).all()) and np.array_equal(*floats, equal_nan=True)


@pytest.mark.parametrize("seed", range(int(os.environ.get("RANDOM_PROGRAMS", "200"))))
def test_random_program(devices, seed):
    """The programs are free of races and read only what was written, so the checks must not find anything either."""
    device = devices[seed % 2]
    generator = Generator(seed)
    text, shape = generator.program(), generator.shape
    threads = shape.grid * shape.block
    random = np.random.default_rng(seed)
    inputs = random.integers(0, 2**64, (threads, registers_dumped()), np.uint64)
    slots = random.integers(0, 2**64, (threads, THREAD_SLOTS), np.uint64)
    outputs, counters = np.zeros_like(inputs), np.zeros(COUNTERS, np.uint32)
    placed = [device.array(each) for each in (inputs, outputs, slots, counters)]
    Program(text).launch("program", shape.grid, shape.block, inputs, outputs, slots, counters)
    launch = device.load(text)["program"][shape.grid, shape.block](*placed)
    actual = placed[1].numpy()
    faults = []
    letters = dumped_classes()
    for thread, register_index in zip(*np.nonzero(outputs != actual), strict=True):
        expected, bits = int(outputs[thread, register_index]), int(actual[thread, register_index])
        if not same_register(expected, bits, letters[register_index]):
            number = register_index - letters.index(letters[register_index])
            register = f"%{letters[register_index]}{number}"
            faults.append(f"thread {thread}: {register} should be {expected:#x}, is {bits:#x}")
    assert not faults, f"seed {seed}, {shape}: {len(faults)} registers differ\n" + "\n".join(faults[:8])
    assert same_slots(slots, placed[2].numpy()), f"seed {seed}: memory differs"
    assert (counters == placed[3].numpy()).all(), f"seed {seed}: counters differ"
    assert not launch.warnings, f"seed {seed}: {launch.warnings[0]}"
