# SPDX-License-Identifier: Apache-2.0
"""Completes a machine by what a run used of it: each default, DRAM standard and derived number is stated.

What is left out are the parameters that follow from others which are stated, such as the clock of the SMs from that of
the GPU: so that a change of these is a change of both, as it was in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale import units
from manyscale.machine.cpu import TRACE
from manyscale.machine.cpu_system import SOCKETS, TRACED
from manyscale.machine.dram import dram_standard
from manyscale.machine.hierarchy import INTERCONNECTS, SLICES
from manyscale.machine.loading import DEFAULT
from manyscale.machine.saving import to_toml
from manyscale.spec import build, dump, parameters, section_type
from manyscale.system.component import NativeComponent

if TYPE_CHECKING:
    from manyscale.machine.description import Machine
    from manyscale.machine.loading import ResolvedMachine
    from manyscale.system import System

_THIS_RUN = "this run"


@dataclass(frozen=True)
class _Used:
    """What a run used for one section: values with units, by the section's names; names with dots are nested."""

    section: str
    values: dict[str, Any]
    sources: Mapping[str, str]
    replaces: bool = False  # what the machine states: the run was told otherwise


def completed_toml(
    resolved: ResolvedMachine, system: System | None, others: Mapping[str, dict[str, Any]] | None = None
) -> str:
    """The text of a machine file that states all that a run used; see `complete`."""
    return to_toml(*complete(resolved.machine, resolved.sources, system, others))


def complete(
    machine: Machine,
    sources: Mapping[str, str],
    system: System | None,
    others: Mapping[str, dict[str, Any]] | None = None,
) -> tuple[Machine, dict[str, str]]:
    """The machine that a system was built from, with all that the system's models have stated in it.

    What the description left to a default or to a DRAM standard is then there with its source, so the machine gives the
    same system even if those change. `others` are values of sections that no component has, by the paths of these;
    they replace what the machine states. A functional run has no system.
    """
    found = dict(sources)
    data = dump(machine, reads=False)
    if system is not None:
        for find in _FINDERS:
            for used in find(machine, system):
                _fill(machine, data, used, found)
    for section, values in (others or {}).items():
        _fill(machine, data, _Used(section, values, {}, replaces=True), found)
    return build(type(machine), data, machine.name or "the machine"), found


def _fill(machine: Machine, data: dict[str, Any], used: _Used, sources: dict[str, str]) -> None:
    """States what a section leaves open; `sources` is told where that is from."""
    location = tuple(used.section.split("."))
    section = data
    for name in location:
        section = section.setdefault(name, {})
    for row in parameters(section_type(type(machine), location)):
        *above, name = row.path.split(".")
        value: Any = used.values
        for part in (*above, name):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            continue
        stated = section
        for part in above:
            stated = stated.setdefault(part, {})
        if name not in stated or (used.replaces and stated[name] != value):
            stated[name] = value
            other = _THIS_RUN if used.replaces else DEFAULT
            sources[f"{used.section}.{row.path}"] = used.sources.get(row.path, other)


def _spec_of(system: System, component: str, *models: str) -> dict[str, Any] | None:
    """The parameters of a component, if there is one of such a model."""
    built = system.components.get(component)
    if not isinstance(built, NativeComponent) or built.model not in models:
        return None
    return dump(built.spec)


def _latency(system: System, component: str, port: str) -> str | None:
    """The latency of the first link at a port."""
    ends = f"{component}.{port}"
    found = next((link.latency for link in system.links if ends in (link.a, link.b)), None)
    return None if found is None else units.format(found, units.TIME)


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _standard_sources(standard: str | None) -> dict[str, str]:
    if standard is None:
        return {}
    found = dram_standard(standard)
    return {name: f"{found.name}: {source}" for name, source in found.sources.items()}


# --- Hosts ---


def _cores(machine: Machine, system: System) -> Iterator[_Used]:
    core, program = _spec_of(system, "core[0]", "cpu.core"), _spec_of(system, "program", "cpu.program")
    trace = _spec_of(system, "trace", TRACE)
    if core is None:
        return
    if trace is not None:  # the branches of traces were predicted when they were recorded
        core["branch"] = _without(core.get("branch", {}), "kind")
        del core["quantum"]  # replays have one of their own where the machine states none
        program = {name: trace[name] for name in TRACED}
    yield _Used("cpu.core", core, {})
    yield _Used("cpu.system", program or {}, {})
    first = "trace" if trace is not None else "program"
    yield _Used("cpu", {"work_latency": _latency(system, first, "cores"), "sockets": SOCKETS}, {})


