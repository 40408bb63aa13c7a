# SPDX-License-Identifier: Apache-2.0
"""The memory of a machine: cores with private caches, an interconnect, shared slices, DRAM channels.

Parameters of the core's models are taken from the core's own tables; declared here is only how many there
are of each, and what joins them.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale import _core, units
from manyscale.errors import InputError
from manyscale.host_memory import foreseen
from manyscale.machine.hierarchy import (
    Dram,
    Hierarchy,
    Interconnect,
    SharedCache,
    add_part,
    build_below,
    bytes_text,
    check_fit,
)
from manyscale.machine.model_specs import section_of, some_of
from manyscale.spec import (
    Bandwidth,
    Bytes,
    Count,
    Frequency,
    Spec,
    deferred,
    dump,
    parameter,
    refusal,
)
from manyscale.system import System
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.machine.description import Machine

CORE = "memory.generator"
# What a core is told where its memory has no such part, so that this does not depend on a default.
_ABSENT: dict[str, dict[str, Any]] = {
    "l2": {"size": "0B"},
    "prefetcher": {"kind": "none"},
    "translation": {"enabled": False},
}
REGION = 4096  # cores have memory of their own in multiples of so many bytes

_PATTERN = ("pattern", "accesses", "footprint", "stride", "size", "writes", "atomics")
_CORE = ("clock", "window", "interval", "writeback_buffer", "home_hash")

if TYPE_CHECKING:  # what the core's tables make at run time
    from manyscale.machine.core_specs import L1, L2, GeneratorCore, Pattern, Prefetcher, Translation
else:
    GeneratorCore = deferred(lambda: some_of("Core", "A core: its outstanding accesses.", CORE, _CORE))
    L1, L2 = deferred(lambda: section_of(CORE, "l1")), deferred(lambda: section_of(CORE, "l2"))
    Prefetcher = deferred(lambda: section_of(CORE, "prefetcher"))
    Translation = deferred(lambda: section_of(CORE, "translation"))
    Pattern = some_of("Pattern", "A pattern of accesses.", CORE, _PATTERN)


class Memory(Spec):
    """The host's memory: what a source prints of it, and the hierarchy that is simulated."""

    clock: Frequency | None = parameter(
        None, doc="memory clock, as the source states it (for DDR often the data rate)", minimum="1Hz"
    )
    capacity: Bytes | None = parameter(None, doc="total capacity", minimum="1B")
    bandwidth: Bandwidth | None = parameter(
        None, doc="bandwidth of the memory's port on the mesh", minimum="1B/s"
    )
    cores: Count | None = parameter(None, doc="cores that make accesses", minimum=1, maximum=65536)
    core: GeneratorCore | None = parameter(None, doc="each of the cores")
    l1: L1 | None = parameter(None, doc="first private cache of a core")
    l2: L2 | None = parameter(None, doc="second private cache of a core; none if not stated")
    prefetcher: Prefetcher | None = parameter(None, doc="of the last private cache; none if not stated")
    translation: Translation | None = parameter(None, doc="TLBs and page walks; none if not stated")
    shared: SharedCache | None = parameter(None, doc="cache that the cores share; none if not stated")
    interconnect: Interconnect | None = parameter(None, doc="network between cores and slices or channels")
    dram: Dram | None = parameter(None, doc="channels of DRAM")


class MemoryWorkload(Pattern):
    """What each core does: accesses by a pattern, each core in memory of its own unless it is shared."""

    shared: bool = parameter(False, doc="whether all cores use the same memory, and not one region each")


@dataclass(frozen=True)
class _Parts:
    """A description of which all that is needed is stated."""

    capacity: int | None
    core: Spec
    caches: dict[str, Any]
    below: Hierarchy

    @property
    def where(self) -> str:
        return self.below.where

    @property
    def cores(self) -> int:
        return self.below.cores

    @property
    def line(self) -> int:
        return self.below.line


def build_memory(
    machine: Machine, workload: MemoryWorkload, *, traces: Sequence[bytes] = (), seed: int = 0
) -> System:
    """A system of one `memory.generator` for each core, and the hierarchy below them.

    Its components are `core[0]`…, `interconnect`, `slice[0]`… and `channel[0]`…. For the pattern "trace",
    `traces` holds the packed accesses of the first cores (`_core.set_trace`), and the other cores are idle.
    """
    parts = _whole(machine)
    check_fit(parts.below)
    _check_workload(parts, workload, traces)
    system = System(parts.where, seed=seed)
    build_below(system, parts.below, _add_cores(system, parts, workload, traces))
    return system


