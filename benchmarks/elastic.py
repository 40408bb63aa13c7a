# SPDX-License-Identifier: Apache-2.0
"""How much faster a recorded trace is replayed than its program is simulated, and what a trace takes in a file.

OpenMP programs of the sample `elastic` are recorded on 4 cores of ElasticSimMATE's reference system. A replay and a
detailed run are measured in time of the host's processor, on one thread. Then a product of 128 x 128 matrices that was
recorded on one core is replayed on 128, each with a copy of its own: in how many parts of ten minutes.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.cpu.replaying import replay
from support.reporting import run_benchmark

MACHINE = "elasticsimmate"
THREADS = 4
TARGETS = {
    "replay_speedup": 3.0,  # geometric mean
    "instructions_per_byte": 1 / 2.5,  # of the program that takes most bytes
    "replays_on_128_cores_in_ten_minutes": 1.0,
}
# Sizes of some ten million instructions.
SIZES = {
    "matrix": 112,
    "matrix_tasks": 112,
    "k_means": 10000,
    "hotspot": 192,
    "black_scholes": 20000,
    "stream_cluster": 3000,
    "swaptions": 64,
    "canneal": 16384,
    "hydrodynamics": 20,
}
REPLICATED_SIZE, REPLICAS = 128, 128
_TEN_MINUTES = 600.0


def program(name: str, threads: int, size: int) -> cpu.Program:
    """One of the sample's programs."""
    return cpu.Program(cpu.sample("elastic"), [name, str(threads), str(size)])


def tell(text: str) -> None:
    """Says how far the measurement is; all of it takes some minutes."""
    print(text, file=sys.stderr, flush=True)


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures: times are the best of some rounds."""
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, whole in SIZES.items():
            # What a size means to the work differs; its square is in the middle.
            size = max(16, round(whole * math.sqrt(scale)))
            work, trace = program(name, THREADS, size), Path(folder) / f"{name}.trace"
            recorded = cpu.record(work, trace, machine=MACHINE, cores=THREADS)
            detailed = replayed = math.inf
            for _ in range(rounds):
                begin = time.process_time()
                cpu.run(work, machine=MACHINE, cores=THREADS)
                between = time.process_time()
                replay(trace)
                detailed = min(detailed, between - begin)
                replayed = min(replayed, time.process_time() - between)
            numbers[f"{name}_replay_speedup"] = detailed / replayed
            numbers[f"{name}_bytes_per_instruction"] = recorded.bytes_per_instruction
            numbers[f"{name}_nodes_per_instruction"] = recorded.nodes_per_instruction
            times = f"detailed {detailed:.2f} s, replay {replayed:.2f} s"
            tell(f"{name} {size}: {recorded.instructions:,} instructions, {times}")
        speedups = [numbers[f"{name}_replay_speedup"] for name in SIZES]
        numbers["replay_speedup"] = math.exp(sum(map(math.log, speedups)) / len(speedups))
        numbers["instructions_per_byte"] = 1 / max(numbers[f"{name}_bytes_per_instruction"] for name in SIZES)
        trace = Path(folder) / "replicated.trace"
        size = max(16, round(REPLICATED_SIZE * scale ** (1 / 3)))
        cpu.record(program("matrix", 1, size), trace, machine=MACHINE, cores=1)
        begin = time.process_time()
        point = scaling.weak(trace, [REPLICAS]).points[0]
        seconds = time.process_time() - begin
        tell(
            f"matrix {size} on {REPLICAS} cores: {point.instructions:,} instructions, replay {seconds:.1f} s"
        )
        numbers["replicated_instructions_per_second"] = point.instructions / seconds
        numbers["replicated_seconds"] = seconds
        numbers["replays_on_128_cores_in_ten_minutes"] = _TEN_MINUTES / seconds
    return numbers


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=2))
