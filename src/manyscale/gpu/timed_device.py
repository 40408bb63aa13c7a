# SPDX-License-Identifier: Apache-2.0
"""The GPU with time: kernels and copies on the SMs, L2, DRAM and link of a machine, in simulated time."""

from __future__ import annotations

import contextlib
import itertools
import numbers
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyscale import _core
from manyscale.errors import DeadlockError, InputError
from manyscale.machine import Machine, ResolvedMachine, resolve_machine
from manyscale.machine.gpu_system import build_gpu
from manyscale.machine.link import add_host_side
from manyscale.machine.loading import KERNELS
from manyscale.machine.uvm import add_unified_memory
from manyscale.system.running import Result, explain_deadlock, statistics_columns

from .array import ArrayCopy
from .command_queue import CommandQueue
from .device import Device
from .isa import CodeRules, Isa, isa_for, rules_for
from .launch import Launch
from .managed import ManagedArray, UnifiedMemory
from .parsing import ParsedModule
from .profile import KernelProfile, Profiler
from .run_directory import record
from .sass import architecture_near
from .stream import (
    Activity,
    ActivityKind,
    Event,
    Queued,
    QueuedCopy,
    QueuedLaunch,
    QueuedRange,
    Stream,
    StreamModule,
)
from .targets import capability_of

_REMEMBERED = 65536  # latest activities in the timeline


@dataclass(frozen=True)
class TimedLaunch(Launch):
    """The result of a launch with time: also cycles, occupancy and the profile."""

    cycles: int  # of the GPU clock, from the start of its launch to its end
    seconds: float
    registers: int  # of a thread
    occupancy: float  # resident warps of an SM, divided by its maximum
    issued_instructions: int
    profile: KernelProfile = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        return self.profile._repr_html_()


