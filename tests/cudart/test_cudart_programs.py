# SPDX-License-Identifier: Apache-2.0
"""Programs that use the CUDA runtime in all the ways they may: each checks its own results and says "ok"."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cudart_support import COMPILER, PROGRAMS, build, library, needs_compiler, run

pytestmark = [pytest.mark.core, needs_compiler]


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("launches", (), {}),
        ("copies", (), {}),
        ("memory", (), {}),
        ("memory", (), {"functional": False}),
        ("graphs", (), {"functional": False}),
        ("graph_branches", (), {"functional": False}),
        ("texture_references", (), {}),
        ("texture_references", (), {"functional": False}),
        ("threads", (), {"functional": False}),
        ("host_functions", (), {"functional": False}),
        ("fork", (), {}),
        ("faults", (), {}),
        ("faults", ("late",), {"functional": False}),
        ("files", (), {"functional": False}),
        ("driver", (), {"gpus": 2}),
        ("driver_entry_points", (), {"gpus": 2}),
        ("peers", (), {"gpus": 3}),
    ],
)
def test_a_program(
    name: str, arguments: tuple[str, ...], options: dict[str, Any], binaries: dict[str, Path]
) -> None:
    if name not in binaries:
        driver = [str(library().with_name("libcuda.so.1"))] if name.startswith("driver") else []
        binaries[name] = build(PROGRAMS / f"{name}.cpp", binaries["folder"], *driver)
    assert run(binaries[name], *arguments, **options) == (0, "ok\n")


@pytest.mark.parametrize("runtime", ["", "libcudart.so.11.0", "libcudart.so.12"])
@pytest.mark.parametrize("name", ["driver_alone", "driver_kernels", "driver_memory", "driver_graphs"])
def test_a_program_of_the_driver(name: str, runtime: str, binaries: dict[str, Path]) -> None:
    """It is not linked with the runtime at all, or with one whose functions differ from the newest's."""
    target = binaries["folder"] / f"{name}{runtime}"
    command = [str(COMPILER), "-std=c++20", "-Wall", "-Wextra", "-Werror", str(PROGRAMS / f"{name}.cpp")]
    libraries = [str(library().with_name(one)) for one in ("libcuda.so.1", runtime) if one]
    subprocess.run([*command, "-Wl,--no-as-needed", *libraries, "-o", str(target)], check=True)
    assert run(target, functional=False) == (0, "ok\n")


@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize(
    "name", ["driver_virtual_memory", "driver_value_waits", "driver_linking", "driver_batches"]
)
def test_a_program_of_the_driver_alone(name: str, functional: bool, binaries: dict[str, Path]) -> None:
    target = binaries["folder"] / name
    command = [str(COMPILER), "-std=c++20", "-Wall", "-Wextra", "-Werror", str(PROGRAMS / f"{name}.cpp")]
    subprocess.run(
        [*command, str(library().with_name("libcuda.so.1")), "-pthread", "-o", str(target)], check=True
    )
    assert run(target, functional=functional) == (0, "ok\n")


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs by name, as far as they are built, and the folder they are built in."""
    return {"folder": tmp_path_factory.mktemp("programs")}
