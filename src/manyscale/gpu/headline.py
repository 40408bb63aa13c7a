# SPDX-License-Identifier: Apache-2.0
"""The headline numbers of kernels on a simulated GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from manyscale.gpu.profile import HEADLINE
from manyscale.results import definitions

if TYPE_CHECKING:
    from manyscale.gpu.timed_device import TimedLaunch


def headline(launches: Sequence[TimedLaunch], moved: Mapping[str, int] | None = None) -> definitions.Headline:
    """The headline numbers of a run; for a single kernel also its metrics.

    `moved`: statistics of managed memory, if there is any.
    """
    numbers = definitions.headline(
        instruction_units(launch.isa for launch in launches),
        simulated_seconds=sum(launch.seconds for launch in launches),
        total_cycles=sum(launch.cycles for launch in launches),
        launches=len(launches),
        warp_instructions=sum(launch.warp_instructions for launch in launches),
        thread_instructions=sum(launch.thread_instructions for launch in launches),
        issued_instructions=sum(launch.issued_instructions for launch in launches),
        wall_seconds=sum(launch.wall_seconds for launch in launches),
    )
    if moved is not None:
        numbers |= definitions.headline(
            page_faults=moved["faults"],
            fault_batches=moved["fault_batches"],
            pages_prefetched=moved["pages_prefetched"],
            bytes_to_device=moved["bytes_to_device"],
        )
    if len(launches) == 1:
        metrics = launches[0].profile.metrics
        numbers |= {name: {"value": metrics[name].value, "unit": metrics[name].unit} for name in HEADLINE}
    return numbers


def instruction_units(isas: Iterable[str]) -> dict[str, str]:
    """Which instructions are counted: kernels execute as PTX or as SASS; no unit of its own where some do either."""
    found = set(isas)
    if len(found) != 1:
        return {}
    return dict.fromkeys(("warp_instructions", "thread_instructions"), f"{found.pop().upper()} instruction")
