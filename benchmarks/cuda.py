# SPDX-License-Identifier: Apache-2.0
"""How many calls of a CUDA program are answered in a second: launches of an empty kernel, and small copies.

The program is C++ without nvcc: its PTX is in a fat binary that it registers itself, as nvcc's start-up code would. It
launches, and copies 64 bytes to the simulated V100 and back, waiting for each of the latter. Counted is the time of the
host's processors, of the program and of the simulator together, their start and the run directory included; on a
machine that is not busy no more than this passes.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from manyscale.cuda.fatbin import MAGIC
from manyscale.cuda.loader import library_folder
from support.reporting import run_benchmark

TARGETS = {
    "calls_in_5_seconds": 20_000,  # as many launches as copies
}
CALLS = 10_000  # of each

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
"""

SOURCE = Path(__file__).parent / "support" / "cuda_calls.cpp"


def container() -> bytes:
    """A fat binary with the PTX."""
    text = PTX + b"\0" * (-len(PTX) % 8)
    entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, len(text), 0, 0, 0, 7, 70, 0, 0, 0x11, 0, 0) + text
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(entry)) + entry


def build(folder: Path) -> Path:
    """The program."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise SystemExit("this benchmark compiles a small program: it needs g++")
    numbers = ",".join(map(str, container()))
    (folder / "container.h").write_text(
        f"alignas(8) static const unsigned char container[] = {{{numbers}}};\n"
    )
    program, library = folder / "calls", library_folder() / "libcudart.so.13"
    command = [compiler, "-O2", f"-I{folder}", str(SOURCE), "-o", str(program), str(library)]
    subprocess.run(command, check=True)
    return program


def processor_seconds(program: Path, launches: int, copies: int) -> float:
    """What a run takes of the host's processors."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--json", "--out", f"{folder}/run"]
        before = os.times()
        done = subprocess.run(
            [*command, "--", str(program), str(launches), str(copies)], stdout=subprocess.PIPE, check=True
        )
        after = os.times()
    kernels = len(json.loads(done.stdout)["kernels"])
    if kernels != launches + 1:
        raise SystemExit(f"{kernels} kernels ran instead of {launches + 1}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure(rounds: int, scale: float) -> dict[str, float]:
    """All figures: times are the best of some rounds."""
    calls = max(100, round(CALLS * scale))
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))

        def best(launches: int, copies: int) -> float:
            return min(processor_seconds(program, launches, copies) for _ in range(rounds))

        without = best(0, 0)
        launches, copies = best(calls, 0) - without, best(0, calls) - without
    return {
        "calls_in_5_seconds": max(0.0, 5 - without) * 2 * calls / (launches + copies),
        "seconds_of_20000_calls": without + 20_000 * (launches + copies) / (2 * calls),
        "microseconds_of_a_launch": launches / calls * 1e6,
        "microseconds_of_a_copy": copies / calls * 1e6,
        "seconds_of_a_run_without_calls": without,
    }


if __name__ == "__main__":
    sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=2))
