# SPDX-License-Identifier: Apache-2.0
"""Phase 2: one node of a job in detail, with all its ranks; what comes out is how long its compute phases take.

A compute phase is what a rank does between two calls of MPI; it is named after both. Communication is left out: it is
simulated for all nodes in phase 3.
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from manyscale import _core
from manyscale.cpu.program import Program
from manyscale.cpu.running import counting, launch_of, program_errors
from manyscale.errors import InputError, ProgramError
from manyscale.machine import load_machine
from manyscale.machine.completing import complete
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.machine.description import Machine
from manyscale.machine.loading import PROGRAMS
from manyscale.results.totals import Totals
from manyscale.studies.call_log import MOST_ENTRIES, CallOfRank, calls_of_ranks
from manyscale.studies.external_ranks import ExternalRanks
from manyscale.studies.projection.call_sites import phases_by_call_site
from manyscale.studies.projection.recorded_job import RecordedJob
from manyscale.studies.projection.timings import END, START, PhaseTiming, TimingProfile, phase_name
from manyscale.system.running import statistics_columns

_SECOND = 10**15
_NOTHING_TO_DO = ("idle", "sleeping")  # causes that are no work of a rank
DMA_BANDWIDTH = "12.5GB/s"  # of a link of 100 Gb/s, through which messages enter and leave the node's memory

_Phases = dict[str, list[list[float]]]


@dataclass(frozen=True, eq=False)
class NodeResult:
    """What one simulated node tells of a job."""

    profile: TimingProfile
    phases: dict[str, list[list[float]]]  # by name and rank of the node: seconds, in order
    call_sites: dict[str, list[list[float]]]  # the same by the regions that the program marked, for skeletons
    cpi: list[dict[str, float]]  # by core: cycles for each instruction, by what took them, without idle ones
    calls: list[list[CallOfRank]]  # by rank of the node
    seconds: float  # simulated, on the node
    external: bool
    machine: Machine  # with all that the run used of it
    sources: dict[str, str]  # of the machine's parameters


def simulate_node(
    program: Program,
    *,
    ranks_per_node: int,
    native_program: str | os.PathLike[str] | None = None,
    nodes: int = 1,
    node: int = 0,
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    threads_per_rank: int = 1,
    threads: int = 1,
    seed: int = 0,
    injection: bool = True,
    recording: RecordedJob | None = None,
    progress: Callable[[int, int], None] | None = None,
    instructions: int | None = None,
) -> NodeResult:
    """Simulates a node of a job.

    With `native_program`, the job has `nodes` nodes, and the ranks of all but number `node` run natively (external
    ranks); without, the job is this one node. With `injection`, what these send is written to the simulated memory, and
    what they are sent is read from it, as by a network interface. A `recording` of the same job tells phases apart by
    where in the program they are, which the names of calls alone do not. Each rank has `threads_per_rank` cores, and
    OpenMP is told to make as many threads; a program that makes more of them is refused. `instructions` of all ranks of
    the node, where they are known, are the end of the progress.
    """
    cores = ranks_per_node * threads_per_rank
    program = with_threads(program, threads_per_rank)
    if native_program is None and nodes != 1:
        raise InputError(
            "the ranks of other nodes need native_program, the program compiled for this machine"
        )
    resolved = load_machine(machine, changes)
    # Nothing comes from elsewhere, or goes there, on a node that is alone.
    rate = DMA_BANDWIDTH if injection and native_program is not None else None
    parts = build_cpu(resolved.machine, cores, seed=seed, dma_bandwidth=rate, region_log=MOST_ENTRIES)
    resolved.check_read(PROGRAMS)
    counted = counting(progress, parts, threads, instructions)
    if native_program is None:
        alone = replace(program, ranks=ranks_per_node)
        with program_errors(program):
            _core.cpu_launch(parts.program.native, launch_of(alone, True, ()))
        with program_errors(program, lambda: (_core.cpu_failure(native), _core.cpu_processes(native))):
            native = parts.program.native
            now = parts.system.run(threads=threads, progress=counted).now
    else:
        others = ExternalRanks(native_program, program, node=node, nodes=nodes, ranks_per_node=ranks_per_node)
        others.launch(parts)
        now = others.run(parts, threads=threads, progress=counted)["now"]
    _check_exits(program, parts, node * ranks_per_node)
    _check_threads(program, parts, ranks_per_node, threads_per_rank)
    calls = calls_of_ranks(parts, ranks_per_node)
    first = node * ranks_per_node
    names = [] if recording is None else recording.phase_names(range(first, first + ranks_per_node))
    phases = phases_between_calls(calls, now, names)
    facts = {
        "program": program.name,
        "arguments": [str(argument) for argument in program.args],
        "machine": resolved.machine.name,
        "nodes": nodes,
        "node": node,
        "ranks_per_node": ranks_per_node,
        "threads_per_rank": threads_per_rank,
        "external": native_program is not None,
    }
    timings = [PhaseTiming.of(name, ranks) for name, ranks in sorted(phases.items())]
    profile = TimingProfile(timings, facts, _costs(calls))
    call_sites = phases_by_call_site(calls, now)
    stated = complete(resolved.machine, resolved.sources, parts.system)
    external = native_program is not None
    return NodeResult(
        profile, phases, call_sites, _cpi_stacks(parts), calls, now / _SECOND, external, *stated
    )


def with_threads(program: Program, threads: int) -> Program:
    """The program with so many OpenMP threads in each rank, unless its environment says how many."""
    if threads < 1:
        raise InputError(f"a rank has at least 1 thread, not {threads}")
    return replace(program, environment={"OMP_NUM_THREADS": str(threads), **program.environment})


def _check_threads(program: Program, parts: CpuSystem, ranks: int, threads_per_rank: int) -> None:
    """Threads that share cores would make a node look slower than it is, without a word."""
    made = Totals(statistics_columns(parts.system)).total(["program"], "threads")
    if made > ranks * threads_per_rank:
        each = -(-made // ranks)
        raise ProgramError(
            f"{program.path}: the {ranks} ranks of the node made {made} threads, but have {ranks * threads_per_rank} "
            f"cores; give each rank a core for each of its threads: --threads-per-rank {each}"
        )


def _check_exits(program: Program, parts: CpuSystem, first: int) -> None:
    for rank, (code, _, errors) in enumerate(_core.cpu_processes(parts.program.native), first):
        if code:
            words = errors.decode(errors="replace").strip()[-400:]
            raise ProgramError(f"{program.path}: the simulated rank {rank} ended with code {code}: {words}")


def phases_between_calls(
    calls: Sequence[Sequence[CallOfRank]], end: int, names: Sequence[Sequence[str]] = ()
) -> dict[str, list[list[float]]]:
    """Seconds between each call and the next, by phase and rank; `end` is when the node's last rank ended.

    `names` are those of each rank's phases in their order, from a recording of the same job, where the rank made the
    same calls there.
    """
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in calls])
    for rank, of_rank in enumerate(calls):
        ends = [0, *(call.end for call in of_rank)]
        begins = [*(call.begin for call in of_rank), max(end, ends[-1])]
        plain = [START, *(call.name for call in of_rank), END]
        phases = [phase_name(*pair) for pair in itertools.pairwise(plain)]
        recorded = names[rank] if rank < len(names) else []
        if [name.partition(" @")[0] for name in recorded] == phases:
            phases = list(recorded)
        for name, first, last in zip(phases, ends, begins, strict=True):
            found[name][rank].append((last - first) / _SECOND)
    return dict(found)


def _cpi_stacks(parts: CpuSystem) -> list[dict[str, float]]:
    totals = Totals(statistics_columns(parts.system))
    causes: list[str] = _core.cpu_details(parts.program.native, [])["causes"]
    stacks = []
    for core in parts.cores:
        instructions = totals.total([core.name], "instructions") or 1
        stacks.append(
            {
                cause: totals.total([core.name], f"cpi.{cause}") / instructions
                for cause in causes
                if cause not in _NOTHING_TO_DO
            }
        )
    return stacks


def _costs(calls: Sequence[Sequence[CallOfRank]]) -> dict[str, float]:
    """By call: the median of the seconds within it."""
    within: dict[str, list[int]] = defaultdict(list)
    for of_rank in calls:
        for call in of_rank:
            within[call.name].append(call.end - call.begin)
    return {name: statistics.median(times) / _SECOND for name, times in within.items()}