def _whole(machine: Machine) -> _Parts:
    """The parts of a machine whose cores make accesses by a pattern."""
    memory = stated_memory(machine, ("cores", "core", "l1", "dram"))
    assert memory.cores is not None and memory.core is not None  # noqa: PT018
    below = hierarchy_of(machine, memory, memory.cores)
    return _Parts(memory.capacity, memory.core, private_caches(memory, below.where, "translation"), below)


def stated_memory(machine: Machine, required: Sequence[str]) -> Memory:
    """The section [memory] of a machine, in which these parts are stated."""
    where = machine.name or "the machine"
    memory = machine.memory
    if memory is None:
        raise InputError(f"{where}: memory: there is no section [memory], so there is nothing to simulate")
    problems = []
    for name in required:
        if getattr(memory, name) is None:
            what = "parameter" if name == "cores" else f"section [memory.{name}]"
            problems.append(
                f"{where}: memory.{name}: there is no such {what}, which is required: "
                f"{Memory.model_fields[name].description}"
            )
    if memory.l2 is not None and memory.l2.size == 0:
        problems.append(
            f"{where}: memory.l2.size: is required; leave [memory.l2] out for a machine without an L2"
        )
    if problems:
        raise refusal(problems)
    return memory


def hierarchy_of(machine: Machine, memory: Memory, cores: int, counted_by: str = "memory.cores") -> Hierarchy:
    """What is below so many cores; `counted_by` is the parameter that says how many."""
    assert memory.l1 is not None and memory.dram is not None  # noqa: PT018
    stated = memory.interconnect
    network = None if stated is None or stated.kind == "none" else stated
    line = memory.l1.line
    where = machine.name or "the machine"
    return Hierarchy(where, cores, line, memory.shared, network, memory.dram, counted_by)


def private_caches(memory: Memory, where: str, *others: str, without: Collection[str] = ()) -> dict[str, Any]:
    """What the memory section says of the caches of one core, each looked at alone so that an error names it.

    `others` are further sections that cores have, `without` parameters that the run states itself.
    """
    caches: dict[str, Any] = {name: dict(_ABSENT[name]) for name in ("l2", "prefetcher", *others)}
    for name in ("l1", "l2", "prefetcher", *others):
        section = getattr(memory, name)
        if section is not None:
            caches[name] = dump(section, names=set(type(section).model_fields).difference(without))
            add_part(System(), where, CORE, "check", f"memory.{name}", **(_ABSENT | caches))
    return caches


def _check_workload(parts: _Parts, workload: Any, traces: Sequence[bytes]) -> None:
    if (workload.pattern == "trace") != bool(traces):
        raise InputError(
            "the pattern trace needs a trace" if not traces else f"a trace was given for {workload.pattern}"
        )
    if len(traces) > parts.cores:
        raise InputError(f"{len(traces)} traces are too many for the {parts.cores} cores of {parts.where}")
    if parts.line % workload.size:
        raise InputError(
            f"size: accesses of {bytes_text(workload.size)} would cross lines of {bytes_text(parts.line)}; "
            "choose a power of two up to 32B"
        )
    if workload.writes + workload.atomics > 1:
        raise InputError(
            f"writes ({workload.writes}) and atomics ({workload.atomics}) are together more than 1"
        )
    lines = 3 if workload.pattern == "triad" else 1
    if workload.footprint < lines * parts.line:
        raise InputError(
            f"footprint: {bytes_text(workload.footprint)} is too little for {workload.pattern}; "
            f"give at least {bytes_text(lines * parts.line)}"
        )
    if parts.capacity is None:
        return
    if not traces:
        last = _base(parts.cores - 1, workload) + workload.footprint
        reach = f"footprint: {parts.cores} cores reach up to"
    else:
        last = max((max(array("Q", trace)[::2], default=0) for trace in traces), default=0)
        reach = "trace: it reaches up to address"
    if last > parts.capacity:
        raise InputError(
            f"{reach} {last:#x}, but {parts.where} has {bytes_text(parts.capacity)} of memory (memory.capacity)"
        )


def _base(core: int, workload: Any) -> int:
    return 0 if workload.shared else core * -(-workload.footprint // REGION) * REGION


def _add_cores(
    system: System, parts: _Parts, workload: MemoryWorkload, traces: Sequence[bytes]
) -> list[NativeComponent]:
    pattern = dump(workload)
    del pattern["shared"]
    cores = []
    for index in foreseen(range(parts.cores), "cores", "use fewer of them"):
        base = units.format(_base(index, workload), units.BYTES)
        given = {**dump(parts.core), **parts.caches, **pattern, "base": base}
        given |= {"coherent": parts.below.coherent, "homes": parts.below.entries}
        cores.append(system.add(CORE, f"core[{index}]", **given))
        if traces:
            _core.set_trace(cores[-1].native, traces[index] if index < len(traces) else b"")
    return cores
