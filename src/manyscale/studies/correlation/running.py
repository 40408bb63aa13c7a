# SPDX-License-Identifier: Apache-2.0
"""Running a program for its correlation: once as it was measured, and again with changed parameters if asked."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from pathlib import Path

from manyscale import cuda
from manyscale.cuda import CudaRun, NodeOptions, Profiling
from manyscale.errors import InputError, ManyscaleError
from manyscale.gpu.isa import Isa
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.machine.gpu_system import build_gpu

from .comparison import Correlation, by_kernel
from .explanation import Sensitivity
from .formats import Measurements, read_measurements
from .matching import match
from .values import LaunchValues, simulated

_STEP = 1.25  # by which a parameter is changed to see what it does


def correlate(
    program: Sequence[str],
    truth: str | os.PathLike[str] | Measurements,
    machine: str = "v100",
    *,
    changes: Sequence[str] = (),
    node: NodeOptions | None = None,
    as_program: str | None = None,
    sensitivity: bool = False,
    out: str | os.PathLike[str] | None = None,
    stdout: int | None = None,
    command: Sequence[str] = (),
) -> Correlation:
    """Runs a program (its file and its arguments) and compares its launches with measured ones.

    `truth`: a file of measurements, or what `read_measurements` made of one; `as_program` is the name of the program
    in a file with several, else its own. `node` says how it is simulated; without it, launches of a profiler are run
    as under a profiler, one after the other with a cold L2 and warm instruction caches. `sensitivity`: it is run three
    times more, to see what the time of each kernel depends on. `out`: leaves the run directory of the simulation there.
    """
    measured = truth if isinstance(truth, Measurements) else _read(truth, as_program or Path(program[0]).name)
    options = node or default_options(measured)
    resolved = load_machine(machine, changes)
    run = cuda.run(program, resolved, node=options, out=out, stdout=stdout, command=command)
    _check(run, program)
    launches = _launches(run)
    matched = match(launches, measured.launches)
    if not matched.pairs:
        raise InputError(
            f"no launch of {Path(program[0]).name} is one of the measurements: it launched "
            f"{_names(launches)}, measured are {_names(measured.launches)}"
        )
    found = Correlation(
        Path(program[0]).name, resolved.machine.name or machine, measured, matched, by_kernel(matched)
    )
    if not sensitivity:
        return found
    return dataclasses.replace(
        found, sensitivities=_sensitivities(found, program, machine, changes, options, stdout)
    )


def default_options(measured: Measurements, isa: Isa | None = None) -> NodeOptions:
    """How launches are simulated so that they compare with these measurements."""
    numbered = [
        index if launch.number is None else launch.number for index, launch in enumerate(measured.launches)
    ]
    unnamed = not all(launch.kernel for launch in measured.launches)
    profiling = Profiling(
        cold_l2=measured.profiled,
        warm_instructions=measured.profiled,
        launches=max(numbered) + 1 if unnamed else None,  # later ones have nothing to be compared with
        stop=unnamed,
    )
    return NodeOptions(isa=isa, profiling=profiling)


def _read(path: str | os.PathLike[str], program: str) -> Measurements:
    return read_measurements(path, program)


def _check(run: CudaRun, program: Sequence[str]) -> None:
    if run.failure is not None:
        raise ManyscaleError(f"{Path(program[0]).name}: {run.failure}; there is nothing to compare")


def _launches(run: CudaRun) -> list[LaunchValues]:
    return [simulated(record) for record in run.kernels]


def _names(launches: Sequence[LaunchValues]) -> str:
    names = list(dict.fromkeys(launch.base or "launches without names" for launch in launches))
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "") if names else "none"


# --- Sensitivity ---


def mechanisms(resolved: ResolvedMachine) -> dict[str, list[str]]:
    """The changes of a machine that show what the time of a kernel depends on, by mechanism."""
    gpu = resolved.machine.gpu
    if gpu is None or gpu.clock is None or gpu.memory is None or gpu.crossbar is None:
        raise InputError("the machine states no clock, memory or crossbar of its GPU: nothing can be changed")
    parts = build_gpu(resolved.machine)
    channel = parts.system.components["channel[0]"].spec.model_dump()
    found = {"issue": [f"gpu.clock={round(gpu.clock * _STEP)}Hz"]}
    if channel.get("clock"):
        found["bandwidth"] = [f"gpu.memory.clock={round(channel['clock'] * _STEP)}Hz"]
    links = {
        "gpu.memory.link_latency": gpu.memory.link_latency,
        "gpu.crossbar.link_latency": gpu.crossbar.link_latency,
    }
    longer = [f"{name}={round(latency * _STEP)}fs" for name, latency in links.items() if latency]
    if longer:
        found["latency"] = longer
    return found


def _sensitivities(
    found: Correlation,
    program: Sequence[str],
    machine: str,
    changes: Sequence[str],
    options: NodeOptions,
    stdout: int | None,
) -> dict[str, Sensitivity]:
    """By kernel and mechanism: log(time with it / time) / log(change)."""
    seconds = {kernel.kernel: _seconds(kernel.pairs) for kernel in found.kernels}
    powers: dict[str, dict[str, float]] = {kernel: {} for kernel in seconds}
    for mechanism, more in mechanisms(load_machine(machine, changes)).items():
        run = cuda.run(program, load_machine(machine, [*changes, *more]), node=options, stdout=stdout)
        _check(run, program)
        for kernel in by_kernel(match(_launches(run), found.measurements.launches)):
            before, after = seconds.get(kernel.kernel), _seconds(kernel.pairs)
            if before and after:
                powers[kernel.kernel][mechanism] = math.log(after / before) / math.log(_STEP)
    return dict(powers)


def _seconds(pairs: Sequence[object]) -> float:
    return sum(pair.simulated.values["seconds"] for pair in pairs)  # type: ignore[attr-defined]
