# SPDX-License-Identifier: Apache-2.0
"""The host's mesh, between its processor and its memory."""

from __future__ import annotations

from manyscale.spec import Bandwidth, Bytes, Count, Frequency, Spec, Time, parameter


class Mesh(Spec):
    """The on-chip network of the host."""

    clock: Frequency | None = parameter(None, doc="router clock", minimum="1Hz")
    latency: Time | None = parameter(None, doc="latency of one hop", minimum="0fs")
    bandwidth: Bandwidth | None = parameter(None, doc="bandwidth of one link", minimum="1B/s")
    flit_size: Bytes | None = parameter(None, doc="bytes that move together in one cycle", minimum="1B")
    input_ports: Count | None = parameter(None, doc="input ports of an endpoint", minimum=1)
    output_ports: Count | None = parameter(None, doc="output ports of an endpoint", minimum=1)
