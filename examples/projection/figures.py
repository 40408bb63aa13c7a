# SPDX-License-Identifier: Apache-2.0
"""Figures 4 to 12 of "Accurate and Scalable Many-Node Simulation" (Eyerman and others) with our own five programs.

    python figures.py [FOLDER] [--full] [--only 4,8]

4, 5   time of the five programs on up to 64 nodes: four variants, and detailed simulations of all nodes as the truth
6      where the time goes at the most nodes, by variant
7      CPI stacks of the two ranks that differ most
8      HPCG, SNAP and training on up to 4,096 nodes
9      time against the bandwidth of links, all programs
10     the same for SNAP and FFT2d, with the best variant and with the worst
11     FFT2d against link latency, at several bandwidths
12     training on a fat tree, a torus and a dragonfly

Compute times are those that phase 2 measured on a simulated node (timings/, made by programs/measure.py): alone, or as
one of four nodes of which the others ran natively (ext); always their mean (ct), or drawn from their distribution
(var). Our programs are small, so the seconds are not those of the study; what can be compared are the shapes.

Without --full, there are fewer nodes, to show the same in seconds.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from manyscale.network.motifs import Motif, motif
from manyscale.results.line_chart import line_chart
from manyscale.results.stack_chart import stack_chart
from manyscale.studies.projection.measured_job import MeasuredJob
from manyscale.studies.projection.predict import BEST, VARIANTS, Prediction, predict

HERE = Path(__file__).parent
STORED = HERE / "timings"
WORST = "no ext-ct"
PROGRAMS = ("hpcg", "snap", "milc", "fft2d", "training")
Charts = dict[str, str]  # SVG by the name of the file


def skeleton(name: str, external: bool, layer: str = "") -> Motif:
    """The skeleton of a program, with the arguments that were measured; `layer`: other bytes of training's layers."""
    arguments = [int(number) for number in measured(name).facts["arguments"][1:]]
    if name == "hpcg":
        nx, ny, nz, levels, iterations = arguments
        return motif("hpcg", nx=nx, ny=ny, nz=nz, levels=levels, iterations=iterations)
    if name == "snap":
        names = ("nx", "ny", "nz", "chunk", "angles", "groups", "iterations")
        return motif("snap", **dict(zip(names, arguments, strict=True)))
    if name == "milc":
        return motif("milc", sites=arguments[0], iterations=arguments[1])
    if name == "fft2d":
        ranks = len(measured(name).labels)
        side, transforms = arguments
        # Rows get longer with more ranks; who simulates a node alone does not see that.
        return motif(
            "fft2d",
            points=side * side // ranks,
            iterations=transforms,
            measured_side=side if external else 0,
            algorithm="pairwise",
        )
    width, layers, _, steps = arguments
    return motif("dataparallel", layer=layer or f"{width * width * 4}B", layers=layers, steps=steps)


@functools.cache
def measured(name: str) -> MeasuredJob:
    """What phase 2 says of a program."""
    return MeasuredJob.load(STORED / name)


def time_of(
    name: str,
    nodes: int,
    variant: str = BEST,
    changes: Sequence[str] = (),
    machine: str | None = None,
    repetitions: int = 3,
    layer: str = "",
) -> Prediction:
    """The prediction for a program."""
    return predict(
        skeleton(name, variant.startswith("ext"), layer),
        measured(name),
        nodes=nodes,
        variant=variant,  # type: ignore[arg-type]
        network=machine,
        network_changes=changes,
        repetitions=repetitions,
        seed=1,
    )


def scaling(names: Sequence[str], counts: Sequence[int], figure: str, repetitions: int) -> Charts:
    """Time against nodes in four variants, with the truth where it is known."""
    truth = json.loads((STORED / "truth.json").read_text())
    charts = {}
    off: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for name in names:
        lines = {
            variant: [(n, 1e3 * time_of(name, n, variant, repetitions=repetitions).seconds) for n in counts]
            for variant in VARIANTS
        }
        known = [(int(n), 1e3 * seconds) for n, seconds in truth[name].items() if int(n) in counts]
        for nodes, exact in known:
            errors = {variant: dict(line)[nodes] / exact - 1 for variant, line in lines.items()}
            for variant, error in errors.items():
                if nodes > 1:
                    off[variant].append(abs(error))
            print(f"  {name} on {nodes}:", ", ".join(f"{v} {100 * e:+.1f}%" for v, e in errors.items()))
        growth = ", ".join(f"{v} x{line[-1][1] / line[0][1]:.2f}" for v, line in lines.items())
        print(f"  {name} from {counts[0]} to {counts[-1]} nodes: {growth}")
        if len(known) > 1:
            lines["all nodes in detail"] = known
        charts[f"{figure}_{name}"] = line_chart(f"{name}: time by nodes of 2 ranks", "nodes", "ms", lines)
    if all(off.values()):
        means = {variant: sum(errors) / len(errors) for variant, errors in off.items()}
        print(
            "  mean error on several nodes:", ", ".join(f"{v} {100 * mean:.1f}%" for v, mean in means.items())
        )
        nearest = "yes" if means[BEST] < means[WORST] else "no"
        print(f"  with variability and external ranks it is nearer to the truth: {nearest}")
    return charts


def figures_4_and_5(full: bool) -> Charts:
    """Up to 64 nodes."""
    counts = (1, 2, 4, 8, 16, 32, 64) if full else (1, 2, 4, 8)
    return scaling(PROGRAMS, counts, "4_5", 5 if full else 2)


