# SPDX-License-Identifier: Apache-2.0
"""A job: a program on the nodes of a machine's network, made ready for the core and run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyscale import _core, processes
from manyscale.errors import KEPT_AFTER, DeadlockError, InputError
from manyscale.host_memory import shortage
from manyscale.machine import ResolvedMachine, load_machine, to_toml
from manyscale.machine.loading import JOBS
from manyscale.machine.network import Network, capacity, core_values, topology_for
from manyscale.network.encoding import core_operations, encode
from manyscale.network.gathered import GatheredJob
from manyscale.network.goal import GoalSchedule, read_goal
from manyscale.network.goal_program import program_of
from manyscale.network.graph_file import read_graph
from manyscale.network.mapping import map_ranks
from manyscale.network.motifs import Motif, motif
from manyscale.network.program import Operation, Program
from manyscale.network.result import JobResult
from manyscale.network.skeleton import compile
from manyscale.results import RunWriter
from manyscale.system.running import core_errors, explain_deadlock, keep_partial, run_simulation
from manyscale.units import BYTES, humanize

DEFAULT_MACHINE = "omnipath"
TIMELINE_FILE = "timeline.pftrace"
MOST_TIMELINES = 4096

Work = str | os.PathLike[str] | Motif | Program | GoalSchedule | Callable[..., None]


@dataclass(frozen=True)
class Cluster:
    """A machine's network with so many nodes, and how the ranks of a job are put on them."""

    machine: ResolvedMachine
    nodes: int
    ranks_per_node: int = 1
    mapping: str = "block"

    @property
    def network(self) -> Network:
        """The network section of the machine."""
        assert self.machine.machine.network is not None
        return self.machine.machine.network


def cluster(
    machine: str | Path = DEFAULT_MACHINE,
    changes: Sequence[str] = (),
    *,
    nodes: int | None = None,
    ranks_per_node: int = 1,
    topology: str | None = None,
    fidelity: str | None = None,
    mapping: str = "block",
) -> Cluster:
    """A cluster of a preset or file, with changes such as "network.link.bandwidth=100Gb/s".

    With `nodes` or `topology` the machine's topology is kept if it is of that kind and can attach them, and
    replaced by one that fits otherwise.
    """
    resolved = load_machine(machine, changes)
    found = resolved.machine.network
    if found is None:
        raise InputError(f"the machine {resolved.machine.name} has no network section")
    stated = found.topology
    wanted: dict[str, Any] = {}
    kind = topology or stated.kind
    room = capacity(found)
    needed = nodes if nodes is not None else (stated.nodes or room)
    if needed is None or needed < 1:
        raise InputError(
            f"say how many nodes: the topology {kind} of {resolved.machine.name} has no number of its own"
        )
    if kind != stated.kind or (room and room < needed):
        wanted = {f"topology.{name}": value for name, value in topology_for(kind, needed).items()}
    if kind != "graph":
        wanted["topology.nodes"] = needed
    if fidelity is not None:
        wanted["fidelity"] = fidelity
    options = [f"network.{name}={_written(value)}" for name, value in wanted.items()]
    # A description of the machine is one of its topology, which is another one now.
    of_topology = [name for name in resolved.changed if name.startswith("network.topology.")]
    if "topology.kind" in wanted or set(of_topology) - {"network.topology.nodes"}:
        options.append(f'description="{resolved.machine.name} with another topology: {kind}"')
    return Cluster(load_machine(machine, [*changes, *options]), needed, ranks_per_node, mapping)


