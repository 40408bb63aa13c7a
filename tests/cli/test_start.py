# SPDX-License-Identifier: Apache-2.0
"""Commands start at once: what is slow to import is imported only where it is used."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale.cli import app, demo_steps

KERNELS = str(Path(demo_steps.__file__).with_name("demo_kernels.ptx"))
DESCEND = (
    "gpu",
    "run",
    KERNELS,
    "-k",
    "descend",
    "-g",
    "1",
    "-b",
    "32",
    "-a",
    "f32[32]",
    "-a",
    "f32[32]",
    "-a",
    "1",
)
MODULES = """
import atexit, json, os, sys
atexit.register(lambda: os.write(3, json.dumps(sorted(sys.modules)).encode()))
from manyscale.cli.start import main
sys.exit(main(sys.argv[1:]))
"""


def started(*arguments: str) -> tuple[set[str], float]:
    """The modules that a command has imported, and its processor time in seconds."""
    reading, writing = os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = f"import os; os.dup2({writing}, 3)\n{MODULES}"
    command = [sys.executable, "-c", program, *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, pass_fds=(writing,))
    os.close(writing)
    with os.fdopen(reading) as file:
        modules = set(json.load(file))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return modules, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_version_needs_almost_nothing():
    """It takes 0.04 s where `python -c pass` takes 0.015 s."""
    modules, seconds = started("--version")
    assert not modules & {
        "typer",
        "rich",
        "numpy",
        "pydantic",
        "polars",
        "manyscale._core",
        "manyscale.cli.app",
    }
    assert seconds < 0.5


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (
            DESCEND,
            {"polars", "plotly", "rich.table", "manyscale.cli.cpu", "manyscale.report", "tomlkit.toml_file"},
        ),
        ((*DESCEND, "-m", "v100", "--json"), {"plotly", "scipy", "manyscale.cli.cpu", "manyscale.report"}),
        (("machines", "show", "v100", "--json"), {"polars", "plotly", "manyscale.gpu", "manyscale.cli.gpu"}),
    ],
    ids=["functional", "timed", "machines"],
)
def test_a_command_imports_what_it_needs(arguments, absent):
    modules, _ = started(*arguments, *([] if "--json" in arguments else ["--quiet"]))
    assert not modules & absent


def test_a_kernel_is_simulated_soon():
    """Until the first simulated cycle 0.4 s of a slow core; the bound is for a slower one."""
    _, seconds = started(*DESCEND, "-m", "v100", "--quiet")
    assert seconds < 3


def test_every_command_is_known_to_the_module_that_has_it():
    """The table in `app` decides which module is imported, so it must name what each adds."""
    for name, added in app.MODULES.items():
        commands = app._commands(name)
        alone = [command.name or command.callback.__name__ for command in commands.registered_commands]
        found = [commands.info.name] if isinstance(commands.info.name, str) else alone
        assert tuple(found) == added
    assert set(app.WITHIN.values()) <= set(app.MODULES)
