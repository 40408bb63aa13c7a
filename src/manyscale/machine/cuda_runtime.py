# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime and driver of a machine's host: what calls cost a program. Leaves out that calls differ in cost."""

from __future__ import annotations

from dataclasses import dataclass

from manyscale.spec import Bandwidth, Spec, Time, parameter

# Zhang et al., arXiv:2004.05371, launch overhead of a V100 (recalled): 1081 ns for a kernel. That other calls cost the
# host as much is assumed.
CALL_TIME = 10**9
# Harris, "How to Optimize Data Transfers in CUDA C/C++" (recalled): 5.4 and 5.6 GB/s with an i7-3930K; bandwidthTest
# with a Xeon E5-2680 (jungfrau-photoncounter, issue 18): 4.0. Later hosts are assumed to be a little faster.
PAGEABLE_BANDWIDTH = 6_000_000_000


class CudaRuntime(Spec):
    """The CUDA runtime and driver."""

    call_time: Time | None = parameter(
        None, doc="what a call of the runtime costs the host; not stated: 1us", minimum="0fs"
    )
    pageable_bandwidth: Bandwidth | None = parameter(
        None,
        doc="at which the host copies pageable memory to and from the driver's pinned buffer; not stated: 6GB/s",
        minimum="1B/s",
    )


@dataclass(frozen=True)
class RuntimeCosts:
    """What a run uses of it: femtoseconds, and bytes per second."""

    call_time: int
    pageable_bandwidth: int


def runtime_costs(stated: CudaRuntime | None) -> RuntimeCosts:
    """The costs that a machine states, and the defaults of the others."""
    section = stated or CudaRuntime()
    return RuntimeCosts(
        CALL_TIME if section.call_time is None else section.call_time,
        PAGEABLE_BANDWIDTH if section.pageable_bandwidth is None else section.pageable_bandwidth,
    )
