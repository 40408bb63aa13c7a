# SPDX-License-Identifier: Apache-2.0
"""From the sections [cpu] and [memory] of a machine to a system: a program, cores, and the memory below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale import units
from manyscale.errors import InputError
from manyscale.host_memory import foreseen
from manyscale.machine.cpu import CORE, PROGRAM, TRACE, WORK_LATENCY, Compaction, Cpu, OpenMP
from manyscale.machine.hierarchy import Hierarchy, add_part, build_below, check_fit
from manyscale.machine.memory import Memory, hierarchy_of, private_caches, stated_memory
from manyscale.spec import dump
from manyscale.system import System
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.machine import ResolvedMachine
    from manyscale.machine.description import Machine

DMA = "memory.dma"
SOCKETS = 1  # where none are stated
TRACED = ("run_ahead", "system_call_latency", "switch_latency")  # of [cpu.system], that traces know, too
_CORE_WEIGHT = 16  # of the work of a slice or a channel, for the division among threads
_PROGRAM_WEIGHT = 3  # the same, of executing what one core is to time


@dataclass(frozen=True)
class CpuSystem:
    """A system of one node, with the parts that a program is started on and asked about."""

    system: System
    program: NativeComponent
    cores: list[NativeComponent]
    clock: int  # hertz
    dma: NativeComponent | None = (
        None  # that reads and writes memory for the network interface, if there is one
    )


def build_cpu(
    machine: Machine,
    cores: int | None = None,
    *,
    seed: int = 0,
    trace: Mapping[str, Any] | None = None,
    system: System | None = None,
    dma_bandwidth: str | None = None,
    **watching: Any,
) -> CpuSystem:
    """A system of so many of the machine's cores (all if not stated), and the hierarchy below them.

    Its components are `program`, `core[0]`…, `interconnect`, `slice[0]`… and `channel[0]`…. Cores fill one socket after
    the other; sockets without cores are left out with their slices and channels. `watching` are the parameters of
    `cpu.core` that select what to observe. Given the parameters of a `trace`, that is the first component, and recorded
    streams are played instead of a program. Given a `system`, the node is added to that. With a `dma_bandwidth`, such
    as "12.5GB/s", the first socket has a `dma[0]` through which a network interface reads and writes memory.
    """
    where = machine.name or "the machine"
    cpu = _whole(machine, where)
    assert cpu.clock is not None and cpu.cores is not None  # noqa: PT018
    count = cpu.cores if cores is None else cores
    if not 1 <= count <= cpu.cores:
        raise InputError(f"{where} has {cpu.cores} cores (cpu.cores), so {count} of them cannot be used")
    memory = stated_memory(machine, ("l1", "dram"))
    below = _of_sockets(hierarchy_of(machine, memory, count, "cpu.cores"), cpu, count, where)
    check_fit(below)
    system = System(where, seed=seed) if system is None else system
    given = _core_parameters(cpu, memory, below, where, trace is not None) | watching
    if trace is None:
        parameters = {"cores": count, "clock": f"{cpu.clock}Hz", **_stated(cpu.system)}
        program = add_part(system, where, PROGRAM, "program", "cpu.system", **parameters)
    else:
        parameters = {} if cpu.system is None else dump(cpu.system, names=TRACED)
        program = add_part(system, where, TRACE, "trace", "replay", **parameters | {"cores": count, **trace})
    indices = foreseen(range(count), "cores", "use fewer of them")
    parts = [system.add(CORE, f"core[{index}]", **given) for index in indices]
    latency = WORK_LATENCY if cpu.work_latency is None else units.format(cpu.work_latency, units.TIME)
    for core in parts:
        system.connect(program.cores, core.work, latency)
    system.hint(*parts, weight=_CORE_WEIGHT)
    system.hint(program, weight=_PROGRAM_WEIGHT * count)
    engines = [] if dma_bandwidth is None else _add_dma(system, below, given, dma_bandwidth)
    build_below(system, below, _by_socket(parts, engines))
    return CpuSystem(system, program, parts, cpu.clock, engines[0] if engines else None)


def openmp_of(resolved: ResolvedMachine) -> OpenMP:
    """The machine's cost of OpenMP's runtime, which it must state."""
    machine = resolved.machine
    if machine.cpu is None or machine.cpu.openmp is None:
        where = machine.name or "the machine"
        raise InputError(
            f"{where}: cpu.openmp: there is no section [cpu.openmp], which says what OpenMP's runtime takes where a "
            "trace cannot tell; state it, as the preset elasticsimmate does"
        )
    return machine.cpu.openmp


def compaction_of(resolved: ResolvedMachine) -> Compaction:
    """The machine's parameters of trace compaction, which it must state."""
    machine = resolved.machine
    if machine.cpu is None or machine.cpu.compaction is None:
        where = machine.name or "the machine"
        raise InputError(
            f"{where}: cpu.compaction: there is no section [cpu.compaction], which limits trace compaction; state it, "
            "as the preset elasticsimmate does"
        )
    return machine.cpu.compaction


