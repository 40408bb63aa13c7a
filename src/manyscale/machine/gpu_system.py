# SPDX-License-Identifier: Apache-2.0
"""From the GPU's sections of a machine to a system: scheduler, SMs, crossbar, L2 slices, channels of memory."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale import units
from manyscale.errors import InputError
from manyscale.machine.dram import dram_parameters
from manyscale.machine.model_specs import check_whole
from manyscale.spec import dump
from manyscale.system import System
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.machine.description import Machine
    from manyscale.machine.gpu import Crossbar, Gpu, GpuMemory
    from manyscale.spec import Spec

_REQUIRED_OF = {"memory": ("standard", "link_latency"), "crossbar": ("flit_size", "link_latency")}
_FROM_GPU = ("clock", "l1.slices")  # that gpu.clock and gpu.l2_slices state
_REQUIRED = ("clock", "sm_count", "l2_slices", "l2_slice_capacity", "memory", "crossbar")
_MOST_PARTS = 4096  # SMs, slices or channels; more would only fill the host's memory
_SM_WEIGHT = 16  # of the work of a slice or a channel, for the division among threads
_FEMTOSECONDS = 10**15  # of a second


@dataclass(frozen=True)
class GpuSystem:
    """A system of one GPU, with the parts that launches go to."""

    system: System
    scheduler: NativeComponent
    sms: list[NativeComponent]
    memory: list[NativeComponent]  # crossbar, slices and channels
    clock: int  # hertz


@dataclass(frozen=True)
class MemoryWiring:
    """Which channels each slice of the L2 reaches, and how addresses are spread over them.

    Slices and channels form as many clusters as their numbers' greatest common divisor; within a cluster each slice
    reaches each channel. Neighbouring slices share a channel, as the two sub-partitions of a memory partition do, and
    then take consecutive lines.
    """

    slices: int
    channels: int
    line: int  # bytes

    @property
    def clusters(self) -> int:
        return math.gcd(self.slices, self.channels)

    @property
    def sharing(self) -> int:
        """Slices of a cluster."""
        return self.slices // self.clusters

    def channels_of(self, index: int) -> range:
        """The channels that a slice reaches; the n-th line block of `slice_interleave` goes to the n-th of them."""
        each = self.channels // self.clusters
        first = index // self.sharing * each
        return range(first, first + each)

    @property
    def slice_interleave(self) -> int:
        """Consecutive bytes that a slice sends to one of its channels: what lies between two of its own lines."""
        return self.line * self.slices

    @property
    def channel_interleave(self) -> int:
        """Consecutive bytes of a channel: a line of each slice that shares it, where that is a power of two."""
        power_of_two = self.sharing & (self.sharing - 1) == 0
        return self.line * self.sharing if power_of_two else self.line


def build_gpu(machine: Machine, *, seed: int = 0) -> GpuSystem:
    """A system for the machine's GPU.

    Its components are `scheduler`, `sm[0]`…, `crossbar`, `slice[0]`… and `channel[0]`….
    """
    where = machine.name or "the machine"
    gpu = _whole(machine, where)
    assert gpu.sm_count is not None and gpu.l2_slices is not None  # noqa: PT018
    assert gpu.crossbar is not None and gpu.memory is not None and gpu.clock is not None  # noqa: PT018
    clock, slices = {"clock": f"{gpu.clock}Hz"}, gpu.l2_slices
    system = System(where, seed=seed)
    scheduler = system.add("gpu.scheduler", "scheduler", **{**clock, **_stated(gpu.scheduler)})
    crossbar = system.add("memory.crossbar", "crossbar", **_crossbar(gpu.crossbar))
    link = f"{gpu.crossbar.link_latency}fs"
    sm = {**clock, **_stated(gpu.sm)}
    sm["l1"] = {**sm.get("l1", {}), "slices": slices}
    sms = []
    for i in range(gpu.sm_count):
        sms.append(system.add("gpu.sm", f"sm[{i}]", **sm))
        system.connect(scheduler.sms, sms[-1].scheduler, link)
        system.connect(sms[-1].memory, crossbar.requesters, link)
    system.hint(*sms, weight=_SM_WEIGHT)
    l2 = {**clock, **_stated(gpu.l2), "slices": slices}
    if "size" in l2.get("cache", {}):
        raise InputError(f"{where}: gpu.l2.cache.size: state the capacity of a slice, gpu.l2_slice_capacity")
    # Classifying misses by cause costs time, and no result of a kernel needs it.
    l2["cache"] = {"classify_misses": False, **l2.get("cache", {}), "size": f"{gpu.l2_slice_capacity}B"}
    assert gpu.l2 is not None and gpu.l2.cache is not None and gpu.l2.cache.line is not None  # noqa: PT018
    line = gpu.l2.cache.line
    wiring = MemoryWiring(slices, channel_count(gpu.memory, slices, where), line)
    caches = [
        system.add("memory.cache", f"slice[{i}]", **l2, memory_interleave=f"{wiring.slice_interleave}B")
        for i in range(slices)
    ]
    channels = _add_channels(system, gpu.memory, wiring, where)
    for i, cache in enumerate(caches):
        system.connect(crossbar.responders, cache.requesters, link)
        for channel in wiring.channels_of(i):
            system.connect(cache.memory, channels[channel].requests, f"{gpu.memory.link_latency}fs")
    if gpu.sm_groups is not None:
        _group(system, gpu.sm_groups, scheduler, sms, caches, channels)
    return GpuSystem(system, scheduler, sms, [crossbar, *caches, *channels], gpu.clock)


def _whole(machine: Machine, where: str) -> Gpu:
    """The GPU's section, of which all that is needed is stated."""
    gpu = machine.gpu
    if gpu is None:
        raise InputError(f"{where}: gpu: there is no section [gpu], so there is nothing to run kernels on")
    missing = [f"gpu.{name}" for name in _REQUIRED if getattr(gpu, name) is None]
    for section, names in _REQUIRED_OF.items():
        part = getattr(gpu, section)
        missing += [
            f"gpu.{section}.{name}" for name in names if part is not None and getattr(part, name) is None
        ]
    if missing:
        raise InputError(f"{where}: {missing[0]}: is not stated, but is needed to run kernels with timing")
    check_whole(where, "gpu.sm", gpu.sm, "gpu.sm", _FROM_GPU)
    check_whole(where, "gpu.scheduler", gpu.scheduler, "gpu.scheduler", _FROM_GPU)
    if gpu.l2 is None or gpu.l2.cache is None or gpu.l2.cache.line is None:
        raise InputError(
            f"{where}: gpu.l2.cache.line: is not stated, but is needed to run kernels with timing"
        )
    if gpu.architecture is not None and not re.fullmatch(r"sm_[0-9]{2,3}", gpu.architecture):
        raise InputError(
            f'{where}: gpu.architecture: is a name such as "sm_70" or "sm_80", not {gpu.architecture!r}'
        )
    for name in ("sm_count", "l2_slices"):
        _check_count(getattr(gpu, name), f"{where}: gpu.{name}")
    if gpu.sm_groups is not None and gpu.sm_count is not None and gpu.sm_groups > gpu.sm_count:
        raise InputError(
            f"{where}: gpu.sm_groups: {gpu.sm_groups} groups are more than the {gpu.sm_count} SMs"
        )
    return gpu


