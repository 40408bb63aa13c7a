# SPDX-License-Identifier: Apache-2.0
"""Unified memory beside what was measured: single faults, copies, and what the policies do to small programs."""

import pytest

from manyscale.errors import InputError
from manyscale.gpu import Device
from manyscale.validation import uvm
from manyscale.validation.managed_programs import run
from manyscale.validation.managed_programs.outcome import measure
from manyscale.validation.uvm_measurements import COPIES_US, FAULTS, MEASURED

pytestmark = pytest.mark.core


@pytest.mark.parametrize("sequence", FAULTS, ids=lambda sequence: sequence.name)
def test_every_fault_of_a_single_thread_is_near_the_measured_one(sequence: uvm.FaultSequence) -> None:
    times = uvm.fault_microseconds(sequence)
    for offset, simulated, measured in zip(sequence.offsets_kib, times, sequence.microseconds, strict=True):
        # The last fault of the smaller block moves 128 KiB on hardware, of which the program asked for 64 KiB.
        limit = 0.25 if (sequence.name, offset) == ("a part of a block", 2176) else 0.10
        assert simulated == pytest.approx(measured, rel=limit), (offset, simulated, measured)


def test_the_longer_sequences_are_summed_up() -> None:
    rows = uvm.fault_rows()
    assert len(rows) == 6 + 6 + 7 + 2
    assert all(abs(row.error_percent) < 10 for row in rows)


def test_copies_are_near_the_measured_ones() -> None:
    rows = uvm.copy_rows()
    assert len(rows) == len(COPIES_US)
    assert all(abs(row.error_percent) < 13 for row in rows), [(row.name, row.error_percent) for row in rows]


def test_prefetchers_that_bring_more_fault_less_and_are_faster() -> None:
    """With a driver that serves one fault after the other; in groups, all pages of so small a program fault at once."""
    found = [
        measure("stream_triad", settings=["gpu.uvm.handling=fixed", f"gpu.uvm.prefetcher={prefetcher}"])
        for prefetcher in ("none", "random", "sequential_local", "tree")
    ]
    faults = [outcome.faults for outcome in found]
    times = [outcome.kernels_us for outcome in found]
    assert faults == sorted(faults, reverse=True)
    assert times == sorted(times, reverse=True)
    assert times[0] > 10 * times[-1]


def test_forgetting_all_translations_costs_hits() -> None:
    page, everything = (
        measure("hotspot", settings=[f"gpu.uvm.shootdown={what}"]) for what in ("page", "all")
    )
    assert everything.tlb_hit_rate < page.tlb_hit_rate
    assert everything.cycles == pytest.approx(page.cycles, rel=0.2)


def test_too_little_memory_hurts_random_accesses() -> None:
    enough, short = (measure("random_access", 1 << 18, oversubscribed=share) for share in (None, 1.5))
    assert enough.thrashed_mib == 0
    assert short.thrashed_mib > 0
    assert short.kernels_us > 1.5 * enough.kernels_us


def test_only_a_device_with_time_can_be_oversubscribed() -> None:
    with pytest.raises(InputError, match="only managed memory of a device with time"):
        run("bfs", Device(), oversubscribed=1.25)


def test_what_was_measured_moves_no_more_to_the_host_than_came() -> None:
    """Where nvprof says otherwise it lost records, and the numbers are left out."""
    for runs in MEASURED.values():
        for measured in runs.values():
            if measured.to_device_mib is not None and measured.to_host_mib is not None:
                assert measured.to_host_mib < 1.05 * measured.to_device_mib
