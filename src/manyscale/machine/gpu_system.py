# SPDX-License-Identifier: Apache-2.0
"""From the GPU's sections of a machine to a system: scheduler, SMs, crossbar, L2 slices, channels of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.machine.dram import dram_parameters
from manyscale.spec import dump
from manyscale.system import System
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.machine.description import Machine
    from manyscale.spec import Spec

_REQUIRED = ("clock", "sm_count", "l2_slices", "l2_slice_capacity", "memory", "crossbar")
_LINK = "1ns"
_SM_WEIGHT = 16  # of the work of a slice or a channel, for the division among threads


@dataclass(frozen=True)
class GpuSystem:
    """A system of one GPU, with the parts that launches go to."""

    system: System
    scheduler: NativeComponent
    sms: list[NativeComponent]
    clock: int  # hertz


def build_gpu(machine: Machine, *, seed: int = 0) -> GpuSystem:
    """A system for the machine's GPU.

    Its components are `scheduler`, `sm[0]`…, `crossbar`, `slice[0]`… and `channel[0]`…; each slice has a channel.
    """
    where = machine.name or "the machine"
    gpu = machine.gpu
    if gpu is None:
        raise InputError(f"{where}: gpu: there is no section [gpu], so there is nothing to run kernels on")
    for name in _REQUIRED:
        if getattr(gpu, name) is None:
            raise InputError(f"{where}: gpu.{name}: is not stated, but is needed to run kernels with timing")
    assert gpu.sm_count is not None and gpu.l2_slices is not None  # noqa: PT018
    assert gpu.crossbar is not None and gpu.memory is not None and gpu.clock is not None  # noqa: PT018
    if gpu.memory.standard is None:
        raise InputError(
            f"{where}: gpu.memory.standard: is not stated, but is needed to run kernels with timing"
        )
    clock, slices = {"clock": f"{gpu.clock}Hz"}, gpu.l2_slices
    system = System(where, seed=seed)
    scheduler = system.add("gpu.scheduler", "scheduler", **{**clock, **_stated(gpu.scheduler)})
    crossbar = system.add("memory.crossbar", "crossbar", **_crossbar(gpu.crossbar))
    link = _time(gpu.crossbar.link_latency)
    sm = {**clock, **_stated(gpu.sm)}
    sm["l1"] = {**sm.get("l1", {}), "slices": slices}
    sms = []
    for i in range(gpu.sm_count):
        sms.append(system.add("gpu.sm", f"sm[{i}]", **sm))
        system.connect(scheduler.sms, sms[-1].scheduler, link)
        system.connect(sms[-1].memory, crossbar.requesters, link)
    system.hint(*sms, weight=_SM_WEIGHT)
    l2 = {**clock, **_stated(gpu.l2), "slices": slices}
    l2["cache"] = {**l2.get("cache", {}), "size": f"{gpu.l2_slice_capacity}B"}
    line = l2["cache"].get("line", "128B")
    for i in range(slices):
        cache = system.add("memory.cache", f"slice[{i}]", **l2)
        system.connect(crossbar.responders, cache.requesters, link)
        channel = system.add(
            "memory.dram",
            f"channel[{i}]",
            **dram_parameters(gpu.memory.standard),
            interleave_channels=slices,
            interleave_bytes=line,
        )
        system.connect(cache.memory, channel.requests, _time(gpu.memory.link_latency))
    return GpuSystem(system, scheduler, sms, gpu.clock)


def _stated(section: Spec | None) -> dict[str, Any]:
    return {} if section is None else dump(section)


def _time(stated: int | None) -> str:
    return _LINK if stated is None else f"{stated}fs"


def _crossbar(section: Any) -> dict[str, Any]:
    stated = {
        "clock": None if section.clock is None else f"{section.clock}Hz",
        "flit": None if section.flit_size is None else f"{section.flit_size}B",
        "input_ports": section.input_ports,
        "output_ports": section.output_ports,
        "traversal": section.traversal,
    }
    return {name: value for name, value in stated.items() if value is not None}
