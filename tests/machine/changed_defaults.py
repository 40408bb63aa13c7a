# SPDX-License-Identifier: Apache-2.0
"""Runs of each kind; as a program, with all defaults changed: those of the core, of the package and of DRAM standards.

python changed_defaults.py KIND MACHINE.toml OUT [FILE]
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL_GPU = ("gpu.sm_count=2", "gpu.l2_slices=2", "gpu.memory.stacks=1", "gpu.memory.channels_per_stack=2")
COUNT = 2048
# What a run or a test states itself, and no machine.
NOT_OF_A_MACHINE = {
    *("keep_values", "log_commands", "jitter", "reorder", "hot_lines", "konata_from", "konata_count"),
    *("region_log", "log_rows", "log", "size"),
    *("pattern", "accesses", "footprint", "stride", "writes", "atomics", "base", "invalidate_every"),
}


# What a machine states for replays; other parameters of cpu.trace are those of the trace, or of the command.
TRACED = {"run_ahead", "system_call_latency", "switch_latency"}
# Of what is looked at even where a machine has no such part.
OTHER_TEXTS = {"home_hash": "xor", "prefetcher.kind": "stride"}


def gpu(machine: Any, out: Path, file: Path | None) -> None:
    import numpy as np

    from manyscale.gpu import TimedDevice

    device = TimedDevice(machine, echo=False)
    kernel = device.load(Path(__file__).parents[2] / "examples" / "gpu" / "kernels.ptx")["saxpy"]
    with device.record(out):
        x, y = device.array(np.ones(COUNT, np.float32)), device.zeros(COUNT)
        kernel[COUNT // 256, 256](2.5, x, y, COUNT)


def uvm(machine: Any, out: Path, file: Path | None) -> None:
    import numpy as np

    from manyscale.gpu import TimedDevice

    device = TimedDevice(machine, echo=False, allow_newer=True)
    kernel = device.load(Path(__file__).parents[2] / "examples" / "gpu" / "kernels.ptx")["saxpy"]
    with device.record(out):
        x, y = device.managed(COUNT * 8), device.managed(COUNT * 8)
        x.set(np.ones(COUNT * 8, np.float32))
        y.set(np.ones(COUNT * 8, np.float32))
        kernel[COUNT // 32, 256](2.5, x, y, COUNT * 8)


def cuda(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale import cuda as programs

    assert programs.run([str(file), "3", "2"], machine, out=out).exit_code == 0


def cpu(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale import cpu as cores

    cores.run(cores.Program(cores.sample("heat"), ["2", "24", "2"]), machine=machine, cores=2, out=out)


def replay(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale import cpu as cores

    assert file is not None
    cores.replay(file, machine=machine, cores=2, out=out)


def net(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale import network

    name = machine if isinstance(machine, str | Path) else machine.machine.name
    network.run("halo3d", machine=name, nodes=8, iterations=2, face="32KiB", out=out)


def mem(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale.cli.app import main

    name = machine if isinstance(machine, str | Path) else machine.machine.name
    command = ["mem", "run", "random", "--machine", str(name), "--accesses", "2000", "--footprint", "1MiB"]
    assert main([*command, "--out", str(out), "--quiet"]) == 0


def system(machine: Any, out: Path, file: Path | None) -> None:
    from manyscale.system import System

    assert file is not None
    System.load(machine if isinstance(machine, str | Path) else file).run(until="1us", out=out)


KINDS: dict[str, Callable[[Any, Path, Path | None], None]] = {
    "gpu": gpu,
    "uvm": uvm,
    "cuda": cuda,
    "cpu": cpu,
    "replay": replay,
    "net": net,
    "mem": mem,
    "system": system,
}


def change_defaults() -> None:
    """Before the package makes its Specs of the core's tables."""
    from manyscale import _core

    plugins, networks = _core.plugins(), _core.network_tables()
    for name, entry in plugins["model"].items():
        for field in entry["parameters"]:
            if name == "cpu.trace" and field["name"] not in TRACED:
                continue
            if "default" in field and field["name"] not in NOT_OF_A_MACHINE:
                field["default"] = _other(field)
    for fields in networks.values():
        for field in fields:
            field["default"] = _other(field)
    _core.plugins = lambda: plugins
    _core.network_tables = lambda: networks
    from manyscale.machine import cpu_system, hierarchy

    cpu_system.WORK_LATENCY, hierarchy.DEFAULT_INTERLEAVE = "5ns", 512
    _change_presets()


def _other(field: dict[str, Any]) -> Any:
    """Another value; of a text, one that no model knows."""
    default = field["default"]
    if isinstance(default, str):
        return OTHER_TEXTS.get(field["name"], "changed")
    if isinstance(default, bool):
        return not default
    most = field.get("maximum")
    if field["unit"] == "bytes" and default > 0:  # a power of two stays one
        return default * 2 if most is None or default * 2 <= most else default // 2
    return default + 1 if most is None or default + 1 <= most else default - 1


def _change_presets() -> None:
    """All DRAM timings are a cycle longer, and there is no other preset."""
    from manyscale.machine import dram, presets

    here = presets.presets_folder()
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(here / "dram", folder / "dram")
    for path in (folder / "dram").glob("*.toml"):
        text = re.sub(
            r"(?m)^(t\w+ *= *)(\d+)", lambda match: f"{match[1]}{int(match[2]) + 1}", path.read_text()
        )
        path.write_text(text)
    for module in (presets, dram):
        module.presets_folder = lambda: folder


if __name__ == "__main__":
    kind, machine, out, *files = sys.argv[1:]
    change_defaults()
    KINDS[kind](machine, Path(out), Path(files[0]) if files else None)
