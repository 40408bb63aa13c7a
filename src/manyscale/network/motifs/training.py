# SPDX-License-Identifier: Apache-2.0
"""Training of neural networks: Caffe of the many-node study, and a step of today's large models."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from manyscale.errors import InputError
from manyscale.network.motifs.motif import Varying
from manyscale.network.recorder import Mpi
from manyscale.network.shared import Communicator, Request
from manyscale.network.skeleton import vectorised
from manyscale.spec import Bandwidth, Bytes, Count, Ratio, Time, parameter


class Caffe(Varying):
    """Data-parallel training in which gradients go up a binary tree of ranks and weights come down it.

    A rank encodes what it sends and decodes what it gets; the root computes the new weights. Layers follow each
    other: the gradients of a layer travel while the layer before is computed, and a layer waits for its weights.
    The many-node study prints only that a rank has 128 images; weights are those of AlexNet, whose 61 million
    parameters take 244 MB, and times, compression and the speed of coding are assumed.
    """

    weights: Bytes = parameter("244MB", doc="bytes of all weights, before encoding", minimum="1B")
    layers: Count = parameter(8, doc="layers, equally large", minimum=1, maximum=1024)
    forward: Time = parameter(
        "85ms", doc="compute of all layers forwards, for the images of a rank", minimum="0fs"
    )
    backward: Time = parameter("170ms", doc="compute of all layers backwards", minimum="0fs")
    compression: Ratio = parameter(0.5, doc="encoded bytes for each byte", minimum=0.001, maximum=1.0)
    coding: Bandwidth = parameter(
        "10GB/s", doc="bytes that a rank encodes, decodes or adds in a second", minimum="1B/s"
    )
    iterations: Count = parameter(2, doc="training steps", minimum=1)

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x layers x (2 (ranks - 1) messages: gradients up, weights down)."""
        parent = np.where(rank > 0, (rank - 1) // 2, mpi.NOBODY)
        children = [np.where(2 * rank + side < size, 2 * rank + side, mpi.NOBODY) for side in (1, 2)]
        layer = self.weights // self.layers
        message = math.ceil(layer * self.compression)
        coding = layer * 10**15 // self.coding
        forward = self.lasting(self.forward // self.layers)
        backward = self.lasting(self.backward // self.layers)
        many = size > 1
        leaf = children[0] == mpi.NOBODY
        with mpi.loop(self.iterations):
            gradients = [
                [mpi.irecv(child, message, tag=index) for child in children] if many else []
                for index in range(self.layers)
            ]
            sent: list[Request] = []
            for index in range(self.layers):
                mpi.compute(backward)
                if many:
                    with mpi.where(leaf):  # has nothing to add and sends at once
                        mpi.compute(coding)
                        sent.append(mpi.isend(parent, message, tag=index))
            if many:
                sent += self._reduce(mpi, parent, children, gradients, message, coding)
            self._spread(mpi, parent, children, message, coding, forward, many)
            mpi.waitall(sent)

    def _reduce(
        self,
        mpi: Mpi,
        parent: Any,
        children: list[Any],
        gradients: list[list[Request]],
        message: int,
        coding: int,
    ) -> list[Request]:
        """Inner ranks add what their children sent to their own, layer by layer, and send it on."""
        sent = []
        has_child = [child != mpi.NOBODY for child in children]
        passes_on = has_child[0] & (parent != mpi.NOBODY)
        for index, requests in enumerate(gradients):
            for there, request in zip(has_child, requests, strict=True):
                mpi.wait(request)
                with mpi.where(there):
                    mpi.compute(2 * coding)  # decode and add
            with mpi.where(passes_on):
                mpi.compute(coding)
                sent.append(mpi.isend(parent, message, tag=index))
        return sent

    def _spread(
        self,
        mpi: Mpi,
        parent: Any,
        children: list[Any],
        message: int,
        coding: int,
        forward: Any,
        many: bool,
    ) -> None:
        """New weights come down the tree as they were encoded at the root; each layer then computes forwards."""
        arriving = (
            [mpi.irecv(parent, message, tag=self.layers + index) for index in range(self.layers)]
            if many
            else []
        )
        passed: list[Request] = []
        root = parent == mpi.NOBODY
        below = ~root
        for index in range(self.layers):
            if many:
                with mpi.where(root):
                    mpi.compute(2 * coding)  # the step, and encoding
                mpi.wait(arriving[index])
                passed += [mpi.isend(child, message, tag=self.layers + index) for child in children]
                with mpi.where(below):
                    mpi.compute(coding)
            mpi.compute(forward)
        if passed:
            mpi.waitall(passed)


class DataParallel(Varying):
    """Data-parallel training in which rank 0 computes the new weights: gradients are added up there layer by layer,
    backwards, and weights are spread from there, forwards.

    Measured compute phases are those of examples/projection/programs/training.c: gradients, weights, loss. That
    program makes one step more than it is told, with which it checks itself. Default times are assumed.
    """

    layer: Bytes = parameter("4KiB", doc="bytes of a layer's gradients, and of its weights", minimum="1B")
    layers: Count = parameter(3, doc="layers, equally large", minimum=1)
    forward: Time = parameter("100us", doc="compute of a layer forwards", minimum="0fs")
    backward: Time = parameter("200us", doc="compute of a layer backwards", minimum="0fs")
    update: Time = parameter("10us", doc="compute of a layer's new weights, on rank 0", minimum="0fs")
    steps: Count = parameter(10, doc="training steps", minimum=1)
    algorithm: Literal["binomial", "binary", "pipeline", "chain"] = parameter(
        "binomial", doc="algorithm of the reductions and broadcasts"
    )

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """steps x (layers x (a reduction, a broadcast), an allreduce)."""
        many = size > 1
        layer, algorithm = self.layer, self.algorithm
        self.begin(mpi)
        with mpi.loop(self.steps + 1 if self.timed else self.steps):
            with mpi.loop(self.layers):
                self.work(mpi, lambda: self.lasting(self.backward))
                if many:
                    self.compute_before(mpi, "gradients")
                    mpi.reduce(layer, algorithm=algorithm)
            with mpi.loop(self.layers):
                with mpi.where(rank == 0):
                    self.work(mpi, lambda: self.update)
                if many:
                    self.compute_before(mpi, "weights")
                    mpi.bcast(layer, algorithm=algorithm)
                self.work(mpi, lambda: self.lasting(self.forward))
            self.compute_before(mpi, "loss")
            mpi.allreduce(8)
        self.end(mpi, 24)


class Training(Varying):
    """One step of a large language model with data, tensor and pipeline parallelism.

    Ranks of one tensor group are neighbours, then come data and then pipeline stages. Each layer has two
    allreduces of activations in the tensor group forwards and two backwards; stages pass activations and their
    gradients in the order of one forward, one backward; gradients are reduced over the data group at the end.
    """

    tensor: Count = parameter(8, doc="ranks that share each layer", minimum=1)
    pipeline: Count = parameter(1, doc="stages of layers", minimum=1)
    layers: Count = parameter(32, doc="layers of the model", minimum=1)
    hidden: Count = parameter(4096, doc="width of a layer", minimum=1)
    sequence: Count = parameter(4096, doc="tokens of a sequence", minimum=1)
    microbatch: Count = parameter(1, doc="sequences of a microbatch", minimum=1)
    microbatches: Count = parameter(8, doc="microbatches of a step, for each data-parallel group", minimum=1)
    element: Bytes = parameter("2B", doc="bytes of an activation or a gradient", minimum="1B")
    speed: Count = parameter(
        300_000_000_000_000, doc="floating-point operations of a rank in a second", minimum=1
    )
    sharded: bool = parameter(
        False, doc="whether gradients are reduce-scattered and weights gathered, and not allreduced"
    )
    iterations: Count = parameter(1, doc="steps", minimum=1)
    algorithm: str = parameter(
        "", doc="algorithm of the allreduces, by name; empty: chosen by size and count"
    )
    schedule: Literal["1f1b", "gpipe"] = parameter(
        "1f1b", doc="1f1b: one forward, one backward; gpipe: all forwards, then all backwards"
    )

    @property
    def activations(self) -> int:
        """Bytes of the activations of a microbatch between two layers."""
        return self.microbatch * self.sequence * self.hidden * self.element

    @property
    def layer_weights(self) -> int:
        """Weights of a layer: attention 4 h^2, and 8 h^2 of a feed-forward part four times as wide."""
        return 12 * self.hidden**2

    @vectorised
    def emit(self, mpi: Mpi, rank: Any, size: int) -> None:
        """iterations x (microbatches x layers x 4 tensor allreduces, 2 messages between stages, a reduction)."""
        group = self.tensor * self.pipeline
        if size % group or self.layers % self.pipeline:
            raise InputError(
                f"training: {size} ranks must be a multiple of tensor x pipeline = {self.tensor} x {self.pipeline}, "
                f"and {self.layers} layers one of {self.pipeline} stages"
            )
        data = size // group
        tensor = mpi.split(rank // self.tensor) if self.tensor > 1 else None
        stage = rank // (self.tensor * data)
        reduced = mpi.split(rank % self.tensor + self.tensor * stage) if data > 1 else None
        stride = self.tensor * data
        before = np.where(stage > 0, rank - stride, mpi.NOBODY)
        behind = np.where(stage < self.pipeline - 1, rank + stride, mpi.NOBODY)
        sent = [mpi.request(), mpi.request()]

        def forward() -> None:
            self._stage(mpi, before, behind, tensor, sent[0], 0)

        def backward() -> None:
            self._stage(mpi, behind, before, tensor, sent[1], 1)

        with mpi.loop(self.iterations):
            if self.schedule == "gpipe":
                with mpi.loop(self.microbatches):
                    forward()
                with mpi.loop(self.microbatches):
                    backward()
            else:
                filled = np.minimum(self.pipeline - 1 - stage, self.microbatches)
                with mpi.loop(filled):
                    forward()
                with mpi.loop(self.microbatches - filled):
                    forward()
                    backward()
                with mpi.loop(filled):
                    backward()
            self._update(mpi, reduced, data)
        mpi.waitall(sent)

    def _layer_time(self, passes: int) -> Any:
        """Of a layer for a microbatch: 2 operations for each weight and token, and the attention's products."""
        tokens = self.microbatch * self.sequence
        operations = 2 * tokens * self.layer_weights + 4 * tokens * self.sequence * self.hidden
        return self.lasting(passes * operations * 10**15 // self.tensor // self.speed)

    def _layers(self, mpi: Mpi, passes: int, tensor: Communicator | None) -> None:
        with mpi.loop(self.layers // self.pipeline):
            mpi.compute(self._layer_time(passes))
            if tensor is not None:
                mpi.allreduce(self.activations, communicator=tensor, algorithm=self.algorithm)
                mpi.allreduce(self.activations, communicator=tensor, algorithm=self.algorithm)

    def _stage(
        self, mpi: Mpi, source: Any, to: Any, tensor: Communicator | None, sent: Request, way: int
    ) -> None:
        """A microbatch through the layers of a stage, forwards (way 0) or, twice the work, backwards (way 1)."""
        mpi.recv(source, self.activations, tag=way)
        self._layers(mpi, 1 + way, tensor)
        mpi.wait(sent)  # the one before; it travels while this one is computed
        mpi.isend(to, self.activations, tag=way, request=sent)

    def _update(self, mpi: Mpi, reduced: Communicator | None, data: int) -> None:
        gradients = self.layer_weights * self.layers // self.pipeline // self.tensor * self.element
        sharded = self.sharded
        algorithm = "" if sharded else self.algorithm
        if reduced is None:
            return
        if sharded:
            part = -(-gradients // data)
            mpi.reduce_scatter(part, communicator=reduced)
            mpi.allgather(part, communicator=reduced)
        else:
            mpi.allreduce(gradients, communicator=reduced, algorithm=algorithm)
