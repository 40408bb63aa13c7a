# SPDX-License-Identifier: Apache-2.0
"""Projections from one detailed node beside detailed simulations of all nodes, for the five projected programs.

The truth is our own full simulation: every node in detail and every packet between them. The programs are small, so
that it takes seconds; a projection has only one node of it and the job's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale.cpu.building import build, runtime_folder
from manyscale.cpu.program import Program
from manyscale.errors import InputError
from manyscale.guard import temporary_folder
from manyscale.network.job import cluster
from manyscale.studies.detailed_cluster import run_detailed
from manyscale.studies.projection.measured_job import measure_job
from manyscale.studies.projection.predict import BEST, VARIANTS, predict
from manyscale.studies.projection.profiling import profile_functional
from manyscale.studies.projection.recorded_job import record
from manyscale.validation.rows import Row

_REPETITIONS = 3
_SECOND_TO_US = 1e6


@dataclass(frozen=True)
class Case:
    """A program with its arguments on so many nodes, and its arguments for a node alone."""

    program: str
    arguments: str
    nodes: int
    ranks_per_node: int
    alone: str


CASES = (
    Case("hpcg", "8 8 8 3 1", 2, 2, "8 8 8 3 1"),
    Case("hpcg", "8 8 8 3 1", 4, 1, "8 8 8 3 1"),
    Case("hpcg", "8 8 8 2 1", 8, 1, "8 8 8 2 1"),
    Case("snap", "12 4 4 6 4 1 1", 2, 2, "12 4 4 6 4 1 1"),
    Case("snap", "12 4 4 6 4 1 1", 4, 1, "12 4 4 6 4 1 1"),
    Case("snap", "12 4 4 6 4 1 1", 8, 1, "12 4 4 6 4 1 1"),
    Case("milc", "4 1", 2, 1, "4 1"),
    Case("milc", "4 1", 4, 1, "4 1"),
    Case("milc", "4 1", 8, 1, "4 1"),
    Case("fft2d", "64 4", 2, 1, "32 4"),
    Case("fft2d", "64 4", 4, 1, "32 4"),
    Case("fft2d", "64 4", 8, 1, "32 4"),
    Case("training", "32 3 8 3", 2, 1, "32 3 8 3"),
    Case("training", "32 3 8 3", 4, 1, "32 3 8 3"),
    Case("training", "32 3 8 3", 8, 1, "32 3 8 3"),
)


@dataclass(frozen=True)
class Outcome:
    """The truth and the four predictions of a case, in seconds."""

    case: Case
    truth: float
    predicted: dict[str, float]

    def error_percent(self, variant: str) -> float:
        """How far a prediction is above the truth."""
        return 100 * (self.predicted[variant] / self.truth - 1)


def programs_folder() -> Path:
    """Where the sources of the five programs are, and the program for RISC-V."""
    folder = runtime_folder().parent / "examples" / "projection" / "programs"
    if not (folder / "programs.xz").is_file():
        raise InputError(
            "the projected programs are in the checkout (examples/projection), which is not here"
        )
    return folder


def build_native(folder: Path) -> Path:
    """The five programs for this machine."""
    native = folder / "programs"
    build(sorted(programs_folder().glob("*.c")), native, mpi=True, host=True)
    return native


def compare(case: Case, native: Path, machine: str = "broadwell", network: str = "omnipath") -> Outcome:
    """Simulates a case in detail, and projects it from one node or a few."""
    arguments = [case.program, *case.arguments.split()]
    program = Program(programs_folder() / "programs.xz", arguments)
    fabric = cluster(network, nodes=case.nodes, fidelity="packet")
    truth = run_detailed(
        program, nodes=case.nodes, ranks_per_node=case.ranks_per_node, machine=machine, network=fabric
    )
    for rank, process in enumerate(truth.processes):
        if process.exit_code:
            raise InputError(
                f"{case.program}: rank {rank} of the detailed job ended with {process.exit_code}"
            )
    ranks = case.nodes * case.ranks_per_node
    measured = measure_job(
        program,
        native,
        profile_functional(program, ranks, ranks_per_node=case.ranks_per_node),
        machine=machine,
        network=network,
        alone_args=[case.program, *case.alone.split()],
    )
    job = record(native, ranks, arguments)
    found: dict[str, float] = {
        variant: predict(
            job,
            measured,
            nodes=case.nodes,
            variant=variant,
            network_changes=['network.fidelity="packet"'],
            repetitions=_REPETITIONS,
        ).seconds
        for variant in VARIANTS
    }
    return Outcome(case, truth.seconds, found)


def table(
    cases: Sequence[Case] = CASES, say: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Truth and predictions of all cases."""
    found = []
    with temporary_folder("manyscale-projection-") as folder:
        native = build_native(folder)
        for case in cases:
            found.append(compare(case, native))
            say(found[-1])
    return found


def rows(machine: str = "") -> list[Row]:
    """The full projection beside the truth; `machine` is not used, the nodes are Broadwell's."""
    del machine
    return [
        Row(
            f"{outcome.case.program} on {outcome.case.nodes} nodes of {outcome.case.ranks_per_node}",
            outcome.predicted[BEST] * _SECOND_TO_US,
            outcome.truth * _SECOND_TO_US,
            "us",
            "all nodes in detail; "
            + ", ".join(f"{name} {outcome.error_percent(name):+.1f}%" for name in VARIANTS if name != BEST),
        )
        for outcome in table()
    ]
