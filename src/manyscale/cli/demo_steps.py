# SPDX-License-Identifier: Apache-2.0
"""The steps of `manyscale demo`: each answers a question of a user, leaves runs, and says what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import ManyscaleError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from manyscale.gpu import TimedDevice, TimedLaunch
    from manyscale.report.charts import Chart
    from manyscale.studies.gpu_node import GpuTimings, PhaseClock

Facts = dict[str, Any]

_COMMAND = ["manyscale", "demo"]
_KERNELS = Path(__file__).with_name("demo_kernels.ptx")
_EDGE = 1024  # rows and columns of the matrix that is transposed


@dataclass(frozen=True)
class Outcome:
    """What came out of a step: facts for the terminal, and runs and charts for the report."""

    facts: Facts
    runs: dict[str, Path] = field(default_factory=dict)
    charts: list[Chart] = field(default_factory=list)


Step = Callable[[Path, bool], Outcome]


def kernel(directory: Path, quiet: bool) -> Outcome:
    """A kernel on a V100: how long does it take, and what limits it?"""
    launch, wall = _transpose(directory / "first", "transpose")
    limit = launch.profile.limit
    facts: Facts = {
        f"transpose of {_EDGE:,} x {_EDGE:,} floats": (
            f"simulated {launch.seconds * 1e6:.1f} us ({launch.cycles:,} cycles) in {wall:.1f} s; "
            "the result is numpy's"
        ),
        "limited by": f"{limit.kind}: {limit.evidence}",
        "advice": limit.advice,
    }
    return Outcome(facts, {"the transpose": directory / "first"})


def fixed_kernel(directory: Path, quiet: bool) -> Outcome:
    """The same after two fixes: did they help?"""
    from manyscale.report.charts import Stacks

    first, _ = _transpose(None, "transpose")
    tile, _ = _transpose(directory / "tile", "transpose_tile")
    padded, _ = _transpose(directory / "padded", "transpose_padded")
    facts: Facts = {}
    for name, launch in (("a tile in shared memory", tile), ("its rows padded by a word", padded)):
        limit = launch.profile.limit
        facts[name] = (
            f"{launch.seconds * 1e6:.1f} us, {first.seconds / launch.seconds:.1f} times as fast; "
            f"now {limit.kind}: {limit.evidence}"
        )
    times = {
        name: {"kernel": launch.seconds * 1e6}
        for name, launch in (("as written", first), ("tile", tile), ("padded tile", padded))
    }
    runs = {"a tile in shared memory": directory / "tile", "a padded tile": directory / "padded"}
    return Outcome(facts, runs, [Stacks("Time of the kernel", "us", times)])


def _transpose(out: Path | None, name: str) -> tuple[TimedLaunch, float]:
    """A launch on a V100, recorded in a directory if one is given, and the seconds that it took to simulate."""
    import contextlib
    import time

    import numpy as np

    from manyscale import gpu

    device = gpu.TimedDevice("v100")
    values = _matrix()
    given, result = device.array(values), device.zeros(values.shape, np.float32)
    workload = {"kind": "gpu-kernel", "name": name, "elements": values.size}
    recorded: Any = contextlib.nullcontext()
    if out is not None:
        recorded = device.record(out, workload=workload, timeline=True, command=_COMMAND)
    blocks = _EDGE // 32
    began = time.monotonic()
    with recorded:
        launch: Any = device.load(_KERNELS)[name][(blocks, blocks), (32, 8)](given, result, _EDGE)
    wall = time.monotonic() - began
    _check(np.array_equal(result.numpy(), values.T))
    return launch, wall


def _matrix() -> npt.NDArray[np.float32]:
    import numpy as np

    return np.random.default_rng(1).random((_EDGE, _EDGE), np.float32)


def _check(right: bool) -> None:
    if not right:
        raise ManyscaleError("the result of a kernel differs from numpy's: please report this")


def unified_memory(directory: Path, quiet: bool) -> Outcome:
    """With unified memory on a GTX 1080 Ti: what do page faults cost, and does prefetching help?"""
    import numpy as np

    from manyscale.gpu import TimedDevice
    from manyscale.gpu.uvm_pictures import save_pictures
    from manyscale.report.charts import Stacks

    facts: Facts = {}
    times: dict[str, dict[str, float]] = {}
    values, blocks = _matrix(), _EDGE // 32
    for name in ("managed", "prefetched"):
        device = TimedDevice("gtx1080ti", page_log=100_000)
        workload = {"kind": "gpu-kernel", "name": "transpose_padded", "managed": True}
        with device.record(directory / name, workload=workload, timeline=True, command=_COMMAND):
            given = device.managed(values.shape, np.float32)
            result = device.managed(values.shape, np.float32)
            given.set(values)
            if name == "prefetched":
                given.prefetch()
                result.prefetch()
            run = device.load(_KERNELS)["transpose_padded"]
            launch: Any = run[(blocks, blocks), (32, 8)](given, result, _EDGE)
            save_pictures(device, directory / name, f"Transpose, {name}")
        _check(np.array_equal(result.numpy(), values.T))
        counts = device.uvm.statistics()
        before = sum(one.end - one.begin for one in device.timeline() if one.what.startswith("prefetch"))
        times[name] = {"prefetch": before * 1e6, "kernel": launch.seconds * 1e6}
        facts["on demand" if name == "managed" else "cudaMemPrefetchAsync first"] = (
            f"{(before + launch.seconds) * 1e6:,.0f} us, of which the kernel {launch.seconds * 1e6:,.0f} us; "
            f"{counts['faults']:,} page faults in {counts['fault_batches']:,} batches"
        )
    gain = sum(times["managed"].values()) / sum(times["prefetched"].values())
    facts["so prefetching"] = f"is {gain:.0f} times as fast"
    runs = {"pages fetched on demand": directory / "managed"}
    return Outcome(facts, runs, [Stacks("Time with its pages", "us", times)])


def processors(directory: Path, quiet: bool) -> Outcome:
    """An OpenMP program (RISC-V) on 4 cores of three machines: which is fastest, and where do cycles go?"""
    from manyscale import cpu
    from manyscale.report.charts import Stacks

    facts: Facts = {}
    times: dict[str, dict[str, float]] = {}
    outputs = set()
    for machine in ("broadwell", "dibona", "boom"):
        result = cpu.run(
            cpu.Program(cpu.sample("heat"), ["4", "96", "6"]),
            machine=machine,
            cores=4,
            out=directory / machine,
            command=_COMMAND,
        )
        outputs.add(result.stdout)
        seconds = float(result.regions.filter(region="iteration")["inclusive_time"].item())
        busy = {cause: share for cause, share in result.shares.items() if cause not in ("idle", "sleeping")}
        most = sorted(busy.items(), key=lambda item: -item[1])[:3]
        facts[_PROCESSORS[machine]] = f"{seconds * 1e6:,.0f} us for six steps; cycles: " + ", ".join(
            f"{cause.replace('_', ' ')} {share:.0%}" for cause, share in most
        )
        times[machine] = {cause: share * seconds * 1e6 for cause, share in busy.items()}
    if len(outputs) != 1:
        raise ManyscaleError("the program writes something else on another machine: please report this")
    return Outcome(facts, {"on Broadwell": directory / "broadwell"}, [Stacks("Six steps", "us", times)])


_PROCESSORS = {"broadwell": "Xeon, Broadwell", "dibona": "ThunderX2-like", "boom": "small BOOM (RISC-V)"}


def job_on_512_nodes(directory: Path, quiet: bool) -> Outcome:
    """An MPI job on 512 nodes: which network, and what do ranks wait for?"""
    from manyscale import network
    from manyscale.cli.progress import SimulationProgress
    from manyscale.report.charts import Stacks

    facts: Facts = {}
    bars: dict[str, dict[str, float]] = {}
    for topology in ("fat-tree", "torus", "dragonfly"):
        with SimulationProgress(topology, None, quiet) as progress:
            result = network.run(
                "halo3d",
                nodes=512,
                topology=topology,
                iterations=10,
                compute="20us",
                face="32KiB",
                fidelity="train",
                out=directory / topology,
                timeline=range(0, 512, 64),
                load="5us",
                progress=progress,
                command=_COMMAND,
            )
        bars[topology] = {
            name: share * result.simulated_seconds * 1e6 for name, share in result.shares.items()
        }
        facts[topology] = (
            f"{result.simulated_seconds * 1e6:,.0f} us for 10 halo exchanges: {result.shares['compute']:.0%} "
            f"computing, {result.shares['transfer']:.0%} messages, {result.shares['waiting']:.0%} waiting for others"
        )
    return Outcome(facts, {"on a torus": directory / "torus"}, [Stacks("Time of a rank, mean", "us", bars)])


def training(directory: Path, quiet: bool) -> Outcome:
    """A training step, from its kernels on one GPU to 1,024 GPUs: how well does it scale?"""
    from manyscale.report.charts import Lines
    from manyscale.studies.gpu_node import measure

    timings = measure(_training_step, machine="v100", steps=2)
    profile = next(iter(timings.profiles.values()))
    phases = (f"{name} {profile[name].mean * 1e6:.1f} us" for name in ("forward", "backward", "update"))
    facts: Facts = {"a layer on one V100": ", ".join(phases)}
    points = []
    for nodes in (1, 4, 16, 64, 256):
        seconds = _training_seconds(timings, nodes, directory / f"{4 * nodes}-gpus")
        points.append((4.0 * nodes, seconds * 1e6))
        if nodes in (1, 16, 256):
            efficiency = "" if nodes == 1 else f", {points[0][1] / points[-1][1]:.0%} of ideal weak scaling"
            facts[f"on {4 * nodes:,} GPUs"] = f"{seconds * 1e6:,.0f} us a step{efficiency}"
    chart = Lines("A training step", "GPUs", "us", {"nodes of 4 GPUs": points}, log_x=True)
    return Outcome(facts, {"on 1,024 GPUs": directory / "1024-gpus"}, [chart])


def _training_step(device: TimedDevice) -> Callable[[PhaseClock], None]:
    """The kernels of a fully connected layer of 256 values with 256 samples: forwards, backwards, new weights."""
    import numpy as np

    edge = 256
    kernels = device.load(_KERNELS)
    random = np.random.default_rng(1)
    values, weights, errors = (device.array(random.random((edge, edge), np.float32)) for _ in range(3))
    result, gradients = device.zeros((edge, edge), np.float32), device.zeros((edge, edge), np.float32)
    tiles, block = (edge // 16, edge // 16), (16, 16)

    def step(clock: PhaseClock) -> None:
        with clock.phase("forward"):
            kernels["multiply"][tiles, block](values, weights, result, edge)
        with clock.phase("backward"):
            kernels["multiply"][tiles, block](values, errors, gradients, edge)
            kernels["multiply"][tiles, block](errors, weights, result, edge)
        with clock.phase("update"):
            kernels["descend"][edge * edge // 256, 256](weights, gradients, 1e-6)

    return step


def _training_seconds(timings: GpuTimings, nodes: int, out: Path) -> float:
    """A step of eight layers on nodes of four GPUs with NVLink, on a fat tree of links of 100 Gb/s."""
    from manyscale import network
    from manyscale.network.motifs import motif
    from manyscale.studies.gpu_node import GpuNode

    node = GpuNode(gpus=4, link="nvlink")
    skeleton = motif("gputraining", layers=8, layer="256KiB", microbatches=8, steps=1)
    target = network.cluster("omnipath", node.changes, nodes=nodes, ranks_per_node=node.gpus)
    program = network.compile(
        timings.on_gpus(skeleton, node, nodes).emit, nodes * node.gpus, name="gputraining"
    )
    return network.Job(program, target, seed=1).run(out=out, command=_COMMAND).simulated_seconds


STEPS: dict[str, Step] = {
    "kernel": kernel,
    "fixed-kernel": fixed_kernel,
    "unified-memory": unified_memory,
    "processors": processors,
    "network": job_on_512_nodes,
    "training": training,
}
