# SPDX-License-Identifier: Apache-2.0
"""Phase 3: the whole job on the described network, with compute times drawn from what was measured on a node.

Every repetition draws new times; their mean is the prediction, and how they scatter its uncertainty.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from manyscale.errors import InputError
from manyscale.network.job import Cluster, Job, cluster
from manyscale.network.motifs import Motif
from manyscale.network.program import Program as NetworkProgram
from manyscale.results.notebook import NotebookView, facts_table, plot
from manyscale.results.stack_chart import stack_chart
from manyscale.studies.projection.measured_job import MeasuredJob
from manyscale.studies.projection.recorded_job import RecordedJob, StandIns
from manyscale.studies.projection.timings import Variant

VariantName = Literal["no ext-ct", "no ext-var", "ext-ct", "ext-var"]
VARIANTS: tuple[VariantName, ...] = ("no ext-ct", "no ext-var", "ext-ct", "ext-var")
BEST: VariantName = "ext-var"
DEFAULT_REPETITIONS = 10
PARTS = ("compute", "overhead", "waiting", "transfer", "done")
# Of Student's distribution, two-sided 95%, by degrees of freedom; more are as the normal distribution.
_STUDENT: tuple[float, ...] = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
)
_STUDENT += (2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)


@dataclass(frozen=True)
class Prediction(NotebookView):
    """How long a job takes: the mean of all repetitions, its 95% confidence interval, and where time goes."""

    nodes: int
    variant: str
    runs: list[float]
    shares: dict[str, float]  # mean over ranks and repetitions: compute, overhead, waiting, transfer, done
    stand_ins: StandIns = field(default_factory=lambda: StandIns([], 0.0))
    """Compute phases that no simulated rank ran."""

    @property
    def seconds(self) -> float:
        """The mean."""
        return statistics.fmean(self.runs)

    @property
    def half_width(self) -> float:
        """Of the confidence interval of the mean."""
        count = len(self.runs)
        if count < 2:
            return 0.0
        factor = _STUDENT[count - 2] if count - 2 < len(_STUDENT) else 1.96
        return factor * statistics.stdev(self.runs) / math.sqrt(count)

    @property
    def low(self) -> float:
        """Of the interval."""
        return self.seconds - self.half_width

    @property
    def high(self) -> float:
        """Of the interval."""
        return self.seconds + self.half_width

    @property
    def limit(self) -> str:
        """What takes most of the time."""
        return max(PARTS, key=lambda part: self.shares[part])

    def _notebook(self) -> Iterable[str]:
        time = f"{self.seconds * 1e3:.4g} ms ± {self.half_width / self.seconds:.2%}"
        yield facts_table(f"{self.nodes:,} nodes, {self.variant}", {"time": time, "limit": self.limit})
        yield plot(stack_chart("Time of a rank, mean", "share of the time", {"ranks": self.shares}))


def predict(
    work: RecordedJob | Motif,
    measured: MeasuredJob,
    *,
    nodes: int,
    variant: VariantName = BEST,
    network: str | None = None,
    network_changes: Sequence[str] | None = None,
    topology: str | None = None,
    repetitions: int = DEFAULT_REPETITIONS,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    """Predicts the time of a recorded job, or of a skeleton, on so many nodes; the network is that of phase 2."""
    if variant not in VARIANTS:
        raise InputError(f"there is no variant '{variant}'; there are {', '.join(VARIANTS)}")
    if repetitions < 1:
        raise InputError("a prediction needs at least 1 repetition")
    simulated = cluster_for(measured, nodes, network, network_changes, topology)
    program = _program(work, measured, nodes, variant)
    runs: list[float] = []
    shares = dict.fromkeys(PARTS, 0.0)
    count = runs_of(variant, repetitions)
    for repetition in range(count):
        job = Job(program, simulated, seed=seed + repetition, critical_path=False)
        result = job.run(threads=threads, progress=progress)
        runs.append(result.simulated_seconds)
        for part, share in result.shares.items():
            shares[part] += share / count
    stand_ins = StandIns([], 0.0)
    if isinstance(work, RecordedJob):
        timings = measured.timings(variant.startswith("ext"))
        groups = measured.groups(nodes * measured.ranks_per_node)
        stand_ins = work.stand_ins([timings[group].phases for group in groups])
    return Prediction(nodes, variant, runs, shares, stand_ins)


def runs_of(variant: str, repetitions: int) -> int:
    """How often a variant is run: without anything that is drawn, every repetition is the same."""
    return 1 if variant.endswith("-ct") else repetitions


def cluster_for(
    measured: MeasuredJob,
    nodes: int,
    network: str | None,
    network_changes: Sequence[str] | None,
    topology: str | None,
) -> Cluster:
    """So many nodes of a measured job on a network, that of phase 2 where none is named, with the costs of its MPI."""
    name = measured.facts["network"] if network is None else network
    changes = measured.facts["network_changes"] if network_changes is None else network_changes
    # What the user says of the network comes last, so that it can say something of MPI, too.
    told = [*measured.costs.changes, *changes]
    return cluster(name, told, nodes=nodes, ranks_per_node=measured.ranks_per_node, topology=topology)


def _program(
    work: RecordedJob | Motif, measured: MeasuredJob, nodes: int, variant: VariantName
) -> NetworkProgram:
    ranks = nodes * measured.ranks_per_node
    timings = measured.timings(variant.startswith("ext"))
    kind: Variant = "constant" if variant.endswith("-ct") else "variable"
    groups = measured.groups(ranks)
    if isinstance(work, RecordedJob):
        if len(work.ranks) != ranks:
            raise InputError(
                f"the job was recorded with {len(work.ranks)} ranks; on {nodes} nodes of "
                f"{measured.ranks_per_node} it has {ranks}"
            )
        return work.program([timings[group].phases for group in groups], kind, measured.costs)
    durations: list[dict[str, Any]] = [
        {name: group.call_sites[name].duration(kind) for name in group.call_sites} for group in timings
    ]
    commonest = max(set(groups), key=groups.count)
    special: dict[Sequence[int], dict[str, Any]] = {
        tuple(rank for rank, group in enumerate(groups) if group == other): durations[other]
        for other in sorted(set(groups) - {commonest})
    }
    nobody = (measured.costs.nobody_send, measured.costs.nobody_receive)
    timed = work.with_timings(durations[commonest], special or None, nobody)
    return timed.recorded(ranks, type(work).__name__.lower())


@dataclass(frozen=True)
class Improvement:
    """A change of the machine, and the share of the time that it saves."""

    name: str
    seconds: float
    gain: float


def improvements(
    work: RecordedJob | Motif,
    measured: MeasuredJob,
    base: Prediction,
    *,
    network: str | None = None,
    network_changes: Sequence[str] | None = None,
    topology: str | None = None,
    repetitions: int = 1,
    seed: int = 0,
) -> list[Improvement]:
    """What would help at the number of nodes of a prediction, each change by itself, the best first.

    Repetitions draw the same times as the prediction did, so one is usually enough.
    """
    variant: VariantName = next(name for name in VARIANTS if name == base.variant)
    simulated = cluster_for(measured, base.nodes, network, network_changes, topology)
    told = list(network_changes if network_changes is not None else measured.facts["network_changes"])
    fabric: Any = simulated.network
    link, switch, mpi = fabric.link, fabric.switch, fabric.mpi
    overheads = ("send_overhead", "receive_overhead", "control_overhead")
    halved = {f"network.mpi.{name}": getattr(mpi, name) // 2 for name in overheads}
    changes: dict[str, list[str]] = {
        "twice the bandwidth of links": [f"network.link.bandwidth={2 * link.bandwidth}B/s"],
        "half the latency of links, switches and interfaces": [
            f"network.link.latency={link.latency // 2}fs",
            f"network.switch.latency={switch.latency // 2}fs",
            f"network.mpi.latency={mpi.latency // 2}fs",
        ],
        "half of what messages cost processors": [f"{name}={value}fs" for name, value in halved.items()],
    }

    def seconds(extra: Sequence[str], shape: str | None, kind: VariantName) -> float:
        return predict(
            work,
            measured,
            nodes=base.nodes,
            variant=kind,
            network=network,
            network_changes=[*told, *extra],
            topology=shape,
            repetitions=repetitions,
            seed=seed,
        ).seconds

    found = {name: seconds(extra, topology, variant) for name, extra in changes.items()}
    if fabric.topology.kind != "switch":
        found["all nodes at one switch instead of this topology"] = seconds([], "switch", variant)
    if variant.endswith("-var"):
        steady: VariantName = "ext-ct" if variant == "ext-var" else "no ext-ct"
        found["compute phases that do not vary"] = seconds([], topology, steady)
    # Against the same seeds, so that what was drawn is no part of the difference.
    reference = statistics.fmean(base.runs[:repetitions])
    rows = [Improvement(name, time, 1 - time / reference) for name, time in found.items()]
    return sorted(rows, key=lambda row: -row.gain)
