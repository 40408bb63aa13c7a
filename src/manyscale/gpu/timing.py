# SPDX-License-Identifier: Apache-2.0
"""The GPU with time: the same kernels and arrays as on the functional device, on a machine's SMs, L2 and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from manyscale import _core
from manyscale.errors import InputError, KernelError
from manyscale.machine import Machine, load_machine
from manyscale.machine.gpu_system import build_gpu
from manyscale.system.running import Result

from .device import Device
from .launch import Launch


@dataclass(frozen=True)
class TimedLaunch(Launch):
    """What a launch has done, and how long it took on the simulated GPU."""

    cycles: int  # of the GPU's clock, from the kernel's turn to its end
    seconds: float
    registers: int  # of a thread
    occupancy: float  # warps that fit on an SM, of those it holds
    machine_instructions: int


class TimedDevice(Device):
    """A GPU that executes kernels exactly and says how long they take.

    `machine` is a name or file of a machine with a GPU, such as "v100". `threads`: host threads that the simulation
    runs on; the results do not depend on it.
    """

    def __init__(
        self,
        machine: str | Machine = "v100",
        *,
        threads: int = 1,
        seed: int = 0,
        echo: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(threads=threads, echo=echo, **options)
        self.machine: Machine = machine if isinstance(machine, Machine) else load_machine(machine).machine
        self.parts = build_gpu(self.machine, seed=seed)
        self.warps_per_sm = int(self.parts.sms[0].spec.model_dump()["warps"])
        self._launches = _core.GpuLaunches(self.parts.scheduler.native, [sm.native for sm in self.parts.sms])
        self._counted: dict[str, int] = {
            "warp_instructions": 0,
            "thread_instructions": 0,
            "machine_instructions": 0,
        }
        self.result: Result | None = None

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
        begin = time.perf_counter()
        try:
            index = self._launches.add(
                self.native, native, grid, block, shared, packed, self.check, stream=0, priority=0
            )
            # CTAs whose order shows in the result run in one partition, where the order is that of time.
            threads = 1 if native.order_matters else self.threads
            self.result = self.parts.system.run(threads=threads)
        except _core.BadLaunch as error:
            raise InputError(f"kernel {kernel}: {error}") from None
        except _core.KernelFault as error:
            raise KernelError(str(error)) from None
        outcome = self._launches.result(index)
        printed, warnings = self._launches.take_said()
        duration = outcome["ended"] - outcome["begun"]
        counts = self._counts()
        return TimedLaunch(
            kernel=kernel,
            warp_instructions=counts["warp_instructions"],
            thread_instructions=counts["thread_instructions"],
            printed=printed.decode(errors="replace"),
            warnings=tuple(warnings),
            wall_seconds=time.perf_counter() - begin,
            cycles=round(duration * self.parts.clock / 10**15),
            seconds=duration / 10**15,
            registers=outcome["registers"],
            occupancy=outcome["ctas_per_sm"] * outcome["warps_per_cta"] / self.warps_per_sm,
            machine_instructions=counts["machine_instructions"],
        )

    def _counts(self) -> dict[str, int]:
        """What the SMs have counted since the last launch."""
        assert self.result is not None
        columns = self.result.columns
        totals = dict.fromkeys(self._counted, 0)
        for statistic, value in zip(columns["statistic"], columns["value"], strict=True):
            if statistic in totals:
                totals[statistic] += int(value)
        new = {name: total - self._counted[name] for name, total in totals.items()}
        self._counted = totals
        return new
