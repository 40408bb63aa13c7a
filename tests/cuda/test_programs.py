# SPDX-License-Identifier: Apache-2.0
"""Whole CUDA programs, compiled by nvcc and run unchanged on simulated GPUs; each checks its own results.

Each runs in four forms, its kernels as PTX and as SASS, with time and without, and must print the same in all
of them: its own words and a digest of the values that it took from the GPU (`check.hpp`), so the same to the bit. What
depends on time (times of events, the order in which threads append to a list) a program leaves out of its digest.

Some that differ most; all of them with MANYSCALE_ALL_CUDA=1 in the environment, which takes minutes the first time.
Executables are kept in `build/cuda-programs` of the repository, so that only a changed program is compiled again.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from manyscale.gpu.assembler import find_assembler

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "build" / "cuda-programs"
SOME = (
    "constant_memory",
    "exit_early",
    "graphs",
    "grid_sync",
    "managed_memory",
    "multi_gpu",
    "nbody",
    "queued_updates",
    "relocatable",
    "streams_events",
    "textures",
)
# On an A100, for which every assembler of today makes SASS.
FORMS = {
    "ptx-functional": ("--isa", "ptx", "--functional"),
    "sass-functional": ("--isa", "sass", "--functional"),
    "ptx-timed": ("--isa", "ptx"),
    "sass-timed": ("--isa", "sass"),
}

_spec = importlib.util.spec_from_file_location("cuda_programs_build", HERE / "programs" / "build.py")
assert _spec is not None
assert _spec.loader is not None
build = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = build
_spec.loader.exec_module(build)

ALL = os.environ.get("MANYSCALE_ALL_CUDA") == "1"
PROGRAMS = {program.name: program for program in build.programs() if ALL or program.name in SOME}

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
    """The exit code and the output of a program."""

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
def ended(
    executables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Ended]]:
    """How all programs end in a form; each form is run when it is first asked for."""

    @functools.cache
    def in_form(form: str) -> dict[str, Ended]:
        options = ("--machine", "a100", *FORMS[form])
        return run_all(executables, PROGRAMS, tmp_path_factory.mktemp(form), *options)

    return in_form


def skip_without_assembler(form: str) -> None:
    if form.startswith("sass") and find_assembler() is None:
        pytest.skip("ptxas, which makes SASS of PTX, is not there")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_its_results_right(name: str, form: str, ended: Callable[[str], dict[str, Ended]]):
    skip_without_assembler(form)
    assert ended(form)[name].status == PROGRAMS[name].exits, ended(form)[name].output


@pytest.mark.parametrize("form", list(FORMS)[1:])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same_to_the_bit(name: str, form: str, ended: Callable[[str], dict[str, Ended]]):
    skip_without_assembler(form)
    assert ended(form)[name].output == ended("ptx-functional")[name].output


def test_a_programs_status_is_the_commands(executables: dict[str, Path], tmp_path: Path):
    alone = subprocess.run(
        [
            Path(sys.executable).parent / "manyscale",
            "cuda",
            "--machine",
            "a100",
            "--functional",
            "--",
            executables["exit_early"],
        ],
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
