# SPDX-License-Identifier: Apache-2.0
"""The steps of `manyscale demo`: each shows one capability, leaves runs, and says what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import ManyscaleError

if TYPE_CHECKING:
    from manyscale.report.charts import Chart
    from manyscale.system import System

Facts = dict[str, Any]

_COMMAND = ["manyscale", "demo"]
_KERNELS = Path(__file__).with_name("demo.ptx")


@dataclass(frozen=True)
class Outcome:
    """What came out of a step: facts for the terminal, and runs and charts for the report."""

    facts: Facts
    runs: dict[str, Path] = field(default_factory=dict)
    charts: list[Chart] = field(default_factory=list)


Step = Callable[[Path, bool], Outcome]


def engine_on_threads(directory: Path, quiet: bool) -> Outcome:
    """Random events between 64 components: the same statistics on 1 and 2 threads"""
    from manyscale.cli.progress import SimulationProgress
    from manyscale.results import identical, load

    def network() -> System:
        from manyscale.system import System

        system = System("phold", seed=42)
        nodes = [system.add("synthetic.phold", f"node[{i}]", jobs=500, mean_delay="1us") for i in range(64)]
        for i in range(64):
            for distance in (1, 5):
                system.connect(nodes[i].peers, nodes[(i + distance) % 64].peers, "100ns")
        return system

    facts: Facts = {}
    for threads in (1, 2):
        with SimulationProgress(f"{threads} thread(s)", 50 * 10**9, quiet) as progress:
            result = network().run(
                until="50us",
                threads=threads,
                out=directory / f"{threads}-threads",
                progress=progress.update,
                command=_COMMAND,
            )
        rate = result.events / result.wall_seconds
        facts[f"on {threads} thread(s)"] = f"{result.events:,} events, {rate / 1e6:.1f} M events/s"
    same = identical(load(directory / "1-threads"), load(directory / "2-threads"))
    if not same:
        raise ManyscaleError("the statistics of the two runs differ: please report this")
    facts["statistics of both runs"] = "identical to the bit"
    return Outcome(facts, {"on 2 threads": directory / "2-threads"})


def credits_limit_throughput(directory: Path, quiet: bool) -> Outcome:
    """Two stages with credits: throughput against the closed form min(1, slots / round trip)"""
    from manyscale.system import System

    facts: Facts = {}
    for slots in (1, 2, 4, 8):
        system = System(f"line with {slots} slots")
        first = system.add("synthetic.relay", "first", clock="1GHz", tokens=10_000, hops=1)
        last = system.add("synthetic.relay", "last", clock="1GHz", slots=slots)
        system.connect(first.output, last.input, latency="2ns")
        out = directory / f"{slots}-slots"
        result = system.run(out=out, timeline=slots == 2, command=_COMMAND)
        measured = 10_000 / (result.now / 10**6)
        facts[f"{slots} slots"] = f"{measured:.4f} tokens a cycle, expected {min(1.0, slots / 4):.4f}"
    facts["timeline"] = f"{directory / '2-slots' / 'timeline.pftrace'} (opens in ui.perfetto.dev)"
    return Outcome(facts, {"2 slots": directory / "2-slots"})


def deadlock_is_explained(directory: Path, quiet: bool) -> Outcome:
    """A ring that is too full: who waits for what"""
    from manyscale.errors import DeadlockError
    from manyscale.system import System

    system = System("full ring")
    stages = [system.add("synthetic.relay", f"stage[{i}]", tokens=6, slots=4) for i in range(3)]
    for i in range(3):
        system.connect(stages[i].output, stages[(i + 1) % 3].input, latency="1ns")
    try:
        system.run(out=directory / "run", command=_COMMAND)
    except DeadlockError as error:
        return Outcome({"diagnosis": str(error)}, {"the full ring": directory / "run"})
    raise ManyscaleError("the ring ran although it is too full: please report this")


def machines_have_sources(directory: Path, quiet: bool) -> Outcome:
    """A machine description: every number with its unit and source"""
    from manyscale import units
    from manyscale.machine import load_machine

    resolved = load_machine("v100", ["gpu.clock=1.5GHz"])
    gpu = resolved.machine.gpu
    if gpu is None or gpu.clock is None or gpu.sm_count is None:
        return Outcome({"v100": "the preset states no GPU"})
    facts = {
        "gpu.clock": f"{units.format(gpu.clock, units.FREQUENCY)} ({resolved.sources['gpu.clock']})",
        "gpu.sm_count": f"{gpu.sm_count} ({resolved.sources['gpu.sm_count']})",
        "more": "manyscale machines show v100",
    }
    return Outcome(facts)


def memory_levels(directory: Path, quiet: bool) -> Outcome:
    """Four cores with coherent caches on DDR4: what a load costs, by how much memory it wanders over"""
    from manyscale import units
    from manyscale.machine import load_machine
    from manyscale.machine.memory import MemoryWorkload, build_memory
    from manyscale.report.charts import Lines
    from manyscale.spec import build

    machine = load_machine("memory-small").machine
    facts: Facts = {}
    points: list[tuple[float, float]] = []
    sizes = {"16KiB": 16 << 10, "128KiB": 128 << 10, "512KiB": 512 << 10, "16MiB": 16 << 20}
    for footprint, size in sizes.items():
        parameters = {"pattern": "chase", "accesses": 20_000, "footprint": footprint}
        system = build_memory(machine, build(MemoryWorkload, parameters, "demo"))
        result = system.run(out=directory / footprint, command=_COMMAND)
        latency = units.humanize(round(result.value("core[0]", "latency.p50")), units.TIME)
        hits = result.value("core[0]", "l1.hits") / 20_000
        facts[footprint] = f"{latency} for half of the loads at most, {hits:.0%} hit in L1"
        points.append((size / 1024, result.value("core[0]", "latency.mean") / 10**6))
    chart = Lines(
        "What a load costs", "footprint of a core in KiB", "ns", {"mean latency": points}, log_x=True
    )
    facts["more"] = "manyscale mem run random --machine memory-small"
    return Outcome(facts, {"a footprint of 16 MiB": directory / "16MiB"}, [chart])


def kernels_without_gpu(directory: Path, quiet: bool) -> Outcome:
    """Two GPU kernels in PTX, executed exactly: against numpy"""
    import numpy as np

    from manyscale import gpu

    count = 1_000_000
    random = np.random.default_rng(1)
    x, y = random.random((2, count), np.float32)
    device = gpu.Device()
    module = device.load(_KERNELS)
    on_device, result, total = device.array(x), device.array(y), device.zeros(1)
    blocks = -(-count // 256)
    launches = [
        module["saxpy"][blocks, 256](2.5, on_device, result, count),
        module["sum"][blocks, 256](result, total, count),
    ]
    expected = np.float32(2.5) * x + y
    deviation = float(total.numpy()[0]) / float(expected.sum(dtype=np.float64)) - 1
    if not np.array_equal(result.numpy(), expected) or abs(deviation) > 1e-4:
        raise ManyscaleError("the kernels' results differ from numpy's: please report this")
    instructions = sum(launch.warp_instructions for launch in launches)
    seconds = sum(launch.wall_seconds for launch in launches)
    facts = {
        f"saxpy of {count:,} elements": "equal to numpy's to the bit",
        "their sum in shared memory": f"{total.numpy()[0]:.1f}, off by {abs(deviation):.0e} of it",
        "speed": f"{instructions / 1e6:.1f} M warp instructions at {instructions / seconds / 1e6:.0f} M/s",
        "more": "manyscale gpu run --help",
    }
    return Outcome(facts)


def kernel_on_v100(directory: Path, quiet: bool) -> Outcome:
    """Two GPU kernels on a V100: how long they take there, and why"""
    import numpy as np

    from manyscale import gpu

    count = 1 << 18
    device = gpu.TimedDevice("v100")
    module = device.load(_KERNELS)
    x, y, total = device.array(np.ones(count, np.float32)), device.zeros(count), device.zeros(1)
    facts: Facts = {}
    with device.record(
        directory / "v100",
        workload={"kind": "gpu-kernel", "name": "saxpy and sum", "elements": count},
        timeline=True,
        command=_COMMAND,
    ):
        for name, arguments in (("saxpy", (2.5, x, y, count)), ("sum", (y, total, count))):
            launch: Any = module[name][count // 256, 256](*arguments)
            facts[f"{name} of {count:,} elements"] = (
                f"{launch.cycles:,} cycles, occupancy {launch.occupancy:.0%}; limited by {launch.profile.limit}"
            )
    facts["more"] = "manyscale gpu run --machine v100 --help"
    return Outcome(facts, {"the kernels on a V100": directory / "v100"})


def unified_memory(directory: Path, quiet: bool) -> Outcome:
    """A GPU program with unified memory: pages that come one by one, and with their neighbours"""
    from manyscale.gpu import TimedDevice
    from manyscale.gpu.uvm_pictures import save_pictures
    from manyscale.report.charts import Stacks
    from manyscale.validation import managed_programs

    facts: Facts = {}
    times: dict[str, dict[str, float]] = {}
    for prefetcher in ("none", "tree"):
        device = TimedDevice("gtx1080ti", changes=[f"gpu.uvm.prefetcher={prefetcher}"], page_log=100_000)
        with device.record(
            directory / prefetcher,
            workload={"kind": "gpu-program", "name": "backprop", "managed": True},
            timeline=True,
            command=_COMMAND,
        ) as launches:
            managed_programs.run("backprop", device)
            save_pictures(device, directory / prefetcher, f"Training step, prefetcher {prefetcher}")
        seconds = sum(launch.seconds for launch in launches)
        counts = device.uvm.statistics()
        times[f"prefetcher {prefetcher}"] = {"kernels": seconds * 1e6}
        facts[f"prefetcher {prefetcher}"] = (
            f"{seconds * 1e6:,.0f} us, {counts['faults']} page faults in {counts['fault_batches']} batches, "
            f"{counts['transfers_to_device']} transfers to the device"
        )
    facts["pages over time"] = str(directory / "tree" / "pages.svg")
    facts["more"] = "manyscale validate --only uvm"
    runs = {f"prefetcher {prefetcher}": directory / prefetcher for prefetcher in ("none", "tree")}
    return Outcome(facts, runs, [Stacks("Time of the kernels", "us", times)])


def program_on_cores(directory: Path, quiet: bool) -> Outcome:
    """An OpenMP program for RISC-V on a Broadwell node: 1 and 4 cores, and where the cycles went"""
    from manyscale import cpu

    facts: Facts = {}
    outputs = set()
    times = []
    for cores in (1, 4):
        result = cpu.run(
            cpu.Program(cpu.sample("heat"), [str(cores), "96", "6"]),
            machine="broadwell",
            cores=cores,
            out=directory / f"{cores}-cores",
            command=_COMMAND,
        )
        outputs.add(result.stdout)
        times.append(float(result.regions.filter(region="iteration")["inclusive_time"].item()))
        busy = {cause: share for cause, share in result.shares.items() if cause not in ("idle", "sleeping")}
        most = sorted(busy.items(), key=lambda item: -item[1])[:3]
        facts[f"on {cores} core(s)"] = f"{times[-1] * 1e6:,.0f} us for six steps; cycles: " + ", ".join(
            f"{cause} {share:.0%}" for cause, share in most
        )
    if len(outputs) != 1:
        raise ManyscaleError("the program writes something else on more cores: please report this")
    facts["speed-up"] = f"{times[0] / times[1]:.2f} times"
    facts["more"] = f"manyscale cpu run {cpu.sample('heat')} --cores 8 --hot-lines -- 8 96 6"
    return Outcome(facts, {"on 4 cores": directory / "4-cores"})


def trace_on_cores(directory: Path, quiet: bool) -> Outcome:
    """An OpenMP program with tasks, recorded once and replayed on 1 to 16 cores"""
    from manyscale import cpu
    from manyscale.cli.progress import SimulationProgress
    from manyscale.cpu.scaling import Point, Study
    from manyscale.report.charts import Lines

    directory.mkdir(parents=True)
    trace = directory / "cholesky.trace"
    program = cpu.Program(cpu.sample("elastic"), ["cholesky_tasks", "1"])
    made = cpu.record(program, trace, machine="elasticsimmate", cores=1)
    facts: Facts = {
        "recorded": f"{made.instructions:,} instructions as {made.nodes:,} nodes in {made.tasks} tasks"
    }
    points = []
    for cores in (1, 2, 4, 8, 16):
        with SimulationProgress(f"{cores} core(s)", None, quiet) as progress:
            result = cpu.replay(
                trace,
                changes=["cpu.cores=16"],
                cores=cores,
                scheduler="fifo",
                out=directory / f"{cores}-cores",
                progress=progress.update,
                command=_COMMAND,
            )
        points.append(Point.of(f"{cores} core(s)", result))
    study = Study("Cholesky in tasks, strong scaling", "strong", points)
    for point in points:
        facts[f"on {point.label}"] = (
            f"{point.seconds * 1e6:,.0f} us, {study.speedup(point):.2f} times as fast as on 1, "
            f"{point.waiting:.0%} of the cycles without work"
        )
    facts["more"] = f"manyscale cpu scale {trace} --strong 1..16"
    lines = study.lines()
    charts: list[Chart] = [
        Lines("Speed-up of the replays", "cores", "times as fast", lines["speedup"], log_x=True, log_y=True),
        Lines("Misses of the replays", "cores", "misses in 1000 instructions", lines["mpki"], log_x=True),
    ]
    return Outcome(facts, {"replayed on 16 cores": directory / "16-cores"}, charts)


def job_on_512_nodes(directory: Path, quiet: bool) -> Outcome:
    """An MPI job on 512 nodes: halo exchange in 3D with an allreduce, on three networks"""
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
                progress=progress.update,
                command=_COMMAND,
            )
        bars[topology] = {
            name: share * result.simulated_seconds * 1e6 for name, share in result.shares.items()
        }
        facts[topology] = (
            f"{result.simulated_seconds * 1e6:,.0f} us, of which {result.shares['compute']:.0%} computing "
            f"and {result.shares['transfer']:.0%} for messages on their way"
        )
    facts["more"] = "manyscale net list"
    return Outcome(facts, {"on a torus": directory / "torus"}, [Stacks("Time of a rank, mean", "us", bars)])


STEPS: dict[str, Step] = {
    "threads": engine_on_threads,
    "credits": credits_limit_throughput,
    "deadlock": deadlock_is_explained,
    "machines": machines_have_sources,
    "memory": memory_levels,
    "kernels": kernels_without_gpu,
    "timing": kernel_on_v100,
    "unified-memory": unified_memory,
    "programs": program_on_cores,
    "replays": trace_on_cores,
    "network": job_on_512_nodes,
}