def _written(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def program_for(work: Work, ranks: int | None, parameters: dict[str, Any]) -> Program:
    """The program of what can be run: a motif (or its name), a skeleton, a program, a GOAL schedule or its file."""
    if isinstance(work, Program | GoalSchedule) or _is_goal_file(work):
        if parameters:
            raise InputError(f"a recorded job has no parameters such as '{next(iter(parameters))}'")
        if isinstance(work, Program):
            return work
        schedule = work if isinstance(work, GoalSchedule) else read_goal(work)  # type: ignore[arg-type]
        return program_of(schedule)
    if ranks is None:
        raise InputError("say how many nodes the job runs on")
    if isinstance(work, str):
        _refuse_file(work)
        return motif(work, **parameters).recorded(ranks, work)
    if isinstance(work, Motif):
        changed = work.model_copy(update=parameters) if parameters else work
        return changed.recorded(ranks, type(work).__name__.lower())
    if callable(work):
        return compile(work, ranks, **parameters)
    raise InputError(f"{work!r} cannot be run: give a motif, a skeleton, a program or a GOAL schedule")


def _refuse_file(work: str) -> None:
    """A file of another format is no motif, and says so."""
    if os.path.splitext(work)[1] or os.sep in work:
        raise InputError(
            f"{work} is no file of a job that can be run; known formats: GOAL schedules (.goal), which "
            "LogGOPSim and ATLAHS use, and the built-in skeletons of `manyscale net list`"
        )


def _is_goal_file(work: Any) -> bool:
    return isinstance(work, os.PathLike) or (isinstance(work, str) and work.endswith(".goal"))


def run(
    work: Work,
    *,
    machine: str | Path = DEFAULT_MACHINE,
    changes: Sequence[str] = (),
    nodes: int | None = None,
    ranks_per_node: int = 1,
    ranks: int | None = None,
    topology: str | None = None,
    fidelity: str | None = None,
    mapping: str = "block",
    seed: int = 0,
    threads: int = 1,
    out: str | os.PathLike[str] | None = None,
    timeline: Sequence[int] = (),
    load: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: Sequence[str] = (),
    notice: Callable[[Program], None] | None = None,
    **parameters: Any,
) -> JobResult:
    """Runs a job and returns what came out; further keywords are the parameters of a motif or skeleton.

    `ranks` is nodes x ranks_per_node if not stated. `timeline` lists ranks whose calls are recorded, `load` is the
    interval in which the load of links is recorded; both are written to the run directory `out`. `notice` is called
    with the program before it is run.
    """
    program = None
    if nodes is None and (isinstance(work, Program | GoalSchedule) or _is_goal_file(work)):
        program = program_for(work, None, parameters)
        nodes = -(-program.ranks // ranks_per_node)
    if load is not None:
        changes = [*changes, f"network.load_interval={load}"]
    on_cluster = cluster(
        machine,
        changes,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        topology=topology,
        fidelity=fidelity,
        mapping=mapping,
    )
    if program is None:
        program = program_for(work, ranks or on_cluster.nodes * ranks_per_node, parameters)
    if notice is not None:
        notice(program)
    job = Job(program, on_cluster, seed=seed, timeline=timeline)
    facts = {
        "kind": "network",
        "name": program.name,
        "parameters": {k: str(v) for k, v in parameters.items()},
    }
    return job.run(threads=threads, out=out, progress=progress, command=command, workload=facts)


class Job:
    """A program on a cluster; it can be run once."""

    def __init__(
        self,
        program: Program,
        on_cluster: Cluster,
        *,
        seed: int = 0,
        timeline: Sequence[int] = (),
        critical_path: bool = True,
    ) -> None:
        self.program = program
        self.cluster = on_cluster
        self.seed = seed
        self.node_of_rank = map_ranks(
            on_cluster.mapping, program.ranks, on_cluster.nodes, on_cluster.ranks_per_node, seed=seed
        )
        self.timeline = sorted(set(timeline))
        for rank in self.timeline:
            if not 0 <= rank < program.ranks:
                raise InputError(f"there is no rank {rank} to show; the ranks are 0 to {program.ranks - 1}")
        if len(self.timeline) > MOST_TIMELINES:
            raise InputError(f"a timeline shows at most {MOST_TIMELINES} ranks, not {len(self.timeline)}")
        description = network_description(on_cluster) | {"node_of_rank": self.node_of_rank}
        on_cluster.machine.check_read(JOBS)
        try:
            self.native = _core.NetworkJob(
                description,
                encode(program),
                seed,
                timeline=np.array(self.timeline, np.int64),
                critical_path=critical_path,
            )
        except MemoryError as error:
            raise shortage(error, f"the network of {on_cluster.nodes:,} nodes") or error from None
        except (ValueError, _core.SimulationError) as error:  # what the core says against a description
            raise InputError(f"{on_cluster.machine.machine.name}: {error}") from None

    def run(
        self,
        *,
        threads: int = 1,
        out: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
        command: Sequence[str] = (),
        workload: dict[str, Any] | None = None,
    ) -> JobResult:
        """Runs it; with `out`, leaves a run directory."""
        if threads < 1:
            raise InputError(f"cannot run on {threads} threads; give at least 1")
        if self.timeline and processes.together() is not None:
            raise InputError("a timeline is recorded by one process only; run the job without mpirun for it")
        if out is None:
            return self._ended(self._simulate(threads, progress, None))
        facts = {"kind": "network", "name": self.program.name, **(workload or {})}
        facts |= {
            "ranks": self.program.ranks,
            "nodes": self.cluster.nodes,
            "ranks_per_node": self.cluster.ranks_per_node,
            "mapping": self.cluster.mapping,
        }
        with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=self.seed) as writer:
            writer.write_machine(to_toml(self.cluster.machine.machine, self.cluster.machine.sources))
            try:
                result = self._simulate(threads, progress, writer.directory)
            except KEPT_AFTER:
                keep_partial(writer, self._columns)
                raise
            if result.outcome != "finished":
                writer.partial(result.columns, result.headline)
            self._ended(result)
            writer.write_stats(result.columns)
            result.write_tables(writer)
            if self.timeline:
                self.write_timeline(writer)
            writer.finish(result.headline)
        return result

    def write_timeline(self, writer: RunWriter) -> None:
        """Keeps the calls of the chosen ranks as a Perfetto trace."""
        names = [_described(one) for one in core_operations(self.program)]
        with core_errors():
            writer.write_by_name(TIMELINE_FILE, lambda path: self.native.write_timeline(path, names))

    def _simulate(
        self, threads: int, progress: Callable[[int, int], None] | None, directory: Path | None
    ) -> JobResult:
        others = processes.together()
        measure = getattr(progress, "measure", None)
        if measure is not None and others is None:
            measure("MPI operations", lambda: self.native.operations_begun, self.program.executed())
        report: Any = run_simulation(self.native.simulation, progress, threads=threads)
        self._report = report
        native = self.native if others is None else GatheredJob(self.native, others)
        return JobResult(self.program, self.cluster.network, self.node_of_rank, native, report, directory)

    def _columns(self) -> dict[str, list[Any]]:
        """The statistics of a job that failed on its way."""
        so_far = {"outcome": "failed", "events": 0, "threads": 1, "wall_seconds": 0.0}
        report = so_far | {"now": self.native.simulation.now}
        on_cluster = self.cluster.network
        return JobResult(self.program, on_cluster, self.node_of_rank, self.native, report, None).columns

    def _ended(self, result: JobResult) -> JobResult:
        """The result of a job that came to its end; for any other, what stopped it."""
        if result.outcome == "deadlock":
            alone = processes.together() is None
            raise DeadlockError(self.native.explain_deadlock() if alone else explain_deadlock(self._report))
        if result.outcome == "interrupted":
            raise KeyboardInterrupt
        return result


def network_description(on_cluster: Cluster) -> dict[str, Any]:
    """What the core is told of a cluster's network and of the MPI library on it."""
    fabric, mpi = core_values(on_cluster.network)
    description: dict[str, Any] = {
        "network": fabric,
        "mpi": mpi,
        "faults": [
            (
                fault.a,
                -1 if fault.b is None else fault.b,
                -1 if fault.link is None else fault.link,
                fault.speed,
            )
            for fault in on_cluster.network.faults or ()
        ],
    }
    if fabric["topology.kind"] == "graph":
        if on_cluster.network.graph is None:
            raise InputError("the topology 'graph' needs network.graph, a file of switches, links and nodes")
        description["graph"] = read_graph(
            on_cluster.network.graph, fabric["link.bandwidth"], fabric["link.latency"]
        )
    return description


def _described(operation: Operation) -> str:
    """An operation in a few words, for a timeline."""
    amount = operation.operands.get("bytes")
    if isinstance(amount, int) and amount:
        return f"{operation.kind} {humanize(amount, BYTES)}"
    return operation.kind
