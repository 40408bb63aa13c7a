# SPDX-License-Identifier: Apache-2.0
"""Every format of files that a command reads: how a valid sample is made, what reads it, and how it is damaged.

A reader does what the command does with the file until the simulation begins, and a little of that where it is the
simulation that reads on.
"""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import trace_samples
from riscv.sequences import make_program

from fuzz import binary, mutations, tables
from fuzz.expectations import expect_images, expect_launches, expect_peers
from fuzz.sample_texts import GOAL, GPGPUSIM, GRAPH, INI, MEMORY_TRACE, STUDY
from fuzz.signing import sign_as, signed
from manyscale import cpu, gpu, network
from manyscale.cpu import gem5_trace
from manyscale.cuda import fatbin
from manyscale.gpu.disassembly import disassemble_cubin
from manyscale.machine import load_machine, to_toml
from manyscale.machine.gpgpusim import import_gpgpusim
from manyscale.network.goal import read_goal
from manyscale.network.goal_program import program_of
from manyscale.network.graph_file import read_graph
from manyscale.report.run_page import run_page
from manyscale.report.sweep_page import sweep_page
from manyscale.report.timeline import read_timeline
from manyscale.results import compare, compare_headline, identical, load
from manyscale.results.journal import JOURNAL_FILE, Journal
from manyscale.results.run import show
from manyscale.studies.correlation.formats import read_measurements
from manyscale.studies.projection.calibration import MpiCosts
from manyscale.studies.projection.measured_job import GroupTimings, MeasuredJob
from manyscale.studies.projection.profile_file import load_profile, save_profile
from manyscale.studies.projection.profiling import RankProfile
from manyscale.studies.projection.rank_clusters import Attempt, RankClusters
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile
from manyscale.studies.sweep.study_file import read_study
from manyscale.studies.sweep.sweep_directory import load_sweep
from manyscale.system import System
from manyscale.workloads import read_memory_trace
from systems import make_ring

TESTS = Path(__file__).resolve().parents[1]
PARALLEL = TESTS / "cpu" / "programs" / "fixtures" / "parallel.xz"


@dataclass(frozen=True)
class Format:
    """One format of input files."""

    name: str
    make: Callable[[Path], Path]
    """Writes a valid sample, with all that belongs to it, into an empty folder; gives the file that is damaged."""
    read: Callable[[Path], Any]
    mutate: mutations.Mutation
    more: Callable[[], list[bytes]] = list
    """Further valid samples, which have what the first has not."""
    is_optional: bool = False
    """Whether the reader goes on without what is damaged."""


# Projection


def _profile(folder: Path) -> Path:
    clusters = RankClusters([0, 1, 1, 0], [Attempt(1, 0.4, None), Attempt(2, 0.01, 0.9)], "2 groups")
    counters = {"instructions": [1e6, 2e6, 2e6, 1e6], "cycles": [3.0, 4.0, 4.5, 3.0]}
    facts = {"program": "heat", "arguments": ["1"]}
    save_profile(RankProfile("functional", counters, clusters, [0, 1], 2, facts), folder)
    return folder / "profile.json"


def _measured() -> MeasuredJob:
    phases = [
        PhaseTiming.of(name, [[1e-6, 2e-6, 1e-6]]) for name in ("MPI_Recv..MPI_Send", "start..MPI_Recv")
    ]
    one = TimingProfile(phases, {"program": "heat"}, {"MPI_Send": 1e-6})
    times = dict.fromkeys(MpiCosts.__dataclass_fields__, 1000) | {"local_bandwidth": 10**10}
    costs = MpiCosts(**times | {"measured": {"0 B": 1e-6}, "modelled": {"0 B": 1.1e-6}})
    facts = {
        "program": "heat",
        "arguments": ["4", "8"],
        "machine": "broadwell",
        "network": "omnipath",
        "network_changes": ["network.link.latency=10ns"],
        "native_program": None,
    }
    groups = [GroupTimings(one, one)]
    return MeasuredJob([0, 0], 1, groups, groups, costs, {"0": {"base": 0.5, "memory": 1.5}}, facts)


def _node(folder: Path, name: str) -> Path:
    _measured().save(folder)
    return folder / name


# Runs and sweeps


def _run(folder: Path, name: str) -> Path:
    for sibling in ("run", "other"):
        system = make_ring(hops=3)
        system.run(out=folder / sibling, timeline=True, command=["manyscale", "run"])
    return folder / "run" / name


def _read_run(path: Path) -> None:
    runs = load(path.parent), load(path.parent.parent / "other")
    for one in runs:
        for entry in one.headline.values():
            show(entry)
    repr(runs[0])
    compare_headline(*runs)
    compare(*runs)
    identical(*runs)
    run_page(runs[0])


def _journal(folder: Path) -> Path:
    """The journal of a run that was killed."""
    path = _run(folder, JOURNAL_FILE)
    sign_as(path.parent / "run.json", status="running", headline={}, files={})
    journal = Journal(path.parent)
    journal.append({"kernels": {"name": ["a"], "cycles": [12]}}, {"cycles": {"value": 12, "unit": "cycles"}})
    journal.append({"kernels": {"name": ["b"], "cycles": [1]}}, {"cycles": {"value": 13, "unit": "cycles"}})
    journal.close()
    return path


