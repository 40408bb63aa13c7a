# SPDX-License-Identifier: Apache-2.0
"""What a comparison with a GPU runs on: a machine, and whether its kernels run as PTX or as SASS."""

from __future__ import annotations

from dataclasses import dataclass

from manyscale.gpu import TimedDevice
from manyscale.gpu.isa import Isa
from manyscale.machine import Machine


@dataclass(frozen=True)
class GpuTarget:
    """A machine by its name, its file or its description, and the form of the kernels."""

    machine: str | Machine
    isa: Isa = "auto"

    def device(self) -> TimedDevice:
        """A new GPU of that machine."""
        return TimedDevice(self.machine, isa=self.isa)
