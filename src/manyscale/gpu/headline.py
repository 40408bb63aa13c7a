# SPDX-License-Identifier: Apache-2.0
"""The headline numbers of kernels on a simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from manyscale.gpu.profile import HEADLINE

if TYPE_CHECKING:
    from manyscale.gpu.timing import TimedLaunch


def headline(launches: Sequence[TimedLaunch]) -> dict[str, dict[str, Any]]:
    """The numbers of a run that people look at first; of a single kernel also its metrics."""
    numbers: dict[str, dict[str, Any]] = {
        "simulated_seconds": {"value": sum(launch.seconds for launch in launches), "unit": "s"},
        "total_cycles": {"value": sum(launch.cycles for launch in launches), "unit": "cycle"},
        "kernels": {"value": len(launches), "unit": "1"},
        "warp_instructions": {"value": sum(launch.warp_instructions for launch in launches), "unit": "1"},
        "wall_seconds": {"value": sum(launch.wall_seconds for launch in launches), "unit": "s"},
    }
    if len(launches) == 1:
        metrics = launches[0].profile.metrics
        numbers |= {name: {"value": metrics[name].value, "unit": metrics[name].unit} for name in HEADLINE}
    return numbers
