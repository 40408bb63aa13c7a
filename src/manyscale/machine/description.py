# SPDX-License-Identifier: Apache-2.0
"""The description of a machine: one section for each part of it, each optional.

To extend it, add a parameter to a section, or a section to `Machine`; files, overrides and docs follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.machine.cuda_runtime import CudaRuntime
from manyscale.machine.gpu import Gpu
from manyscale.machine.link import Link
from manyscale.spec import Spec, deferred, parameter

if TYPE_CHECKING:
    from manyscale.machine.cpu import Cpu
    from manyscale.machine.host import Mesh
    from manyscale.machine.memory import Memory
    from manyscale.machine.network import Network
else:

    def _cpu() -> type[Spec]:
        from manyscale.machine.cpu import Cpu

        return Cpu

    def _memory() -> type[Spec]:
        from manyscale.machine.memory import Memory

        return Memory

    def _mesh() -> type[Spec]:
        from manyscale.machine.host import Mesh

        return Mesh

    def _network() -> type[Spec]:
        from manyscale.machine.network import Network

        return Network

    Cpu, Memory, Mesh, Network = deferred(_cpu), deferred(_memory), deferred(_mesh), deferred(_network)


class Machine(Spec):
    """A node: a host processor with its memory, and a GPU behind a link; and the network between nodes."""

    name: str = parameter("", doc="short name of the machine")
    description: str = parameter("", doc="what the machine stands for, in a sentence")
    cpu: Cpu | None = parameter(None, doc="host processor")
    memory: Memory | None = parameter(None, doc="host memory, from the cores' caches to the DRAM")
    mesh: Mesh | None = parameter(None, doc="on-chip network between the host's cores and its memory")
    gpu: Gpu | None = parameter(None, doc="graphics processor")
    link: Link | None = parameter(None, doc="link between host and GPU")
    cuda: CudaRuntime | None = parameter(None, doc="CUDA runtime of the host")
    network: Network | None = parameter(None, doc="network between nodes, and the MPI library that uses it")
