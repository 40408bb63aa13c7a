# SPDX-License-Identifier: Apache-2.0
"""The pytest plug-in: programs that tests start run on simulated GPUs, and a fixture is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from host_programs import EMPTY, compiled
from wire_client import container

from manyscale import load
from manyscale.cuda.loader import library_folder

pytestmark = pytest.mark.core

SOURCE = Path(__file__).parents[2] / "benchmarks" / "support" / "cuda_calls.cpp"
TESTS = """
import subprocess

KERNEL = '''
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 at) {
  .reg .b64 %d<2>; .reg .b32 %r<2>;
  ld.param.u64 %d1, [at];
  atom.global.add.u32 %r1, [%d1], 1;
  ret;
}
'''

def test_a_program():
    subprocess.run(["./calls", "5", "4"], check=True)

def test_a_kernel(manyscale_device):
    import numpy as np
    total = manyscale_device.zeros(1, np.uint32)
    launch = manyscale_device.load(KERNEL)["count"][2, 32](total)
    assert total.numpy()[0] == 64
    assert launch.seconds > 0
"""


def test_programs_and_kernels_of_tests_are_simulated(tmp_path: Path) -> None:
    if not SOURCE.exists():
        pytest.skip("only in a checkout")
    runtime = str(library_folder() / "libcudart.so.13")
    compiled(tmp_path, SOURCE.read_text(), container((EMPTY, 70)), "calls", runtime)
    (tmp_path / "test_mine.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "manyscale.pytest_plugin", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "--manyscale", "v100"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert load(tmp_path / "runs" / "cuda-calls-1").headline["launches"]["value"] == 6


def test_an_unknown_machine_is_an_error_of_use(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "manyscale.pytest_plugin",
        "--manyscale",
        "v10",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 4
    assert "did you mean 'v100'" in done.stderr
