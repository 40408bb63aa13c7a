# SPDX-License-Identifier: Apache-2.0
"""How much faster a recorded trace is replayed than its program is simulated, and what a trace takes in a file.

OpenMP programs of the sample `elastic` are recorded on 4 cores of ElasticSimMATE's reference system. A replay and a
detailed run are measured in time of the host's processor, on one thread; their simulated times say how far they differ.
Then a product of matrices that was recorded on one core is replayed on 128: in how many parts of ten minutes. Parts: a
program's name, `products` (matrices of 128 x 128 and 256 x 256, whose columns do not fit into the L1, so that
nearly every access goes to the second), `replicated` (all copies on the same addresses, as ElasticSimMATE does it) and
`apart` (each copy with addresses of its own, so that the L2 does not hold them either; only if asked for).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from manyscale import cpu
from manyscale.cpu import scaling
from manyscale.cpu.replaying import replay
from support.reporting import report

MACHINE = "elasticsimmate"
THREADS = 4
TARGETS = {
    "replay_speedup": 3.0,  # geometric mean
    "lowest_replay_speedup": 3.0,
    "instructions_per_byte": 1 / 2.5,  # of the program that takes most bytes
    "replays_on_128_cores_in_ten_minutes": 1.0,
}
# Sizes of some ten million instructions, and of about one.
SIZES = {
    "matrix": (112, 48),
    "matrix_tasks": (112, 48),
    "k_means": (10000, 1500),
    "hotspot": (192, 64),
    "black_scholes": (20000, 3000),
    "stream_cluster": (3000, 800),
    "swaptions": (64, 12),
    "canneal": (16384, 4096),
    "hydrodynamics": (20, 10),
}
PRODUCTS = ((128, 256), (64,))
REPLICATED_SIZE, REPLICAS = (128, 32), 128
_TEN_MINUTES = 600.0


@dataclass(frozen=True)
class Measured:
    """One program: seconds of the host, and what was recorded."""

    detailed: float
    replayed: float
    error: float  # of the replay's simulated time
    bytes_per_instruction: float
    nodes_per_instruction: float
    instructions: int

    @property
    def speedup(self) -> float:
        """How many times as fast the replay is."""
        return self.detailed / self.replayed


def measure(name: str, size: int, rounds: int) -> Measured:
    """A program's trace beside its detailed run; times are the best of some rounds."""
    work = program(name, THREADS, size)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "measured.trace"
        recorded = cpu.record(work, trace, machine=MACHINE, cores=THREADS)
        detailed = replayed = math.inf
        error = 0.0
        for _ in range(rounds):
            begin = time.process_time()
            run = cpu.run(work, machine=MACHINE, cores=THREADS)
            between = time.process_time()
            played = replay(trace)
            detailed = min(detailed, between - begin)
            replayed = min(replayed, time.process_time() - between)
            error = played.simulated_seconds / run.simulated_seconds - 1
    found = Measured(
        detailed,
        replayed,
        error,
        recorded.bytes_per_instruction,
        recorded.nodes_per_instruction,
        recorded.instructions,
    )
    tell(
        f"{name} {size}: {found.instructions:,} instructions, detailed {detailed:.2f} s, replay {replayed:.2f} s, "
        f"{found.speedup:.2f} times as fast, {100 * error:+.1f}%, {found.bytes_per_instruction:.2f} B each"
    )
    return found


def program(name: str, threads: int, size: int) -> cpu.Program:
    """One of the sample's programs."""
    return cpu.Program(cpu.sample("elastic"), [name, str(threads), str(size)])


def tell(text: str) -> None:
    """Says how far the measurement is; all of it takes some minutes."""
    print(text, file=sys.stderr, flush=True)


def programs_numbers(names: list[str], quick: bool, rounds: int) -> dict[str, float]:
    """Speed, size and error of each program, and of all together."""
    found = {name: measure(name, SIZES[name][quick], rounds) for name in names}
    numbers: dict[str, float] = {}
    for name, each in found.items():
        numbers |= _numbers(name, each)
    speedups = [each.speedup for each in found.values()]
    errors = [100 * abs(each.error) for each in found.values()]
    numbers["replay_speedup"] = math.exp(sum(map(math.log, speedups)) / len(speedups))
    numbers["lowest_replay_speedup"] = min(speedups)
    numbers["instructions_per_byte"] = 1 / max(each.bytes_per_instruction for each in found.values())
    numbers["mean_error_percent"] = sum(errors) / len(errors)
    numbers["worst_error_percent"] = max(errors)
    return numbers


def products_numbers(quick: bool) -> dict[str, float]:
    """Products of matrices whose accesses nearly all go to the L2; once, since they take long."""
    numbers: dict[str, float] = {}
    for size in PRODUCTS[quick]:
        numbers |= _numbers(f"product_{size}", measure("matrix", size, rounds=1))
    return numbers


def replicated_numbers(part: str, quick: bool) -> dict[str, float]:
    """Copies of one core's product of matrices on many cores."""
    size = REPLICATED_SIZE[quick]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "replicated.trace"
        cpu.record(program("matrix", 1, size), trace, machine=MACHINE, cores=1)
        begin = time.process_time()
        point = scaling.weak(trace, [REPLICAS], offset=part == "apart").points[0]
        seconds = time.process_time() - begin
    tell(f"matrix {size} on {REPLICAS} cores, {part}: {point.instructions:,} instructions, {seconds:.1f} s")
    numbers = {
        f"{part}_instructions_per_second": point.instructions / seconds,
        f"{part}_seconds": seconds,
        f"{part}_simulated_ms": 1e3 * point.seconds,
    }
    if part == "replicated" and not quick:
        numbers["replays_on_128_cores_in_ten_minutes"] = _TEN_MINUTES / seconds
    return numbers


def _numbers(name: str, each: Measured) -> dict[str, float]:
    return {
        f"{name}_replay_speedup": each.speedup,
        f"{name}_error_percent": 100 * each.error,
        f"{name}_bytes_per_instruction": each.bytes_per_instruction,
        f"{name}_nodes_per_instruction": each.nodes_per_instruction,
    }


def main() -> int:
    """Measures what was asked for; 1 when a target was missed."""
    usual = [*SIZES, "products", "replicated"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=[*usual, "apart"], default=usual, metavar="PART")
    parser.add_argument("--quick", action="store_true", help="small programs, for a look: some seconds each")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    numbers: dict[str, float] = {}
    if names := [name for name in SIZES if name in options.only]:
        numbers |= programs_numbers(names, options.quick, options.rounds)
    if "products" in options.only:
        numbers |= products_numbers(options.quick)
    for part in ("replicated", "apart"):
        if part in options.only:
            numbers |= replicated_numbers(part, options.quick)
    return report(numbers, TARGETS, options.json)


if __name__ == "__main__":
    sys.exit(main())