def _host_memory(machine: Machine, system: System) -> Iterator[_Used]:
    memory = machine.memory
    if memory is None or memory.dram is None:
        return
    if (shared := _spec_of(system, "slice[0]", *SLICES.values())) is not None:
        yield _Used("memory.shared", _without(shared, "slices"), {})
    if (network := _spec_of(system, "interconnect", *INTERCONNECTS.values())) is not None:
        of_cores = (
            _spec_of(system, "core[0]", "cpu.core") is not None
        )  # then cpu.sockets says how many there are
        yield _Used("memory.interconnect", _without(network, "sockets") if of_cores else network, {})
    if (channel := _spec_of(system, "channel[0]", "memory.dram")) is not None:
        sources = _standard_sources(memory.dram.standard)
        yield _Used("memory.dram", channel | {"interleave": channel["interleave_bytes"]}, sources)


# --- GPUs ---


def _gpu_chip(machine: Machine, system: System) -> Iterator[_Used]:
    sm, scheduler = _spec_of(system, "sm[0]", "gpu.sm"), _spec_of(system, "scheduler", "gpu.scheduler")
    if sm is None or scheduler is None or machine.gpu is None:
        return
    yield _Used("gpu.sm", _without(sm, "clock"), {})
    yield _Used("gpu.scheduler", _without(scheduler, "clock"), {})
    l2 = _spec_of(system, "slice[0]", "memory.cache") or {}
    yield _Used("gpu.l2", _without(l2, "clock") | {"cache": _without(l2["cache"], "size")}, {})
    crossbar = _spec_of(system, "crossbar", "memory.crossbar") or {}
    stated = machine.gpu.crossbar
    assert stated is not None
    derived = [
        *(["clock"] if stated.link_bandwidth is not None else []),
        *(["traversal"] if stated.latency is not None else []),
    ]
    used = _without(crossbar, *derived) | {
        "flit_size": crossbar["flit"],
        "link_latency": _latency(system, "crossbar", "requesters"),
    }
    yield _Used("gpu.crossbar", used, {})


def _gpu_memory(machine: Machine, system: System) -> Iterator[_Used]:
    channel = _spec_of(system, "channel[0]", "memory.dram")
    if (
        machine.gpu is None
        or machine.gpu.memory is None
        or channel is None
        or "sm[0]" not in system.components
    ):
        return
    memory = machine.gpu.memory
    used = {
        "clock": channel["clock"],
        "rows": channel["rows"],
        "link_latency": _latency(system, "slice[0]", "memory"),
    }
    if memory.stacks is None or memory.channels_per_stack is None:
        used["channels"] = channel["interleave_channels"]
    sources = _standard_sources(memory.standard)
    yield _Used("gpu.memory", used, sources)
    yield _Used("gpu.memory.channel", _without(channel, "clock", "rows"), sources)


def _gpu_link(machine: Machine, system: System) -> Iterator[_Used]:
    link = _spec_of(system, "host_link", "gpu.host_link")
    engine = _spec_of(system, "copy_engine[0]", "gpu.copy_engine")
    if link is None or engine is None:
        return
    engines = (
        sum(name.startswith("copy_engine[") for name in system.components) - 1
    )  # one makes copies within
    yield _Used("link", link | {"copy_engines": engines, "command_latency": "0fs"}, {})
    yield _Used("link.copy_engine", engine, {})


def _gpu_unified_memory(machine: Machine, system: System) -> Iterator[_Used]:
    unified = _spec_of(system, "uvm", "gpu.uvm")
    if unified is None or machine.gpu is None:
        return
    derived = ["clock", *(["capacity"] if machine.gpu.memory and machine.gpu.memory.capacity else [])]
    used = _without(unified, "log_rows", *derived)
    yield _Used("gpu.uvm", used | {"link_latency": _latency(system, "uvm", "sms")}, {})


_FINDERS: tuple[Callable[[Machine, System], Iterator[_Used]], ...] = (
    _cores,
    _host_memory,
    _gpu_chip,
    _gpu_memory,
    _gpu_link,
    _gpu_unified_memory,
)
