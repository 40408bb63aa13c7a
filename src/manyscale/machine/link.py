# SPDX-License-Identifier: Apache-2.0
"""The link between host and GPU: PCIe, NVLink or the like, and the copy engines of the GPU that use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.machine.model_specs import any_of, check_whole
from manyscale.spec import Bandwidth, Count, Spec, Time, deferred, dump, parameter

if TYPE_CHECKING:
    from manyscale.machine.core_specs import CopyEngine
    from manyscale.machine.gpu_system import GpuSystem
    from manyscale.system.component import NativeComponent
else:
    CopyEngine = deferred(
        lambda: any_of("CopyEngine", "A copy engine.", ["gpu.copy_engine"], without=["line", "slice_hash"])
    )

_BUILT = ("slices", "line", "slice_hash")  # as gpu.sm.l1 and gpu.l2_slices state
_WITHIN_LINKS = 32  # to the crossbar: enough that it does not limit copies within the device, memory does


class Link(Spec):
    """A link between host and GPU, with separate latencies for data and for commands."""

    data_latency: Time | None = parameter(None, doc="latency of a data packet", minimum="0fs")
    command_latency: Time | None = parameter(None, doc="latency of a command (a CUDA call)", minimum="0fs")
    bandwidth: Bandwidth | None = parameter(None, doc="bandwidth in one direction", minimum="1B/s")
    copy_engines: Count | None = parameter(
        None,
        doc="engines on the link; 2: both directions at the same time; 1: one after the other",
        minimum=1,
        maximum=2,
    )
    copy_engine: CopyEngine | None = parameter(None, doc="each of the copy engines")


@dataclass(frozen=True)
class HostSide:
    """What a GPU has towards its host."""

    engines: list[NativeComponent]
    command_latency: int  # femtoseconds


def add_host_side(gpu: GpuSystem, link: Link | None) -> HostSide:
    """Adds `host_link` and `copy_engine[0]`… to the system of a GPU.

    The last of the engines makes the copies within the device; those before it are on the link, to the device first.
    """
    link = _whole(gpu.system.name, link)
    system = gpu.system
    l1 = gpu.sms[0].spec.model_dump()["l1"]
    stated = {} if link.copy_engine is None else dump(link.copy_engine)
    stated |= {"slices": l1["slices"], "line": f"{l1['line']}B", "slice_hash": l1["slice_hash"]}
    crossbar: Any = system.components["crossbar"]
    crossbar_latency = next(wire.latency for wire in system.links if wire.b == "crossbar.requesters")
    wires = system.add(
        "gpu.host_link", "host_link", bandwidth=f"{link.bandwidth}B/s", data_latency=f"{link.data_latency}fs"
    )
    engines, on_link = [], link.copy_engines or 0
    for i in range(on_link + 1):
        engine = system.add("gpu.copy_engine", f"copy_engine[{i}]", **stated)
        system.connect(gpu.scheduler.engines, engine.scheduler, "0fs")
        within = i == on_link
        if not within:
            system.connect(engine.link, wires.engines, "0fs")
        for _ in range(_WITHIN_LINKS if within else 1):
            system.connect(engine.memory, crossbar.requesters, f"{crossbar_latency}fs")
        engines.append(engine)
    return HostSide(engines, link.command_latency or 0)


def _whole(where: str, link: Link | None) -> Link:
    """The section [link], of which all that is needed is stated."""
    link = link or Link()
    for name in ("bandwidth", "data_latency", "command_latency", "copy_engines"):
        if getattr(link, name) is None:
            raise InputError(f"{where}: link.{name}: is not stated, but is needed to run kernels with timing")
    check_whole(where, "gpu.copy_engine", link.copy_engine, "link.copy_engine", _BUILT)
    return link
