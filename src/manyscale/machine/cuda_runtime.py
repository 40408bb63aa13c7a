# SPDX-License-Identifier: Apache-2.0
"""The CUDA runtime and driver of a machine's host: what calls cost a program. Leaves out that calls differ in cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyscale.errors import InputError
from manyscale.spec import Bandwidth, Spec, Time, parameter

if TYPE_CHECKING:
    from manyscale.machine.description import Machine


class CudaRuntime(Spec):
    """The CUDA runtime and driver."""

    call_time: Time | None = parameter(None, doc="what a call of the runtime costs the host", minimum="0fs")
    pageable_bandwidth: Bandwidth | None = parameter(
        None,
        doc="at which the host copies pageable memory to and from the driver's pinned buffer",
        minimum="1B/s",
    )


@dataclass(frozen=True)
class RuntimeCosts:
    """What a run uses of it: femtoseconds, and bytes per second."""

    call_time: int
    pageable_bandwidth: int


def runtime_costs(machine: Machine) -> RuntimeCosts:
    """The costs that a machine states; it has to state them to run CUDA programs."""
    section, where = machine.cuda or CudaRuntime(), machine.name or "the machine"
    for name in ("call_time", "pageable_bandwidth"):
        if getattr(section, name) is None:
            raise InputError(
                f"{where}: cuda.{name}: is not stated; state it, or let the section [cuda] have what it leaves open "
                'from another machine: inherits = "v100"'
            )
    assert section.call_time is not None and section.pageable_bandwidth is not None  # noqa: PT018
    return RuntimeCosts(section.call_time, section.pageable_bandwidth)
