# SPDX-License-Identifier: Apache-2.0
"""How fast RISC-V programs are simulated: millions of instructions per second of one host core, or two.

Without time: a hash, a search with many branches, a matrix product, a sort, and a mix of calls and strings. With time
on one core of a Broadwell node: what computes, and what waits for memory. With time on 8 cores: the same with OpenMP,
on one and on two threads of the host.
"""

from __future__ import annotations

import lzma
import os
import sys
import tempfile
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from manyscale import cpu
from support.reporting import run_benchmark

FIXTURES = Path(__file__).parent.parent / "tests" / "cpu" / "programs" / "fixtures"
MACHINE = "broadwell"

TARGETS = {
    "functional": 150.0,
    "one_core_compute": 3.0,
    "one_core_memory": 1.5,
    "eight_cores": 2.0,
    "eight_cores_two_threads_ratio": 1.5,
}
# name: arguments, of which those in braces grow with the scale
FUNCTIONAL = {
    "functional_sha256": ("sha256", "{50000}"),
    "functional_queens": ("queens", "13"),
    "functional_matrix": ("matrix", "260"),
    "functional_sort": ("sort", "{2000000}"),
    "functional_mix": ("mix", "{800000}"),
}
COMPUTE = {
    "one_core_sha256": ("sha256", "{1200}"),
    "one_core_queens": ("queens", "8"),
    "one_core_matrix": ("matrix", "90"),
}
MEMORY = {
    "one_core_triad": ("triad", "{200000}", "1"),
    "one_core_pointer_chase": ("pointer_chase", "{60000}", "{150000}"),
    "one_core_solver": ("conjugate_gradient", "120", "3"),
}
EIGHT = {
    "eight_cores_compute": ("omp_compute", "8", "{30000}"),
    "eight_cores_triad": ("omp_triad", "8", "{200000}", "2"),
    "eight_cores_matrix": ("omp_matrix", "8", "128"),
}


def unpacked(name: str, folder: str) -> Path:
    """A stored program as a file."""
    path = Path(folder) / name
    path.write_bytes(lzma.decompress((FIXTURES / f"{name}.xz").read_bytes()))
    return path


def arguments(pattern: tuple[str, ...], scale: float) -> list[str]:
    """The arguments of a program, sizes scaled."""
    return [str(max(1, int(int(part[1:-1]) * scale))) if part.startswith("{") else part for part in pattern]


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures, each the best of some rounds; the summary of a group is its slowest program."""
    process = psutil.Process(os.getpid())
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        serial, parallel = unpacked("c", folder), unpacked("parallel", folder)

        def functional(pattern: tuple[str, ...]) -> float:
            best = 0.0
            for _ in range(rounds):
                result = cpu.run_functional(cpu.Program(serial, arguments(pattern, scale)))
                best = max(best, result.instructions / result.wall_seconds / 1e6)
            return best

        def timed(path: Path, pattern: tuple[str, ...], cores: int, threads: int) -> float:
            best = 0.0
            for _ in range(rounds):
                result = cpu.run(
                    cpu.Program(path, arguments(pattern, scale)),
                    machine=MACHINE,
                    cores=cores,
                    threads=threads,
                )
                best = max(best, result.instructions / result.wall_seconds / 1e6)
            return best

        numbers |= {name: functional(pattern) for name, pattern in FUNCTIONAL.items()}
        numbers["functional"] = min(numbers[name] for name in FUNCTIONAL)
        before = process.memory_info().rss
        numbers |= {name: timed(serial, pattern, 1, 1) for name, pattern in COMPUTE.items()}
        numbers["one_core_compute"] = min(numbers[name] for name in COMPUTE)
        numbers |= {name: timed(serial, pattern, 1, 1) for name, pattern in MEMORY.items()}
        numbers["one_core_memory"] = min(numbers[name] for name in MEMORY)
        numbers |= {name: timed(parallel, pattern, 8, 1) for name, pattern in EIGHT.items()}
        numbers["eight_cores"] = min(numbers[name] for name in EIGHT)
        ratios = []
        for name, pattern in EIGHT.items():
            numbers[f"{name}_two_threads"] = timed(parallel, pattern, 8, 2)
            ratios.append(numbers[f"{name}_two_threads"] / numbers[name])
        numbers["eight_cores_two_threads_ratio"] = min(ratios)
        numbers["memory_of_timed_runs_megabytes"] = (process.memory_info().rss - before) / 1e6
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=2))
