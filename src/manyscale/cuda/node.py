# SPDX-License-Identifier: Apache-2.0
"""The node that a CUDA program runs on: its GPUs and their heap; links between GPUs are left out."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from manyscale import _core
from manyscale.errors import InputError
from manyscale.gpu.isa import Isa, isa_for
from manyscale.machine import Machine

from .functional_gpu import FunctionalGpu
from .memory import DEVICE_PAGE, Heap
from .profiling import LaunchSelection, Profiling
from .properties import describe
from .run_monitor import RunMonitor
from .timed_gpu import TimedGpu
from .virtual_memory import VirtualMemory

Gpu: TypeAlias = TimedGpu | FunctionalGpu

MOST_GPUS = 64


@dataclass(frozen=True)
class NodeOptions:
    """How a program's GPUs are simulated; see `manyscale cuda --help`."""

    gpus: int = 1
    functional: bool = False
    threads: int = 1
    seed: int = 0
    maximum_instructions: int = 0  # of a launch; 0: no limit
    until: int | None = None  # femtoseconds of simulated time
    isa: Isa | None = None  # what kernels run as; None: as the machine says, else "auto"
    allow_newer: bool = False  # take PTX for newer GPUs than the machine's
    profiling: Profiling = field(default_factory=Profiling)
    checks: tuple[str, ...] = ()  # names of CHECKS; what they find is in the records of the run
    page_bounds: bool = False  # memory ends with its last page, as on hardware, and not with its last byte

    def __post_init__(self) -> None:
        if self.checks and not self.functional:
            raise InputError("checks look at kernels that are executed without time: functional=True")


class Node:
    """The GPUs of one machine, with one heap."""

    def __init__(self, machine: Machine, options: NodeOptions) -> None:
        if machine.gpu is None:
            raise InputError(f"the machine {machine.name or ''} has no GPU".replace("  ", " "))
        if not 1 <= options.gpus <= MOST_GPUS:
            raise InputError(f"a program can have 1 to {MOST_GPUS} GPUs, not {options.gpus}")
        self.machine = machine
        self.options = options
        self.monitor = RunMonitor()
        self.selection = LaunchSelection(options.profiling)
        self._first = _core.GpuDevice()
        self.heap_file, self.heap_bytes = self._first.share_memory()
        self.heap_address: int = _core.GpuDevice.heap
        if "initcheck" in options.checks:
            self._first.track_writes()
        self.gpus: list[Gpu] = []
        self.heap = Heap(self.gpus, DEVICE_PAGE if options.page_bounds else 1)
        self.virtual = VirtualMemory(self.heap)
        if options.functional:
            array = ctypes.c_uint8 * self.heap_bytes
            self._bytes = np.ctypeslib.as_array(array.from_address(self._first.host_address))
        self.gpus += [
            self._gpu(number, _core.GpuDevice(sharing_memory_of=self._first) if number else self._first)
            for number in range(options.gpus)
        ]
        self.retired: list[Gpu] = []  # GPUs that were reset after a fault

    def _gpu(self, number: int, native: _core.GpuDevice) -> Gpu:
        options = self.options
        description = describe(self.machine, number, options.gpus)
        gpu: Gpu
        if options.functional:
            gpu = FunctionalGpu(
                number,
                description,
                self.machine,
                native,
                self._bytes,
                threads=options.threads,
                maximum_instructions=options.maximum_instructions,
                checks=options.checks,
            )
        else:
            gpu = TimedGpu(
                number,
                description,
                self.machine,
                native,
                threads=options.threads,
                seed=options.seed,
                maximum_instructions=options.maximum_instructions,
            )
            gpu.monitor = self.monitor
            gpu.profiling, gpu.selection = options.profiling, self.selection
            gpu.uvm.explicit_bytes = 0
            if options.until is not None:
                gpu.until = options.until
        isa = isa_for(self.machine, options.isa)
        gpu.isa = "ptx" if options.checks and isa == "auto" else isa  # where there is PTX
        gpu.allow_newer = options.allow_newer
        gpu.code_rules()  # reads what the machine says of them
        return gpu

    def replace(self, gpu: Gpu) -> Gpu:
        """Replaces a GPU on which a kernel has failed."""
        new = self._gpu(gpu.number, _core.GpuDevice(sharing_memory_of=self._first))
        self.heap.introduce(new)
        self.gpus[gpu.number] = new
        self.retired.append(gpu)
        return new
