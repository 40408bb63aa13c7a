# SPDX-License-Identifier: Apache-2.0
"""Phase 2: one node of a job in detail, with all its ranks; what comes out is how long its compute phases take.

A compute phase is what a rank does between two calls of MPI; it is named after the call that ends it. Communication
is left out: it is simulated for all nodes in phase 3.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyscale import _core
from manyscale.cpu.program import Program
from manyscale.cpu.running import launch_of, program_errors
from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.studies.external_ranks import ExternalRanks
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile

_LOG = 4_000_000  # beginnings and ends of regions that each core keeps
_SECOND = 10**15
_IN_ORDER = ("MPI_Isend", "MPI_Irecv")  # calls that wait for nobody: their time is the library's own


@dataclass(frozen=True, eq=False)
class NodeResult:
    """What one simulated node tells of a job."""

    profile: TimingProfile
    phases: dict[str, list[list[float]]]  # by call and rank of the node: seconds before it, in order
    overheads: dict[str, float]  # by call that waits for nobody: median seconds within it
    seconds: float  # simulated, on the node
    external: bool


def simulate_node(
    program: Program,
    *,
    ranks_per_node: int,
    native_program: str | os.PathLike[str] | None = None,
    nodes: int = 1,
    node: int = 0,
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    cores: int | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NodeResult:
    """Simulates a node of a job.

    With `native_program`, the job has `nodes` nodes, and the ranks of all but number `node` run natively (external
    ranks); without, the job is this one node.
    """
    if native_program is None and nodes != 1:
        raise InputError(
            "the ranks of other nodes need native_program, the program compiled for this machine"
        )
    resolved = load_machine(machine, changes)
    parts = build_cpu(resolved.machine, cores or ranks_per_node, seed=seed, region_log=_LOG)
    if native_program is None:
        alone = replace(program, ranks=ranks_per_node)
        with program_errors(program):
            _core.cpu_launch(parts.program.native, launch_of(alone, True, ()))
        with program_errors(program, lambda: (_core.cpu_failure(native), _core.cpu_processes(native))):
            native = parts.program.native
            now = parts.system.run(threads=threads, progress=progress).now
    else:
        others = ExternalRanks(native_program, program, node=node, nodes=nodes, ranks_per_node=ranks_per_node)
        others.launch(parts)
        now = others.run(parts, threads=threads, progress=progress)["now"]
    phases, within = _phases(parts, ranks_per_node)
    facts = {
        "program": program.name,
        "arguments": [str(argument) for argument in program.args],
        "machine": resolved.machine.name,
        "nodes": nodes,
        "node": node,
        "ranks_per_node": ranks_per_node,
        "external": native_program is not None,
    }
    profile = TimingProfile([PhaseTiming.of(name, ranks) for name, ranks in sorted(phases.items())], facts)
    overheads = {name: sorted(times)[len(times) // 2] for name, times in within.items() if name in _IN_ORDER}
    return NodeResult(profile, phases, overheads, now / _SECOND, native_program is not None)


def _phases(parts: CpuSystem, ranks: int) -> tuple[dict[str, list[list[float]]], dict[str, list[float]]]:
    """Seconds before each call, by call and rank; and seconds within each."""
    native = parts.program.native
    details: dict[str, Any] = _core.cpu_details(native, [core.native for core in parts.cores])
    calls = {
        number: region["name"] for number, region in enumerate(details["regions"]) if region["kind"] == "mpi"
    }
    events: list[list[tuple[int, int, bool]]] = [[] for _ in range(ranks)]
    for core in parts.cores:
        log: dict[str, Any] = _core.cpu_region_log(core.native)
        if log["dropped"]:
            raise InputError(f"the node made more than {_LOG:,} calls; simulate a shorter run")
        for time, thread, region, enters in zip(
            log["time"], log["thread"], log["region"], log["enters"], strict=True
        ):
            # The first thread of a process has its rank's number; only it communicates.
            if thread < ranks and region in calls:
                events[thread].append((time, region, enters))
    before: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(ranks)])
    within: dict[str, list[float]] = defaultdict(list)
    for rank, of_rank in enumerate(events):
        last, depth, began = 0, 0, 0
        for time, region, enters in of_rank:
            if enters:
                if depth == 0:
                    before[calls[region]][rank].append((time - last) / _SECOND)
                    began = time
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    within[calls[region]].append((time - began) / _SECOND)
                    last = time
    return dict(before), dict(within)
