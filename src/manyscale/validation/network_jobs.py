# SPDX-License-Identifier: Apache-2.0
"""The jobs that other network simulators were measured with, in their parameters, and what they said.

The figures are simulated time, CPU time and memory of SST of mid 2026 (merlin, firefly, ember), SimGrid 3.32 (SMPI) and
LogGOPSim on two cores of an AMD EPYC; docs/comparison.md states their configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manyscale import network


@dataclass(frozen=True)
class PeerJob:
    """A job of another simulator: what it is here, and what the other one said of it."""

    peer: str
    name: str
    nodes: int
    motif: str
    parameters: dict[str, Any]
    machine: str
    seconds: float  # simulated by the other
    cpu_seconds: float  # that the other took
    megabytes: float
    changes: Sequence[str] = ()
    repeats: int = 1  # simulated seconds are for one of so many
    note: str = ""

    @property
    def title(self) -> str:
        """Peer, job and size."""
        return f"{self.peer}: {self.name}, {self.nodes} nodes"

    def run(self, fidelity: str | None = None, threads: int = 1) -> network.JobResult:
        """The job here, at the fidelity of its machine or another."""
        return network.run(
            self.motif,
            machine=self.machine,
            changes=self.changes,
            nodes=self.nodes,
            fidelity=fidelity,
            threads=threads,
            **self.parameters,
        )


_SST_HALO = {"order": "axes", "iterations": 10, "face": "32KiB", "compute": "100us", "algorithm": "binary"}
_HALO = {
    "periodic": True,
    "iterations": 50,
    "face": "32KiB",
    "compute": "1ms",
    "algorithm": "recursive-doubling",
}


def _tree(arity: int) -> list[str]:
    return [f"network.topology.shape={arity},{arity}:{arity},{arity}:{arity}"]


def _registration(pages: int) -> list[str]:
    """Firefly registers the memory of a long message page by page, three times for two control messages."""
    return [f"network.mpi.control_overhead={(3000 + 100 * pages) * 3 // 2}ns"]


def _smpi(latency_factor: float, bandwidth_factor: float) -> list[str]:
    """SMPI's default factors for a size of message, on links of 90 ns and 12.5 GB/s."""
    return [
        f"network.link.latency={round(90_000_000 * latency_factor)}fs",
        f"network.link.bandwidth={round(12_500_000_000 * bandwidth_factor)}B/s",
    ]


@dataclass(frozen=True)
class _Measured:
    nodes: int
    seconds: float
    cpu_seconds: float
    megabytes: float
    changes: list[str] = field(default_factory=list)


def _jobs(
    peer: str,
    name: str,
    motif: str,
    machine: str,
    parameters: dict[str, Any],
    measured: Sequence[_Measured],
    repeats: int = 1,
    note: str = "",
) -> list[PeerJob]:
    return [
        PeerJob(
            peer,
            name,
            one.nodes,
            motif,
            parameters,
            machine,
            one.seconds,
            one.cpu_seconds,
            one.megabytes,
            one.changes,
            repeats,
            note,
        )
        for one in measured
    ]


_TORUS = [
    'network.topology.kind="torus"',
    'network.topology.shape="8x8x8"',
]
_DRAGONFLY = [
    'network.topology.kind="dragonfly"',
    "network.topology.groups=16",
    "network.topology.group_switches=8",
    "network.topology.nodes_per_switch=4",
    "network.topology.global_links=4",
]
# LogGOPSim keeps the receiver's processor while the bytes of a message arrive, G for each.
_BUSY_RECEIVER = ["network.mpi.receive_overhead_per_byte=80ps"]
_SMALL = _smpi(2.01467, 0.812084)  # below 257 B
_PAGE = _smpi(1.88101, 0.77493)  # from 3,484 B to 5,775 B
_FACE = _smpi(3.48845, 0.697866)  # from 15,424 B to 65,471 B

