# SPDX-License-Identifier: Apache-2.0
"""How fast RISC-V programs are simulated: millions of instructions per second of one host core, or two.

Without time: a hash, a search with many branches, a matrix product, a sort, and a mix of calls and strings. With time
on one core of a Broadwell node: what computes, and what waits for memory. With time on 8 cores: the same with OpenMP,
on one and on two threads of the host. What runs on one thread is measured in time of its core, so that other work on
the host matters little; the ratio of two threads to one is of time on the wall, and needs two cores that are free.
"""

from __future__ import annotations

import lzma
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from manyscale import cpu
from support.reporting import run_benchmark

FIXTURES = Path(__file__).parent.parent / "tests" / "cpu" / "programs" / "fixtures"
MACHINE = "broadwell"
SMALL_L3 = ["memory.shared.cache.size=160KiB"]  # of a slice, so that small programs come to wait for DRAM

TARGETS = {
    "functional": 150.0,
    "one_core_compute": 3.0,
    "one_core_memory": 1.5,
    "eight_cores": 2.0,
    "two_threads_ratio": 1.5,
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
    "one_core_queens": ("queens", "11"),
    "one_core_matrix": ("matrix", "90"),
}
MEMORY = {
    "one_core_triad": ("triad", "{200000}", "1"),
    "one_core_pointer_chase": ("pointer_chase", "{80000}", "{200000}"),
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
                begin = time.process_time()
                result = cpu.run_functional(cpu.Program(serial, arguments(pattern, scale)))
                best = max(best, result.instructions / (time.process_time() - begin) / 1e6)
            return best

        def timed(pattern: tuple[str, ...], changes: list[str]) -> float:
            best = 0.0
            for _ in range(rounds):
                program = cpu.Program(serial, arguments(pattern, scale))
                begin = time.process_time()
                result = cpu.run(program, machine=MACHINE, changes=changes, cores=1)
                best = max(best, result.instructions / (time.process_time() - begin) / 1e6)
            return best

        def on_eight_cores(pattern: tuple[str, ...], threads: int) -> tuple[float, float]:
            """Per second of the host's processors, and of the clock on the wall."""
            best = [0.0, 0.0]
            for _ in range(rounds):
                program = cpu.Program(parallel, arguments(pattern, scale))
                begin = time.process_time()
                result = cpu.run(program, machine=MACHINE, cores=8, threads=threads)
                seconds = (time.process_time() - begin, result.wall_seconds)
                best = [
                    max(old, result.instructions / new / 1e6) for old, new in zip(best, seconds, strict=True)
                ]
            return best[0], best[1]

        numbers |= {name: functional(pattern) for name, pattern in FUNCTIONAL.items()}
        numbers["functional"] = min(numbers[name] for name in FUNCTIONAL)
        before = process.memory_info().rss
        numbers |= {name: timed(pattern, []) for name, pattern in COMPUTE.items()}
        numbers["one_core_compute"] = min(numbers[name] for name in COMPUTE)
        numbers |= {name: timed(pattern, SMALL_L3) for name, pattern in MEMORY.items()}
        numbers["one_core_memory"] = min(numbers[name] for name in MEMORY)
        ratios = []
        for name, pattern in EIGHT.items():
            numbers[name], one_thread = on_eight_cores(pattern, 1)
            _, two_threads = on_eight_cores(pattern, 2)
            ratios.append(two_threads / one_thread)
            numbers[f"{name}_two_threads_ratio"] = ratios[-1]
        numbers["eight_cores"] = min(numbers[name] for name in EIGHT)
        numbers["two_threads_ratio"] = min(ratios)
        numbers["memory_of_timed_runs_megabytes"] = (process.memory_info().rss - before) / 1e6
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=2))