def _read_journal(path: Path) -> None:
    run = load(path.parent)
    for entry in run.headline.values():
        show(entry)
    repr(run)
    run.table("kernels.parquet").to_dicts()


def _text(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read_study(path: Path) -> None:
    study = read_study(path)
    points = study.plan.points()
    for _, point in zip(range(20), points, strict=False):
        repr(point)


# Machines and systems


def _system(folder: Path) -> Path:
    path = folder / "system.toml"
    make_ring(hops=3).save(path)
    return path


def _read_system(path: Path) -> None:
    system = System.load(path)
    system.check()
    system.run(until="5ns")


def _machine(folder: Path, preset: str) -> Path:
    resolved = load_machine(preset)
    return _text(folder, "machine.toml", to_toml(resolved.machine, resolved.sources))


def _read_machine(path: Path) -> None:
    resolved = load_machine(path)
    to_toml(resolved.machine, resolved.sources)


def _read_graph(path: Path) -> None:
    read_graph(path, 10**10, 10**6)


def _read_goal(path: Path) -> None:
    schedule = read_goal(path)
    expect_peers(schedule)
    program_of(schedule)
    if schedule.ranks < 1000:
        network.run(schedule, machine="loggp")


# Traces


def _trace(folder: Path) -> Path:
    streams = [trace_samples.loads(120, thread=0), trace_samples.loads(60, 8, 1)]
    trace_samples.write(folder / "small.trace", streams)
    return folder / "small.trace"


def _read_trace(path: Path) -> None:
    with cpu.Trace(path) as trace:
        trace.check()


def _tasks(folder: Path) -> Path:
    """A recorded program with threads, barriers, locks and tasks."""
    program = _text(folder, "parallel", lzma.decompress(PARALLEL.read_bytes()))
    path = folder / "tasks.trace"
    cpu.record(cpu.Program(program, ["tasks", "2"]), path, machine="elasticsimmate", cores=2, functional=True)
    return path


def _replay(path: Path) -> None:
    cpu.replay(path, machine="elasticsimmate", cores=2)


def _gem5(folder: Path, which: int) -> Path:
    paths = gem5_trace.export_gem5(_trace(folder), folder)[0]
    plain = folder / f"plain.{which}"  # unpacked, so that damage is not only damage of the packing
    plain.write_bytes(gzip.decompress(paths[which].read_bytes()))
    return plain


def _read_gem5(path: Path) -> None:
    data = path if path.name == "plain.0" else path.parent / "core0.data.gz"
    fetch = path if path.name == "plain.1" else path.parent / "core0.inst.gz"
    gem5_trace.import_gem5([data], path.parent / "imported.trace", fetch=[fetch], force=True)


def _sweep(folder: Path, name: str, status: str = "done") -> Path:
    study = STUDY.replace("repetitions = 2", "repetitions = 1").replace('to = "64KiB"', 'to = "4KiB"')
    read_study(_text(folder, "study.toml", study)).run(folder / "sweep", workers=1)
    sign_as(folder / "sweep" / "sweep.json", status=status)
    return folder / "sweep" / name


def _read_sweep(path: Path) -> None:
    found = load_sweep(path.parent)
    repr(found)
    found.table.to_dicts()
    sweep_page(found.path, found.info, found.table)


def _npy(folder: Path) -> Path:
    file = io.BytesIO()
    np.save(file, np.arange(12, dtype="f4").reshape(3, 4))
    return _text(folder, "array.npy", file.getvalue())


def _read_npy(path: Path) -> None:
    from manyscale.gpu.argument_text import parse_arguments

    parse_arguments([f"@{path}"], np.random.default_rng(0))


MEASURED = sorted((TESTS / "cuda" / "fixtures" / "measured").glob("*.csv"))


def _read_profile(path: Path) -> None:
    found = read_measurements(path)
    expect_launches(found.launches)


# Programs

FATBIN = TESTS / "cuda" / "fixtures" / "vector_add-cubins.fatbin"


def _copied(folder: Path, source: Path) -> Path:
    return _text(folder, source.name, source.read_bytes())


GPU_FIXTURES = TESTS / "gpu" / "fixtures"
PTX = ("sm_75-lineinfo/vector_add", "sm_75-debug/recursion", "sm_90/async_barrier", "sm_90/wmma_types")
FRONT_ENDS = ("numba-softmax-sm_80", "triton-layer_norm-sm_90", "clang-kernels-sm_75")


def _more_ptx() -> list[bytes]:
    names = (*PTX, *(f"frontends/{name}" for name in FRONT_ENDS))
    return [(GPU_FIXTURES / f"{name}.ptx").read_bytes() for name in names]


def _more_fatbins() -> list[bytes]:
    names = ("vector_add-lz4", "vector_add-plain", "tensor_cores", "textures", "relocatable-main")
    return [(FATBIN.parent / f"{name}.fatbin").read_bytes() for name in names]


def _more_elfs() -> list[bytes]:
    """Programs of each instruction set extension."""
    return [lzma.decompress(file.read_bytes()) for file in sorted(PARALLEL.parent.glob("assembly_*.xz"))]


def _read_fatbin(path: Path) -> None:
    content = path.read_bytes()
    images = fatbin.images(content)
    expect_images(content, images)
    for image in images:
        if image.is_ptx:
            gpu.check(image.ptx())
        else:
            disassemble_cubin(image.unpacked(), "cubin")


def _read_ptx(path: Path) -> None:
    gpu.check(path.read_bytes())


def _cubin(folder: Path) -> Path:
    (image,) = (image for image in fatbin.images(FATBIN.read_bytes()) if not image.is_ptx)
    return _text(folder, "kernel.cubin", image.unpacked())


def _read_cubin(path: Path) -> None:
    disassemble_cubin(path.read_bytes(), "cubin")
    gpu.Device(echo=False).load(path)


def _elf(folder: Path) -> Path:
    return _text(folder, "program", make_program(3, pieces=3).elf)


def _read_elf(path: Path) -> None:
    cpu.run_functional(cpu.Program(path, memory="16MiB"), limit=20_000)


FORMATS = {
    one.name: one
    for one in (
        Format("projection-profile", _profile, lambda path: load_profile(path.parent), mutations.of_json),
        Format(
            "projection-node",
            partial(_node, name="node.json"),
            lambda path: MeasuredJob.load(path.parent).costs.largest_error,
            mutations.of_json,
        ),
        Format(
            "projection-timings",
            partial(_node, name="timings/external-0.json"),
            signed(lambda path: MeasuredJob.load(path.parent.parent), "node.json", levels=2),
            mutations.of_json,
        ),
        Format("run", partial(_run, name="run.json"), _read_run, mutations.of_json),
        Format(
            "run-machine",
            partial(_run, name="machine.toml"),
            signed(_read_run, "run.json"),
            mutations.of_toml,
            is_optional=True,
        ),
        Format(
            "statistics", partial(_run, name="stats.parquet"), signed(_read_run, "run.json"), tables.of_table
        ),
        Format("run-journal", _journal, _read_journal, binary.of_checked_lines, is_optional=True),
        Format("timeline", partial(_run, name="timeline.pftrace"), read_timeline, mutations.of_bytes),
        Format("study", partial(_text, name="study.toml", content=STUDY), _read_study, mutations.of_toml),
        Format("system", _system, _read_system, mutations.of_toml),
        Format("machine-memory", partial(_machine, preset="memory-small"), _read_machine, mutations.of_toml),
        Format("machine-gpu", partial(_machine, preset="v100"), _read_machine, mutations.of_toml),
        Format("machine-network", partial(_machine, preset="omnipath"), _read_machine, mutations.of_toml),
        Format(
            "gpgpusim",
            partial(_text, name="gpgpusim.config", content=GPGPUSIM),
            import_gpgpusim,
            mutations.of_lines,
        ),
        Format("ini", partial(_text, name="machine.ini", content=INI), _read_machine, mutations.of_lines),
        Format("graph", partial(_text, name="graph.txt", content=GRAPH), _read_graph, mutations.of_lines),
        Format("goal", partial(_text, name="job.goal", content=GOAL), _read_goal, mutations.of_lines),
        Format(
            "memory-trace",
            partial(_text, name="accesses.trace", content=MEMORY_TRACE),
            read_memory_trace,
            mutations.of_lines,
        ),
        Format("elastic-trace", _trace, _read_trace, binary.of_trace),
        Format("trace-replay", _tasks, _replay, binary.of_trace),
        Format("gem5-nodes", partial(_gem5, which=0), _read_gem5, binary.of_messages),
        Format("gem5-fetches", partial(_gem5, which=1), _read_gem5, binary.of_messages),
        Format("sweep", partial(_sweep, name="sweep.json"), _read_sweep, mutations.of_json),
        Format(
            "sweep-table",
            partial(_sweep, name="results.parquet"),
            signed(_read_sweep, "sweep.json"),
            tables.of_table,
        ),
        Format(  # of a sweep that was killed: else the table is read
            "sweep-log",
            partial(_sweep, name="results.log", status="running"),
            _read_sweep,
            binary.of_checked_lines,
            is_optional=True,
        ),
        Format(
            "profiler",
            lambda folder: _text(folder, "measured.csv", MEASURED[0].read_bytes()),
            _read_profile,
            mutations.of_lines,
            lambda: [file.read_bytes() for file in MEASURED[1:]],
        ),
        Format("npy", _npy, _read_npy, mutations.of_bytes),
        Format("fat-binary", partial(_copied, source=FATBIN), _read_fatbin, binary.of_fatbin, _more_fatbins),
        Format(
            "ptx",
            partial(_copied, source=TESTS / "gpu" / "fixtures" / "sm_75" / "saxpy.ptx"),
            _read_ptx,
            mutations.of_lines,
            _more_ptx,
            is_optional=True,
        ),
        Format("cubin", _cubin, _read_cubin, binary.of_elf, is_optional=True),
        Format("riscv-elf", _elf, _read_elf, binary.of_elf, _more_elfs, is_optional=True),
    )
}
