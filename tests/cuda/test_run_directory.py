# SPDX-License-Identifier: Apache-2.0
"""The run directory that `cuda.run` leaves, from Python."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from host_programs import EMPTY, compiled
from wire_client import container

from manyscale import cuda, results
from manyscale.cuda.loader import library_folder
from manyscale.errors import InputError
from manyscale.units import TIME, parse

pytestmark = pytest.mark.core

SOURCE = Path(__file__).parents[2] / "benchmarks" / "support" / "cuda_calls.cpp"


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that launches and copies as often as its arguments say."""
    if not SOURCE.exists():
        pytest.skip("only in a checkout")
    runtime = str(library_folder() / "libcudart.so.13")
    folder = tmp_path_factory.mktemp("calls")
    return compiled(folder, SOURCE.read_text(), container((EMPTY, 70)), "calls", runtime)


def test_a_program_leaves_a_run_directory(calls: Path, tmp_path: Path):
    run = cuda.run(
        [str(calls), "5", "4"],
        changes=["gpu.sm_count=2"],
        node=cuda.NodeOptions(seed=7),
        out=tmp_path / "run",
        command=["mine.py"],
    )
    assert run.exit_code == 0
    loaded = results.load(tmp_path / "run")
    assert (loaded.status, loaded.info["seed"], loaded.info["command"]) == ("done", 7, ["mine.py"])
    assert loaded.info["workload"]["arguments"] == ["5", "4"]
    assert loaded.headline["launches"]["value"] == len(run.kernels) == 6
    assert pl.read_parquet(loaded.path / "kernels.parquet")["cycles"].to_list() == [
        kernel.cycles for kernel in run.kernels
    ]
    assert loaded.stats.filter(component="sm[0]").height > 0
    assert "sm_count = 2 # command line" in (loaded.path / "machine.toml").read_text()


def test_the_limit_of_simulated_time_is_the_error_of_the_run(calls: Path, tmp_path: Path):
    limit = cuda.NodeOptions(until=int(parse("20us", TIME)))
    run = cuda.run([str(calls), "500", "4"], node=limit, out=tmp_path / "run")
    assert run.limit_reached
    assert run.failure == "the program was ended at the limit of 20us simulated time"
    loaded = results.load(tmp_path / "run")
    assert (loaded.status, loaded.info["partial"]) == ("failed", True)
    assert loaded.info["error"] == run.failure
    assert 0 < loaded.headline["launches"]["value"] < 500


def test_nothing_is_left_without_out_or_of_a_run_that_never_began(calls: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cuda.run([str(calls), "1", "1"], node=cuda.NodeOptions(functional=True)).exit_code == 0
    with pytest.raises(InputError, match=r"cpu\.clock: nothing in a run of CUDA programs"):
        cuda.run([str(calls), "1", "1"], changes=["cpu.clock=1MHz"], out=tmp_path / "run")
    assert not list(tmp_path.iterdir())
