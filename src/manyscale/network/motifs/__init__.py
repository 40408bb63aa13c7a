# SPDX-License-Identifier: Apache-2.0
"""Built-in skeletons, by name."""

from __future__ import annotations

from typing import Any

from manyscale.errors import InputError, nearest
from manyscale.network.motifs.collectives import Allreduce, Alltoall, Collective
from manyscale.network.motifs.fft import Fft2d, Fft3d
from manyscale.network.motifs.gpu_training import GpuTraining
from manyscale.network.motifs.halo import Halo2d, Halo3d
from manyscale.network.motifs.hpcg import Hpcg
from manyscale.network.motifs.milc import Milc
from manyscale.network.motifs.motif import Motif
from manyscale.network.motifs.sweep import Snap, Sweep3d
from manyscale.network.motifs.traffic import Incast, PingPong, RandomTraffic
from manyscale.network.motifs.training import Caffe, DataParallel, Training
from manyscale.spec import build

MOTIFS: dict[str, type[Motif]] = {
    "pingpong": PingPong,
    "halo2d": Halo2d,
    "halo3d": Halo3d,
    "sweep3d": Sweep3d,
    "fft2d": Fft2d,
    "fft3d": Fft3d,
    "alltoall": Alltoall,
    "allreduce": Allreduce,
    "collective": Collective,
    "random": RandomTraffic,
    "incast": Incast,
    "hpcg": Hpcg,
    "snap": Snap,
    "milc": Milc,
    "caffe": Caffe,
    "dataparallel": DataParallel,
    "training": Training,
    "gputraining": GpuTraining,
}


def motif(name: str, **parameters: Any) -> Motif:
    """The built-in skeleton of a name, with some of its parameters changed."""
    if name not in MOTIFS:
        raise InputError(f"there is no motif named '{name[:60]}'; {nearest(name, MOTIFS)}")
    return build(MOTIFS[name], parameters, name)


__all__ = ["MOTIFS", "Motif", "motif"]
