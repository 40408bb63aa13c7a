# SPDX-License-Identifier: Apache-2.0
"""Whole CUDA programs, compiled by nvcc and run unchanged on simulated GPUs; each checks its own results.

Some that differ most; all of them with MANYSCALE_ALL_CUDA=1 in the environment, which takes minutes the first time.
Executables are kept in `build/cuda-programs` of the repository, so that only a changed program is compiled again.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from manyscale.gpu.assembler import can_assemble_for

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "build" / "cuda-programs"
SOME = (
    "exit_early",
    "grid_sync",
    "managed_memory",
    "multi_gpu",
    "relocatable",
    "streams_events",
    "textures",
)
ALSO_TIMED = ("grid_sync", "managed_memory", "multi_gpu", "streams_events", "textures")

_spec = importlib.util.spec_from_file_location("cuda_programs_build", HERE / "programs" / "build.py")
assert _spec is not None
assert _spec.loader is not None
build = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = build
_spec.loader.exec_module(build)

ALL = os.environ.get("MANYSCALE_ALL_CUDA") == "1"
PROGRAMS = {program.name: program for program in build.programs() if ALL or program.name in SOME}
TIMED = tuple(PROGRAMS) if ALL else ALSO_TIMED

pytestmark = [
    pytest.mark.core,
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("nvcc") is None,
        reason="nvcc is not on the PATH; test_fatbin_fixtures.py runs what it made of these programs before",
    ),
]


@dataclass(frozen=True)
class Ended:
    """How a program ended and what it said."""

    status: int
    output: str


@pytest.fixture(scope="module")
def executables() -> dict[str, Path]:
    """All programs by name; two are compiled at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(
            zip(PROGRAMS, pool.map(lambda program: program.build(KEPT), PROGRAMS.values()), strict=True)
        )


def run_all(
    executables: dict[str, Path], names: Iterable[str], folder: Path, *options: str
) -> dict[str, Ended]:
    """One simulated node with two GPUs, and a script that runs the programs on it one after the other."""
    script = folder / "all.sh"
    lines = [
        f"timeout 600 {executables[name]} > {folder}/{name}.out 2>&1 < /dev/null; echo $? > {folder}/{name}.status"
        for name in names
    ]
    script.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    script.chmod(0o755)
    done = subprocess.run(
        [Path(sys.executable).parent / "manyscale", "cuda", "--gpus", "2", *options, "--", str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return {
        name: Ended(int((folder / f"{name}.status").read_text()), (folder / f"{name}.out").read_text())
        for name in names
    }


@pytest.fixture(scope="module")
def functional(executables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    return run_all(executables, PROGRAMS, tmp_path_factory.mktemp("functional"), "--functional")


@pytest.fixture(scope="module")
def timed(executables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    return run_all(executables, TIMED, tmp_path_factory.mktemp("timed"), "--machine", "v100")


@pytest.fixture(scope="module")
def machine_code(executables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """On an A100, for which every assembler of today makes machine code."""
    options = ("--functional", "--machine", "a100", "--isa", "sass")
    return run_all(executables, PROGRAMS, tmp_path_factory.mktemp("machine-code"), *options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_its_results_right(name: str, functional: dict[str, Ended]):
    assert functional[name].status == PROGRAMS[name].exits, functional[name].output


@pytest.mark.parametrize("name", TIMED)
def test_results_are_the_same_in_simulated_time(name: str, timed: dict[str, Ended]):
    assert timed[name].status == PROGRAMS[name].exits, timed[name].output


@pytest.mark.skipif(
    not can_assemble_for("sm_80"), reason="ptxas, which makes machine code of PTX, is not there"
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same_as_machine_code(name: str, machine_code: dict[str, Ended]):
    assert machine_code[name].status == PROGRAMS[name].exits, machine_code[name].output


def test_a_programs_status_is_the_commands(executables: dict[str, Path], tmp_path: Path):
    alone = subprocess.run(
        [Path(sys.executable).parent / "manyscale", "cuda", "--functional", "--", executables["exit_early"]],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert alone.returncode == PROGRAMS["exit_early"].exits


def test_a_program_that_needs_the_toolkits_library_runs_with_ours(executables: dict[str, Path]):
    """The executables name libcudart as a library, and nothing in them refers to another path of it."""
    needed = subprocess.run(
        ["readelf", "-d", str(executables["textures"])], capture_output=True, text=True, check=True
    ).stdout
    assert "libcudart.so" in needed
    assert "RPATH" not in needed
    assert "RUNPATH" not in needed
