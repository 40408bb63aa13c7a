# SPDX-License-Identifier: Apache-2.0
"""The headline numbers of a CUDA program on simulated GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import CudaRun

_SECOND = 10**15  # femtoseconds


def headline(run: CudaRun) -> dict[str, dict[str, Any]]:
    """The numbers of a run that people look at first."""
    return {
        "simulated_seconds": {"value": run.simulated / _SECOND, "unit": "s"},
        "total_cycles": {"value": sum(record.cycles for record in run.kernels), "unit": "cycle"},
        "kernels": {"value": len(run.kernels), "unit": "1"},
        "warp_instructions": {"value": sum(record.warp_instructions for record in run.kernels), "unit": "1"},
        "copies": {"value": len(run.copies), "unit": "1"},
        "copied_bytes": {"value": sum(record.bytes for record in run.copies), "unit": "B"},
        "calls": {"value": run.records.calls.count, "unit": "1"},
        "exit_code": {"value": run.exit_code, "unit": "1"},
        "wall_seconds": {"value": run.wall_seconds, "unit": "s"},
    }
