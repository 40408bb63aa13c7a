# SPDX-License-Identifier: Apache-2.0
"""The GPU's sections of a machine: the chip, its memory, its crossbar and its unified virtual memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from manyscale.machine.model_specs import any_of
from manyscale.machine.uvm import UnifiedMemory
from manyscale.spec import Bandwidth, Bytes, Count, Cycles, Frequency, Spec, Time, deferred, parameter

if TYPE_CHECKING:  # what the core's tables make at run time
    from manyscale.machine.core_specs import GpuChannel, L2Slice, Scheduler, Sm
else:
    Sm = deferred(lambda: any_of("Sm", "A streaming multiprocessor.", ["gpu.sm"]))
    Scheduler = deferred(lambda: any_of("Scheduler", "The kernel and CTA scheduler.", ["gpu.scheduler"]))
    L2Slice = deferred(lambda: any_of("L2", "A slice of the L2.", ["memory.cache"]))
    GpuChannel = deferred(lambda: any_of("Channel", "A channel of the GPU's memory.", ["memory.dram"]))


class GpuMemory(Spec):
    """The GPU's stacked DRAM (HBM)."""

    clock: Frequency | None = parameter(
        None, doc="command clock of the channels; not stated: that of the standard", minimum="1Hz"
    )
    capacity: Bytes | None = parameter(None, doc="total capacity", minimum="1B")
    bandwidth: Bandwidth | None = parameter(
        None,
        doc="bandwidth of one memory port on the crossbar (not simulated: the channel's is)",
        minimum="1B/s",
    )
    controllers: Count | None = parameter(
        None, doc="number of memory controllers (not simulated: each channel has one)", minimum=1
    )
    stacks: Count | None = parameter(None, doc="number of HBM stacks", minimum=1)
    channels_per_stack: Count | None = parameter(None, doc="channels of one stack", minimum=1)
    channels: Count | None = parameter(
        None,
        doc="number of channels; not stated: stacks x channels_per_stack, else one for each L2 slice",
        minimum=1,
        maximum=65536,
    )
    rows: Count | None = parameter(None, doc="rows of one bank; not stated: those of the standard", minimum=1)
    standard: str | None = parameter(
        None, doc="DRAM standard of a channel, such as hbm2-v100 (machines/dram/)"
    )
    channel: GpuChannel | None = parameter(None, doc="what of a channel differs from the standard")
    link_latency: Time | None = parameter(None, doc="of the link from a slice to a channel", minimum="0fs")


class Crossbar(Spec):
    """The network between the streaming multiprocessors and the L2 slices."""

    clock: Frequency | None = parameter(None, doc="crossbar clock", minimum="1Hz")
    latency: Time | None = parameter(
        None, doc="latency from input to output port, where traversal is not stated", minimum="0fs"
    )
    bandwidth: Bandwidth | None = parameter(
        None, doc="total bandwidth (not simulated: that of the ports is)", minimum="1B/s"
    )
    link_bandwidth: Bandwidth | None = parameter(
        None,
        doc="bandwidth of one port, a flit a cycle; sets the clock where that is not stated",
        minimum="1B/s",
    )
    flit_size: Bytes | None = parameter(None, doc="bytes that move together in one cycle", minimum="1B")
    input_ports: Count | None = parameter(None, doc="input ports of an endpoint", minimum=1)
    output_ports: Count | None = parameter(None, doc="output ports of an endpoint", minimum=1)
    traversal: Cycles | None = parameter(None, doc="crossbar cycles from input to output port", minimum=0)
    link_latency: Time | None = parameter(None, doc="of the links to SMs and to slices", minimum="0fs")


class Gpu(Spec):
    """A GPU: streaming multiprocessors (SMs) over a sliced L2."""

    architecture: str | None = parameter(
        None, doc='whose SASS its SMs execute, such as "sm_70"; not stated: that of the program'
    )
    isa: Literal["auto", "sass", "ptx"] | None = parameter(
        None, doc="what kernels run as, where a run does not say; auto: SASS where it can be had, else PTX"
    )
    assembler: str | None = parameter(
        None, doc='version of ptxas that makes SASS of PTX, such as "12.9.86"; "any", or "none" for PTX'
    )
    clock: Frequency | None = parameter(None, doc="core clock of the SMs", minimum="1Hz")
    sm_count: Count | None = parameter(None, doc="number of SMs", minimum=1)
    sm_groups: Count | None = parameter(
        None,
        doc="groups of SMs, L2 slices and channels that a host thread takes as a whole; not stated: any split",
        minimum=1,
    )
    l2_slices: Count | None = parameter(None, doc="number of L2 slices", minimum=1)
    l2_slice_capacity: Bytes | None = parameter(None, doc="capacity of one L2 slice", minimum="1B")
    sm: Sm | None = parameter(None, doc="each of the SMs")
    scheduler: Scheduler | None = parameter(None, doc="what starts kernels and CTAs")
    l2: L2Slice | None = parameter(None, doc="each of the L2 slices")
    memory: GpuMemory | None = parameter(None, doc="GPU memory")
    crossbar: Crossbar | None = parameter(None, doc="network between SMs and L2")
    uvm: UnifiedMemory | None = parameter(None, doc="unified virtual memory")