class TimedDevice(Device):
    """A GPU that executes kernels exactly and models their time.

    `machine` is a machine with a GPU, or the name or file of one, such as "v100"; `changes` are changes of its
    parameters, such as "gpu.clock=1GHz". `threads`: host threads that the simulation
    runs on; the results do not depend on it. Launches and copies without a stream wait for all that is queued and run
    to their end. `page_log`: rows of the page log of managed memory to keep, see `uvm.log()`. `isa`: what
    kernels run as; if neither this nor the machine says, `"auto"`: SASS of the machine's GPU where it can be had, else
    PTX, whose time is less accurate.
    """

    module_type = StreamModule

    def __init__(
        self,
        machine: str | os.PathLike[str] | Machine | ResolvedMachine = "v100",
        *,
        changes: Sequence[str] = (),
        threads: int = 1,
        seed: int = 0,
        echo: bool = True,
        page_log: int = 0,
        isa: Isa | None = None,
        **options: Any,
    ) -> None:
        self.resolved = resolve_machine(machine, changes)
        self.machine: Machine = self.resolved.machine
        super().__init__(threads=threads, echo=echo, isa=isa_for(self.machine, isa), **options)
        self.seed = seed
        self.parts = build_gpu(self.machine, seed=seed)
        self.host_side = add_host_side(self.parts, self.machine.link)
        unified = add_unified_memory(self.parts, self.machine, log_rows=page_log)
        self.code_rules()  # reads what the machine says of them
        self.resolved.check_read(KERNELS)
        self.uvm = UnifiedMemory(self.parts, unified, self.native)
        self.warps_per_sm = int(self.parts.sms[0].spec.model_dump()["warps"])
        self.queue = CommandQueue(self.parts, self.host_side, threads, self._on_end)
        self._profiler = Profiler(self.parts, self.queue.launches)
        self.progress: Callable[[int, int], None] | None = (
            None  # called periodically with femtoseconds and events
        )
        self._timeline: deque[Activity] = deque(maxlen=_REMEMBERED)
        self._streams = itertools.count(1)
        self._default = Stream(self, 0, 0)
        self._host = Stream(self, next(self._streams), 0)  # prefetches and host accesses without a stream
        self._released: list[int] = []  # managed memory to be freed
        self._released_arrays: list[int] = []  # memory of arrays to be freed
        self._running = False
        self._result: tuple[dict[str, Any], Result] | None = None  # with the report that it is of
        self._recorded: list[TimedLaunch] | None = None  # launches that have ended while a run is recorded
        self.has_used_managed = False  # memory

    # --- For users ---

    @contextlib.contextmanager
    def record(
        self,
        out: str | os.PathLike[str],
        *,
        workload: Mapping[str, Any] | None = None,
        timeline: bool = False,
        command: Sequence[str] = (),
    ) -> Iterator[list[TimedLaunch]]:
        """Leaves a run directory of the launches that end within the `with` block, which are in the list it gives.

        At its end, all that was queued has ended; after Ctrl-C, the directory has what there is. `workload` says what
        runs, with values that JSON has; the name of the program if it is not given. `timeline`: which CTAs ran when is
        written, too. Statistics are those of the device since it was made.
        """
        if self._recorded is not None:
            raise InputError("the device is recorded already; end that record first")
        launches: list[TimedLaunch] = []
        self._recorded = launches
        self.queue.launches.record_states(True)
        try:
            with record(self, launches, out, workload=workload, timeline=timeline, command=command):
                yield launches
        finally:
            self._recorded = None
            self.queue.launches.record_states(False)

    @property
    def result(self) -> Result | None:
        """Statistics of all components so far; None if nothing has run, or a kernel has failed."""
        report = self.queue.report
        if self.queue.fault is not None or report is None:
            return None
        if self._result is None or self._result[0] is not report:
            self._result = report, Result(report, statistics_columns(self.parts.system), None)
        return self._result[1]

    def stream(self, priority: int = 0) -> Stream:
        """A new stream; as in CUDA, lower numbers are more urgent."""
        if not isinstance(priority, numbers.Integral) or not -(2**31) <= int(priority) < 2**31:
            raise InputError(f"the priority of a stream is a whole number, not {priority!r}")
        return Stream(self, next(self._streams), int(priority))

    def synchronize(self) -> None:
        """Simulates until all commands have ended."""
        if self.queue.unfinished:
            self._run(None)

    def timeline(self) -> list[Activity]:
        """The kernels and copies that have ended, in the order of their ends; the last 65,536 of them."""
        return list(self._timeline)

    # --- For kernels, arrays and streams ---

    def run_kernel(
        self,
        kernel: str,
        native: _core.GpuKernel,
        grid: list[int],
        block: list[int],
        shared: int,
        packed: bytes,
    ) -> TimedLaunch:
        """Runs one launch to its end."""
        self.synchronize()
        queued = self.enqueue_kernel(self._default, kernel, native, grid, block, shared, packed)
        self.synchronize()
        return queued.result

    def enqueue_kernel(
        self, stream: Stream, kernel: str, native: _core.GpuKernel, *shape: Any
    ) -> QueuedLaunch:
        """Queues a launch in a stream; `shape`: grid, block, dynamic shared memory and packed parameters."""
        self.queue.check_usable()
        grid, block, _, packed = shape
        try:
            launch = self.queue.add_launch(
                self.native,
                stream,
                native,
                *shape,
                check=self.check,
                maximum_instructions=self.maximum_instructions,
            )
        except _core.BadLaunch as error:
            raise InputError(f"kernel {kernel}: {error}") from None
        order_matters = self.queue.launches.order_matters(launch)
        queued = QueuedLaunch(self, stream.number, kernel, launch, order_matters, (grid, block))
        queued.isa = native.isa
        # Launches without a stream have no command latency: their times are those of the GPU alone.
        delay = 0 if stream is self._default else None
        options = self._submit_options(stream, delay)
        command = self.queue.commands.enqueue_kernel(launch, self.native, native, packed, options)
        return self.queue.submitted(queued, command)

    def copy(self, copy: ArrayCopy, stream: Stream | None = None) -> QueuedCopy:
        """Queues a copy in a stream; without one, carries it out to its end."""
        if stream is None:
            self.synchronize()
        self.queue.check_usable()
        on = stream or self._default
        for array in (copy.array, copy.source):
            if isinstance(array, ManagedArray) and array.nbytes:
                array.prefetch(
                    "device", stream=stream
                )  # copies are made by the device: its pages migrate there first
        queued = self.queue.submitted(
            QueuedCopy(self, on.number, copy),
            self.queue.commands.enqueue_copy(
                self.native,
                getattr(_core.GpuCopyKind, copy.kind),
                address=copy.array.address,
                source=0 if copy.source is None else copy.source.address,
                bytes=copy.array.nbytes,
                host=copy.data,
                options=self._submit_options(on),
            ),
        )
        if stream is None:
            self.synchronize()
        return on.queued(queued)

    def enqueue_record(self, stream: Stream) -> Event:
        """Queues the record of an event in a stream."""
        self.queue.check_usable()
        command = self.queue.commands.enqueue_record(self._submit_options(stream))
        return self.queue.submitted(Event(self, stream.number, "event"), command)

    def enqueue_wait(self, stream: Stream, event: Event) -> Queued:
        """Lets a stream wait for an event."""
        self.queue.check_usable()
        command = self.queue.commands.enqueue_wait(event.command, self._submit_options(stream))
        return self.queue.submitted(Queued(self, stream.number, "wait"), command)

    @property
    def capability(self) -> int | None:
        """The compute capability of the machine's GPU, 70 for 7.0; None: the machine states no architecture."""
        gpu = self.machine.gpu
        return None if gpu is None or gpu.architecture is None else capability_of(gpu.architecture)

    def code_rules(self, parsed: ParsedModule | None = None, isa: Isa | None = None) -> CodeRules:
        """How the ISA of a module is chosen; `isa` replaces that of the device."""
        near = None if parsed is None else architecture_near(parsed.target)
        return rules_for(self.machine, isa or self.isa, near, check=self.check)

    # --- Managed memory ---

    def page_locations(self, address: int, bytes: int) -> npt.NDArray[np.str_]:
        """Where each page of managed memory is: `device`, `host`, `both`, `nowhere` or `moving`."""
        self._check_managed(address, bytes)
        return self.uvm.locations(address, bytes)

    def _reserve_managed(self, size: int, label: str) -> int:
        self._free_released()
        self.has_used_managed = True
        return self.uvm.allocate(size, label)

    def _free_managed(self, address: int) -> None:
        if self.queue.fault is None:
            self.synchronize()
        try:
            self.uvm.free(address)
        except _core.SimulationError:  # its pages are migrating
            self._run(None)
            self.uvm.free(address)

    def free_memory(self, address: int) -> None:
        """Frees the memory of an array. A kernel that accesses it later faults; it is reused when all queued work has
        ended."""
        self.native.free(address, reserve=bool(self.queue.unfinished))

    def release_memory(self, address: int) -> None:
        """Frees the memory of an array without references as soon as nothing is queued: kernels may have its address
        from elsewhere than their arguments."""
        self._released_arrays.append(address)
        self._free_released()

    def release_managed(self, address: int) -> None:
        """Frees managed memory without references as soon as nothing is queued."""
        self._released.append(address)
        self._free_released()

    def _free_released(self) -> None:
        """Frees released memory, unless its pages are in use or migrating."""
        if self.queue.unfinished or self._running:
            return
        self.native.reuse_reserved()
        arrays, self._released_arrays = self._released_arrays, []
        for address in arrays:
            self.native.free(address)
        released, self._released = self._released, []
        for address in released:
            if address not in self._managed:  # freed by its address already
                continue
            try:
                self.uvm.free(address)
            except _core.SimulationError:
                self._released.append(address)
            else:
                del self._managed[address]

    def _advise_range(self, address: int, size: int, advice: _core.GpuAdvice) -> None:
        self.uvm.advise(address, size, advice)

    def _move_range(self, kind: str, address: int, size: int, stream: Stream | None) -> QueuedRange:
        if stream is None:
            self.synchronize()
        elif not isinstance(stream, Stream) or stream.device is not self:
            raise InputError(f"the stream is one of the same device, made by device.stream(), not {stream!r}")
        on = stream or self._default
        queued = on.queued(self._enqueue_range(on, kind, address, size, None))
        if stream is None:
            self.synchronize()
        return queued

    def _access_range(self, kind: str, address: int, size: int, wait: bool) -> QueuedRange:
        queued = self._enqueue_range(self._host, kind, address, size, 0)
        if wait:
            self.wait_for(queued)
        return queued

    def _enqueue_range(
        self, on: Stream, kind: str, address: int, size: int, delay: int | None
    ) -> QueuedRange:
        self.queue.check_usable()
        command = self.queue.commands.enqueue_range(
            getattr(_core.GpuRangeKind, kind), address, size, self._submit_options(on, delay)
        )
        return self.queue.submitted(
            QueuedRange(self, on.number, f"{kind.replace('_', ' ')} {size} B"), command
        )

    def wait_for(self, queued: Queued) -> None:
        """Simulates until a command has ended."""
        if not queued.done:
            self._run(queued)

    # --- Running ---

    def _submit_options(self, stream: Stream, delay: int | None = None) -> _core.GpuSubmitOptions:
        latency = self.host_side.command_latency if delay is None else delay
        return _core.GpuSubmitOptions(stream=stream.number, priority=stream.priority, delay=latency)

    def _run(self, last: Queued | None) -> None:
        """Simulates until a command has ended, or all."""
        self.queue.check_usable()
        if self._managed:
            self.uvm.before_run()
        self._running = True
        try:
            report = self.queue.simulate(last, progress=self.progress)
        finally:
            self._running = False
        self._free_released()
        if report["outcome"] == "deadlock":
            raise DeadlockError(explain_deadlock(report))
        if report["outcome"] == "interrupted":
            raise KeyboardInterrupt

    def _on_end(self, queued: Queued, ended: _core.GpuEndedCommand, wall_seconds: float) -> None:
        """Takes the results of a command."""
        if isinstance(queued, QueuedLaunch):
            kind = ActivityKind.KERNEL
            self._end_launch(queued, ended, wall_seconds)
        elif isinstance(queued, QueuedCopy):
            kind = ActivityKind.COPY
            assert queued.copy is not None
            queued.copy.arrived(ended.data)
            queued.copy = None
            queued.traffic = ended.traffic
        elif isinstance(queued, QueuedRange):
            kind = ActivityKind.MANAGED
        else:
            return
        self._timeline.append(Activity(kind, queued.what, queued.stream, queued.begin, queued.end))

    def _end_launch(self, queued: QueuedLaunch, ended: _core.GpuEndedCommand, wall_seconds: float) -> None:
        duration = ended.ended - ended.begun
        outcome = self.queue.launches.result(queued.launch)
        printed, warnings = self.queue.take_output(queued.launch)
        profile = self._profiler.take(queued.launch, queued.what, *queued.shape, ended.traffic)
        counts = profile.counts.sm
        queued.outcome = TimedLaunch(
            kernel=queued.what,
            isa=queued.isa,
            warp_instructions=counts["warp_instructions"],
            thread_instructions=counts["thread_instructions"],
            printed=printed.decode(errors="replace"),
            warnings=tuple(warnings),
            wall_seconds=wall_seconds,
            cycles=profile.counts.cycles,
            seconds=duration / 10**15,
            registers=outcome["registers"],
            occupancy=outcome["ctas_per_sm"] * outcome["warps_per_cta"] / self.warps_per_sm,
            issued_instructions=counts["issued_instructions"],
            profile=profile,
        )
        self.queue.launches.release(queued.launch)
        if self._recorded is not None:
            self._recorded.append(queued.outcome)
        queued.arguments = ()
        queued.printed = queued.outcome.printed
        if queued.stream != 0 and queued.printed and self.echo:
            sys.stdout.write(queued.printed)
