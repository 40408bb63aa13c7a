# SPDX-License-Identifier: Apache-2.0
"""A GPU with time as a CUDA program drives it: many small commands, submitted at host times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from manyscale import _core
from manyscale.errors import DeadlockError, KernelError
from manyscale.gpu import KernelProfile, TimedDevice
from manyscale.gpu.isa import CodeRules, Isa, rules_for
from manyscale.gpu.parsing import ParsedModule
from manyscale.gpu.stream import Event, Queued, QueuedLaunch, Stream
from manyscale.machine import Machine
from manyscale.system.running import explain_deadlock

from .commands import CopyJob, CopyRecord, LaunchRecord
from .modules import LoadedKernel, fitting_ctas
from .profiling import LaunchSelection, Profiling, StopError
from .properties import DeviceDescription
from .run_monitor import Pause, RunMonitor
from .status import CudaError, status_of_bad_launch

MOST_PROFILES = 1024
"""Kernels whose first launch is profiled, at most."""


class TimeLimitError(Exception):
    """The limit of simulated time is reached."""


class RecordedLaunch(QueuedLaunch):
    """A launch of a program, with its record and a callback at its end."""

    def __init__(
        self, *arguments: Any, record: LaunchRecord, printed_to: bytearray, ended: Callable[[], None]
    ) -> None:
        super().__init__(*arguments)
        self.record = record
        self.printed_to = printed_to
        self.ended = ended


class RecordedCopy(Queued):
    """A copy of a program; `data` is what was copied to the host."""

    def __init__(self, device: TimedGpu, stream: int, record: CopyRecord) -> None:
        super().__init__(device, stream, record.kind)
        self.record = record
        self.data = b""


def _ratio(part: int, whole: int) -> float | None:
    """None where there was nothing."""
    return part / whole if whole else None


def end_of(queued: Queued) -> int:
    """The end of a finished command, in femtoseconds."""
    assert queued._times is not None
    return queued._times[1]


class TimedGpu(TimedDevice):
    """A GPU with time. Commands arrive at `host_time` plus the command latency of the link."""

    has_time = True

    def __init__(
        self,
        number: int,
        description: DeviceDescription,
        machine: Machine,
        native: _core.GpuDevice,
        **options: Any,
    ) -> None:
        self.description = description
        super().__init__(machine, native=native, echo=False, **options)
        self.number = number
        self.host_time = 0  # femtoseconds
        self.until: int = _core.never  # limit of simulated time
        self.last_end = 0  # end of the last finished command
        self.profiles: dict[str, KernelProfile] = {}
        self.checks: tuple[str, ...] = ()  # there are none with time
        self.findings: list[str] = []
        self.launches_ended: list[LaunchRecord] = []
        self.copies_ended: list[CopyRecord] = []
        self.monitor = RunMonitor()
        self.profiling = Profiling()
        self.selection = LaunchSelection(self.profiling)
        self._simulation = self.parts.system.simulation
        self._arrivals: dict[int, int] = {}  # by stream: when its last command arrives

    @property
    def capability(self) -> int:
        """The compute capability that the program sees, 70 for 7.0."""
        return self.description.capability

    def code_rules(self, parsed: ParsedModule | None = None, isa: Isa | None = None) -> CodeRules:
        """How the ISA of a module is chosen: where the machine states no architecture, by what the program sees."""
        return rules_for(self.machine, isa or self.isa, f"sm_{self.capability}")

    # --- Submission ---

    def launch(
        self,
        stream: Stream,
        kernel: LoadedKernel,
        record: LaunchRecord,
        packed: bytes,
        workspace: int,
        printed_to: bytearray,
        ended: Callable[[], None],
    ) -> Queued:
        """Queues a launch; while launches are profiled, it has ended when this returns."""
        self.queue.check_usable()
        profiled = self.profiling.one_by_one
        if profiled:
            self.finish_all()
        if not self.selection.takes_time(kernel.name):
            return self._execute(stream, kernel, record, packed, workspace, printed_to, ended)
        if self.profiling.cold_l2:
            self.queue.commands.empty_l2()
            self.queue.launches.empty_tlbs()
        queued = self._enqueue(stream, kernel, record, packed, workspace, printed_to, ended)
        if profiled:
            self.finish(queued)
            if self.profiling.stop and self.selection.complete:
                raise StopError
        return queued

    def _enqueue(
        self,
        stream: Stream,
        kernel: LoadedKernel,
        record: LaunchRecord,
        packed: bytes,
        workspace: int,
        printed_to: bytearray,
        ended: Callable[[], None],
    ) -> RecordedLaunch:
        self.queue.launches.record_states(self._profiled_next(kernel.name))
        try:
            launch = self.queue.add_launch(
                self.native,
                stream,
                kernel.native,
                record.grid,
                record.block,
                record.shared,
                packed,
                check=False,
                maximum_instructions=self.maximum_instructions,
                workspace=workspace,
            )
        except _core.BadLaunch as error:
            raise CudaError(status_of_bad_launch(error), f"kernel {kernel.name}: {error}") from None
        if self.profiling.warm_instructions:
            self.queue.launches.warm_instructions(launch)
        record.isa = kernel.native.isa
        queued = RecordedLaunch(
            self,
            stream.number,
            kernel.name,
            launch,
            self.queue.launches.order_matters(launch),
            (record.grid, record.block),
            record=record,
            printed_to=printed_to,
            ended=ended,
        )
        options = self._submit_options(stream)
        command = self.queue.commands.enqueue_kernel(launch, self.native, kernel.native, packed, options)
        return stream.queued(self.queue.submitted(queued, command))

    def _execute(
        self,
        stream: Stream,
        kernel: LoadedKernel,
        record: LaunchRecord,
        packed: bytes,
        workspace: int,
        printed_to: bytearray,
        ended: Callable[[], None],
    ) -> Queued:
        """Executes a launch without time; all queued commands have ended."""
        try:
            result = self.native.launch(
                kernel.native,
                record.grid,
                record.block,
                record.shared,
                packed,
                self.threads,
                False,
                self.maximum_instructions,
                workspace,
            )
        except _core.KernelFault as error:
            self.queue.fault = KernelError.of(error)
            raise self.queue.fault from None
        except _core.BadLaunch as error:
            raise CudaError(status_of_bad_launch(error), f"kernel {kernel.name}: {error}") from None
        printed_to += result.printed
        ended()
        now = max(self.host_time, self._simulation.now)
        queued = Queued(self, stream.number, kernel.name)
        queued.complete(now, now)
        return stream.queued(queued)

    def enqueue_copy(self, stream: Stream, job: CopyJob, record: CopyRecord) -> RecordedCopy:
        """Queues a copy or a fill."""
        self.queue.check_usable()
        within = job.kind == "within"
        command = self.queue.commands.enqueue_copy(
            self.native,
            getattr(_core.GpuCopyKind, job.kind),
            address=job.address,
            source=job.other if within else 0,
            bytes=job.rows.bytes,
            host=bytes(job.data),
            options=self._submit_options(stream),
            pinned=0 if within else job.other,
            rows=job.rows,
        )
        return stream.queued(self.queue.submitted(RecordedCopy(self, stream.number, record), command))

    def note_memory(self, used: int) -> None:
        """Sets the bytes of the GPU's memory that are not managed."""
        self.uvm.explicit_bytes = used

    def adopt_managed(self, address: int, size: int) -> None:
        """Makes variables of a module managed memory."""
        self.uvm.adopt(address, size, "managed variables")
        self._managed[address] = size

    def add_remote(self, address: int, size: int) -> None:
        """Adds memory of the host or of another GPU, which kernels access over the link."""
        self.uvm.add_remote(address, size)

    def remove_remote(self, address: int) -> None:
        """Removes such memory."""
        self.uvm.remove_remote(address)

    def not_before(self, stream: Stream, when: int) -> None:
        """Lets later commands of a stream begin at this time at the earliest."""
        self._arrivals[stream.number] = max(self._arrivals.get(stream.number, 0), when)

    # --- Waiting ---

    def finish(self, queued: Queued) -> None:
        """Simulates until a command has ended."""
        if not queued.done:
            self._run(queued)

    def finish_all(self) -> None:
        """Simulates until all commands have ended."""
        if self.queue.unfinished:
            self._run(None)

    def advance(self, when: int) -> None:
        """Simulates until a time, or until all commands have ended."""
        if self.queue.unfinished and when > self._simulation.now:
            self._run(None, when)

    @property
    def fault(self) -> KernelError | DeadlockError | None:
        """The fault that has stopped the GPU."""
        return self.queue.fault

    @property
    def busy(self) -> bool:
        """Whether commands are unfinished."""
        return bool(self.queue.unfinished)

    # --- Overrides of TimedDevice ---

    def _submit_options(self, stream: Stream, delay: int | None = None) -> _core.GpuSubmitOptions:
        now = self._simulation.now
        latency = self.host_side.command_latency if delay is None else delay
        arrival = max(self.host_time + latency, self._arrivals.get(stream.number, 0), now)
        self._arrivals[stream.number] = arrival
        return _core.GpuSubmitOptions(stream=stream.number, priority=stream.priority, delay=arrival - now)

    def _run(self, last: Queued | None, until: int | None = None) -> None:
        self.queue.check_usable()
        began = time.perf_counter()
        if self._managed:
            self.uvm.before_run()
        stop = self.until if until is None else min(until, self.until)
        while True:
            pause = Pause(self.monitor, several=len(self.queue.unfinished) > 1)
            try:
                report = self.queue.simulate(last, progress=pause.report, until=stop, began=began)
            except KernelError:
                self._pass_on_output()
                raise
            if not pause.taken or report["outcome"] != "interrupted" or (last is not None and last.done):
                break
            self.monitor.collected()
        outcome = report["outcome"]
        if outcome == "deadlock":
            self.queue.fault = DeadlockError(explain_deadlock(report))
            raise self.queue.fault
        if outcome == "interrupted" and not (last is not None and last.done):
            raise KeyboardInterrupt
        if outcome == "limit" and stop == self.until:
            raise TimeLimitError

    def _pass_on_output(self) -> None:
        """Passes on the output of kernels before the fault."""
        self.queue.collect_output()
        for queued in self.queue.unfinished.values():
            if isinstance(queued, RecordedLaunch):
                queued.printed_to += self.queue.take_output(queued.launch)[0]

    def _on_end(self, queued: Queued, ended: _core.GpuEndedCommand, wall_seconds: float) -> None:
        """Completes the record, which replaces the timeline."""
        if isinstance(queued, RecordedLaunch):
            self._end_launch(queued, ended, wall_seconds)
        elif isinstance(queued, RecordedCopy):
            record = queued.record
            record.begin, record.end, queued.data = ended.begun, ended.ended, ended.data
            record.l2_bytes, record.dram_bytes = ended.traffic.l2_bytes, ended.traffic.dram_bytes
            self.copies_ended.append(record)
            self.last_end = max(self.last_end, ended.ended)

    def _end_launch(self, queued: QueuedLaunch, ended: _core.GpuEndedCommand, wall_seconds: float) -> None:
        assert isinstance(queued, RecordedLaunch)
        index, record = queued.launch, queued.record
        outcome = self.queue.launches.result(index)
        queued.printed_to += self.queue.take_output(index)[0]
        if self._profiled_next(queued.what):
            profile = self._profiler.take(index, queued.what, *queued.shape, ended.traffic)
            self.profiles[queued.what] = profile
            counts: Any = profile.counts.sm
        else:
            counts = self.queue.launches.take_profile(index, False)["statistics"]
        record.begin, record.end = ended.begun, ended.ended
        record.cycles = round((ended.ended - ended.begun) * self.parts.clock / 10**15) + outcome["prepared"]
        record.warp_instructions = counts["warp_instructions"]
        record.thread_instructions = counts["thread_instructions"]
        record.issued_instructions = counts["issued_instructions"]
        record.registers = outcome["registers"]
        record.occupancy = outcome["ctas_per_sm"] * outcome["warps_per_cta"] / self.warps_per_sm
        record.achieved_occupancy = _ratio(counts["warp_cycles"], counts["active_cycles"] * self.warps_per_sm)
        record.l1_hit_rate = _ratio(counts["l1_hits"], counts["l1_hits"] + counts["l1_misses"])
        moved = ended.traffic.l2_bytes
        record.l2_hit_rate = _ratio(max(0, moved - ended.traffic.l2["bytes_in"]), moved)
        record.l2_bytes, record.dram_bytes = ended.traffic.l2_bytes, ended.traffic.dram_bytes
        record.wall_seconds = wall_seconds
        self.queue.launches.release(index)
        self.launches_ended.append(record)
        self.last_end = max(self.last_end, ended.ended)
        queued.ended()

    def _profiled_next(self, kernel: str) -> bool:
        """Whether a launch of a kernel is the one whose profile is kept."""
        return kernel not in self.profiles and len(self.profiles) < MOST_PROFILES

    # --- Resources of kernels ---

    def occupancy(self, kernel: LoadedKernel, threads: int, shared: int) -> tuple[int, int]:
        """CTAs of a kernel that fit on an SM, and the registers of a thread."""
        if kernel.problem is not None:  # it cannot be launched, but be asked for
            return fitting_ctas(self.description, kernel, threads, shared), kernel.registers
        ctas, registers = self.queue.launches.occupancy(kernel.native, threads, shared)
        return int(ctas), int(registers)

    def record_event(self, stream: Stream) -> Event:
        """Records an event in a stream."""
        return stream.record()
