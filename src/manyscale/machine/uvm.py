# SPDX-License-Identifier: Apache-2.0
"""Unified memory of a GPU: what a machine says of it, and the component that is made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.machine.model_specs import any_of, check_whole
from manyscale.spec import Bytes, Time, dump, parameter

if TYPE_CHECKING:
    from manyscale.machine.core_specs import UvmModel
    from manyscale.machine.description import Machine
    from manyscale.machine.gpu_system import GpuSystem
    from manyscale.system.component import NativeComponent
else:
    UvmModel = any_of("UnifiedMemory", "Unified memory.", ["gpu.uvm"])

PAGE = 4096  # bytes of a page: the size that the model has
_OWN = ("page_size", "link_latency")  # that the component has no parameter for
_BUILT = ("clock", "log_rows")  # as gpu.clock and the caller state


class UnifiedMemory(UvmModel):
    """Unified virtual memory: pages that migrate between host and GPU on demand."""

    page_size: Bytes | None = parameter(None, doc="bytes of one page; only 4 KiB is simulated", minimum="1B")
    link_latency: Time | None = parameter(
        None, doc="from an SM to the memory management unit, and back", minimum="1fs"
    )


def add_unified_memory(gpu: GpuSystem, machine: Machine, *, log_rows: int = 0) -> NativeComponent:
    """Adds `uvm` to the system of a GPU that has a host's side; it costs nothing until memory is managed."""
    section, parameters = _whole(machine)
    system = gpu.system
    if log_rows:
        parameters["log_rows"] = log_rows
    unified = system.add("gpu.uvm", "uvm", **{"clock": f"{gpu.clock}Hz", "log_rows": 0, **parameters})
    for sm in gpu.sms:
        system.connect(sm.translation, unified.sms, f"{section.link_latency}fs")
    system.connect(gpu.scheduler.pages, unified.scheduler, "0fs")
    wires: Any = system.components["host_link"]
    system.connect(unified.link, wires.engines, "0fs")
    return unified


def _whole(machine: Machine) -> tuple[UnifiedMemory, dict[str, Any]]:
    """The section [gpu.uvm], of which all that is needed is stated, and the parameters of the component."""
    where = machine.name or "the machine"
    section = machine.gpu.uvm if machine.gpu is not None else None
    memory = machine.gpu.memory if machine.gpu is not None else None
    capacity = None if memory is None else memory.capacity
    elsewhere = _BUILT if capacity is None else (*_BUILT, "capacity")
    check_whole(where, "gpu.uvm", section, "gpu.uvm", elsewhere)
    assert section is not None
    if section.link_latency is None:
        raise InputError(
            f"{where}: gpu.uvm.link_latency: is not stated, but is needed to run kernels with timing"
        )
    if section.page_size not in (None, PAGE):
        raise InputError(
            f"{where}: gpu.uvm.page_size: pages of {section.page_size} B are not simulated, only of 4 KiB"
        )
    parameters = {name: value for name, value in dump(section).items() if name not in _OWN}
    if capacity is not None:
        parameters.setdefault("capacity", f"{capacity}B")
    return section, parameters
