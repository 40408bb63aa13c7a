# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/projection: their results, what their skeletons say of them, and their stored timings."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from manyscale import _core, cpu
from manyscale.cpu.building import build
from manyscale.cpu.running import run_functional
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import build_cpu
from manyscale.network import compile, motif
from manyscale.network.durations import Distribution
from manyscale.studies.detailed_cluster import run_detailed
from manyscale.studies.projection.node import simulate_node
from manyscale.studies.projection.recorded_job import record

pytestmark = pytest.mark.core

PROGRAMS = Path(__file__).parents[2] / "examples" / "projection" / "programs"
# Arguments of programs, and what the parameters of their skeletons are.
CASES = {
    "hpcg": ("8 8 8 3 2", {"nx": 8, "ny": 8, "nz": 8, "levels": 3, "iterations": 2}),
    "snap": (
        "8 3 5 4 2 2 1",
        {"nx": 8, "ny": 3, "nz": 5, "chunk": 4, "angles": 2, "groups": 2, "iterations": 1},
    ),
    "milc": ("4 2", {"sites": 4, "iterations": 2}),
    "fft2d": ("32 2", {}),
    "training": ("16 3 4 2", {}),
}
SITES = ("setup", "halo", "dot", "check halo", "check", "receive", "send", "converged", "faces", "sum")
SITES = (*SITES, "check faces")


def program(name, ranks=1, arguments=None):
    return cpu.Program(PROGRAMS / "programs.xz", [name, *(arguments or CASES[name][0]).split()], ranks=ranks)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ranks", [1, 4])
def test_programs_verify_their_results(name, ranks):
    result = run_functional(program(name, ranks))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{name} ")
    assert result.stdout.endswith(" verified\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("hpcg 8 8 eight", 'nz is "eight"; it must be a whole number from 2 to 512'),
        ("milc 4 0", 'the number of iterations is "0"'),
        ("unknown", "give the name of a program"),
    ],
)
def test_programs_refuse_wrong_arguments(arguments, said):
    name, *rest = arguments.split()
    result = run_functional(program(name, arguments=" ".join(rest) or " "))
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("native ranks need a compiler for this machine: apt install gcc")
    path = tmp_path_factory.mktemp("native") / "programs"
    build(sorted(PROGRAMS.glob("*.c")), path, mpi=True, host=True)
    return path


@pytest.mark.parametrize("name", ["hpcg", "snap", "milc"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_skeletons_send_what_programs_send(name, ranks, native):
    """Every message between two ranks, by its size; collectives aside."""
    job = record(native, ranks, [name, *CASES[name][0].split()])
    calls, sent = _core.mpi_call_names(), Counter()
    for rank, notes in enumerate(job.ranks):
        within = ""
        for note in notes:
            if note["kind"] == 0:
                within = calls[int(note["subject"])]
            elif note["kind"] == 2 and within in ("MPI_Isend", "MPI_Send") and int(note["bytes"]) < 2**63:
                sent[rank, int(note["peer"]), int(note["bytes"])] += 1
    timings = {site: Distribution.of(["1us"]) for site in SITES}
    skeleton = compile(motif(name, **CASES[name][1]).with_timings(timings).emit, ranks)
    modelled = Counter(
        (rank, step["peer"], step["bytes"])
        for rank in range(ranks)
        for step in skeleton.steps(rank)
        if step.kind in ("send", "isend") and step["peer"] >= 0
    )
    assert sent == modelled


@pytest.mark.parametrize(("cores", "engines"), [(2, ["dma[0]"]), (20, ["dma[0]", "dma[1]"])])
def test_every_socket_has_an_engine_and_the_first_a_device(cores, engines):
    machine = load_machine("broadwell").machine
    parts = build_cpu(machine, cores, dma_bandwidth="12.5GB/s")
    assert [name for name in parts.system.components if name.startswith("dma")] == engines
    assert parts.dma is not None
    assert parts.dma.name == "dma[0]"
    assert build_cpu(machine, cores).dma is None


def test_injected_memory_traffic_can_be_turned_off(native):
    """The same program on a node whose interface reads and writes memory, and on one where it does not."""
    lines = {}
    for injection in (True, False):
        result = run_detailed(program("fft2d"), nodes=2, ranks_per_node=1, injection=injection)
        assert result.stdout.endswith(" verified\n")
        found = result.run.stats.to_dicts()
        lines[injection] = {
            row["statistic"]: row["value"]
            for row in found
            if "dma" in row["component"] and row["statistic"].startswith("lines")
        }
    assert not lines[False]
    # Two nodes exchange half of 32 x 32 numbers of 16 bytes, each in 4 transpositions: 64 lines and more.
    assert lines[True]["lines_read"] >= 4 * 64
    assert lines[True]["lines_written"] >= 4 * 64
    nodes = [
        simulate_node(program("fft2d"), ranks_per_node=1, native_program=native, nodes=2, injection=injection)
        for injection in (True, False)
    ]
    assert nodes[0].seconds != nodes[1].seconds
    assert nodes[0].call_sites.keys() == nodes[1].call_sites.keys() >= {"setup", "transpose", "check"}
