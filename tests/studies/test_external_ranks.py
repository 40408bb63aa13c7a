# SPDX-License-Identifier: Apache-2.0
"""One node in detail, the ranks of the others as processes of this machine."""

import shutil

import mpi_fixture
import pytest

from manyscale import _core
from manyscale.cpu.building import build
from manyscale.errors import DeadlockError, InputError, ProgramError
from manyscale.machine import load_machine
from manyscale.machine.cpu_system import build_cpu
from manyscale.studies.external_ranks import ExternalRanks, outputs

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine"),
]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "programs"
    build(sorted(mpi_fixture.FOLDER.glob("*.c")), path, mpi=True, host=True, options=["-fopenmp"])
    return path


def simulate(native, name, *, node, nodes, ranks_per_node):
    ranks = ExternalRanks(
        native, mpi_fixture.program(name), node=node, nodes=nodes, ranks_per_node=ranks_per_node
    )
    parts = build_cpu(load_machine("broadwell").machine, ranks_per_node)
    ranks.launch(parts)
    report = ranks.run(parts)
    return ranks, report, _core.cpu_processes(parts.program.native)


@pytest.mark.parametrize(("name", "nodes", "ranks_per_node"), [("heat", 4, 2), ("collectives", 2, 1)])
def test_same_results_as_mpich(native, name, nodes, ranks_per_node):
    """Rank 0, which prints, is simulated; all other ranks are native."""
    ranks, _, processes = simulate(native, name, node=0, nodes=nodes, ranks_per_node=ranks_per_node)
    assert outputs(processes) == mpi_fixture.output_under_mpich(name, nodes * ranks_per_node)
    assert ranks.bytes_out > 0
    assert ranks.bytes_in > 0


def test_a_run_can_be_repeated(native):
    """The two sides take turns, so the time of the simulated node does not depend on the speed of the others."""
    times = {simulate(native, "heat", node=1, nodes=3, ranks_per_node=1)[1]["now"] for _ in range(3)}
    assert len(times) == 1


def test_a_native_rank_that_fails_is_named(native):
    with pytest.raises(ProgramError, match="native rank"):
        simulate(native, "no such program", node=0, nodes=2, ranks_per_node=1)


def test_a_program_that_waits_for_nobody_is_told(native, tmp_path):
    """The simulated rank waits for a message that its native partner never sends."""
    source = tmp_path / "silent.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int main(int argc, char **argv) {\n"
        "  MPI_Init(&argc, &argv);\n"
        "  int value;\n"
        "  MPI_Recv(&value, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "  return 0;\n"
        "}\n",
        encoding="utf-8",
    )
    silent = tmp_path / "silent"
    build([source], silent, mpi=True, host=True)
    with pytest.raises(DeadlockError):
        simulate(silent, "heat", node=0, nodes=2, ranks_per_node=1)


def test_wrong_nodes_and_programs_are_refused(native, tmp_path):
    program = mpi_fixture.program("heat")
    with pytest.raises(InputError, match="no node 2"):
        ExternalRanks(native, program, node=2, nodes=2, ranks_per_node=1)
    with pytest.raises(InputError, match="no such program"):
        ExternalRanks(tmp_path / "none", program, node=0, nodes=2, ranks_per_node=1)
