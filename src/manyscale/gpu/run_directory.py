# SPDX-License-Identifier: Apache-2.0
"""The run directory of kernels on a simulated GPU: statistics of its components, metrics of each kernel, operations."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import KEPT_AFTER
from manyscale.results import RunWriter
from manyscale.system import running
from manyscale.system.dram_over_time import DRAM_FILE, dram_buses, dram_over_time

from .isa import described_code

if TYPE_CHECKING:
    from .profile import KernelProfile
    from .timed_device import TimedDevice, TimedLaunch

OPERATIONS_FILE = "operations.parquet"
PROFILES_FILE = "profiles.json"
WARP_STATES_FILE = "warp_states.parquet"
COMPONENT = "gpu"
"""The component of the metrics of kernels; their scope is the kernel."""


@contextlib.contextmanager
def record(
    device: TimedDevice,
    launches: list[TimedLaunch],
    out: str | os.PathLike[str],
    *,
    workload: Mapping[str, Any] | None,
    timeline: bool,
    command: Sequence[str],
) -> Iterator[None]:
    """See `TimedDevice.record`; the device appends the launches that end to the list."""
    from manyscale.machine.completing import completed_toml

    facts = {"kind": "gpu-program", "name": Path(sys.argv[0]).name} if workload is None else workload
    system = device.parts.system
    with RunWriter(out, command=list(command) or sys.argv, workload=facts, seed=device.seed) as writer:
        writer.write_machine(completed_toml(device.resolved, system, {"gpu": device.code_rules().stated()}))
        if timeline:
            system.simulation.enable_timeline()
        try:
            yield
            device.synchronize()
        except KEPT_AFTER:
            now = {"simulated_seconds": {"value": system.simulation.now / 10**15, "unit": "s"}}
            running.keep_partial(
                writer,
                lambda: _statistics(device, launches),
                lambda: _headline(device, launches) | now,
            )
            raise
        else:
            columns = _statistics(device, launches)
            writer.write_stats(columns)
            carried = dram_over_time(dram_buses(system), columns)
            if carried.height:
                writer.write_table(DRAM_FILE, carried)
        finally:
            writer.describe_code(described_code(device.loaded_code))
            _write_operations(writer, launches)
            if launches:
                for name, content in device.code_files.items():
                    writer.write_file(name, content)
            if timeline:
                running.write_timeline(system, writer)
        writer.finish((device.result.headline if device.result else {}) | _headline(device, launches))


def _headline(device: TimedDevice, launches: Sequence[TimedLaunch]) -> dict[str, dict[str, Any]]:
    from .headline import headline

    return headline(launches, device.uvm.statistics() if device.has_used_managed else None)


def scopes(launches: Sequence[TimedLaunch]) -> list[str]:
    """A name for each launch: its kernel's, with a number from the second on ("run" is that of the whole run)."""
    seen: Counter[str] = Counter({"run": 1})
    names = []
    for launch in launches:
        seen[launch.kernel] += 1
        count = seen[launch.kernel]
        names.append(launch.kernel if count == 1 else f"{launch.kernel}#{count}")
    return names


def _statistics(device: TimedDevice, launches: Sequence[TimedLaunch]) -> dict[str, list[Any]]:
    """Those of the components, then the metrics of each kernel."""
    columns = running.statistics_columns(device.parts.system)
    for scope, launch in zip(scopes(launches), launches, strict=True):
        for metric in launch.profile.metrics.values():
            if metric.value is None:
                continue
            row = {
                "component": COMPONENT,
                "statistic": metric.name,
                "kind": "counter" if isinstance(metric.value, int) else "gauge",
                "unit": metric.unit,
                "description": metric.doc,
                "scope": scope,
                "key": None,
                "value": metric.value,
            }
            for name, value in row.items():
                columns[name].append(value)
    return columns


def _write_operations(writer: RunWriter, launches: Sequence[TimedLaunch]) -> None:
    import polars as pl

    tables = [
        launch.profile.operations.select(pl.lit(scope).alias("scope"), pl.all())
        for scope, launch in zip(scopes(launches), launches, strict=True)
    ]
    if tables:
        writer.write_table(OPERATIONS_FILE, pl.concat(tables))
        profiles = {scope: launch.profile for scope, launch in zip(scopes(launches), launches, strict=True)}
        write_profiles(writer, profiles)


def write_profiles(writer: RunWriter, profiles: Mapping[str, KernelProfile]) -> None:
    """Writes the verdict and the roofline of each kernel, and its warps' states over time, for reports."""
    import polars as pl

    text = json.dumps({name: profile.evidence() for name, profile in profiles.items()}, indent=1)
    writer.write_file(PROFILES_FILE, text.encode())
    states = [
        profile.warp_states.select(pl.lit(name).alias("scope"), pl.all())
        for name, profile in profiles.items()
        if profile.warp_states is not None
    ]
    if states:
        writer.write_table(WARP_STATES_FILE, pl.concat(states))
