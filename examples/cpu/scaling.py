# SPDX-License-Identifier: Apache-2.0
"""How an OpenMP program scales from 1 to 16 threads on a Broadwell node, and what holds it up.

    python scaling.py [FOLDER]

The program is the sample `heat` (Jacobi's iteration). With a folder, the cycles of each run are drawn there as stacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from manyscale import cpu
from manyscale.results.stack_chart import stack_chart

SIZE, STEPS = 96, 4
THREADS = (1, 2, 4, 8, 16)


def iteration(threads: int) -> tuple[float, dict[str, float]]:
    """Seconds of the marked region, and the cycles by cause that the first thread spent in regions."""
    program = cpu.Program(cpu.sample("heat"), [threads, SIZE, STEPS])
    result = cpu.run(program, machine="broadwell", cores=threads)
    first = result.regions.filter(result.regions["thread"] == 0)
    within = first.filter(first["kind"] != "")
    seconds = first.filter(region="iteration")["inclusive_time"].sum()
    return seconds, {cause: float(within[cause].sum()) / 1000 for cause in result.causes}


def main() -> None:
    """Runs the program with each number of threads and prints the results."""
    bars, base = {}, None
    for threads in THREADS:
        seconds, cycles = iteration(threads)
        base = base or seconds
        bars[f"{threads}"] = cycles
        waiting = (cycles["sleeping"] + cycles["synchronisation"]) / sum(cycles.values())
        speedup = base / seconds
        print(
            f"{threads:2} threads: {seconds * 1e6:7.1f} us, {speedup:5.2f} times as fast, "
            f"{waiting:4.0%} of the first thread's time waiting"
        )
    print(
        f"efficiency on {THREADS[-1]} threads: {'above' if speedup > THREADS[-1] / 2 else 'below'} one half"
    )
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        chart = stack_chart(
            f"heat, {SIZE} x {SIZE} cells, by threads", "thousand cycles of the first thread", bars
        )
        (folder / "scaling.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
