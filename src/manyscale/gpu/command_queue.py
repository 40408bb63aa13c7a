# SPDX-License-Identifier: Apache-2.0
"""The command queue of a GPU with time: submitted commands, and their simulation on host threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from manyscale import _core
from manyscale.errors import DeadlockError, KernelError
from manyscale.host_memory import MemoryWatch
from manyscale.machine.gpu_system import GpuSystem
from manyscale.machine.link import HostSide
from manyscale.system.running import core_errors

from .stream import Queued, QueuedLaunch, Stream

_SMS_OF_A_PARTITION = 2  # few, so that their warps and caches fit the caches of a host core
_Command = TypeVar("_Command", bound=Queued)

OnEnd = Callable[[Queued, _core.GpuEndedCommand, float], None]


class CommandQueue:
    """Commands of the host in streams of one GPU. What a command means to its submitter is left out.

    `on_end` is called for each command that has ended, in the order of their ends, with the wall time of the run.
    """

    def __init__(self, parts: GpuSystem, host_side: HostSide, threads: int, on_end: OnEnd) -> None:
        scheduler = parts.scheduler.native
        self.launches = _core.GpuLaunches(scheduler, [sm.native for sm in parts.sms])
        self.commands = _core.GpuCommandQueue(
            scheduler,
            [engine.native for engine in host_side.engines],
            [part.native for part in parts.memory],
        )
        self.unfinished: dict[int, Queued] = {}
        self.fault: KernelError | DeadlockError | None = None
        """The fault that has stopped the GPU."""
        self.report: dict[str, Any] | None = None
        """The report of the last run."""
        self._simulation = parts.system.simulation
        self._sms = len(parts.sms)
        self._threads = threads
        self._on_end = on_end
        self._output: dict[int, tuple[bytes, list[str]]] = {}  # by launch that has not ended

    def check_usable(self) -> None:
        """An error if a kernel has stopped the GPU."""
        if self.fault is not None:
            text = f"the device stopped when a kernel failed; make a new one. {self.fault}"
            raise KernelError(text, self.fault.kind, self.fault.location)

    def add_launch(
        self,
        device: _core.GpuDevice,
        stream: Stream,
        kernel: _core.GpuKernel,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        parameters: bytes,
        *,
        check: bool,
        maximum_instructions: int,
        workspace: int = 0,
    ) -> int:
        """Prepares a launch and gives its number; `shared` is dynamic shared memory, `parameters` are packed."""
        return self.launches.add(
            device,
            kernel,
            grid,
            block,
            shared,
            parameters,
            check,
            maximum_instructions,
            stream.number,
            stream.priority,
            workspace,
        )

    def submitted(self, queued: _Command, command: int) -> _Command:
        """Keeps a command until it has ended."""
        queued.command = command
        self.unfinished[command] = queued
        return queued

    def simulate(
        self,
        last: Queued | None,
        *,
        progress: Callable[[int, int], None] | None,
        until: int = _core.never,
        began: float | None = None,
    ) -> dict[str, Any]:
        """Simulates until a command has ended, or all, or a time is reached; the report says which.

        Raises the fault of a kernel. `began`: when the run that this is a part of began.
        """
        began = time.perf_counter() if began is None else began
        self.commands.stop_after(0 if last is None else last.command)
        threads, partitions = self._division()
        try:
            with core_errors():
                report = self._simulation.run(
                    until=until, threads=threads, partitions=partitions, progress=MemoryWatch(progress)
                )
        except _core.KernelFault as error:
            self.fault = KernelError.of(error)
            raise self.fault from None
        self.report = report
        self._collect(time.perf_counter() - began)
        return report

    def take_output(self, launch: int) -> tuple[bytes, list[str]]:
        """Takes the output of a launch so far, and its warnings."""
        return self._output.pop(launch, (b"", []))

    def collect_output(self) -> None:
        """Collects the output of kernels from the SMs."""
        for launch, (printed, warnings) in self.launches.take_output().items():
            before = self._output.setdefault(launch, (b"", []))
            new = [warning for warning in warnings if warning not in before[1]]
            self._output[launch] = (before[0] + printed, before[1] + new)

    def _collect(self, wall_seconds: float) -> None:
        self.collect_output()
        for ended in self.commands.take_ended():
            queued = self.unfinished.pop(ended.command)
            queued.complete(ended.begun, ended.ended)
            self._on_end(queued, ended, wall_seconds)

    def _division(self) -> tuple[int, int]:
        """Host threads and partitions of the machine for the next run.

        Launches whose result depends on the order of CTAs run in one partition, where the order is that of time; so do
        streams that may access the same memory. There are no more partitions than there is work for.
        """
        waiting = self.unfinished.values()
        launches = [queued for queued in waiting if isinstance(queued, QueuedLaunch)]
        one = any(launch.order_matters for launch in launches)
        if not one and len({queued.stream for queued in waiting}) > 1:
            one = self.commands.may_race()
        if one:
            return 1, 1
        busy = min(self._sms, sum(math.prod(launch.shape[0]) for launch in launches))
        return self._threads, max(1, busy // _SMS_OF_A_PARTITION)
