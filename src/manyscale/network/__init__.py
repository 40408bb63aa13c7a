# SPDX-License-Identifier: Apache-2.0
"""MPI jobs on networks: skeletons of programs, their compilation, recorded schedules, runs and their results."""

from manyscale.network.columns import Formula
from manyscale.network.durations import Distribution, Pattern
from manyscale.network.grid import Grid, balanced
from manyscale.network.job import Cluster, Job, cluster, run
from manyscale.network.motifs import MOTIFS, Motif, motif
from manyscale.network.program import ANY, LAST, NOBODY, Operation, Program
from manyscale.network.recorder import Mpi
from manyscale.network.result import JobResult
from manyscale.network.shared import Communicator, Request
from manyscale.network.skeleton import compile, vectorised

__all__ = [
    "ANY",
    "LAST",
    "MOTIFS",
    "NOBODY",
    "Cluster",
    "Communicator",
    "Distribution",
    "Formula",
    "Grid",
    "Job",
    "JobResult",
    "Motif",
    "Mpi",
    "Operation",
    "Pattern",
    "Program",
    "Request",
    "balanced",
    "cluster",
    "compile",
    "motif",
    "run",
    "vectorised",
]
