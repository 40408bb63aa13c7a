# SPDX-License-Identifier: Apache-2.0
"""Networks: trains and flows beside packets, and the jobs of other simulators beside what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyscale import network
from manyscale.validation.network_jobs import PEER_JOBS
from manyscale.validation.rows import Row

MOST_NODES = 512  # of the jobs that are run here; the larger ones are in benchmarks/network.py
_VERSIONS = {  # docs/comparison.md has their configurations
    "SST": "SST of mid 2026 (merlin, firefly, ember)",
    "SimGrid": "SimGrid 3.32 (SMPI)",
    "LogGOPSim": "LogGOPSim, L 540 ns, o = g = 200 ns, G 0.08 ns/B",
}


@dataclass(frozen=True)
class Case:
    """A job that is run at each fidelity."""

    name: str
    motif: str
    nodes: int
    parameters: dict[str, Any]
    machine: str = "omnipath"


CASES = (
    Case("halo 3D 32 KiB, fat tree", "halo3d", 64, {"face": "32KiB", "iterations": 5, "compute": "20us"}),
    Case("halo 3D 256 KiB, fat tree", "halo3d", 64, {"face": "256KiB", "iterations": 3, "compute": "20us"}),
    Case("halo 3D 32 KiB, torus", "halo3d", 96, {"iterations": 5, "compute": "20us"}, "omnipath-torus"),
    Case(
        "halo 3D 32 KiB, dragonfly", "halo3d", 96, {"iterations": 5, "compute": "20us"}, "omnipath-dragonfly"
    ),
    Case("allreduce 8 B", "allreduce", 64, {"iterations": 20}),
    Case("allreduce 1 MiB", "allreduce", 64, {"bytes": "1MiB", "iterations": 2}),
    Case("all-to-all 4 KiB", "alltoall", 64, {"bytes": "4KiB"}),
    Case("incast 1 MiB", "incast", 16, {"bytes": "1MiB"}),
    Case("ping-pong 1 MiB", "pingpong", 64, {"bytes": "1MiB", "iterations": 4}),
    Case("MILC, 16 ranks", "milc", 16, {"iterations": 3}),
)


def rows(machine: str = "") -> list[Row]:
    """All rows; the jobs have machines of their own, so the one that is named does not matter."""
    return [*fidelity_rows(), *peer_rows()]


def fidelity_rows() -> list[Row]:
    """Simulated times of train and flow beside those of packet."""
    found = []
    for case in CASES:
        times = {
            fidelity: network.run(
                case.motif,
                machine=case.machine,
                nodes=case.nodes,
                fidelity=fidelity,
                **case.parameters,
            ).simulated_seconds
            for fidelity in ("packet", "train", "flow")
        }
        found += [
            Row(
                f"{fidelity}: {case.name}",
                times[fidelity] * 1e6,
                times["packet"] * 1e6,
                "us",
                "packet fidelity",
            )
            for fidelity in ("train", "flow")
        ]
    return found


def peer_rows(most_nodes: int = MOST_NODES) -> list[Row]:
    """Simulated times beside those of SST, SimGrid and LogGOPSim for the same jobs."""
    found = []
    for job in PEER_JOBS:
        if job.nodes <= most_nodes:
            simulated = job.run().simulated_seconds / job.repeats
            source = _VERSIONS[job.peer] + (f"; {job.note}" if job.note else "")
            found.append(Row(job.title, simulated * 1e6, job.seconds * 1e6, "us", source))
    return found
