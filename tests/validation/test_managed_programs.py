# SPDX-License-Identifier: Apache-2.0
"""The ten programs with unified memory: numpy agrees, and their PTX is that of their CUDA C++."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from manyscale import gpu
from manyscale.errors import InputError, ManyscaleError
from manyscale.validation import managed_programs
from manyscale.validation.managed_programs import PROGRAMS, Session
from manyscale.validation.managed_programs.graphs import levels, random_graph
from manyscale.validation.managed_programs.session import managed_bytes, usable_bytes
from sanitizers import PLAIN

pytestmark = pytest.mark.core

HERE = Path(managed_programs.__file__).parent


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_numpy_computes(name: str) -> None:
    session = managed_programs.run(name, gpu.Device(), managed=False)
    assert session.launches
    assert session.working_set >= 1 << 18


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_size_that_is_no_multiple_of_tiles(name: str) -> None:
    """Blocks at the edge are only partly used."""
    multiple = PROGRAMS[name].multiple
    managed_programs.run(name, gpu.Device(), 3 * 16 * 7 if multiple == 16 else 101, managed=False)


# Bytes, UVMSmart: benchmarks/Results/Page_Migration_Pinning/output_logs/RealOversubOverhead, runs at 100%.
PUBLISHED = {"backprop": 18_415_616, "needleman_wunsch": 8_519_680, "random_access": 12_582_912}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_full_size_needs_as_much_memory_as_published(name: str) -> None:
    session = managed_programs.run(name, gpu.Device(), PROGRAMS[name].full, managed=False)
    assert session.working_set == PUBLISHED[name]


def test_managed_memory_is_rounded_up_as_published() -> None:
    """bfs: nodes, three masks, 1,568,420 edges and distances of 261,444 nodes; fdtd: three fields and a source."""
    bfs = [261_444 * 8, *[261_444] * 3, 1_568_420 * 4, 261_444 * 4]
    assert sum(map(managed_bytes, bfs)) == 10_223_616
    fdtd = [1200 * 1201 * 4, 1201 * 1200 * 4, 1200 * 1200 * 4, 5 * 4]
    assert sum(map(managed_bytes, fdtd)) == 18_939_904


@pytest.mark.parametrize(
    ("free", "own", "blocks"),
    [
        ((12 << 20, 9 << 20, 8 << 20), 0, (5, 3, 3)),  # hotspot and random access
        ((10_223_616, 8_178_892, 6_815_744), 1, (3, 2, 1)),  # bfs, whose flag takes a block
        ((8_519_680, 6_815_744, 5_679_786), 0, (3, 2, 1)),  # Needleman-Wunsch
        ((18_415_616, 14_732_492, 12_277_077), 0, (8, 6, 5)),  # backprop
        ((29_360_128, 23_068_672, 18_874_368), 1 << 20, (12, 9, 7)),  # shortest paths
        ((1, 3 << 20), 2 << 20, (1, 1)),  # a block there is always
    ],
)
def test_blocks_that_were_free_when_the_programs_were_measured(
    free: tuple[int, ...], own: int, blocks: tuple[int, ...]
) -> None:
    """11,009.5 MiB less the ballast, a multiple of 2 MiB."""
    whole = 11_544_297_472
    for size, expected in zip(free, blocks, strict=True):
        assert usable_bytes(size, own) == expected << 21
        ballast = -(-(whole - size) // (2 << 20)) * (2 << 20)
        left = (whole - ballast) // (2 << 20) - (-(-own // (2 << 20)))
        assert max(left, 1) == expected


def test_another_result_than_numpys_is_an_error() -> None:
    session = Session(gpu.Device(), "bfs", managed=False)
    session.expect("it", np.ones(3), np.ones(3))
    session.expect("it", np.ones(3), np.full(3, 1.001), 0.01)
    with pytest.raises(ManyscaleError, match=r"bfs: it differs from numpy's by up to 0\.5"):
        session.expect("it", np.ones(3), np.array([1, 1, 1.5]), 0.01)
    with pytest.raises(ManyscaleError, match="differs"):
        session.expect("it", np.array([np.nan]), np.ones(1), 0.01)


@pytest.mark.parametrize(("name", "size"), [("backprop", 100), ("hotspot", 0), ("bfs", 1 << 25)])
def test_a_size_that_cannot_be(name: str, size: int) -> None:
    with pytest.raises(InputError, match=f"the size of {name} is a multiple of"):
        managed_programs.run(name, gpu.Device(), size)


def test_an_unknown_program() -> None:
    with pytest.raises(InputError, match="there is no program named 'lud'; known: backprop, bfs"):
        managed_programs.run("lud", gpu.Device())


def test_levels_of_a_path_and_what_it_does_not_reach() -> None:
    """0 - 1 - 2 in a row, and 3 alone."""
    first = np.array([0, 1, 3, 4, 4], np.int32)
    assert levels(first, np.array([1, 0, 2, 1], np.int32), 0).tolist() == [0, 1, 2, -1]


def test_a_random_graph_goes_both_ways() -> None:
    first, edges = random_graph(50, seed=3)
    assert first[-1] == edges.size
    assert 4 * 50 <= edges.size <= 8 * 50
    assert np.diff(first).min() >= 2
    pairs = np.stack([np.repeat(np.arange(50), np.diff(first)), edges])
    assert sorted(map(tuple, pairs.T)) == sorted(map(tuple, pairs[::-1].T))


def test_every_program_has_its_files() -> None:
    assert (
        {path.stem for path in HERE.glob("*.cu")}
        == {path.stem for path in HERE.glob("*.ptx")}
        == set(PROGRAMS)
    )


@pytest.mark.parametrize("name", ["fdtd_2d", "random_access"])  # all would take too long
def test_the_ptx_is_that_of_the_source(name: str, tmp_path: Path) -> None:
    """Only with the compiler that made it; what another one makes may differ."""
    made = (HERE / f"{name}.ptx").read_text()
    release = re.search(r"release \S+, (V\S+)", made)
    assert release
    if not shutil.which("nvcc"):
        pytest.skip("there is no nvcc")
    if release[1] not in subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("another version of nvcc")
    again = tmp_path / "again.ptx"
    subprocess.run(
        ["nvcc", "-ptx", "-arch=compute_75", "-O3", "-o", str(again), str(HERE / f"{name}.cu")],
        check=True,
        env=PLAIN,
    )
    assert again.read_text() == made
