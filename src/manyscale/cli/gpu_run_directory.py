# SPDX-License-Identifier: Apache-2.0
"""The run directory of kernels on a simulated GPU: statistics of its components, metrics of each kernel, operations."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.cli.run import output_directory
from manyscale.errors import KEPT_AFTER

if TYPE_CHECKING:
    from manyscale.gpu import KernelProfile, TimedDevice, TimedLaunch
    from manyscale.results import RunWriter

OPERATIONS_FILE = "operations.parquet"
PROFILES_FILE = "profiles.json"
COMPONENT = "gpu"
"""What the metrics of kernels are statistics of; their scope is the kernel."""


@contextlib.contextmanager
def recorded(
    out: Path,
    device: TimedDevice,
    *,
    machine: str,
    workload: Mapping[str, Any],
    seed: int,
    timeline: bool,
    quiet: bool,
) -> Iterator[list[TimedLaunch]]:
    """Leaves a run directory of the launches that are appended to the list; after Ctrl-C, of what there is."""
    from manyscale.results import RunWriter
    from manyscale.system import running

    command = ["manyscale", *sys.argv[1:]]
    launches: list[TimedLaunch] = []
    system = device.parts.system
    with (
        output_directory(out, "gpu", quiet),
        RunWriter(out, command=command, workload=workload, seed=seed) as writer,
    ):
        writer.write_machine(machine)
        if timeline:
            system.simulation.enable_timeline()
        try:
            yield launches
        except KEPT_AFTER:
            now = {"simulated_seconds": {"value": system.simulation.now / 10**15, "unit": "s"}}
            running.keep_partial(
                writer,
                lambda: _statistics(device, launches),
                lambda: _headline(device, launches, workload) | now,
            )
            raise
        else:
            writer.write_stats(_statistics(device, launches))
        finally:
            _write_operations(writer, launches)
            if timeline:
                running.write_timeline(system, writer)
        writer.finish(
            (device.result.headline if device.result else {}) | _headline(device, launches, workload)
        )


def _headline(
    device: TimedDevice, launches: Sequence[TimedLaunch], workload: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    from manyscale.gpu.headline import headline

    return headline(launches, device.uvm.statistics() if workload.get("managed") else None)


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
    from manyscale.system.running import statistics_columns

    columns = statistics_columns(device.parts.system)
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
    """Keeps, for reports, what limits each kernel and its roofline."""
    text = json.dumps({name: profile.evidence() for name, profile in profiles.items()}, indent=1)
    writer.write_file(PROFILES_FILE, text.encode())
