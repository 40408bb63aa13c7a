# SPDX-License-Identifier: Apache-2.0
"""The host's sections of a machine: the processor, and the mesh between it and its memory."""

from __future__ import annotations

from manyscale.spec import Bandwidth, Bytes, Count, Frequency, Spec, Time, parameter


class Cpu(Spec):
    """A host processor, as a source of memory requests."""

    clock: Frequency | None = parameter(None, doc="core clock", minimum="1Hz")
    cores: Count | None = parameter(None, doc="number of cores", minimum=1)
    requests_per_cycle: Count | None = parameter(
        None, doc="memory requests a core may issue in one cycle", minimum=1
    )


class Mesh(Spec):
    """The on-chip network of the host."""

    clock: Frequency | None = parameter(None, doc="router clock", minimum="1Hz")
    latency: Time | None = parameter(None, doc="latency of one hop", minimum="0fs")
    bandwidth: Bandwidth | None = parameter(None, doc="bandwidth of one link", minimum="1B/s")
    flit_size: Bytes | None = parameter(None, doc="bytes that move together in one cycle", minimum="1B")
    input_ports: Count | None = parameter(None, doc="input ports of an endpoint", minimum=1)
    output_ports: Count | None = parameter(None, doc="output ports of an endpoint", minimum=1)
