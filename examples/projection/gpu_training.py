# SPDX-License-Identifier: Apache-2.0
"""From CUDA kernels to a scaling curve: data-parallel training on 1 to 1,024 nodes of 4 GPUs.

    python gpu_training.py [FOLDER] [--full] [--nodes 1,4,16]

The kernels of a training step (kernels/training.cu, stored as PTX) run on the model of a V100: with all its 84 SMs, and
with 80, as GPUs are sold. Each step has other images, and the layers cut off other values, so that times vary. A
skeleton with a rank for each GPU then draws its times from these, on a fat tree of links of 100 Gb/s: gradients go from
GPU to GPU while others are computed, or are copied to the host first; GPUs of a node are joined by NVLink or PCIe.

Without --full, the layers are small and the nodes are few, to show the same in seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from manyscale import network
from manyscale.gpu.timed_device import TimedDevice
from manyscale.network.motifs import motif
from manyscale.results.line_chart import line_chart
from manyscale.studies.gpu_node import GpuNode, GpuTimings, PhaseClock, measure

PTX = Path(__file__).parent / "kernels" / "training.ptx"
TILE = 16
LAYERS = 4
MICROBATCHES = 16


class Training:
    """The arrays of a network on a device, and a step of its training."""

    def __init__(self, device: TimedDevice, width: int, images: int) -> None:
        self.width, self.images = width, images
        self.kernels = device.load(PTX)
        self.random = np.random.default_rng(1)
        self.weights = [device.array(self._numbers(width, width) * 4 / width) for _ in range(LAYERS)]
        self.values = [device.zeros((images, width)) for _ in range(LAYERS + 1)]
        self.wanted = device.zeros((images, width))
        self.errors = [device.zeros((images, width)) for _ in range(LAYERS + 1)]
        self.gradients = [device.zeros((width, width)) for _ in range(LAYERS)]

    def _numbers(self, *shape: int) -> np.ndarray:
        return (self.random.random(shape, dtype=np.float32) - np.float32(0.45)).astype(np.float32)

    def step(self, clock: PhaseClock) -> None:
        """Forwards, backwards, new weights; the gradients to the host and back, as a staged reduction needs them."""
        width, images = self.width, self.images
        across = (width // TILE, images // TILE)
        block = (TILE, TILE)
        self.values[0].copy_from(self._numbers(images, width))
        self.wanted.copy_from(self._numbers(images, width))
        for layer in range(LAYERS):
            with clock.phase("forward"):
                arrays = (self.weights[layer], self.values[layer], self.values[layer + 1])
                self.kernels["forward"][across, block](*arrays, width, width, layer + 1 == LAYERS)
        loss = (self.values[LAYERS], self.wanted, self.errors[LAYERS])
        self.kernels["loss"][images * width // 256, 256](*loss, 1.0 / images)
        for layer in reversed(range(LAYERS)):
            with clock.phase("backward"):
                errors, entered = self.errors[layer + 1], self.values[layer]
                weights = (errors, entered, self.gradients[layer])
                self.kernels["backward_weights"][(width // TILE, width // TILE), block](
                    *weights, images, width, width
                )
                before = (self.weights[layer], errors, entered, self.errors[layer])
                self.kernels["backward_values"][across, block](*before, width, width)
        host = [np.empty((width, width), np.float32) for _ in self.gradients]
        with clock.phase("to_host"):
            for gradient, there in zip(self.gradients, host, strict=True):
                gradient.copy_to(there)
        with clock.phase("to_gpu"):
            for gradient, there in zip(self.gradients, host, strict=True):
                gradient.copy_from(there)
        with clock.phase("update"):
            for weight, gradient in zip(self.weights, self.gradients, strict=True):
                self.kernels["update"][width * width // 256, 256](weight, gradient, 0.05)


def check(training: Training) -> bool:
    """Whether the gradients of the last step are those that numpy finds."""
    worst = 0.0
    for layer in range(LAYERS):
        errors, entered = training.errors[layer + 1].numpy(), training.values[layer].numpy()
        expected = errors.T.astype(float) @ entered.astype(float)
        found = training.gradients[layer].numpy()
        worst = max(worst, float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30)))
    return worst < 1e-4


def seconds(timings: GpuTimings, nodes: int, node: GpuNode, layer: int, variant: str = "variable") -> float:
    """The simulated time of a training step."""
    steps = 2
    skeleton = motif(
        "gputraining",
        layers=LAYERS,
        layer=f"{layer}B",
        microbatches=MICROBATCHES,
        steps=steps,
        staging=node.staging,
    )
    timed = timings.on_gpus(skeleton, node, nodes, variant)  # type: ignore[arg-type]
    cluster = network.cluster("omnipath", node.changes, nodes=nodes, ranks_per_node=node.gpus)
    program = network.compile(timed.emit, nodes * node.gpus, name="gputraining")
    return network.Job(program, cluster, seed=1).run().simulated_seconds / steps


def main() -> None:
    """Kernels, then nodes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="where a chart goes")
    parser.add_argument("--full", action="store_true", help="larger layers, and up to 1,024 nodes")
    parser.add_argument("--nodes", help="such as 1,4,16")
    given = parser.parse_args()
    width, images = (256, 64) if given.full else (64, 32)
    if given.nodes:
        counts = [int(count) for count in given.nodes.split(",")]
    else:
        counts = [1, 4, 16, 64, 256, 1024] if given.full else [1, 4, 16]

    trainings: list[Training] = []

    def program(device: TimedDevice):
        trainings.append(Training(device, width, images))
        return trainings[-1].step

    timings = measure(program, machine="v100", sm_counts=(84, 80), steps=3)
    print("the gradients are those of numpy:", "yes" if all(check(one) for one in trainings) else "no")
    for count, profile in timings.profiles.items():
        parts = ", ".join(f"{name} {profile[name].mean * 1e6:.1f} us" for name in profile)
        print(f"{count} SMs: {parts}")

    layer = width * width * 4
    lines: dict[str, list[tuple[float, float]]] = {}
    kinds = {
        "NVLink, direct": (GpuNode(link="nvlink"), "variable"),
        "NVLink, direct, constant times": (GpuNode(link="nvlink"), "constant"),
        "PCIe, direct": (GpuNode(link="pcie"), "variable"),
        "PCIe, staged": (GpuNode(link="pcie", staging="staged"), "variable"),
    }
    for name, (node, variant) in kinds.items():
        line = [(nodes, 1e6 * seconds(timings, nodes, node, layer, variant)) for nodes in counts]
        lines[name] = [(float(nodes), time) for nodes, time in line]
        print(f"{name:32}", "  ".join(f"{nodes} nodes: {time:.1f} us" for nodes, time in line))
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        chart = line_chart("A training step on nodes of 4 GPUs", "nodes", "us", lines)
        (given.folder / "gpu_training.svg").write_text(chart, encoding="utf-8")
    last = {name: line[-1][1] for name, line in lines.items() if "constant" not in name}
    order = sorted(last, key=last.__getitem__)
    print(f"fastest on {counts[-1]} nodes: {order[0]}; slowest: {order[-1]}")


if __name__ == "__main__":
    main()
