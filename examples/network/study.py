# SPDX-License-Identifier: Apache-2.0
"""The network studies of "Accurate and Scalable Many-Node Simulation" (Eyerman and others), with charts.

    python study.py [FOLDER] [--full] [--only bandwidth|latency|topologies|scaling]

bandwidth   five applications on 64 nodes, links of 20 to 1000 Gb/s (Figure 9)
latency     FFT2d on 64 nodes, bandwidth and link latency (Figure 11)
topologies  Caffe on up to 2,048 nodes of a fat tree, a torus and a dragonfly (Figure 12)
scaling     HPCG, SNAP and Caffe on up to 4,096 nodes, constant and variable compute times (Figure 8)

Without --full the jobs are smaller, to show the same in a few seconds. The study's compute times came from a detailed
simulation of its nodes, which it does not print; those here are assumed, so shapes can be compared and seconds cannot.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from manyscale import network
from manyscale.results.line_chart import line_chart

# The ranks of a node as in the study's Table 1, where it states them, and work that is long enough to settle.
APPLICATIONS = {
    "hpcg": {"ranks_per_node": 16, "iterations": 3},
    "snap": {"ranks_per_node": 32, "iterations": 1},
    "milc": {"ranks_per_node": 32, "iterations": 5},
    "fft2d": {"ranks_per_node": 32, "iterations": 1},
    "caffe": {"ranks_per_node": 1, "iterations": 2},
}
SMALL = {
    "hpcg": {"ranks_per_node": 2, "iterations": 1, "nx": 32, "ny": 32, "nz": 32},
    "snap": {"ranks_per_node": 4, "iterations": 1, "groups": 2},
    "milc": {"ranks_per_node": 8, "iterations": 2},
    "fft2d": {"ranks_per_node": 4, "iterations": 1},
    "caffe": {"ranks_per_node": 1, "iterations": 1, "layers": 8},
}
VARIATION = 0.05  # of compute times, where they vary
# Messages of many megabytes in few, long trains; with the buffers of the preset the times differ by 2% at most.
LONG_TRAINS = ["network.switch.buffer=1MiB"]


def seconds(name: str, nodes: int, full: bool, machine: str = "omnipath", changes=(), **changed) -> float:
    """The simulated time of an application."""
    parameters = {**(APPLICATIONS if full else SMALL)[name], "variation": VARIATION, **changed}
    changes = [*changes, *(LONG_TRAINS if name == "caffe" else [])]
    return network.run(
        name, nodes=nodes, machine=machine, changes=changes, seed=1, **parameters
    ).simulated_seconds


def bandwidth(full: bool) -> tuple[str, dict[str, list[tuple[float, float]]]]:
    """Times relative to those at 1000 Gb/s."""
    nodes = 64 if full else 16
    rates = (20, 50, 100, 200, 500, 1000)
    lines = {}
    for name in APPLICATIONS:
        times = [seconds(name, nodes, full, changes=[f"network.link.bandwidth={rate}Gb/s"]) for rate in rates]
        lines[name] = [(rate, time / times[-1]) for rate, time in zip(rates, times, strict=True)]
        print(f"{name:8}", "  ".join(f"{rate} Gb/s: {ratio:.2f}" for rate, ratio in lines[name]))
    gain = max(lines, key=lambda name: lines[name][0][1])
    print(f"most from more bandwidth: {gain}")
    chart = line_chart(f"Time on {nodes} nodes, relative to 1000 Gb/s", "Gb/s", "relative time", lines)
    return chart, lines


def latency(full: bool) -> tuple[str, dict[str, list[tuple[float, float]]]]:
    """FFT2d: the lower the latency, the more bandwidth is worth."""
    nodes = 64 if full else 16
    lines = {}
    for rate in (20, 50, 100, 200):
        line = []
        for delay in (40, 90, 140, 200, 500, 1000):
            changes = [f"network.link.bandwidth={rate}Gb/s", f"network.link.latency={delay}ns"]
            line.append((delay, 1e3 * seconds("fft2d", nodes, full, changes=changes)))
        lines[f"{rate} Gb/s"] = line
        print(f"{rate:4} Gb/s", "  ".join(f"{delay} ns: {time:.3f} ms" for delay, time in line))
    growth = {name: line[-1][1] / line[0][1] for name, line in lines.items()}
    print("from 40 to 1000 ns:", ", ".join(f"{name} x{ratio:.2f}" for name, ratio in growth.items()))
    chart = line_chart(f"FFT2d on {nodes} nodes", "link latency in ns", "ms", lines)
    return chart, lines


def topologies(full: bool) -> tuple[str, dict[str, list[tuple[float, float]]]]:
    """Caffe on three networks of switches with 48 ports."""
    counts = (1, 8, 32, 64, 128, 256, 512, 1024, 2048) if full else (1, 16, 64, 256)
    machines = {"fat tree": "omnipath", "torus": "omnipath-torus", "dragonfly": "omnipath-dragonfly"}
    lines = {}
    for name, machine in machines.items():
        lines[name] = [(nodes, seconds("caffe", nodes, full, machine)) for nodes in counts]
        print(f"{name:9}", "  ".join(f"{nodes}: {time:.3f} s" for nodes, time in lines[name]))
    last = {name: line[-1][1] for name, line in lines.items()}
    print(f"fastest on {counts[-1]} nodes: {min(last, key=last.__getitem__)}")
    chart = line_chart("Caffe on three topologies", "nodes", "seconds", lines)
    return chart, lines


def scaling(full: bool) -> tuple[str, dict[str, list[tuple[float, float]]]]:
    """Weak scaling with constant compute times and with ones that vary."""
    counts = (1, 4, 16, 64, 256, 1024, 4096) if full else (1, 8, 64)
    lines = {}
    for name in ("hpcg", "snap", "caffe"):
        for words, variation in (("constant", 0.0), ("variable", VARIATION)):
            # One rank for each node: with all ranks of the study 4,096 nodes would be hours.
            times = [seconds(name, nodes, full, variation=variation, ranks_per_node=1) for nodes in counts]
            lines[f"{name}, {words}"] = [
                (nodes, time / times[0]) for nodes, time in zip(counts, times, strict=True)
            ]
        constant, variable = (lines[f"{name}, {words}"][-1][1] for words in ("constant", "variable"))
        print(f"{name:6} on {counts[-1]} nodes: x{constant:.2f} constant, x{variable:.2f} variable")
    chart = line_chart("Weak scaling, relative to 1 node", "nodes", "relative time", lines)
    return chart, lines


STUDIES = {"bandwidth": bandwidth, "latency": latency, "topologies": topologies, "scaling": scaling}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="where the charts are written")
    parser.add_argument("--full", action="store_true", help="the sizes of the study")
    parser.add_argument("--only", choices=STUDIES)
    options = parser.parse_args()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    for name, study in STUDIES.items():
        if options.only in (None, name):
            print(f"-- {name}")
            chart, _ = study(options.full)
            if options.folder is not None:
                (options.folder / f"{name}.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