PEER_JOBS: list[PeerJob] = [
    *_jobs(
        "SST",
        "halo 3D 32 KiB x 10",
        "halo3d",
        "sst-cluster",
        _SST_HALO,
        [
            _Measured(64, 2.375e-3, 0.58, 85, _tree(4)),
            _Measured(512, 2.478e-3, 8.9, 173, _tree(8)),
            _Measured(4096, 2.571e-3, 180, 914, _tree(16)),
        ],
    ),
    *_jobs(
        "SST",
        "halo 3D 32 KiB x 10 on a torus",
        "halo3d",
        "sst-cluster",
        _SST_HALO,
        [_Measured(512, 2.548e-3, 10.0, 187, _TORUS)],
    ),
    *_jobs(
        "SST",
        "halo 3D 32 KiB x 10 on a dragonfly",
        "halo3d",
        "sst-cluster",
        _SST_HALO,
        [_Measured(512, 2.869e-3, 13.8, 172, _DRAGONFLY)],
    ),
    *_jobs(
        "SST",
        "allreduce 8 B x 100",
        "allreduce",
        "sst-cluster",
        {"iterations": 100, "algorithm": "binary"},
        [
            _Measured(64, 16.0e-6, 0.39, 85, _tree(4)),
            _Measured(512, 24.1e-6, 5.6, 171, _tree(8)),
            _Measured(4096, 32.8e-6, 63, 869, _tree(16)),
        ],
        repeats=100,
    ),
    *_jobs(
        "SST",
        "all-to-all 4 KiB x 2",
        "alltoall",
        "sst-cluster",
        {"iterations": 2, "bytes": "4KiB", "algorithm": "pairwise"},
        [_Measured(64, 118e-6, 0.46, 84, _tree(4)), _Measured(512, 1011e-6, 57, 166, _tree(8))],
        repeats=2,
    ),
    *_jobs(
        "SST",
        "FFT 3D 256^3",
        "fft3d",
        "sst-cluster",
        {"points": 256, "algorithm": "pairwise"},
        [
            _Measured(64, 3.881e-3, 1.6, 91, [*_tree(4), *_registration(68)]),  # messages of 272 KiB
            _Measured(512, 1.010e-3, 10.1, 171, _tree(8)),
        ],
    ),
    *_jobs(
        "SimGrid",
        "halo 3D 32 KiB x 50",
        "halo3d",
        "simgrid-cluster",
        _HALO,
        [
            _Measured(64, 51.379e-3, 0.43, 71, [*_FACE, 'network.topology.shape="8,8:8"']),
            _Measured(512, 51.543e-3, 8.0, 339, [*_FACE, *_tree(8)]),
            _Measured(4096, 51.652e-3, 426, 2400, [*_FACE, *_tree(16)]),
        ],
    ),
    *_jobs(
        "SimGrid",
        "allreduce 8 B x 100",
        "allreduce",
        "simgrid-cluster",
        {"iterations": 100, "algorithm": "recursive-doubling"},
        [
            _Measured(64, 3.28e-6, 0.23, 35, [*_SMALL, 'network.topology.shape="8,8:8"']),
            _Measured(512, 6.55e-6, 4.2, 45, [*_SMALL, *_tree(8)]),
        ],
        repeats=100,
    ),
    *_jobs(
        "SimGrid",
        "all-to-all 4 KiB",
        "alltoall",
        "simgrid-cluster",
        {"iterations": 1, "bytes": "4KiB", "algorithm": "pairwise"},
        [_Measured(512, 723e-6, 7.2, 2100, [*_PAGE, *_tree(8)])],
    ),
    *_jobs(
        "LogGOPSim",
        "halo 3D 32 KiB x 50",
        "halo3d",
        "loggp",
        _HALO,
        [
            _Measured(64, 51.351e-3, 0.03, 8),
            _Measured(512, 51.492e-3, 0.49, 42),
            _Measured(4096, 51.633e-3, 17.4, 361),
        ],
    ),
    *_jobs(
        "LogGOPSim",
        "allreduce 8 B x 100",
        "allreduce",
        "loggp",
        {"iterations": 100, "algorithm": "recursive-doubling"},
        [_Measured(512, 8.47e-6, 0.40, 45), _Measured(4096, 11.29e-6, 8.5, 447)],
        repeats=100,
    ),
    *_jobs(
        "LogGOPSim",
        "all-to-all 4 KiB",
        "alltoall",
        "loggp",
        {"iterations": 1, "bytes": "4KiB", "algorithm": "linear"},
        [_Measured(512, 372e-6, 63, 113, _BUSY_RECEIVER)],
    ),
]
