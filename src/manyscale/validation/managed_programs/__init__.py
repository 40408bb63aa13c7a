# SPDX-License-Identifier: Apache-2.0
"""Ten programs with unified memory, in CUDA C++, whose results are checked with numpy.

Each has its kernels in a `.cu` file, the same as PTX beside it (nvcc -ptx -arch=compute_75 -O3), and what the host
does in a `.py` file. They follow the descriptions of the benchmarks in Rodinia, PolyBench, HPC Challenge and STREAM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manyscale.errors import InputError
from manyscale.gpu import Device, TimedDevice
from manyscale.validation.managed_programs import (
    backprop,
    bfs,
    fdtd_2d,
    hotspot,
    needleman_wunsch,
    pathfinder,
    random_access,
    srad_v2,
    sssp,
    stream_triad,
)
from manyscale.validation.managed_programs.session import Session

__all__ = ["PROGRAMS", "Program", "Session", "run"]


@dataclass(frozen=True)
class Program:
    """A program and its sizes: that of the published measurements, and one that takes about a second."""

    start: Callable[[Session, int], None]
    full: int
    small: int
    multiple: int = 1  # of which a size must be one


PROGRAMS: dict[str, Program] = {
    "backprop": Program(backprop.run, full=131056, small=8192, multiple=16),
    "bfs": Program(bfs.run, full=261444, small=16384),
    "fdtd_2d": Program(fdtd_2d.run, full=1200, small=200),
    "hotspot": Program(hotspot.run, full=1024, small=192),
    "needleman_wunsch": Program(needleman_wunsch.run, full=1024, small=256, multiple=16),
    "pathfinder": Program(pathfinder.run, full=50000, small=2500),
    "random_access": Program(random_access.run, full=1 << 20, small=1 << 16),
    "srad_v2": Program(srad_v2.run, full=1024, small=192, multiple=16),
    "sssp": Program(sssp.run, full=1 << 20, small=1 << 14),
    "stream_triad": Program(stream_triad.run, full=1 << 20, small=1 << 17),
}


def run(
    name: str,
    device: Device,
    size: int | None = None,
    *,
    managed: bool = True,
    oversubscribed: float | None = None,
) -> Session:
    """Runs a program on a device, and checks what it computes; without a size, the small one."""
    if name not in PROGRAMS:
        raise InputError(f"there is no program named '{name}'; known: {', '.join(PROGRAMS)}")
    program = PROGRAMS[name]
    chosen = program.small if size is None else size
    if chosen < program.multiple or chosen % program.multiple or chosen > 1 << 24:
        raise InputError(
            f"the size of {name} is a multiple of {program.multiple} up to {1 << 24}, not {chosen}"
        )
    if oversubscribed is not None and not (managed and isinstance(device, TimedDevice)):
        raise InputError("only managed memory of a device with time can be oversubscribed")
    session = Session(device, name, managed=managed, oversubscribed=oversubscribed)
    program.start(session, chosen)
    return session
