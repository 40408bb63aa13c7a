# SPDX-License-Identifier: Apache-2.0
"""Unified memory of a GPU: what a machine says of it, and the component that is made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.machine.model_specs import any_of
from manyscale.spec import Bytes, Cycles, Time, dump, parameter

if TYPE_CHECKING:
    from manyscale.machine.core_specs import UvmModel
    from manyscale.machine.description import Machine
    from manyscale.machine.gpu_system import GpuSystem
    from manyscale.system.component import NativeComponent
else:
    UvmModel = any_of("UnifiedMemory", "Unified memory.", ["gpu.uvm"])

PAGE = 4096  # bytes of a page: the size that the model knows
_LINK = "15ns"  # from an SM to the memory management unit, where the machine states none

# Names of the listing in the report on UVM Smart, and what the model calls them.
LISTING = {"page_fault_handling_latency": "fault_latency", "page_walk_latency": "walk_latency"}
_OWN = ("page_size", "link_latency", *LISTING)


class UnifiedMemory(UvmModel):
    """Unified virtual memory: pages that move between host and GPU on demand."""

    page_size: Bytes | None = parameter(None, doc="bytes of one page; only 4 KiB is simulated", minimum="1B")
    page_fault_handling_latency: Time | None = parameter(
        None,
        doc="time to handle a fault batch, without transfers: fault_latency with fixed handling",
        minimum="0fs",
    )
    page_walk_latency: Cycles | None = parameter(
        None, doc="core cycles to walk the page table after a TLB miss: walk_latency", minimum=0
    )
    link_latency: Time | None = parameter(
        None, doc="from an SM to the memory management unit, and back", minimum="1fs"
    )


def add_unified_memory(gpu: GpuSystem, machine: Machine, *, log_rows: int = 0) -> NativeComponent:
    """Adds `uvm` to the system of a GPU that has a host's side; it costs nothing until memory is managed."""
    section = machine.gpu.uvm if machine.gpu is not None else None
    where = f"{machine.name or 'the machine'}: gpu.uvm"
    system = gpu.system
    unified = system.add("gpu.uvm", "uvm", **_parameters(machine, gpu.clock, log_rows, where))
    stated = None if section is None else section.link_latency
    latency = _LINK if stated is None else f"{stated}fs"
    for sm in gpu.sms:
        system.connect(sm.translation, unified.sms, latency)
    system.connect(gpu.scheduler.pages, unified.scheduler, "0fs")
    wires: Any = system.components["host_link"]
    system.connect(unified.link, wires.engines, "0fs")
    return unified


def _parameters(machine: Machine, clock: int, log_rows: int, where: str) -> dict[str, Any]:
    section = machine.gpu.uvm if machine.gpu is not None else None
    memory = machine.gpu.memory if machine.gpu is not None else None
    stated = {} if section is None else dump(section)
    if section is not None and section.page_size not in (None, PAGE):
        raise InputError(
            f"{where}.page_size: pages of {section.page_size} B are not simulated, only of 4 KiB"
        )
    for listed, own in LISTING.items():
        if listed not in stated:
            continue
        if own in stated and stated[own] != stated[listed]:
            raise InputError(
                f"{where}.{listed}: says {stated[listed]}, but {own} says {stated[own]}; state one"
            )
        stated[own] = stated[listed]
    if "page_fault_handling_latency" in stated:
        stated.setdefault("handling", "fixed")
    given = {name: value for name, value in stated.items() if name not in _OWN}
    given.setdefault("clock", f"{clock}Hz")
    if memory is not None and memory.capacity is not None:
        given.setdefault("capacity", f"{memory.capacity}B")
    if log_rows:
        given["log_rows"] = log_rows
    return given
