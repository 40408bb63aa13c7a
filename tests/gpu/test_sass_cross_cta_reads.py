# SPDX-License-Identifier: Apache-2.0
"""Cross-CTA reads of kernels that have SASS only: no race is missed, and common kernels keep their partitions."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from test_cross_cta_reads import BLOCK, CLEAN, GRAPH, GRID, RACY, N, source

from manyscale import gpu, load_machine
from manyscale.gpu.assembler import assemble, can_assemble_for

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        not can_assemble_for("sm_70"), reason="ptxas, which makes SASS for a V100, is not installed"
    ),
]

# These keep their partitions as PTX only: ptxas puts the address of a variable into immediates, tells parts of a
# structure by their offsets, divides by a sequence of instructions, or loads by another register than it stores.
ASSUMED_RACY = {"two parts of a structure", "in place by rows and columns", "variables"}


def cubin(folder: Path, text: str, name: str = "kernel.cubin", architecture: str = "sm_70") -> Path:
    path = folder / name
    path.write_bytes(assemble(text.encode(), name, architecture))
    return path


def order_matters(folder: Path, body: str, grid: object = GRID, shared: bool = False) -> bool:
    """Of a launch of a bare cubin whose three pointers are to three arrays, or all to one."""
    machine = load_machine("v100", ["gpu.sm_count=8", "gpu.l2_slices=4"]).machine
    device = gpu.TimedDevice(machine)
    arrays = [device.zeros(2 * N, np.uint64) for _ in range(1 if shared else 3)] * (3 if shared else 1)
    kernel = device.load(cubin(folder, source(body)))["kernel"]
    return kernel[grid, BLOCK, 0, device.stream()](*arrays, np.uint32(16)).order_matters


@pytest.mark.parametrize("name", RACY)
def test_no_race_is_missed(name: str, tmp_path: Path) -> None:
    assert order_matters(tmp_path, RACY[name])


@pytest.mark.parametrize("name", [name for name in CLEAN if name not in ASSUMED_RACY])
def test_common_kernels_keep_their_partitions(name: str, tmp_path: Path) -> None:
    assert not order_matters(tmp_path, CLEAN[name])


def test_the_arrays_of_the_launch_decide(tmp_path: Path) -> None:
    assert order_matters(tmp_path, CLEAN["stencil to another allocation"], shared=True)
    assert not order_matters(tmp_path, CLEAN["stencil to another allocation"])


def test_all_axes_of_the_grid_count(tmp_path: Path) -> None:
    assert order_matters(tmp_path, CLEAN["saxpy in place"], grid=(4, 2))


def test_races_of_a_cubin_give_the_same_statistics_on_any_number_of_threads(tmp_path: Path) -> None:
    """Chains of labels across CTAs: what a load finds depends on which stores came before it."""
    nodes = 4096
    chains = np.maximum(np.arange(nodes, dtype=np.int32) - 1, 0)
    chains[::512] = np.arange(nodes, dtype=np.int32)[::512]
    steps = cubin(tmp_path, GRAPH.read_text(), "graph.cubin")
    seen = set()
    for threads in (1, 2, 4) * 2:
        device = gpu.TimedDevice("v100", threads=threads)
        labels = device.array(chains)
        launch = device.load(steps)["shorten"][nodes // 64, 64](labels, np.int32(nodes))
        assert device.result is not None
        rows = repr(device.result.stats.rows()).encode()
        seen.add((launch.cycles, hashlib.sha256(rows).hexdigest(), labels.numpy().tobytes()))
    assert len(seen) == 1
