# SPDX-License-Identifier: Apache-2.0
"""Whole programs on the GPU: cycles beside those measured on a V100, after their results were found right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manyscale.errors import ManyscaleError
from manyscale.gpu import Launch, TimedLaunch, parse
from manyscale.gpu.isa import Isa
from manyscale.validation import sst_gpu_programs
from manyscale.validation.gpu_target import GpuTarget
from manyscale.validation.rows import Row

_KERNELS = Path(__file__).parent / "kernels"
_SOURCE = "SST-GPU final report, Table 3: nvprof on a P9/V100"

_ELEMENTS = 163_840
_ADD_BLOCK = 256
_SIDE = 256
_LU_BLOCK = 16
_LU_TOLERANCE = 1e-6  # of the largest element


def rows(
    machine: str = "v100-sst",
    isa: Isa = "auto",
    programs: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """All programs; with a folder of programs, also those of the report themselves."""
    found = [
        Row("vectorAdd, 163840 elements", vector_add(machine, isa), 5_271, "cycles", _SOURCE),
        # The latency of a taken branch (gpu.sm.timing.taken) is calibrated with it.
        Row("blocked LU, 256 x 256", blocked_lu(machine, isa), 494_519, "cycles", _SOURCE, "calibrated"),
    ]
    if programs is not None:
        found += sst_gpu_programs.table_rows(machine, isa, programs, say)
    return found


def vector_add(machine: str, isa: Isa = "auto") -> int:
    """The cycles of one launch that adds two vectors."""
    device = GpuTarget(machine, isa).device()
    random = np.random.default_rng(1)
    a, b = (random.random(_ELEMENTS, np.float32) for _ in range(2))
    c = device.zeros(_ELEMENTS, np.float32)
    add = device.load(parse(_KERNELS / "vector_add.ptx", portable=True))["vector_add"]
    launch = add[_ELEMENTS // _ADD_BLOCK, _ADD_BLOCK](device.array(a), device.array(b), c, _ELEMENTS)
    if not np.array_equal(c.numpy(), a + b):
        raise ManyscaleError("vectorAdd: the simulated GPU's sums differ from numpy's")
    return _cycles(launch)


def blocked_lu(machine: str, isa: Isa = "auto") -> int:
    """The cycles of the 46 launches that factor a matrix in place, without pivots."""
    device = GpuTarget(machine, isa).device()
    matrix = np.random.default_rng(1).random((_SIDE, _SIDE)) + _SIDE * np.eye(_SIDE)  # needs no pivots
    matrix = matrix.astype(np.float32)
    a = device.array(matrix)
    module = device.load(parse(_KERNELS / "blocked_lu.ptx", portable=True))
    diagonal, perimeter, internal = (module[f"lu_{part}"] for part in ("diagonal", "perimeter", "internal"))
    cycles = 0
    for offset in range(0, _SIDE, _LU_BLOCK):
        cycles += _cycles(diagonal[1, _LU_BLOCK](a, _SIDE, offset))
        left = (_SIDE - offset) // _LU_BLOCK - 1
        if left:
            cycles += _cycles(perimeter[left, 2 * _LU_BLOCK](a, _SIDE, offset))
            cycles += _cycles(internal[(left, left), (_LU_BLOCK, _LU_BLOCK)](a, _SIDE, offset))
    factors = a.numpy().astype(np.float64)
    product = (np.tril(factors, -1) + np.eye(_SIDE)) @ np.triu(factors)
    if not np.abs(product - matrix).max() <= _LU_TOLERANCE * matrix.max():
        raise ManyscaleError("blocked LU: the product of the simulated GPU's factors is not the matrix")
    return cycles


def _cycles(launch: Launch) -> int:
    assert isinstance(launch, TimedLaunch)
    return launch.cycles