def figure_6(full: bool) -> Charts:
    """The four variants' shares."""
    nodes = 64 if full else 8
    charts = {}
    for name in PROGRAMS:
        bars = {}
        for variant in VARIANTS:
            found = time_of(name, nodes, variant)
            bars[variant] = {
                part: 1e3 * found.seconds * share for part, share in found.shares.items() if part != "done"
            }
        charts[f"6_{name}"] = stack_chart(f"{name} on {nodes} nodes", "ms", bars)
        computed = bars[BEST]["compute"] / sum(bars[BEST].values())
        print(f"  {name}: {100 * computed:.0f}% compute on {nodes} nodes")
    return charts


def figure_7(full: bool) -> Charts:
    """CPI stacks."""
    charts = {}
    for name in PROGRAMS:
        stacks = measured(name).cpi
        order = sorted(stacks, key=lambda rank: sum(stacks[rank].values()))
        two = {f"rank {rank}": stacks[rank] for rank in (order[0], order[-1])}
        totals = [sum(stack.values()) for stack in two.values()]
        part = max(stacks[order[0]], key=lambda p: abs(stacks[order[-1]][p] - stacks[order[0]][p]))
        print(f"  {name}: CPI {totals[0]:.2f} and {totals[1]:.2f}; they differ most in {part}")
        charts[f"7_{name}"] = stack_chart(f"{name}: cycles for each instruction", "CPI", two)
    return charts


def figure_8(full: bool) -> Charts:
    """Up to 4,096 nodes."""
    counts = (1, 4, 16, 64, 256, 1024, 4096) if full else (1, 4, 16)
    return scaling(("hpcg", "snap", "training"), counts, "8", 1)


def figure_9(full: bool) -> Charts:
    """Bandwidth of links."""
    nodes = 64 if full else 8
    lines = {name: bandwidth_line(name, nodes, BEST) for name in PROGRAMS}
    ratio = {name: [(rate, time / line[-1][1]) for rate, time in line] for name, line in lines.items()}
    for name, line in ratio.items():
        print(f"  {name}:", "  ".join(f"{rate:g} Gb/s {time:.2f}" for rate, time in line))
    return {"9": line_chart(f"Time on {nodes} nodes, relative to 1000 Gb/s", "Gb/s", "relative time", ratio)}


def bandwidth_line(name: str, nodes: int, variant: str) -> list[tuple[float, float]]:
    """Milliseconds by Gb/s."""
    rates = (1, 5, 20, 50, 100, 1000)
    line = []
    for rate in rates:
        found = time_of(name, nodes, variant, [f"network.link.bandwidth={rate}Gb/s"], repetitions=1)
        line.append((float(rate), 1e3 * found.seconds))
    return line


def figure_10(full: bool) -> Charts:
    """The variants see bandwidth differently."""
    nodes = 64 if full else 8
    charts = {}
    for name in ("snap", "fft2d"):
        lines = {variant: bandwidth_line(name, nodes, variant) for variant in (WORST, BEST)}
        charts[f"10_{name}"] = line_chart(f"{name} on {nodes} nodes", "Gb/s", "ms", lines)
        gains = {variant: line[0][1] / line[2][1] for variant, line in lines.items()}
        print(f"  {name} from 1 to 20 Gb/s:", ", ".join(f"{v} {gain:.2f} times" for v, gain in gains.items()))
    return charts


def figure_11(full: bool) -> Charts:
    """Latency of links."""
    nodes = 64 if full else 8
    lines = {}
    for rate in (1, 5, 20, 100):
        line = []
        for delay in (40, 90, 140, 200, 500, 1000):
            changes = [f"network.link.bandwidth={rate}Gb/s", f"network.link.latency={delay}ns"]
            line.append((float(delay), 1e3 * time_of("fft2d", nodes, BEST, changes, repetitions=1).seconds))
        lines[f"{rate} Gb/s"] = line
        print(f"  {rate} Gb/s: {line[-1][1] / line[0][1]:.2f} times from 40 to 1000 ns")
    return {"11": line_chart(f"FFT2d on {nodes} nodes", "link latency in ns", "ms", lines)}


def figure_12(full: bool) -> Charts:
    """Topologies, with layers of 256 KiB: those of our program are too small to load a network."""
    counts = (1, 8, 32, 128, 512, 2048) if full else (1, 8, 64)
    machines = {"fat tree": "omnipath", "torus": "omnipath-torus", "dragonfly": "omnipath-dragonfly"}
    lines = {
        name: [(float(n), 1e3 * time_of("training", n, BEST, (), m, 1, "256KiB").seconds) for n in counts]
        for name, m in machines.items()
    }
    best = min(lines, key=lambda name: lines[name][-1][1])
    times = ", ".join(f"{name} {line[-1][1]:.2f} ms" for name, line in lines.items())
    print(f"  fastest on {counts[-1]} nodes: {best} ({times})")
    return {"12": line_chart("Training", "nodes of 2 ranks", "ms", lines)}


FIGURES: dict[str, Callable[[bool], Charts]] = {
    "4": figures_4_and_5,
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
    "10": figure_10,
    "11": figure_11,
    "12": figure_12,
}


def main() -> None:
    """The figures asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="where charts go")
    parser.add_argument("--full", action="store_true", help="as many nodes as in the study")
    parser.add_argument("--only", help="numbers of figures, such as 4,8 (5 is drawn with 4)")
    given = parser.parse_args()
    for number in given.only.split(",") if given.only else FIGURES:
        figure = FIGURES["4" if number == "5" else number]
        print(f"figure {number}: {figure.__doc__}")
        charts = figure(given.full)
        if given.folder is not None:
            given.folder.mkdir(parents=True, exist_ok=True)
            for name, chart in charts.items():
                (given.folder / f"figure_{name}.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
