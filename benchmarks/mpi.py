# SPDX-License-Identifier: Apache-2.0
"""Weak scaling over processes: twice the system on two processes, against one system on one process.

PHOLD with long windows and a halo exchange on a torus. The efficiency is the time of one process for one system over
the time of two for two. By the clock it needs two idle cores; by the processors it is what the busier of the two had to
do, barrier exchanges included but not the waiting for the other, so that other work on the machine does not count.
Needs mpi4py and mpiexec; without them it says so and measures nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support.reporting import run_benchmark

TARGETS = {
    "phold_identical": 1,
    "halo_identical": 1,
    "phold_weak_scaling_by_processor_time": 0.75,
    "halo_weak_scaling_by_processor_time": 0.75,
}


def phold(size: int) -> Any:
    """A ring of components whose jobs stay with their neighbours, with links of 50 ns."""
    from manyscale import System

    components = 64 * size
    system = System("phold", seed=1)
    nodes = [
        system.add("synthetic.phold", f"node[{i}]", jobs=200, mean_delay="50ns") for i in range(components)
    ]
    for i in range(components):
        system.connect(nodes[i].peers, nodes[(i + 1) % components].peers, "50ns")
    return system


def halo(size: int) -> Any:
    """A halo exchange on a torus that grows along one axis."""
    from manyscale.network.job import Job, cluster, program_for

    changes = [f'network.topology.shape="{4 * size}x8x8"', "network.link.latency=1us"]
    network = cluster("omnipath", changes, nodes=256 * size, topology="torus")
    return Job(program_for("halo3d", 256 * size, {"face": "128KiB", "iterations": 4}), network).native


WORK = {"phold": phold, "halo": halo}


def measured(name: str, size: int, processes: int) -> dict[str, Any]:
    """One run in processes of its own."""
    command = [sys.executable, __file__, "--work", name, str(size)]
    if processes > 1:
        found = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        assert found is not None
        command = [found, "-n", str(processes), *command]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    data: dict[str, Any] = json.loads(output)
    return data


def work(name: str, size: int) -> None:
    """What each process does; the first writes what it took, the processor time of each included."""
    from manyscale import processes
    from manyscale.system.running import run_simulation

    others = processes.join()
    waited = 0.0 if others is None else others.waited
    made = WORK[name](size)
    begin, began = time.process_time(), time.perf_counter()
    report = run_simulation(made.simulation, None, until=20 * 10**9 if name == "phold" else 2**63 - 1)
    result = {"seconds": time.perf_counter() - began, "events": report["events"], "now": report["now"]}
    result["cpu"] = time.process_time() - begin
    if others is not None:
        result["cpu"] = max(others.gather(result["cpu"] - (others.waited - waited)))
    if not processes.is_other():
        print(json.dumps(result))


def measure(rounds: int, scale: float) -> dict[str, float]:
    """The best of several rounds."""
    numbers: dict[str, float] = {}
    for name in WORK:
        one = min((measured(name, 1, 1) for _ in range(rounds)), key=lambda run: run["seconds"])
        two = min((measured(name, 2, 2) for _ in range(rounds)), key=lambda run: run["seconds"])
        reference = measured(name, 2, 1)
        same = (two["events"], two["now"]) == (reference["events"], reference["now"])
        numbers[f"{name}_identical"] = float(same)
        numbers[f"{name}_events_per_second_on_1_process"] = reference["events"] / reference["seconds"]
        numbers[f"{name}_events_per_second_on_2_processes"] = two["events"] / two["seconds"]
        numbers[f"{name}_speed_of_2_processes"] = reference["seconds"] / two["seconds"]
        numbers[f"{name}_weak_scaling_by_the_clock"] = one["seconds"] / two["seconds"]
        numbers[f"{name}_weak_scaling_by_processor_time"] = one["cpu"] / two["cpu"]
    return numbers


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(sys.argv[2], int(sys.argv[3]))
    elif importlib.util.find_spec("mpi4py") is None:
        print("nothing was measured: several processes need mpi4py (pip install 'manyscale[mpi]')")
    else:
        sys.exit(run_benchmark(__doc__ or "", measure, TARGETS, rounds=2))
