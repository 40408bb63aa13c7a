# SPDX-License-Identifier: Apache-2.0
"""A GPU without time: commands are carried out when they are submitted; nothing overlaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import DeadlockError, KernelError
from manyscale.gpu import Device
from manyscale.gpu.isa import CodeRules, Isa, rules_for
from manyscale.gpu.parsing import ParsedModule
from manyscale.machine import Machine

from .checks import bits_of
from .commands import CopyJob, CopyRecord, LaunchRecord
from .modules import LoadedKernel, fitting_ctas
from .properties import DeviceDescription
from .status import CudaError, status_of_bad_launch


class Done:
    """A command that ends when it is submitted."""

    done = True

    def __init__(self, when: int, data: bytes | memoryview = b"") -> None:
        self.when = when
        self.data = data


class InstantStream:
    """A stream of a GPU without time; it is always empty."""

    def __init__(self, number: int, priority: int) -> None:
        self.number = number
        self.priority = priority


class FunctionalGpu(Device):
    """A GPU that executes kernels exactly; its times are those of the calls of the host."""

    has_time = False
    busy = False

    def __init__(
        self,
        number: int,
        description: DeviceDescription,
        machine: Machine,
        native: _core.GpuDevice,
        heap: npt.NDArray[np.uint8],
        *,
        threads: int,
        maximum_instructions: int,
        checks: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            native=native, threads=threads, maximum_instructions=maximum_instructions, echo=False
        )
        self.number = number
        self.description = description
        self.machine = machine
        self.host_time = 0
        self.last_end = 0
        self.profiles: dict[str, Any] = {}
        self.launches_ended: list[LaunchRecord] = []
        self.copies_ended: list[CopyRecord] = []
        self.checks = checks
        self.findings: list[str] = []  # of checks, not shown yet
        self._heap = heap
        self._streams = 0
        self.fault: KernelError | DeadlockError | None = None

    @property
    def capability(self) -> int:
        """The compute capability that the program sees, 70 for 7.0."""
        return self.description.capability

    def code_rules(self, parsed: ParsedModule | None = None, isa: Isa | None = None) -> CodeRules:
        """As on the same GPU with time; races are found in PTX."""
        return rules_for(self.machine, isa or self.isa, f"sm_{self.capability}", check=bool(self.checks))

    def stream(self, priority: int = 0) -> InstantStream:
        self._streams += 1
        return InstantStream(self._streams, priority)

    def launch(
        self,
        stream: InstantStream,
        kernel: LoadedKernel,
        record: LaunchRecord,
        packed: bytes,
        workspace: int,
        printed_to: bytearray,
        ended: Callable[[], None],
    ) -> Done:
        """Runs a launch to its end."""
        begin = time.perf_counter()
        try:
            result = self.native.launch(
                kernel.native,
                record.grid,
                record.block,
                record.shared,
                packed,
                self.threads,
                bits_of(self.checks, kernel.native.isa),
                self.maximum_instructions,
                workspace,
            )
        except _core.KernelFault as error:
            self.fault = KernelError.of(error)  # returned by the next call that waits
            return Done(self.host_time)
        except _core.BadLaunch as error:
            raise CudaError(status_of_bad_launch(error), f"kernel {kernel.name}: {error}") from None
        printed_to += result.printed
        self.findings += result.warnings
        record.begin = record.end = self.host_time
        record.isa = kernel.native.isa
        record.warp_instructions = result.warp_instructions
        record.thread_instructions = result.thread_instructions
        record.wall_seconds = time.perf_counter() - begin
        self.launches_ended.append(record)
        ended()
        return Done(self.host_time)

    def enqueue_copy(self, stream: InstantStream, job: CopyJob, record: CopyRecord) -> Done:
        """Carries out a copy or a fill."""
        rows = job.rows
        here = self._view(job.address, rows.pitch, rows.slice_pitch, job)
        data: bytes | memoryview = b""
        if self.checks:
            self._mark_written(job)
        if job.kind == "fill":
            here[...] = np.resize(np.frombuffer(job.data, np.uint8), rows.width)
        elif job.kind == "to_host" and not job.other:
            data = np.ascontiguousarray(here).reshape(-1).data  # without a copy where rows are side by side
        else:
            if job.other:
                there = self._view(job.other, rows.other_pitch, rows.other_slice_pitch, job)
            else:
                there = np.frombuffer(job.data, np.uint8).reshape(here.shape)
            if job.kind == "to_host":
                there[...] = here
            else:
                here[...] = there
        record.begin = record.end = self.host_time
        self.copies_ended.append(record)
        return Done(self.host_time, data)

    def _mark_written(self, job: CopyJob) -> None:
        """Of memory that a copy or a fill writes on the device."""
        rows = job.rows
        address, pitch, slice_pitch = job.address, rows.pitch, rows.slice_pitch
        if job.kind == "to_host":
            if not job.other:
                return
            address, pitch, slice_pitch = job.other, rows.other_pitch, rows.other_slice_pitch
        for depth in range(rows.depth):
            for row in range(rows.height):
                self.native.mark_written(address + depth * slice_pitch + row * pitch, rows.width)

    def _view(self, address: int, pitch: int, slice_pitch: int, job: CopyJob) -> npt.NDArray[np.uint8]:
        rows = job.rows
        at = address - _core.GpuDevice.heap
        return np.lib.stride_tricks.as_strided(
            self._heap[at:], (rows.depth, rows.height, rows.width), (slice_pitch, pitch, 1)
        )

    def record_event(self, stream: InstantStream) -> Done:
        return Done(self.host_time)

    def finish(self, queued: Any) -> None:
        """Nothing is left to do."""

    def finish_all(self) -> None:
        """Nothing is left to do."""

    def advance(self, when: int) -> None:
        """Nothing is left to do."""

    def note_memory(self, used: int) -> None:
        """All memory is managed alike."""

    def adopt_managed(self, address: int, size: int) -> None:
        """All memory is managed alike."""

    def add_remote(self, address: int, size: int) -> None:
        """All memory is equally far."""

    def remove_remote(self, address: int) -> None:
        """All memory is equally far."""

    def not_before(self, stream: InstantStream, when: int) -> None:
        """Nothing takes time here."""

    def occupancy(self, kernel: LoadedKernel, threads: int, shared: int) -> tuple[int, int]:
        """CTAs of a kernel that fit on an SM, and the registers of a thread."""
        if not kernel.registers:
            kernel.registers = int(_core.lower_kernel(kernel.native).registers)
        return fitting_ctas(self.description, kernel, threads, shared), kernel.registers
