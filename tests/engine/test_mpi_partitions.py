# SPDX-License-Identifier: Apache-2.0
"""One simulation on several processes: to the bit what one process gives, and the same words when it fails."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import manyscale
from systems import make_phold

pytestmark = pytest.mark.core

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")

# What each process does; the first writes what came out.
CASES = """
import json, sys
sys.path.insert(0, {tests!r})
from manyscale import processes
processes.join()
from systems import make_phold, make_ring
from manyscale import DeadlockError, ManyscaleError, network
from manyscale.machine import load_machine
from manyscale.machine.memory import MemoryWorkload, build_memory

def system(made, **options):
    result = made.run(**options)
    facts = {{name: entry["value"] for name, entry in result.headline.items() if not name.startswith("wall_")}}
    return {{"outcome": result.outcome, "columns": result.columns, **facts}}

def twice(made):
    first = system(made, until="40ns")
    return [first, system(made, until="80ns")]

def memory():
    workload = MemoryWorkload(pattern="random", accesses=200, footprint="64KiB", shared=True, writes=0.3)
    return system(build_memory(load_machine("memory-small").machine, workload))

def job(work, **options):
    result = network.run(work, seed=3, **options)
    tables = [table.to_dict(as_series=False) for table in (result.ranks, result.links, result.load)]
    return [result.columns, result.totals, result.events, tables]

def refusal(made, **options):
    try:
        made().run(**options)
    except ManyscaleError as error:
        return [type(error).__name__, str(error)]

cases = {{
    "phold": lambda: system(make_phold(components=9), until="100ns"),
    "phold, run on": lambda: twice(make_phold(components=6)),
    "more processes than clusters": lambda: system(make_ring(stages=3, tokens=2, hops=9)),
    "relays": lambda: system(make_ring(stages=7, tokens=2)),
    "memory": memory,
    "fat tree": lambda: job("allreduce", nodes=16, topology="fat-tree", bytes="64KiB", iterations=2, load="5us"),
    "torus": lambda: job("halo3d", nodes=8, topology="torus", iterations=2),
    "dragonfly": lambda: job("random", nodes=32, topology="dragonfly"),
    "trains": lambda: job("alltoall", nodes=8, topology="torus", fidelity="train", iterations=1, bytes="9KiB"),
    "deadlock": lambda: refusal(lambda: make_ring(stages=4, tokens=4, slots=4)),
    "time runs out": lambda: refusal(lambda: make_ring(stages=4, latency="5000s")),
}}
found = {{name: case() for name, case in cases.items() if not {only!r} or name in {only!r}}}
if not processes.is_other():
    print(json.dumps(found, default=str))
"""


def run_cases(processes: int, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """What comes out of each case on so many processes."""
    tests = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-c", CASES.format(tests=tests, only=only)]
    if processes > 1:
        command = [*mpiexec(processes), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def mpiexec(processes: int) -> list[str]:
    pytest.importorskip("mpi4py", reason="several processes need mpi4py: pip install 'manyscale[mpi]'")
    if MPIEXEC is None:
        pytest.skip("several processes need mpiexec: pip install mpich")
    return [MPIEXEC, "-n", str(processes)]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return run_cases(1)


def test_one_process_gives_what_it_should(alone: dict[str, Any]) -> None:
    """So that the comparisons below compare something."""
    assert alone["phold"]["outcome"] == "limit"
    assert alone["phold"]["events"] > 5_000
    assert alone["relays"]["outcome"] == "finished"
    assert alone["memory"]["events"] > 1_000
    assert alone["deadlock"][0] == "DeadlockError"
    assert "they wait in a circle" in alone["deadlock"][1]
    assert "simulated time" in alone["time runs out"][1]


@pytest.mark.parametrize("processes", [2, 4])
def test_the_same_to_the_bit_on_several_processes(alone: dict[str, Any], processes: int) -> None:
    # The larger number is a matter of numbering and of who has nothing to do, so a few systems will do.
    only = () if processes == 2 else ("phold", "more processes than clusters", "dragonfly", "deadlock")
    together = run_cases(processes, only)
    for name, found in together.items():
        assert found == alone[name], f"{name} on {processes} processes"


def test_a_command_leaves_one_run(tmp_path: Path) -> None:
    system = tmp_path / "phold.toml"
    system.write_text(make_phold(components=6).to_toml())
    command = [sys.executable, "-m", "manyscale.cli.app", "run", str(system), "--until", "100ns"]
    alone = subprocess.run([*command, "--out", "alone"], cwd=tmp_path, capture_output=True, check=False)
    assert alone.returncode == 0, alone.stderr
    done = subprocess.run(
        [*mpiexec(2), *command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)  # one of the processes speaks
    assert data["directory"] == "runs/phold-1"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["phold-1"]
    run = manyscale.load(tmp_path / "runs" / "phold-1")
    assert run.headline["wall_processes"]["value"] == 2
    assert manyscale.identical(run, manyscale.load(tmp_path / "alone"))


def test_what_cannot_be_divided_is_explained_once(tmp_path: Path) -> None:
    arguments = ["net", "run", "halo3d", "--nodes", "8", "--fidelity", "flow"]
    command = [*mpiexec(2), sys.executable, "-m", "manyscale.cli.app", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.count("Error: ") == 1
    assert "cannot be divided among processes" in done.stderr
