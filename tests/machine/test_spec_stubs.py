# SPDX-License-Identifier: Apache-2.0
"""mypy knows the parameters of the Specs that are made of the core's tables at run time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUB = ROOT / "src" / "manyscale" / "machine" / "core_specs.pyi"
PROGRAM = """\
from manyscale.machine import Machine


def warps(machine: Machine) -> int | None:
    assert machine.gpu is not None and machine.gpu.sm is not None
    return machine.gpu.sm.{name}
"""


@pytest.fixture(autouse=True)
def _checkout() -> None:
    if not STUB.is_file():
        pytest.skip("only in a checkout, after make install")


def checked(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    program = folder / f"{name}.py"  # mypy takes a file of the same size and second for unchanged
    program.write_text(PROGRAM.format(name=name))
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_misspelt_parameter_is_an_error_of_types(tmp_path: Path):
    right = checked(tmp_path, "warps")
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = checked(tmp_path, "warsp")
    assert wrong.returncode == 1
    assert '"Sm" has no attribute "warsp"; maybe "warps"?' in wrong.stdout


def test_the_stub_is_that_of_this_core(tmp_path: Path):
    made = tmp_path / "core_specs.pyi"
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_spec_stubs.py"), str(made)], check=True)
    assert made.read_text() == STUB.read_text()
