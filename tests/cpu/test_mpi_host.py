# SPDX-License-Identifier: Apache-2.0
"""The MPI library on this machine: the same output as MPICH's, and errors for people."""

import shutil
import time

import pytest
from mpi_fixture import FOLDER, output_under_mpich

from manyscale import InputError
from manyscale.cpu.building import build, runtime_folder
from manyscale.cpu.mpi_host import run_on_host

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "programs"
    strict = ["-Wall", "-Wextra", "-Werror", "-fopenmp"]
    build(sorted(FOLDER.glob("*.c")), path, mpi=True, host=True, options=strict)
    return path


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ["point_to_point", "collectives", "groups_and_types", "heat", "hybrid"])
def test_same_output_as_under_mpich(programs, name, ranks):
    results = run_on_host(programs, ranks, [name], timeout=60)
    assert [result.exit_code for result in results] == [0] * ranks
    assert results[0].stdout.decode() == output_under_mpich(name, ranks)


def test_abort_ends_all_ranks(programs):
    results = run_on_host(programs, 3, ["abort"], timeout=60)
    assert [result.exit_code for result in results] == [7] * 3
    assert results[2].stderr == b"rank 2 called MPI_Abort with code 7\n"


def test_mistake_is_named(programs):
    results = run_on_host(programs, 2, ["mistake"], timeout=60)
    assert results[0].stderr == b"rank 0: MPI_Send: invalid rank: rank 2 is not one of 0 to 1\n"
    assert results[1].exit_code == results[0].exit_code != 0


def test_marks_are_nothing_on_this_machine(tmp_path):
    """The header in C++, with its class; the program only has to run."""
    source = tmp_path / "marks.cpp"
    source.write_text(
        '#include "manyscale.h"\n'
        "int main() {\n"
        "  MANYSCALE_INTEREST_BEGIN();\n"
        '  { manyscale::Region region("all"); MANYSCALE_BEGIN("part"); MANYSCALE_END("part"); }\n'
        "  MANYSCALE_INTEREST_END();\n"
        "}\n",
        encoding="utf-8",
    )
    build([source], tmp_path / "marks", host=True, options=["-std=c++20", "-Wall", "-Wextra", "-Werror"])
    assert run_on_host(tmp_path / "marks", 1)[0].exit_code == 0


def test_ranks_that_do_not_end_are_ended(tmp_path):
    source = tmp_path / "sleep.c"
    source.write_text("#include <unistd.h>\nint main(void) { return (int)sleep(600); }\n", encoding="utf-8")
    build([source], tmp_path / "sleep", host=True)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"2 ranks were not done after 0\.2 s"):
        run_on_host(tmp_path / "sleep", 2, timeout=0.2)
    assert time.monotonic() - began < 30


def test_what_cannot_be_built_or_run_is_said(tmp_path):
    with pytest.raises(InputError, match="there is no such file to compile"):
        build([tmp_path / "none.c"], tmp_path / "none", host=True)
    with pytest.raises(InputError, match="nothing to compile"):
        build([], tmp_path / "none", host=True)
    broken = tmp_path / "broken.c"
    broken.write_text("int main(void) { return nothing; }\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"gcc failed:(.|\n)*nothing"):
        build([broken], tmp_path / "none", host=True)
    with pytest.raises(InputError, match="there is no such program"):
        run_on_host(tmp_path / "none", 2)
    with pytest.raises(InputError, match="0 ranks"):
        run_on_host(broken, 0)


def test_wrong_environment_is_named(programs):
    """Without a segment, ranks cannot find each other."""
    import subprocess

    for variables, message in [
        ({"MANYSCALE_MPI_SIZE": "2"}, "needs MANYSCALE_MPI_SEGMENT"),
        ({"MANYSCALE_MPI_SIZE": "many"}, "MANYSCALE_MPI_SIZE=many: should be a whole number from 1 to 4096"),
        ({"MANYSCALE_MPI_SIZE": "2", "MANYSCALE_MPI_RANK": "2"}, "MANYSCALE_MPI_RANK=2: should be"),
        ({"MANYSCALE_MPI_SEGMENT": "/nowhere/segment"}, "cannot open it"),
    ]:
        result = subprocess.run(
            [programs, "heat"], env=variables, capture_output=True, text=True, check=False
        )
        assert result.returncode == 1
        assert message in result.stderr


@pytest.mark.skipif(shutil.which("riscv64-linux-gnu-gcc") is None, reason="needs the cross compiler")
def test_marks_are_hints_on_risc_v(tmp_path):
    """One instruction for each mark, which a processor without a meaning for it ignores."""
    source = tmp_path / "marks.c"
    source.write_text(
        '#include "manyscale.h"\nint main(void) { MANYSCALE_BEGIN("a"); MANYSCALE_END("a"); return 0; }\n',
        "utf-8",
    )
    build([source], tmp_path / "marks")
    from manyscale import cpu

    result = cpu.run_functional(cpu.Program(tmp_path / "marks"), regions=True)
    assert result.regions.filter(region="a")["visits"].to_list() == [1]
    assert (runtime_folder() / "manyscale.h").is_file()
