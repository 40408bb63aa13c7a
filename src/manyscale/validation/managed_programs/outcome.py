# SPDX-License-Identifier: Apache-2.0
"""A program with unified memory on a simulated machine: how long its kernels took, and what happened to pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from manyscale.gpu import TimedDevice, TimedLaunch
from manyscale.gpu.uvm_pictures import save_pictures
from manyscale.machine import load_machine
from manyscale.validation.managed_programs import run

_MIB = 1 << 20
_PAGE = 4096
_ROWS_OF_LOG = 200_000


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    program: str
    kernels_us: float  # all launches, without what the host does between them
    cycles: int
    counts: dict[str, int]  # of unified memory and of the SMs' TLBs
    tlb_hit_rate: float
    prefetch_accuracy: float | None

    @property
    def batches(self) -> int:
        """Fault batches that the driver served."""
        return self.counts["fault_batches"]

    @property
    def faults(self) -> int:
        """Pages migrated by faults; other faulted pages were prefetched before their fault was served."""
        return self.counts["pages_faulted_in"]

    @property
    def to_device_mib(self) -> float:
        """MiB that came to the device."""
        return self.counts["bytes_to_device"] / _MIB

    @property
    def thrashed_mib(self) -> float:
        """MiB that came again after they had been evicted."""
        return self.counts["thrashed_pages"] * _PAGE / _MIB


def measure(
    program: str,
    size: int | None = None,
    *,
    machine: str = "gtx1080ti",
    settings: Sequence[str] = (),
    oversubscribed: float | None = None,
    pictures: Path | None = None,
) -> Outcome:
    """Runs a program and checks its results; `settings` change the machine, such as gpu.uvm.prefetcher=none.

    `pictures` is a folder that gets pictures of where pages were.
    """
    rows = _ROWS_OF_LOG if pictures is not None else 0
    device = TimedDevice(load_machine(machine, list(settings)).machine, page_log=rows)
    session = run(program, device, size, oversubscribed=oversubscribed)
    if pictures is not None:
        save_pictures(device, pictures, program.replace("_", " "))
    launches = cast("list[TimedLaunch]", session.launches)
    return Outcome(
        program,
        sum(launch.seconds for launch in launches) * 1e6,
        sum(launch.cycles for launch in launches),
        device.uvm.statistics(),
        device.uvm.tlb_hit_rate or 0.0,
        device.uvm.prefetch_accuracy,
    )
