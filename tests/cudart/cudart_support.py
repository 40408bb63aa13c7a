# SPDX-License-Identifier: Apache-2.0
"""Building the C++ programs of these tests against our CUDA runtime, and running them on simulated GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest

from manyscale.cuda import HostOptions, NodeOptions, Program
from manyscale.machine import load_machine

PROGRAMS = Path(__file__).parent / "programs"
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")


def library(version: str = "13") -> Path:
    """Our CUDA runtime as it is installed."""
    return Path(str(files("manyscale") / "cudart")) / f"libcudart.so.{version}"


def build(source: Path, folder: Path, *options: str, version: str = "13") -> Path:
    """An executable that needs the runtime."""
    target = folder / f"{source.stem}-{version}"
    command = [
        str(COMPILER),
        "-std=c++20",
        "-O0",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wl,--no-as-needed",
        str(source),
    ]
    subprocess.run([*command, *options, "-o", str(target), str(library(version)), "-pthread"], check=True)
    return target


class Done(NamedTuple):
    """What came of a program."""

    exit_code: int
    output: str


def run(program: Path, *arguments: str, functional: bool = True, gpus: int = 1) -> Done:
    """What comes of a program on simulated GPUs."""
    machine = load_machine("v100", []).machine
    options = NodeOptions(
        gpus=gpus, functional=functional, threads=1, seed=0, maximum_instructions=0, until=None
    )
    runner = Program([str(program), *arguments], machine, options, HostOptions(), print)
    with tempfile.TemporaryFile() as output:
        done = runner.run(stdout=output.fileno())
        output.seek(0)
        return Done(done.exit_code, output.read().decode())


def run_alone(program: Path, socket: str | None = None) -> subprocess.CompletedProcess[str]:
    """What comes of a program that finds our runtime, but no server that was started for it."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(library().parent)}
    environment.pop("MANYSCALE_CUDA_SOCKET", None)
    if socket is not None:
        environment["MANYSCALE_CUDA_SOCKET"] = socket
    return subprocess.run(
        [str(program)], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
