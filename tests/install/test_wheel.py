# SPDX-License-Identifier: Apache-2.0
"""A wheel runs where there is no compiler, and gives the same numbers at each level of the instruction set.

`make wheel` runs this with the wheel it made, in MANYSCALE_WHEEL, by an interpreter that does not have the package.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("MANYSCALE_WHEEL")
ROOT = Path(__file__).resolve().parents[2]
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(WHEEL is None, reason="no wheel; `make wheel` makes one and tests it"),
]


def run(*command, **variables):
    """Runs a command that sees only the environment of the wheel: no compiler, no nvcc."""
    environment = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    environment |= {"PATH": str(Path(command[0]).parent), **variables}
    for name, value in os.environ.items():  # where packages come from
        if name.startswith("PIP_"):
            environment[name] = value
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=environment, cwd=variables.get("PWD")
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of an empty environment with the wheel and what it needs, all of them wheels."""
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    run(
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        str(Path(WHEEL).resolve()),
    )
    return folder / "bin"


def levels_of(programs):
    """The levels of the wheel that this processor has."""
    script = "from manyscale import isa_level as i; print(*i.supported_levels(i._flags()))"
    return run(programs / "python", "-c", script).split()


def test_the_demo_runs_without_a_compiler(programs, tmp_path):
    run(programs / "manyscale", "demo", PWD=str(tmp_path))
    assert list(tmp_path.rglob("report.html"))


def test_the_core_of_the_highest_level_is_loaded(programs):
    found = Path(run(programs / "python", "-c", "from manyscale import _core; print(_core.__file__)").strip())
    assert found.parent.name == levels_of(programs)[-1]


@pytest.mark.parametrize("group", ["engine", "mem", "gpu", "uvm", "cpu", "net"])
def test_every_level_gives_the_same_numbers_to_the_bit(programs, tmp_path_factory, group):
    lowest, *others = levels_of(programs)
    stored = tmp_path_factory.mktemp("statistics")
    tool = [programs / "python", ROOT / "tools" / "same_statistics.py"]
    run(*tool, "record", stored, "--only", group, MANYSCALE_ISA_LEVEL=lowest)
    for level in others:
        text = run(*tool, "compare", stored, "--only", group, MANYSCALE_ISA_LEVEL=level)
        assert "no record" not in text


def test_the_wheel_holds_each_level_once_and_nothing_to_build():
    names = zipfile.ZipFile(WHEEL).namelist()
    cores = sorted(name.split("/")[2] for name in names if "/isa/" in name and name.endswith(".so"))
    assert cores == sorted(LEVELS)
    assert not [name for name in names if name.endswith((".o", ".a"))]


def test_the_wheel_names_the_oldest_c_library_it_runs_with():
    assert "manylinux_2_" in Path(WHEEL).name
