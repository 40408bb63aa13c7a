# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on GPUs: one rank for each, gradients reduced over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from manyscale.network.motifs.motif import Varying
from manyscale.network.recorder import Mpi
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bandwidth, Bytes, Count, Time, parameter


class GpuTraining(Varying):
    """Steps of data-parallel training with a rank for each GPU.

    Directly: the reduction of each layer's gradients, from GPU to GPU, is begun as soon as they are known; it goes on
    while ranks are in MPI calls, so most of it comes after the last layer. Staged: when all are known they are copied
    to the host, reduced there, and copied back.
    Measured compute phases are forward and backward (of a layer and a microbatch), update (of all weights), and where
    staged to_host and to_gpu. Default times are assumed.
    """

    layers: Count = parameter(4, doc="layers, equally large", minimum=1, maximum=1024)
    layer: Bytes = parameter("64KiB", doc="bytes of a layer's gradients", minimum="1B")
    microbatches: Count = parameter(
        1,
        doc="passes forwards and backwards whose gradients are added up on a GPU before a reduction",
        minimum=1,
    )
    steps: Count = parameter(2, doc="training steps", minimum=1)
    staging: Literal["direct", "staged"] = parameter(
        "direct", doc="direct: networks reach the memory of GPUs; staged: through copies to the host and back"
    )
    algorithm: str = parameter(
        "hierarchical", doc="algorithm of the reductions; empty: chosen by size and count"
    )
    forward: Time = parameter("10us", doc="compute of a layer forwards", minimum="0fs")
    backward: Time = parameter("20us", doc="compute of a layer backwards", minimum="0fs")
    update: Time = parameter("3us", doc="compute of all new weights", minimum="0fs")
    host_link: Bandwidth = parameter("12GB/s", doc="of copies between a GPU and its host", minimum="1B/s")

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """steps x (microbatches x layers x (forward, backward), a reduction for each layer or of all, an update)."""
        many = size > 1
        algorithm = self.algorithm
        gradients = self.layers * self.layer
        staged = self.staging == "staged"
        copy = gradients * 10**15 // self.host_link if staged and not self.timed else 0
        with mpi.loop(self.steps):
            with mpi.loop(self.microbatches - 1):
                self._layers(mpi, "forward")
                self._layers(mpi, "backward")
            self._layers(mpi, "forward")
            if many and not staged:
                outstanding = []
                for _ in range(self.layers):
                    self._phase(mpi, "backward", lambda: self.backward)
                    outstanding.append(mpi.icollective("allreduce", self.layer, algorithm=algorithm))
                mpi.waitall(outstanding)
            else:
                self._layers(mpi, "backward")
                if many:
                    self._phase(mpi, "to_host", lambda: copy)
                    mpi.allreduce(gradients, algorithm=algorithm)
                    self._phase(mpi, "to_gpu", lambda: copy)
            self._phase(mpi, "update", lambda: self.update)

    def _layers(self, mpi: Mpi, name: str) -> None:
        with mpi.loop(self.layers):
            self._phase(mpi, name, lambda: getattr(self, name))

    def _phase(self, mpi: Mpi, name: str, time: Callable[[], int]) -> None:
        self.work(mpi, lambda: self.lasting(time()))
        self.compute_before(mpi, name)
