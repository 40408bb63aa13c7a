# SPDX-License-Identifier: Apache-2.0
"""Random programs as PTX and as SASS: all registers and memory equal at the end.

The programs that are kept in `fixtures/sass/random_programs.zip` came from the generator of
`reference/programs.py` with their SASS (`python test_sass_random_programs.py` makes them again), so they run
where there is no assembler. `RANDOM_PROGRAMS=5000 pytest tests/gpu/test_sass_random_programs.py` assembles more.

Two things are taken out of the programs, because the assembler's code for them is not what PTX says (as its listing
shows): guards of `set` and `testp`, of which it converts or replaces the old value of lanes that the guard leaves out,
and `bfe` and `bfi` of 64 bits, of whose operands beyond 255 it does not ignore the upper bits.
"""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from reference.programs import COUNTERS, THREAD_SLOTS, Generator, dumped_classes, registers_dumped
from sass_support import FIXTURES, needs_assembler
from test_random_programs import same_register, same_slots

from manyscale import gpu
from manyscale.gpu.assembler import AssemblyError, assemble

pytestmark = pytest.mark.core

STORED = FIXTURES / "sass" / "random_programs.zip"
_STORED_PROGRAMS = 24
_FIRST_ASSEMBLED = 1000
_ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_90")


@pytest.fixture(scope="module")
def device() -> gpu.Device:
    return gpu.Device(maximum_instructions=10_000_000)


_GUARDED = re.compile(r"@!?%\w+\s+(?=(?:set|testp)\.)")
_FIELD = re.compile(r"^.*\b(?:bfe\.[su]64|bfi\.b64)\b.*\n", re.MULTILINE)


def _program(generator: Generator) -> str:
    return _FIELD.sub("", _GUARDED.sub("", generator.program()))


def _assembled(seed: int) -> bytes:
    """The program's SASS: for one of the architectures, for the newest if that one lacks something."""
    text = _program(Generator(seed)).encode()
    try:
        return assemble(text, f"program {seed}", _ARCHITECTURES[seed % len(_ARCHITECTURES)])
    except AssemblyError:
        return assemble(text, f"program {seed}", _ARCHITECTURES[-1])


def _outcome(
    device: gpu.Device, code: str | bytes, generator: Generator, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Registers, memory and counters after a run on inputs that the seed chooses."""
    threads = generator.shape.grid * generator.shape.block
    random = np.random.default_rng(seed)
    inputs = random.integers(0, 2**64, (threads, registers_dumped()), np.uint64)
    slots = random.integers(0, 2**64, (threads, THREAD_SLOTS), np.uint64)
    placed = [
        device.array(each) for each in (inputs, np.zeros_like(inputs), slots, np.zeros(COUNTERS, np.uint32))
    ]
    device.load(code)["program"][generator.shape.grid, generator.shape.block](*placed)
    return placed[1].numpy(), placed[2].numpy(), placed[3].numpy()


def _compare(device: gpu.Device, seed: int, sass: bytes) -> None:
    generator = Generator(seed)
    text = _program(generator)
    registers, slots, counters = _outcome(device, text, generator, seed)
    others, other_slots, other_counters = _outcome(device, sass, generator, seed)
    letters = dumped_classes()
    faults = [
        f"thread {thread}: {letters[index]} register {index}: {registers[thread, index]:#x} as PTX, "
        f"{others[thread, index]:#x} as SASS"
        for thread, index in zip(*np.nonzero(registers != others), strict=True)
        if not same_register(int(registers[thread, index]), int(others[thread, index]), letters[index])
    ]
    assert not faults, f"seed {seed}: {len(faults)} differ\n" + "\n".join(faults[:8])
    assert same_slots(slots, other_slots), f"seed {seed}: memory differs"
    assert (counters == other_counters).all(), f"seed {seed}: counters differ"


def _stored_names() -> list[str]:
    with zipfile.ZipFile(STORED) as archive:
        return sorted(archive.namelist())


@pytest.mark.parametrize("name", _stored_names() if STORED.exists() else [])
def test_stored_programs_run_the_same_in_both_forms(device: gpu.Device, name: str) -> None:
    with zipfile.ZipFile(STORED) as archive:
        _compare(device, int(Path(name).stem), archive.read(name))


@needs_assembler
@pytest.mark.parametrize("part", range(4))
def test_assembled_programs_run_the_same_in_both_forms(device: gpu.Device, part: int) -> None:
    programs = int(os.environ.get("RANDOM_PROGRAMS", "16"))
    for seed in range(_FIRST_ASSEMBLED + part, _FIRST_ASSEMBLED + programs, 4):
        _compare(device, seed, _assembled(seed))


def _store() -> None:
    """Writes programs that the assembler takes, each for one of the architectures."""
    with zipfile.ZipFile(STORED, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for seed in range(_STORED_PROGRAMS):
            archive.writestr(zipfile.ZipInfo(f"{seed}.cubin"), _assembled(seed), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    _store()
