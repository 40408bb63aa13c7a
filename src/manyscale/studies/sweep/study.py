# SPDX-License-Identifier: Apache-2.0
"""A study: a workload on a machine, run once for each combination of what is varied."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError, nearest
from manyscale.results.run_directory import package_version
from manyscale.studies.sweep.axes import AxisGroup, make_axis, make_group
from manyscale.studies.sweep.functions import name_of
from manyscale.studies.sweep.kinds import kind_of
from manyscale.studies.sweep.metrics import Metric, make_metrics
from manyscale.studies.sweep.points import MACHINE, MOST_POINTS, SEED, VARIABLE, WORKLOAD, Plan, Point
from manyscale.studies.sweep.workload import WorkloadKind
from manyscale.units import shown

if TYPE_CHECKING:
    from manyscale.studies.sweep.executor import Executor
    from manyscale.studies.sweep.sweep_directory import Sweep

_PATH = re.compile(r"[A-Za-z0-9_-]+(\[\d+\])?(\.[A-Za-z0-9_-]+(\[\d+\])?)*")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_MOST_REPETITIONS = 100_000
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(ms|s|min|h)?")
_UNITS_OF_TIME = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class Study:
    """A workload, a machine, axes and metrics; `run()` runs what of it has no result yet.

    `workload` is a dictionary such as {"kind": "network", "work": "allreduce", "nodes": 16}, or a function. Keys of
    `axes` are "machine", "seed", "workload.NAME", "let.NAME" (a variable, {NAME} in texts of the workload), or any
    parameter of the machine, as `--set` takes it; values are lists or ranges ({"from": 1, "to": 64, "factor": 2}).
    All axes are crossed; those of one dictionary of `zipped` go together. `changes` are the same at all points.
    `metrics` are headline numbers or statistics such as "core[*]:l1.hits"; without them, all headline numbers.
    """

    def __init__(
        self,
        workload: Mapping[str, Any] | Callable[..., Any],
        *,
        name: str = "study",
        machine: str | os.PathLike[str] | None = None,
        changes: Mapping[str, Any] | None = None,
        axes: Mapping[str, Any] | None = None,
        zipped: Sequence[Mapping[str, Any]] = (),
        repetitions: int = 1,
        seed: int = 0,
        metrics: Any = (),
        threads: int = 1,
        timeout: str | None = None,
        folder: str | os.PathLike[str] = ".",
        where: str = "study",
    ) -> None:
        if callable(workload):
            workload = {"kind": "python", "function": name_of(workload)}
        self.name = name
        self.where = where
        self.source: str | None = None
        """The text of the file it was read from."""
        self.metrics: tuple[Metric, ...] = make_metrics(metrics, f"{where}: metrics")
        self.timeout: float | None = None if timeout is None else _seconds(timeout, f"{where}: timeout")
        self.kind, told = _checked_workload(workload, f"{where}: workload")
        given = _table(axes or {}, f"{where}: axes")
        groups = [
            AxisGroup((make_axis(key, values, f"{where}: axes.{key}"),)) for key, values in given.items()
        ]
        groups += [make_group(_table(one, f"{where}: zip"), f"{where}: zip") for one in zipped]
        base = Path(folder)
        self.plan = Plan(
            kind=self.kind,
            workload=told,
            machine=None if machine is None else _machine_name(machine, where),
            changes=_table(changes or {}, f"{where}: set"),
            groups=groups,
            repetitions=_whole(repetitions, 1, _MOST_REPETITIONS, f"{where}: repetitions"),
            seed=_whole(seed, 0, 2**32, f"{where}: seed"),
            threads=_whole(threads, 1, 1024, f"{where}: threads"),
            version=package_version(),
            folder=base,
        )
        self._check_axes()
        if self.plan.count > MOST_POINTS:
            raise InputError(
                f"{where}: {self.plan.count:,} points are too many; at most {MOST_POINTS:,} can be run"
            )

    def points(self) -> list[Point]:
        """All points, in order; the last axis changes fastest."""
        return list(self.plan.points())

    def run(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        on: str | Executor = "local",
        workers: int | None = None,
        retry: bool = False,
        notice: Callable[[Any], None] | None = None,
        command: Sequence[str] = (),
        **options: Any,
    ) -> Sweep:
        """Runs all points that have no result yet, and returns the sweep with its table.

        Results are kept in the folder `out`, sweeps/NAME if none is named; a run that was killed goes on there.
        `on` is "local" (all cores), "dask", "slurm", the address of a Dask scheduler, or an executor. With `retry`,
        points that failed are run again. `notice` is told each result as it arrives.
        """
        from manyscale.studies.sweep.controller import run_study

        directory = Path("sweeps") / self.name if out is None else Path(out)
        return run_study(
            self,
            directory,
            on=on,
            workers=workers,
            retry=retry,
            notice=notice,
            command=command,
            options=options,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], changes: Sequence[str] = ()) -> Study:
        """The study in a file (study.toml), perhaps with changes of the machine such as "gpu.clock=1GHz"."""
        from manyscale.studies.sweep.study_file import read_study

        return read_study(path, changes)

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.name} x {len(axis.values)}" for axis in self.plan.axes)
        return f"Study('{self.name}', {self.kind.name}, {self.plan.count:,} points: {axes or 'no axes'})"

    def _check_axes(self) -> None:
        seen: set[str] = set()
        for axis in self.plan.axes:
            where = f"{self.where}: axis '{axis.name}'"
            if axis.name in seen:
                raise InputError(f"{where}: it is there twice")
            seen.add(axis.name)
            if axis.name == MACHINE:
                if not all(isinstance(value, str) for value in axis.values):
                    raise InputError(f"{where}: its values are names or files of machines")
            elif axis.name == SEED:
                for value in axis.values:
                    _whole(value, 0, 2**32, where)
            elif axis.name.startswith(VARIABLE):
                if not _VARIABLE.fullmatch(axis.name.removeprefix(VARIABLE)):
                    raise InputError(f"{where}: a variable has a name such as let.n")
            elif axis.name.startswith(WORKLOAD):
                self.kind.check_name(axis.name.removeprefix(WORKLOAD), where)
            else:
                self._check_path(axis.name, where)
        names = {name.removeprefix(WORKLOAD) for name in seen if name.startswith(WORKLOAD)}
        self.kind.check_required(names | set(self.plan.workload), f"{self.where}: workload")
        for name in self.plan.changes:
            self._check_path(name, f"{self.where}: set.{name}")

    def _check_path(self, name: str, where: str) -> None:
        """Whether machines can have a parameter of that name; of a saved system only the system knows."""
        if not _PATH.fullmatch(name):
            raise InputError(
                f"{where}: expected machine, seed, workload.NAME, let.NAME or a path such as gpu.clock"
            )
        if self.kind.name == "system":
            return
        from manyscale.machine import Machine
        from manyscale.spec import parameters

        known = [parameter.path.replace("[]", "") for parameter in parameters(Machine)]
        plain = re.sub(r"\[\d+\]", "", name)
        if not any(path == plain or path.startswith(f"{plain}.") for path in known):
            own = [f"{WORKLOAD}{one.name}" for one in self.kind.parameters]
            raise InputError(f"{where}: machines have no such parameter; {nearest(name, [*known, *own])}")


def _checked_workload(workload: Any, where: str) -> tuple[WorkloadKind, dict[str, Any]]:
    told = _table(workload, where)
    if "kind" not in told:
        raise InputError(f"{where}: say its kind, such as network, cpu or gpu")
    try:
        kind = kind_of(told.pop("kind"))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    kind.check_present(told, where)  # what is required may come from an axis
    return kind, told


def _table(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: expected a table of names and values, got {shown(given)}")
    return dict(given)


def _whole(value: Any, least: int, most: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{where}: expected a whole number from {least} to {most:,}, got {shown(value)}")
    return value


def _seconds(text: Any, where: str) -> float:
    match = _DURATION.fullmatch(str(text).strip()) if isinstance(text, str | int | float) else None
    seconds = float(match[1]) * _UNITS_OF_TIME[match[2] or "s"] if match else 0.0
    if not 0 < seconds < math.inf:
        raise InputError(f"{where}: expected a time of the host such as '90s' or '2h', got {shown(text)}")
    return seconds


def _machine_name(machine: Any, where: str) -> str:
    if not isinstance(machine, str | os.PathLike):
        raise InputError(f"{where}: machine: expected a preset's name or a file, got {shown(machine)}")
    return str(machine)