def channel_count(memory: GpuMemory, slices: int, where: str) -> int:
    """Channels of the GPU's memory."""
    stacked = None
    if memory.channels_per_stack is not None and memory.stacks is None:
        raise InputError(
            f"{where}: gpu.memory.channels_per_stack: of how many stacks? gpu.memory.stacks says it"
        )
    if (
        memory.channels_per_stack is not None and memory.stacks is not None
    ):  # a number of stacks alone says nothing
        stacked = memory.stacks * memory.channels_per_stack
    if None not in (memory.channels, stacked) and memory.channels != stacked:
        raise InputError(
            f"{where}: gpu.memory.channels: {memory.channels} channels are not {memory.stacks} stacks x "
            f"{memory.channels_per_stack} channels_per_stack"
        )
    count = memory.channels or stacked or slices
    _check_count(count, f"{where}: gpu.memory.channels")
    return count


def _check_count(count: int, where: str) -> None:
    if count > _MOST_PARTS:
        raise InputError(f"{where}: {count} are more than the {_MOST_PARTS} that can be simulated")


def _add_channels(
    system: System, memory: GpuMemory, wiring: MemoryWiring, where: str
) -> list[NativeComponent]:
    stated = channel_parameters(memory, where)
    stated["interleave_channels"] = wiring.channels
    stated["interleave_bytes"] = f"{wiring.channel_interleave}B"
    # Channels refresh one after the other, so that they are not all away at the same time.
    interval = int(units.parse(str(stated["trefi"]), units.CYCLES))
    return [
        system.add(
            "memory.dram",
            f"channel[{i}]",
            **{**stated, "refresh_offset": interval * i // wiring.channels},
        )
        for i in range(wiring.channels)
    ]


def channel_parameters(memory: GpuMemory, where: str) -> dict[str, Any]:
    """What a machine and its DRAM standard state of a channel of the GPU's memory, with units."""
    if memory.standard is None:
        raise InputError(f"{where}: gpu.memory.standard: is not stated")
    try:
        stated = dram_parameters(memory.standard)
    except InputError as error:
        raise InputError(f"{where}: gpu.memory.standard: {error}") from None
    own = _stated(memory.channel)
    if "clock" in own:
        raise InputError(
            f"{where}: gpu.memory.channel.clock: state the clock of all channels, gpu.memory.clock"
        )
    stated |= own
    if memory.clock is not None:
        stated["clock"] = f"{memory.clock}Hz"
    if memory.rows is not None:
        if "rows" in own and own["rows"] != memory.rows:
            raise InputError(
                f"{where}: gpu.memory.channel.rows: gpu.memory.rows says {memory.rows}; state one"
            )
        stated["rows"] = memory.rows
    return stated


def _group(
    system: System,
    groups: int,
    scheduler: NativeComponent,
    *parts: list[NativeComponent],
) -> None:
    """Keeps each of `groups` equal shares of the SMs, the slices and the channels on one thread."""
    system.hint(scheduler, group="group[0]")
    for components in parts:
        for i, component in enumerate(components):
            system.hint(component, group=f"group[{i * groups // len(components)}]")


def _stated(section: Spec | None) -> dict[str, Any]:
    return {} if section is None else dump(section)


def _crossbar(section: Crossbar) -> dict[str, Any]:
    clock, traversal = section.clock, section.traversal
    if clock is None and section.link_bandwidth is not None:
        assert section.flit_size is not None
        clock = section.link_bandwidth // section.flit_size
    if traversal is None and section.latency is not None and clock is not None:
        traversal = -(-section.latency * clock // _FEMTOSECONDS)
    stated = {
        "clock": None if clock is None else f"{clock}Hz",
        "flit": None if section.flit_size is None else f"{section.flit_size}B",
        "input_ports": section.input_ports,
        "output_ports": section.output_ports,
        "traversal": traversal,
    }
    return {name: value for name, value in stated.items() if value is not None}
