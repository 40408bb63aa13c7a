# SPDX-License-Identifier: Apache-2.0
"""A pytest plug-in: tests of CUDA programs and kernels without a GPU.

    pytest -p manyscale.pytest_plugin --manyscale a100

CUDA programs that tests start then run on simulated GPUs, and leave run directories below runs/. The fixture
`manyscale_device` is a device of that machine, or, without the option, one that executes kernels without time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from manyscale.gpu import Device

_OPTION = "manyscale"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --manyscale."""
    parser.getgroup("manyscale").addoption(
        "--manyscale",
        dest=_OPTION,
        metavar="MACHINE",
        help="run the CUDA programs of tests on simulated GPUs of this machine, such as a100",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Simulated GPUs for the programs of all tests."""
    machine = config.getoption(_OPTION, None)
    if machine is None or hasattr(
        config, "workerinput"
    ):  # workers of pytest-xdist have the environment already
        return
    from manyscale.cuda import HostOptions, NodeOptions
    from manyscale.cuda.environment import Settings, start, variables
    from manyscale.errors import ManyscaleError
    from manyscale.machine import load_machine

    try:
        settings = Settings(load_machine(machine), NodeOptions(), HostOptions(), Path(config.rootpath))
        os.environ.update(variables(start(settings, os.getpid())))
    except ManyscaleError as error:
        raise pytest.UsageError(f"--manyscale: {error}") from None


@pytest.fixture
def manyscale_device(request: pytest.FixtureRequest) -> Device:
    """A simulated GPU: `load` kernels, give them arrays, launch them."""
    from manyscale.gpu import Device, TimedDevice

    machine = request.config.getoption(_OPTION, None)
    return Device() if machine is None else TimedDevice(machine)
