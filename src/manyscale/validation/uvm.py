# SPDX-License-Identifier: Apache-2.0
"""Unified memory beside measurements on a GTX 1080 Ti: single faults, transfers and programs; and beside UVMSmart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manyscale.errors import ManyscaleError
from manyscale.gpu import TimedDevice, parse
from manyscale.machine import load_machine
from manyscale.validation.managed_programs import PROGRAMS
from manyscale.validation.managed_programs.outcome import measure
from manyscale.validation.rows import Row, Use, calibrated
from manyscale.validation.uvm_measurements import (
    COPIES_SOURCE,
    COPIES_US,
    FAULTS,
    FAULTS_SOURCE,
    MEASURED,
    PROGRAMS_SOURCE,
    SIMULATED_FAULTS,
    SIMULATOR_SOURCE,
    FaultSequence,
    oversubscription,
)

MACHINE = "gtx1080ti"  # on which everything was measured
_KERNELS = Path(__file__).parent / "kernels"
_ROWS_OF_LOG = 1000
# What can be simulated at the measured size within a minute each, by percent of memory; the others are in examples/uvm.
_PROGRAMS = {
    "backprop": (100,),
    "hotspot": (100,),
    "random_access": (100, 125, 150),
    "needleman_wunsch": (100, 125, 150),
    "bfs": (100,),
}
# What machines/gtx1080ti.toml says parameters of the UVM driver are calibrated with.
_CALIBRATED = {("backprop", 100), ("hotspot", 100), ("random_access", 100), ("random_access", 125)}
_COUNTED = "backprop"
# UVMSmart keeps pages one by one and handles each fault in 45 us.
_AS_UVMSMART = ("gpu.uvm.handling=fixed", "gpu.uvm.curve=arctangent")


def rows(machine: str = MACHINE) -> list[Row]:
    """All comparisons; they have a machine of their own."""
    del machine
    return [*calibrated(fault_rows()), *calibrated(copy_rows()), *program_rows(), *simulator_rows()]


def fault_rows() -> list[Row]:
    """Single faults, one after the other: of the shorter sequences each, of the others their sum."""
    found = []
    for sequence in FAULTS:
        times = fault_microseconds(sequence)
        faults = list(zip(sequence.offsets_kib, times, sequence.microseconds, strict=True))
        if len(faults) <= 7:
            found += [
                Row(f"faults {sequence.name}, at {offset} KiB", simulated, measured, "us", FAULTS_SOURCE)
                for offset, simulated, measured in faults
            ]
        else:
            name = f"faults in {sequence.name}, all {len(faults)}"
            found.append(Row(name, sum(times), sum(sequence.microseconds), "us", FAULTS_SOURCE))
    return found


def fault_microseconds(sequence: FaultSequence) -> list[float]:
    """How long the driver took for each fault of a thread that touches one address after the other."""
    device = TimedDevice(MACHINE, page_log=_ROWS_OF_LOG)
    memory = device.managed(sequence.allocated_kib << 10, np.int8)
    memory.set(np.zeros(sequence.allocated_kib << 10, np.int8))
    offsets = device.array(np.array(sequence.offsets_kib, np.int32) << 10)
    touch = device.load(parse(_KERNELS / "touch.ptx", portable=True))["touch"]
    touch[1, 1](memory, offsets, len(sequence.offsets_kib))
    batches = device.uvm.log().filter(kind="batch")
    if len(batches) != len(sequence.offsets_kib):
        raise ManyscaleError(
            f"faults {sequence.name}: {len(batches)} batches for {len(sequence.offsets_kib)} faults"
        )
    return [float(time) * 1e6 for time in batches["end"] - batches["begin"]]


def copy_rows() -> list[Row]:
    """Copies of ordinary memory to the device, by size."""
    device = TimedDevice(load_machine(MACHINE).machine)
    found = []
    for kib, measured in COPIES_US.items():
        stream = device.stream()
        copy = device.empty(kib << 10, np.int8).copy_from(np.zeros(kib << 10, np.int8), stream=stream)
        device.synchronize()
        assert copy is not None
        found.append(Row(f"copy of {kib} KiB", (copy.end - copy.begin) * 1e6, measured, "us", COPIES_SOURCE))
    return found


def program_rows() -> list[Row]:
    """Whole programs that need all of the memory there is, and more."""
    found = []
    for name, percent in ((name, percent) for name, percents in _PROGRAMS.items() for percent in percents):
        size, measured = PROGRAMS[name].full, MEASURED[name][percent]
        outcome = measure(name, size, oversubscribed=oversubscription(name, percent))
        title = f"{name} {size}, {percent}% of memory"
        pairs = [
            ("kernels", outcome.kernels_us, measured.kernels_us, "us"),
            ("fault batches", outcome.batches, measured.batches, "1"),
            ("to the device", outcome.to_device_mib, measured.to_device_mib, "MiB"),
        ]
        use: Use = "calibrated" if (name, percent) in _CALIBRATED else "test"
        found += [
            Row(f"{title}: {what}", simulated, reference, unit, PROGRAMS_SOURCE, use)
            for what, simulated, reference, unit in pairs
            if reference is not None
        ]
    return found


def simulator_rows() -> list[Row]:
    """Far faults with each prefetcher and enough memory, beside those of UVMSmart."""
    found = []
    for prefetcher, reference in SIMULATED_FAULTS[_COUNTED].items():
        settings = [*_AS_UVMSMART, f"gpu.uvm.prefetcher={prefetcher}"]
        outcome = measure(_COUNTED, PROGRAMS[_COUNTED].full, settings=settings)
        name = f"{_COUNTED}, prefetcher {prefetcher}: page faults"
        found.append(Row(name, outcome.faults, reference, "1", SIMULATOR_SOURCE))
    return found
