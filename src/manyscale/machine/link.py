# SPDX-License-Identifier: Apache-2.0
"""The link between host and GPU: PCIe, NVLink or the like."""

from __future__ import annotations

from manyscale.spec import Bandwidth, Spec, Time, parameter


class Link(Spec):
    """A link between host and GPU, with separate latencies for data and for commands."""

    data_latency: Time | None = parameter(None, doc="latency of a data packet", minimum="0fs")
    command_latency: Time | None = parameter(None, doc="latency of a command (a CUDA call)", minimum="0fs")
    bandwidth: Bandwidth | None = parameter(None, doc="bandwidth in one direction", minimum="1B/s")