def _add_dma(
    system: System, below: Hierarchy, core: Mapping[str, Any], bandwidth: str
) -> list[NativeComponent]:
    """An engine for each socket, since sockets have as many requesters each; only the first has a device."""
    same = {name: core[name] for name in ("clock", "coherent", "homes", "home_hash") if name in core}
    buffer = {"line": units.format(below.line, units.BYTES)}
    return [
        system.add(DMA, f"dma[{socket}]", bandwidth=bandwidth, buffer=buffer, **same)
        for socket in range(below.sockets)
    ]


def _by_socket(cores: Sequence[NativeComponent], engines: Sequence[NativeComponent]) -> list[NativeComponent]:
    """What is connected to the interconnect, socket by socket: cores, then the engine."""
    if not engines:
        return list(cores)
    each = len(cores) // len(engines)
    found: list[NativeComponent] = []
    for socket, engine in enumerate(engines):
        found += [*cores[socket * each : (socket + 1) * each], engine]
    return found


def _whole(machine: Machine, where: str) -> Cpu:
    """The section [cpu], in which all that is needed is stated."""
    cpu = machine.cpu
    if cpu is None:
        raise InputError(f"{where}: cpu: there is no section [cpu], so there is nothing to run programs on")
    for name in ("clock", "cores", "core"):
        if getattr(cpu, name) is None:
            what = "section [cpu.core]" if name == "core" else "parameter"
            raise InputError(
                f"{where}: cpu.{name}: there is no such {what}, which is required to run programs: "
                f"{Cpu.model_fields[name].description}"
            )
    return cpu


def _of_sockets(whole: Hierarchy, cpu: Cpu, cores: int, where: str) -> Hierarchy:
    """The share of the hierarchy that belongs to the sockets that these cores are in."""
    assert cpu.cores is not None
    sockets = cpu.sockets or SOCKETS
    used = -(-cores * sockets // cpu.cores)

    def share(number: int, path: str) -> int:
        if number % sockets:
            raise InputError(f"{where}: {path}: {number} cannot be divided among {sockets} sockets")
        return number // sockets * used

    shared, network, dram = whole.shared, whole.network, whole.dram
    share(cpu.cores, "cpu.cores")
    if shared is not None:
        shared = shared.model_copy(update={"slices": share(shared.slices, "memory.shared.slices")})
    if network is not None and network.kind == "sockets":
        if network.sockets not in (None, sockets):
            raise InputError(f"{where}: memory.interconnect.sockets: cpu.sockets says {sockets}; state one")
        if cores % used:
            raise InputError(
                f"{where}: {cores} cores cannot be divided evenly among the {used} sockets that they need; "
                f"use up to {cpu.cores // sockets}, or a multiple of {used}"
            )
        network = network.model_copy(update={"sockets": used})
    elif network is not None and network.stops:
        stops = share(network.stops, "memory.interconnect.stops")
        network = network.model_copy(update={"stops": stops})
    dram = dram.model_copy(update={"channels": share(dram.channels, "memory.dram.channels")})
    # Classifying misses costs time, and no result of a program needs it.
    return Hierarchy(whole.where, cores, whole.line, shared, network, dram, whole.counted_by, False)


def _core_parameters(
    cpu: Cpu, memory: Memory, below: Hierarchy, where: str, recorded: bool
) -> dict[str, Any]:
    """The parameters of each core, checked once so that an error names the section.

    The branches of `recorded` streams were predicted when they were recorded.
    """
    # Of cores that run programs, translation is [cpu.core.translation]. What no result needs is not asked for.
    caches = private_caches(memory, where, without=["classify_misses"])
    for name in ("l1", "l2"):
        if name in caches:
            caches[name]["classify_misses"] = below.classify_misses
    given = {
        "clock": f"{cpu.clock}Hz",
        **_stated_core(cpu.core, recorded),
        **caches,
        "coherent": below.coherent,
        "homes": below.entries,
    }
    add_part(System(), where, CORE, "check", "cpu.core", **given)
    return given


def _stated_core(core: Any, recorded: bool) -> dict[str, Any]:
    if not recorded:
        return dump(core)
    fields = type(core).model_fields
    stated = dump(core, names=set(fields) - {"branch"})
    branch = core.branch
    rest = {} if branch is None else dump(branch, names=set(type(branch).model_fields) - {"kind"})
    return stated | {"branch": {**rest, "kind": "recorded"}}


def _stated(section: Any) -> dict[str, Any]:
    return {} if section is None else dump(section)
