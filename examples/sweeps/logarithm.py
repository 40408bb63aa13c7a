# SPDX-License-Identifier: Apache-2.0
"""A sweep in Python: an allreduce of a few bytes by recursive doubling takes log2(nodes) steps of one time each."""

import math
import tempfile
from pathlib import Path

from manyscale.studies.sweep import Study


def main() -> None:
    study = Study(
        {"kind": "network", "work": "allreduce", "param": {"iterations": 4}},
        name="logarithm",
        machine="omnipath",
        axes={
            "workload.nodes": {"from": 2, "to": 16, "factor": 2},
            "network.link.latency": ["50ns", "500ns"],
        },
        metrics={"time": "simulated_seconds"},
    )
    with tempfile.TemporaryDirectory() as folder:
        sweep = study.run(Path(folder) / "sweep")
        print(sweep.table.select("workload.nodes", "network.link.latency", "time"))
        again: list[object] = []
        study.run(Path(folder) / "sweep", notice=again.append)  # finds all results there
    print(f"points that a second run had to do: {len(again) - 1}")
    largest = 0.0
    for _, rows in sweep.table.group_by("network.link.latency"):
        step = rows.filter(rows["workload.nodes"] == 2)["time"][0]
        for nodes, time in rows.select("workload.nodes", "time").iter_rows():
            largest = max(largest, abs(time / (step * math.log2(nodes)) - 1))
    print(f"largest deviation from log2(nodes) steps: {largest:.2%}")


if __name__ == "__main__":
    main()
