# SPDX-License-Identifier: Apache-2.0
"""Five prefetchers of pages and two ways to shoot down TLBs, on a GTX 1080 Ti with unified memory.

    python prefetchers.py [FOLDER] [--full] [--only NAME ...] [--walks CYCLES ...]

Without --full the programs are few, and so small that prefetchers hardly differ; with it they have the sizes of the
published measurements, whose memory they need all of, and are compared with those. A FOLDER gets charts.

A cycle more or less changes which faults the driver finds when it looks, and so all that follows. With several --walks
shootdowns are therefore compared in the mean of runs whose page walks take so many cycles.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from manyscale.results.line_chart import line_chart
from manyscale.validation.managed_programs import PROGRAMS
from manyscale.validation.managed_programs.outcome import Outcome, measure
from manyscale.validation.uvm_measurements import MEASURED

PREFETCHERS = ("none", "random", "sequential_local", "locality_aware", "tree")
FEW = {"backprop": 2048, "needleman_wunsch": 128, "stream_triad": 1 << 17}


def prefetchers(sizes: dict[str, int], full: bool) -> dict[str, dict[str, Outcome]]:
    """Each program with each prefetcher."""
    print("microseconds of kernels (page faults)" + (", and measured" if full else ""))
    print(f"{'':18}" + "".join(f"{prefetcher:>22}" for prefetcher in PREFETCHERS))
    outcomes: dict[str, dict[str, Outcome]] = {}
    for name, size in sizes.items():
        measured = MEASURED.get(name, {}).get(100) if full else None
        of_program = outcomes[name] = {}
        line = f"{name:18}"
        for prefetcher in PREFETCHERS:
            of_program[prefetcher] = measure(
                name,
                size,
                settings=[f"gpu.uvm.prefetcher={prefetcher}"],
                oversubscribed=1.0 if measured else None,
            )
            outcome = of_program[prefetcher]
            line += f"{f'{outcome.kernels_us:,.0f} ({outcome.faults})':>22}"
        print(line + (f"{measured.kernels_us:>14,.0f}" if measured else ""), flush=True)
    return outcomes


def nearest_to_hardware(outcomes: dict[str, dict[str, Outcome]]) -> None:
    """Which prefetcher comes nearest to the measured time of each program."""
    for name, of_program in outcomes.items():
        if name in MEASURED:
            reference = MEASURED[name][100].kernels_us
            ratios = {which: outcome.kernels_us / reference for which, outcome in of_program.items()}
            nearest = min(ratios, key=lambda which: max(ratios[which], 1 / ratios[which]))
            shown = ", ".join(f"{which} {ratio:.2f}" for which, ratio in ratios.items())
            print(f"{name}: simulated to measured {shown}; nearest: {nearest}")


def shootdowns(sizes: dict[str, int], walks: Sequence[int], folder: Path | None) -> None:
    """TLBs that forget single pages, and TLBs that forget everything whenever the page table changes."""
    print("\nTLB hit rates and cycles, by what is forgotten when the page table changes")
    header = f"{'':18}{'page':>10}{'all':>10}{'cycles, page':>16}{'cycles, all':>16}{'slower by':>12}"
    print(header + f"{'scatter':>10}")
    rates: dict[str, list[tuple[float, float]]] = {"page": [], "all": []}
    slowest = 0.0
    for position, (name, size) in enumerate(sizes.items(), start=1):
        cycles, hits, scatter = {}, {}, 0.0
        for what, of_what in rates.items():
            settings = [[f"gpu.uvm.shootdown={what}", f"gpu.uvm.walk_latency={walk}"] for walk in walks]
            runs = [measure(name, size, settings=setting) for setting in settings]
            cycles[what] = mean(run.cycles for run in runs)
            hits[what] = mean(run.tlb_hit_rate for run in runs)
            of_what.append((position, 100 * hits[what]))
            scatter = max(scatter, max(run.cycles for run in runs) / min(run.cycles for run in runs) - 1)
        slower = cycles["all"] / cycles["page"] - 1
        slowest = max(slowest, slower)
        print(
            f"{name:18}{hits['page']:10.1%}{hits['all']:10.1%}{cycles['page']:16,.0f}{cycles['all']:16,.0f}"
            f"{slower:12.1%}{scatter:10.1%}",
            flush=True,
        )
    better = all(
        page >= everything for (_, page), (_, everything) in zip(rates["page"], rates["all"], strict=True)
    )
    print("forgetting single pages hits at least as often in every program:", "yes" if better else "no")
    print("and makes little difference to cycles:", "yes" if slowest < 0.05 else f"no, {slowest:.0%}")
    if folder:
        title = "TLB hit rate by what a shootdown forgets"
        chart = line_chart(title, "program, in the order of the table", "%", rates, log_x=False)
        (folder / "shootdowns.svg").write_text(chart, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="for charts")
    parser.add_argument(
        "--full", action="store_true", help="the sizes of the measurements; takes half an hour"
    )
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, help="these programs")
    parser.add_argument(
        "--walks", nargs="+", type=int, default=[100], help="cycles of a page walk, for shootdowns"
    )
    options = parser.parse_args()
    sizes = dict(FEW)
    if options.full or options.only:
        names = options.only or PROGRAMS
        sizes = {name: PROGRAMS[name].full if options.full else PROGRAMS[name].small for name in names}
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)

    outcomes = prefetchers(sizes, options.full)
    if options.full:
        nearest_to_hardware(outcomes)
    best = all(
        found["tree"].kernels_us <= outcome.kernels_us
        for found in outcomes.values()
        for outcome in found.values()
    )
    print("no prefetcher is faster than the tree:", "yes" if best else "no")
    if options.folder:
        lines = {
            name: [(position, found[which].kernels_us) for position, which in enumerate(PREFETCHERS, start=1)]
            for name, found in outcomes.items()
        }
        title = "Time of kernels by prefetcher"
        which = "1 none, 2 random, 3 sequential-local, 4 locality-aware, 5 tree"
        chart = line_chart(title, which, "us", lines, log_x=False, log_y=True)
        (options.folder / "prefetchers.svg").write_text(chart, encoding="utf-8")
    shootdowns(sizes, options.walks, options.folder)


if __name__ == "__main__":
    main()
