# SPDX-License-Identifier: Apache-2.0
"""The headline numbers of a CUDA program on simulated GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.gpu.headline import instruction_units
from manyscale.results import definitions

if TYPE_CHECKING:
    from .program import CudaRun

_SECOND = 10**15  # femtoseconds


def headline(run: CudaRun) -> definitions.Headline:
    """The numbers of a run that people look at first."""
    return definitions.headline(
        instruction_units(record.isa for record in run.kernels),
        simulated_seconds=run.simulated / _SECOND,
        total_cycles=sum(record.cycles for record in run.kernels),
        launches=len(run.kernels),
        warp_instructions=sum(record.warp_instructions for record in run.kernels),
        thread_instructions=sum(record.thread_instructions for record in run.kernels),
        issued_instructions=sum(record.issued_instructions for record in run.kernels),
        copy_count=len(run.copies),
        copied_bytes=sum(record.bytes for record in run.copies),
        calls=run.records.calls.count,
        exit_code=run.exit_code,
        wall_seconds=run.wall_seconds,
    )
