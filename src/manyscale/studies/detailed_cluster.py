# SPDX-License-Identifier: Apache-2.0
"""An MPI program on several nodes that are all simulated in detail, with the network between them.

This is what a projection from one node is held against: slow, and with nothing left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from manyscale import _core
from manyscale.cpu.program import Program
from manyscale.cpu.result import Process
from manyscale.cpu.running import launch_of, program_errors
from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import CpuSystem, build_cpu
from manyscale.machine.loading import JOBS, PROGRAMS
from manyscale.network.job import Cluster, network_description
from manyscale.network.job import cluster as network_cluster
from manyscale.results.notebook import NotebookView, facts_table
from manyscale.studies.call_log import MOST_ENTRIES, CallOfRank, calls_of_ranks
from manyscale.system import System
from manyscale.system.running import Result
from manyscale.units import TIME, humanize

_SECOND = 10**15


@dataclass(frozen=True, eq=False)
class DetailedResult(NotebookView):
    """How long a program took on all nodes, and what each of its ranks did."""

    program: Program
    nodes: int
    processes: list[Process]  # by rank
    run: Result
    traffic: dict[str, int]  # between nodes: messages, bytes, packets
    calls: list[list[CallOfRank]] = field(default_factory=list)  # by rank, if they were to be kept

    @property
    def seconds(self) -> float:
        """Simulated time until the last rank has ended."""
        return self.run.now / _SECOND

    @property
    def stdout(self) -> str:
        """What all ranks wrote, rank by rank."""
        return b"".join(process.stdout for process in self.processes).decode(errors="replace")

    def _notebook(self) -> Iterable[str]:
        time = {"simulated time": humanize(self.run.now, TIME), "ranks": len(self.processes)}
        yield facts_table(f"{self.program.name} on {self.nodes} nodes", time | dict(self.traffic))


def run_detailed(
    program: Program,
    *,
    nodes: int,
    ranks_per_node: int,
    machine: str = "broadwell",
    changes: Sequence[str] = (),
    network: str | Cluster = "omnipath",
    cores: int | None = None,
    injection: bool = True,
    threads: int = 1,
    seed: int = 0,
    keep_calls: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> DetailedResult:
    """Runs a program, so many ranks on each of so many nodes; each node has `cores` cores (one for each rank).

    `machine` is that of each node, `network` a machine with a network section or a cluster. With `keep_calls`, the
    result has each MPI call of each rank.
    With `injection`, messages are read from and written to the memory of the nodes by their network interfaces, at the
    rate of a link.
    """
    if nodes < 2:
        raise InputError("several nodes are simulated together; for one, use cpu.run")
    fabric = network if isinstance(network, Cluster) else network_cluster(network, nodes=nodes)
    if fabric.nodes != nodes:
        raise InputError(f"the network has {fabric.nodes} nodes, but {nodes} are to be simulated")
    resolved = load_machine(machine, changes)
    system = System(f"{nodes} nodes of {machine}", seed=seed)
    parts: list[CpuSystem] = []
    part = replace(program, ranks=ranks_per_node)
    watching: dict[str, Any] = {"region_log": MOST_ENTRIES} if keep_calls else {}
    description = network_description(fabric)
    if injection:
        watching["dma_bandwidth"] = f"{description['network']['link.bandwidth']}B/s"
    launch = launch_of(part, keep_calls, ()) | {"job_ranks": nodes * ranks_per_node}
    for node in range(nodes):
        with system.within(f"node[{node}]"):
            parts.append(
                build_cpu(resolved.machine, cores or ranks_per_node, seed=seed, system=system, **watching)
            )
        with program_errors(program):
            _core.cpu_launch(parts[-1].program.native, launch | {"first_rank": node * ranks_per_node})
    resolved.check_read(PROGRAMS)
    fabric.machine.check_read(JOBS)
    programs = [one.program.native for one in parts]
    engines = [one.dma.native for one in parts if one.dma is not None]
    joined = _core.NodeNetwork(system.simulation, description, {}, programs, engines)
    run = _run(program, system, programs, threads, progress)
    processes = [Process(*process) for native in programs for process in _core.cpu_processes(native)]
    calls = [rank for one in parts for rank in calls_of_ranks(one, ranks_per_node)] if keep_calls else []
    return DetailedResult(program, nodes, processes, run, dict(joined.totals()), calls)


def _run(
    program: Program,
    system: System,
    programs: Sequence[Any],
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> Result:
    def ended() -> tuple[Any, Any]:
        for native in programs:
            if (failure := _core.cpu_failure(native)) is not None:
                return failure, _core.cpu_processes(native)
        return None, []

    with program_errors(program, ended):
        return system.run(threads=threads, progress=progress)
