# SPDX-License-Identifier: Apache-2.0
"""Replays of recorded traces beside detailed runs of the same programs: how far a trace can be trusted.

Each OpenMP program of the sample `elastic` is recorded once on 4 cores of the reference system of ElasticSimMATE. The
trace is replayed on that machine and on changed ones, and compared with running the program itself there. The source
of every reference is therefore this simulator's own detailed run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale import cpu
from manyscale.cpu.replaying import replay
from manyscale.guard import temporary_folder
from manyscale.validation.rows import Row, calibrated

MACHINE = "elasticsimmate"
THREADS = 4
PROGRAMS = (
    *("matrix", "matrix_tasks", "cholesky_tasks", "k_means", "hotspot", "black_scholes", "stream_cluster"),
    *("swaptions", "canneal", "ferret", "hydrodynamics"),
)
TASK_PROGRAMS = ("matrix_tasks", "cholesky_tasks", "ferret")
# Of programs whose data are to be more than the smallest L2 holds.
SIZES = {"hotspot": 160, "canneal": 16384}
MATRIX_SIZES = (16, 32, 64, 128)  # of the article's Table 3
_ALIKE = 0.01  # two machines are as fast as each other if their detailed times differ by less


@dataclass(frozen=True)
class Setting:
    """A machine to replay on, as changes to the one recorded on."""

    name: str
    changes: tuple[str, ...] = ()
    processes: int = 1  # copies of the program, each on cores of its own


SAME = Setting("same machine")
CHANGED = (
    Setting("L2 of 256 KiB", ("memory.shared.cache.size=256KiB",)),
    Setting("L2 of 4 MiB", ("memory.shared.cache.size=4MiB",)),
    Setting("memory of 90 ns", ("memory.dram.latency=90ns",)),
    Setting("8 cores", ("cpu.cores=8",), 2),
)


def rows(machine: str = "") -> list[Row]:
    """All of them; the machine is always the article's."""
    del machine
    with temporary_folder() as folder:
        found = [row for name in PROGRAMS for row in program_rows(name, folder)]
        sizes = [row for size in MATRIX_SIZES for row in matrix_rows(size, folder)]
        strong = [row for name in TASK_PROGRAMS for row in strong_rows(name, folder)]
    return [*found, *calibrated(sizes), *calibrated(strong)]


def program_rows(
    name: str, folder: Path, settings: Sequence[Setting] = (SAME, *CHANGED), size: int | None = None
) -> list[Row]:
    """One program on all machines, and whether replays order the machines by time as detailed runs do."""
    size = SIZES.get(name) if size is None else size
    trace = recorded(folder, name, THREADS, size)
    found = [
        Row(
            f"{name}: {setting.name}",
            1e6 * replayed(trace, setting),
            1e6 * detailed(name, THREADS, setting, size),
            "us",
            "detailed run",
            "calibrated" if setting is SAME else "test",
        )
        for setting in settings
    ]
    # Copies of a program are other work, which does not belong into an order of machines.
    compared = [row for row, setting in zip(found, settings, strict=True) if setting.processes == 1]
    return [*found, *ranking_rows(name, compared)]


def ranking_rows(name: str, rows: Sequence[Row]) -> list[Row]:
    """How many pairs of machines a replay puts in the right order, of those that are not as fast as each other."""
    apart = [
        (a, b)
        for a, b in itertools.combinations(rows, 2)
        if abs(a.reference - b.reference) >= _ALIKE * max(a.reference, b.reference)
    ]
    if not apart:
        return []
    right = sum((a.simulated < b.simulated) == (a.reference < b.reference) for a, b in apart)
    return [Row(f"{name}: pairs of machines in order", right, len(apart), "pairs", "detailed runs")]


def matrix_rows(size: int, folder: Path) -> list[Row]:
    """The product of matrices on 1, 2 and 4 cores, as in the article's Table 3."""
    found = []
    for threads in (1, 2, 4):
        trace = recorded(folder, "matrix", threads, size)
        found.append(
            Row(
                f"matrix {size} x {size}: {threads} cores",
                1e6 * replayed(trace, SAME),
                1e6 * detailed("matrix", threads, SAME, size),
                "us",
                "detailed run",
            )
        )
    return found


def strong_rows(name: str, folder: Path, cores: Sequence[int] = (2, 4)) -> list[Row]:
    """Tasks that were recorded on one core and scheduled on more, beside the program on so many threads."""
    trace = recorded(folder, name, 1)
    return [
        Row(
            f"{name}: tasks of 1 core on {count}",
            1e6 * replay(trace, cores=count, scheduler="fifo").simulated_seconds,
            1e6 * detailed(name, count, SAME),
            "us",
            "detailed run",
        )
        for count in cores
    ]


def recorded(folder: Path, name: str, threads: int, size: int | None = None) -> Path:
    """The trace of a program on so many cores."""
    path = folder / f"{name}-{threads}-{size or 0}.trace"
    cpu.record(program(name, threads, size), path, machine=MACHINE, cores=threads, force=True)
    return path


def replayed(trace: Path, setting: Setting) -> float:
    """Seconds of a replay. Copies are processes: they have no data in common."""
    shared: list[str] | None = [] if setting.processes > 1 else None
    result = replay(trace, changes=setting.changes, replicate=setting.processes, shared=shared)
    return result.simulated_seconds


def detailed(name: str, threads: int, setting: Setting, size: int | None = None) -> float:
    """Seconds of the program itself."""
    work = program(name, threads, size, setting.processes)
    result = cpu.run(work, machine=MACHINE, changes=setting.changes, cores=threads * setting.processes)
    return result.simulated_seconds


def program(name: str, threads: int, size: int | None = None, processes: int = 1) -> cpu.Program:
    """One of the sample's programs."""
    arguments = [name, str(threads), *([] if size is None else [str(size)])]
    return cpu.Program(cpu.sample("elastic"), arguments, ranks=processes)
