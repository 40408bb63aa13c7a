# SPDX-License-Identifier: Apache-2.0
"""`manyscale demo`: everything there is, once, in under a minute. Each capability adds a step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from manyscale.cli.console import emit_json, tables
from manyscale.cli.options import Json, Out, Quiet
from manyscale.errors import ManyscaleError

if TYPE_CHECKING:
    from manyscale.system import System

commands = typer.Typer()

Facts = dict[str, Any]
Step = Callable[[Path, bool], Facts]


def engine_on_threads(directory: Path, quiet: bool) -> Facts:
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
                command=["manyscale", "demo"],
            )
        rate = result.events / result.wall_seconds
        facts[f"on {threads} thread(s)"] = f"{result.events:,} events, {rate / 1e6:.1f} M events/s"
    same = identical(load(directory / "1-threads"), load(directory / "2-threads"))
    if not same:
        raise ManyscaleError("the statistics of the two runs differ: please report this")
    facts["statistics of both runs"] = "identical to the bit"
    return facts


def credits_limit_throughput(directory: Path, quiet: bool) -> Facts:
    """Two stages with credits: throughput against the closed form min(1, slots / round trip)"""
    from manyscale.system import System

    facts: Facts = {}
    for slots in (1, 2, 4, 8):
        system = System(f"line with {slots} slots")
        first = system.add("synthetic.relay", "first", clock="1GHz", tokens=10_000, hops=1)
        last = system.add("synthetic.relay", "last", clock="1GHz", slots=slots)
        system.connect(first.output, last.input, latency="2ns")
        out = directory / f"{slots}-slots"
        result = system.run(out=out, timeline=slots == 2, command=["manyscale", "demo"])
        measured = 10_000 / (result.now / 10**6)
        facts[f"{slots} slots"] = f"{measured:.4f} tokens a cycle, expected {min(1.0, slots / 4):.4f}"
    facts["timeline"] = f"{directory / '2-slots' / 'timeline.pftrace'} (opens in ui.perfetto.dev)"
    return facts


def deadlock_is_explained(directory: Path, quiet: bool) -> Facts:
    """A ring that is too full: who waits for what"""
    from manyscale.errors import DeadlockError
    from manyscale.system import System

    system = System("full ring")
    stages = [system.add("synthetic.relay", f"stage[{i}]", tokens=6, slots=4) for i in range(3)]
    for i in range(3):
        system.connect(stages[i].output, stages[(i + 1) % 3].input, latency="1ns")
    try:
        system.run(out=directory / "run", command=["manyscale", "demo"])
    except DeadlockError as error:
        return {"diagnosis": str(error)}
    raise ManyscaleError("the ring ran although it is too full: please report this")


def machines_have_sources(directory: Path, quiet: bool) -> Facts:
    """A machine description: every number with its unit and source"""
    from manyscale import units
    from manyscale.machine import load_machine

    resolved = load_machine("v100", ["gpu.clock=1.5GHz"])
    gpu = resolved.machine.gpu
    if gpu is None or gpu.clock is None or gpu.sm_count is None:
        return {"v100": "the preset states no GPU"}
    return {
        "gpu.clock": f"{units.format(gpu.clock, units.FREQUENCY)} ({resolved.sources['gpu.clock']})",
        "gpu.sm_count": f"{gpu.sm_count} ({resolved.sources['gpu.sm_count']})",
        "more": "manyscale machines show v100",
    }


def memory_levels(directory: Path, quiet: bool) -> Facts:
    """Four cores with coherent caches on DDR4: what a load costs, by how much memory it wanders over"""
    from manyscale import units
    from manyscale.machine import load_machine
    from manyscale.machine.memory import MemoryWorkload, build_memory
    from manyscale.spec import build

    machine = load_machine("memory-small").machine
    facts: Facts = {}
    for footprint in ("16KiB", "128KiB", "512KiB", "16MiB"):
        parameters = {"pattern": "chase", "accesses": 20_000, "footprint": footprint}
        system = build_memory(machine, build(MemoryWorkload, parameters, "demo"))
        result = system.run(out=directory / footprint, command=["manyscale", "demo"])
        latency = units.humanize(round(result.value("core[0]", "latency.p50")), units.TIME)
        hits = result.value("core[0]", "l1.hits") / 20_000
        facts[footprint] = f"{latency} for half of the loads at most, {hits:.0%} hit in L1"
    facts["more"] = "manyscale mem run random --machine memory-small"
    return facts


def kernels_without_gpu(directory: Path, quiet: bool) -> Facts:
    """Two GPU kernels in PTX, executed exactly: against numpy"""
    import numpy as np

    from manyscale import gpu

    count = 1_000_000
    random = np.random.default_rng(1)
    x, y = random.random((2, count), np.float32)
    device = gpu.Device()
    module = device.load(Path(__file__).with_suffix(".ptx"))
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
    return {
        f"saxpy of {count:,} elements": "equal to numpy's to the bit",
        "their sum in shared memory": f"{total.numpy()[0]:.1f}, off by {abs(deviation):.0e} of it",
        "speed": f"{instructions / 1e6:.1f} M warp instructions at {instructions / seconds / 1e6:.0f} M/s",
        "more": "manyscale gpu run --help",
    }


def kernel_on_v100(directory: Path, quiet: bool) -> Facts:
    """A GPU kernel on a V100: how long it takes there, and why"""
    import numpy as np

    from manyscale import gpu

    count = 1 << 18
    device = gpu.TimedDevice("v100")
    module = device.load(Path(__file__).with_suffix(".ptx"))
    launch: Any = module["saxpy"][count // 256, 256](
        2.5, device.array(np.ones(count, np.float32)), device.zeros(count), count
    )
    return {
        f"saxpy of {count:,} elements": f"{launch.cycles:,} cycles, occupancy {launch.occupancy:.0%}",
        "what limits it": str(launch.profile.limit),
        "more": "manyscale gpu run --machine v100 --help",
    }


def unified_memory(directory: Path, quiet: bool) -> Facts:
    """A GPU program with unified memory: pages that come one by one, and with their neighbours"""
    from manyscale.gpu import TimedDevice, TimedLaunch
    from manyscale.gpu.uvm_pictures import save_pictures
    from manyscale.machine import load_machine
    from manyscale.validation import managed_programs

    facts: Facts = {}
    for prefetcher in ("none", "tree"):
        machine = load_machine("gtx1080ti", [f"gpu.uvm.prefetcher={prefetcher}"]).machine
        device = TimedDevice(machine, page_log=100_000)
        session = managed_programs.run("backprop", device)
        seconds = sum(launch.seconds for launch in session.launches if isinstance(launch, TimedLaunch))
        counts = device.uvm.statistics()
        facts[f"prefetcher {prefetcher}"] = (
            f"{seconds * 1e6:,.0f} us, {counts['pages_faulted_in']} far faults in {counts['fault_groups']} groups, "
            f"{counts['transfers_to_device']} transfers to the device"
        )
        save_pictures(device, directory / prefetcher, f"Training step, prefetcher {prefetcher}")
    facts["pages over time"] = str(directory / "tree" / "pages.svg")
    facts["more"] = "manyscale validate --only uvm"
    return facts


def program_on_cores(directory: Path, quiet: bool) -> Facts:
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
            command=["manyscale", "demo"],
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
    return facts


def job_on_512_nodes(directory: Path, quiet: bool) -> Facts:
    """An MPI job on 512 nodes: halo exchange in 3D with an allreduce, on three networks"""
    from manyscale import network

    facts: Facts = {}
    for topology in ("fat-tree", "torus", "dragonfly"):
        result = network.run(
            "halo3d",
            nodes=512,
            topology=topology,
            iterations=10,
            compute="20us",
            face="32KiB",
            fidelity="train",
            out=directory / topology,
            command=["manyscale", "demo"],
        )
        facts[topology] = (
            f"{result.simulated_seconds * 1e6:,.0f} us, of which {result.shares['compute']:.0%} computing "
            f"and {result.shares['transfer']:.0%} for messages on their way"
        )
    facts["more"] = "manyscale net list"
    return facts


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
    "network": job_on_512_nodes,
}


@commands.command()
def demo(out: Out = None, json: Json = False, quiet: Quiet = False) -> None:
    """Show what there is: every capability once, in under a minute."""
    from manyscale.results.run_directory import default_directory

    directory = default_directory(Path.cwd(), "demo") if out is None else out
    began = time.monotonic()
    facts: dict[str, Facts] = {}
    for name, step in STEPS.items():
        if not json:
            typer.echo(step.__doc__)
        facts[name] = step(directory / name, quiet or json)
        if not json:
            _show(facts[name])
    seconds = time.monotonic() - began
    if json:
        emit_json({"directory": str(directory), "wall_seconds": seconds, "steps": facts})
        return
    typer.echo(
        f"Done in {seconds:.1f} s. The runs are in {directory}; look at one of them:\n"
        f"  manyscale show {directory / 'threads' / '2-threads'}\n"
        f"  manyscale compare {directory / 'credits' / '1-slots'} {directory / 'credits' / '8-slots'}"
    )


def _show(facts: Facts) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 1, 0, 3))
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(str(fact), overflow="fold"))
    tables().print(table)
