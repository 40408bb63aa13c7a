# SPDX-License-Identifier: Apache-2.0
"""A simulated GPU as a CUDA program drives it: many small commands, given at the times of the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from manyscale import _core
from manyscale.errors import DeadlockError, KernelError
from manyscale.gpu import KernelProfile, TimedDevice
from manyscale.gpu.stream import Event, Queued, QueuedLaunch, Stream
from manyscale.host_memory import MemoryWatch
from manyscale.machine import Machine
from manyscale.system.running import core_errors, explain_deadlock

from .modules import LoadedKernel
from .properties import DeviceDescription
from .status import CudaError, Status
from .watch import Pause, Watch
from .work import CopyJob, CopyRecord, LaunchRecord

MOST_PROFILES = 1024
"""Kernels of which the first launch is looked at closely."""


class TimeLimitError(Exception):
    """The simulated time that the user allows is over."""


class GivenLaunch(QueuedLaunch):
    """A launch of a program, with its record and what is to be done when it has ended."""

    def __init__(
        self, *arguments: Any, record: LaunchRecord, printed_to: bytearray, ended: Callable[[], None]
    ) -> None:
        super().__init__(*arguments)
        self.record = record
        self.printed_to = printed_to
        self.ended = ended


class GivenCopy(Queued):
    """A copy of a program; `data` is what came to the host."""

    def __init__(self, device: TimedGpu, stream: int, record: CopyRecord) -> None:
        super().__init__(device, stream, record.kind)
        self.record = record
        self.data = b""


def end_of(queued: Queued) -> int:
    """When something that is done has ended, in femtoseconds."""
    assert queued._times is not None
    return queued._times[1]


class TimedGpu(TimedDevice):
    """A GPU with time. Commands reach it at the host's time (`host_time`) and the latency of the link later."""

    has_time = True

    def __init__(
        self,
        number: int,
        description: DeviceDescription,
        machine: Machine,
        native: _core.GpuDevice,
        **options: Any,
    ) -> None:
        super().__init__(machine, native=native, echo=False, **options)
        self.number = number
        self.description = description
        self.host_time = 0  # femtoseconds
        self.until: int = _core.never  # the run goes no further
        self.last_end = 0  # of all that has ended
        self.profiles: dict[str, KernelProfile] = {}
        self.launches_ended: list[LaunchRecord] = []
        self.copies_ended: list[CopyRecord] = []
        self.watch = Watch()
        self._simulation = self.parts.system.simulation
        self._arrivals: dict[int, int] = {}  # by stream: when its last command arrives

    @property
    def capability(self) -> int:
        """The compute capability that the program is told, 70 for 7.0."""
        return self.description.capability

    # --- What the program gives ---

    def launch(
        self,
        stream: Stream,
        kernel: LoadedKernel,
        record: LaunchRecord,
        packed: bytes,
        workspace: int,
        printed_to: bytearray,
        ended: Callable[[], None],
    ) -> GivenLaunch:
        """Queues a launch."""
        self._check_usable()
        try:
            launch = self._launches.add(
                self.native,
                kernel.native,
                record.grid,
                record.block,
                record.shared,
                packed,
                False,
                self.maximum_instructions,
                stream.number,
                stream.priority,
                workspace,
            )
        except _core.BadLaunch as error:
            raise CudaError(status_of_bad_launch(str(error)), f"kernel {kernel.name}: {error}") from None
        record.isa = kernel.native.isa
        queued = GivenLaunch(
            self,
            stream.number,
            kernel.name,
            launch,
            kernel.order_matters,
            (record.grid, record.block),
            record=record,
            printed_to=printed_to,
            ended=ended,
        )
        command = self._commands.kernel(launch, self.native, kernel.native, packed, self._given(stream))
        return stream.queued(self._note(queued, command))

    def give_copy(self, stream: Stream, job: CopyJob, record: CopyRecord) -> GivenCopy:
        """Queues a copy or a fill."""
        self._check_usable()
        within = job.kind == "within"
        command = self._commands.copy(
            self.native,
            getattr(_core.GpuCopyKind, job.kind),
            address=job.address,
            source=job.other if within else 0,
            bytes=job.rows.bytes,
            host=job.data,
            given=self._given(stream),
            pinned=0 if within else job.other,
            rows=job.rows,
        )
        return stream.queued(self._note(GivenCopy(self, stream.number, record), command))

    def note_memory(self, used: int) -> None:
        """So many bytes of the GPU's memory are not managed."""
        self.uvm.explicit_bytes = used

    def adopt_managed(self, address: int, size: int) -> None:
        """Variables of a module are managed memory."""
        self.uvm.adopt(address, size, "managed variables")
        self._managed[address] = size

    def add_remote(self, address: int, size: int) -> None:
        """Memory of the host or of another GPU, which kernels reach over the link."""
        self.uvm.add_remote(address, size)

    def remove_remote(self, address: int) -> None:
        """Such memory is given back."""
        self.uvm.remove_remote(address)

    def not_before(self, stream: Stream, when: int) -> None:
        """What is queued in a stream from now on begins at this time at the earliest."""
        self._arrivals[stream.number] = max(self._arrivals.get(stream.number, 0), when)

    # --- Waiting ---

    def finish(self, queued: Queued) -> None:
        """Simulates on until something has ended."""
        if not queued.done:
            self._run(queued)

    def finish_all(self) -> None:
        """Simulates on until all that was queued has ended."""
        if self._unfinished:
            self._run(None)

    def advance(self, when: int) -> None:
        """Simulates on until a time, or until all has ended."""
        if self._unfinished and when > self._simulation.now:
            self._run(None, when)

    @property
    def fault(self) -> str | None:
        """What a kernel did wrong that has stopped the GPU."""
        return self._fault

    @property
    def busy(self) -> bool:
        """Whether something has not ended."""
        return bool(self._unfinished)

    # --- How the device with time is told otherwise ---

    def _given(self, stream: Stream, delay: int | None = None) -> _core.GpuGiven:
        now = self._simulation.now
        latency = self.host_side.command_latency if delay is None else delay
        arrival = max(self.host_time + latency, self._arrivals.get(stream.number, 0), now)
        self._arrivals[stream.number] = arrival
        return _core.GpuGiven(stream=stream.number, priority=stream.priority, delay=arrival - now)

    def _run(self, last: Queued | None, until: int | None = None) -> None:
        self._check_usable()
        begin = time.perf_counter()
        if self._managed:
            self.uvm.before_run()
        self._commands.stop_after(0 if last is None else last.command)
        stop = self.until if until is None else min(until, self.until)
        while True:
            pause = Pause(self.watch, several=len(self._unfinished) > 1)
            try:
                with core_errors():
                    threads, parts = self._division()
                    report = self._simulation.run(
                        until=stop, threads=threads, parts=parts, progress=MemoryWatch(pause.report)
                    )
            except _core.KernelFault as error:
                self._fault = str(error)
                self._say_all()
                raise KernelError(self._fault) from None
            self._report, self._result = report, None
            self._collect(time.perf_counter() - begin)
            if not pause.taken or report["outcome"] != "interrupted" or (last is not None and last.done):
                break
            self.watch.collected()
        outcome = report["outcome"]
        if outcome == "deadlock":
            self._fault = explain_deadlock(report)
            raise DeadlockError(self._fault)
        if outcome == "interrupted" and not (last is not None and last.done):
            raise KeyboardInterrupt
        if outcome == "limit" and stop == self.until:
            raise TimeLimitError

    def _say_all(self) -> None:
        """Passes on what kernels had printed before one of them failed."""
        for launch, (printed, _) in self._launches.take_said().items():
            before = self._said.get(launch, (b"", []))[0]
            for queued in self._unfinished.values():
                if isinstance(queued, GivenLaunch) and queued.launch == launch:
                    queued.printed_to += before + printed

    def _collect(self, wall_seconds: float) -> None:
        """Takes what has ended; there is no other timeline than the records."""
        for launch, (printed, _) in self._launches.take_said().items():
            self._said[launch] = (self._said.get(launch, (b"", []))[0] + printed, [])
        unfinished = self._unfinished
        for ended in self._commands.take_ended():
            queued = unfinished.pop(ended.command)
            queued._times = begun, end = ended.begun, ended.ended
            if isinstance(queued, GivenLaunch):
                self._end_launch(queued, ended, wall_seconds)
            elif isinstance(queued, GivenCopy):
                record = queued.record
                record.begin, record.end, queued.data = begun, end, ended.data
                record.l2_bytes, record.dram_bytes = ended.traffic.l2_bytes, ended.traffic.dram_bytes
                self.copies_ended.append(record)
                self.last_end = max(self.last_end, end)

    def _end_launch(self, queued: QueuedLaunch, ended: _core.GpuEnded, wall_seconds: float) -> None:
        assert isinstance(queued, GivenLaunch)
        index, record = queued.launch, queued.record
        outcome = self._launches.result(index)
        printed, _ = self._said.pop(index, (b"", []))
        queued.printed_to += printed
        if queued.what not in self.profiles and len(self.profiles) < MOST_PROFILES:
            profile = self._profiler.take(index, queued.what, *queued.shape, ended.traffic)
            self.profiles[queued.what] = profile
            counts: Any = profile.counts.sm
        else:
            counts = self._launches.take_profile(index, False)["statistics"]
        record.begin, record.end = ended.begun, ended.ended
        record.cycles = round((ended.ended - ended.begun) * self.parts.clock / 10**15)
        record.warp_instructions = counts["warp_instructions"]
        record.thread_instructions = counts["thread_instructions"]
        record.issued_instructions = counts["issued_instructions"]
        record.registers = outcome["registers"]
        record.occupancy = outcome["ctas_per_sm"] * outcome["warps_per_cta"] / self.warps_per_sm
        record.l2_bytes, record.dram_bytes = ended.traffic.l2_bytes, ended.traffic.dram_bytes
        record.wall_seconds = wall_seconds
        self._launches.release(index)
        self.launches_ended.append(record)
        self.last_end = max(self.last_end, ended.ended)
        queued.ended()

    # --- What kernels need ---

    def occupancy(self, kernel: LoadedKernel, threads: int, shared: int) -> tuple[int, int]:
        """CTAs of a kernel that fit on an SM, and the registers of a thread."""
        ctas, registers = self._launches.occupancy(kernel.native, threads, shared)
        return int(ctas), int(registers)

    def record_event(self, stream: Stream) -> Event:
        """The moment when all that is in a stream now has ended."""
        return stream.record()


def status_of_bad_launch(why: str) -> Status:
    """What CUDA says of a launch that a GPU cannot take."""
    if "shared memory" in why and "registers" not in why:
        return Status.INVALID_VALUE
    if "registers" in why or ".maxntid" in why:
        return Status.LAUNCH_OUT_OF_RESOURCES
    return Status.INVALID_CONFIGURATION
