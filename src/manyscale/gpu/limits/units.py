# SPDX-License-Identifier: Apache-2.0
"""Slow arithmetic where there is a faster kind: double precision, special functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .cause import Cause, cause
from .execution import OPERATION_CYCLES, Execution

_BUSY = 60.0  # percent
# Of PTX and of SASS.
_SPECIAL = re.compile(
    r"(ex2|lg2|sin|cos|tanh|sqrt|rsqrt|rcp|div|rem|cvt|popc|clz|bfind|MUFU|I2F|F2I|F2F|POPC|FLO)\b"
)


@cause
def double_precision(execution: Execution) -> Iterator[Cause]:
    """The same operations in single precision take fewer cycles of a unit that has more lanes."""
    sm, peaks, demands = execution.sm, execution.peaks, execution.demands
    busy = execution.values["pipe_fp64"]
    if busy < _BUSY or peaks.intervals["fp64"] <= peaks.intervals["fp32"]:
        return
    sub_cores = execution.sms * peaks.sub_cores
    single = demands["pipe_fma"] + sm["issued_fp64"] * peaks.intervals["fp32"] / sub_cores
    slower = peaks.intervals["fp64"] / peaks.intervals["fp32"]
    yield Cause(
        "FP64 pipe",
        f"{busy:.0f}% busy while an SM has a CTA (Math Pipe Throttle), and an SM of this machine has "
        f"{slower:g} times as many fp32 lanes",
        "Compute in single precision where the accuracy allows it: mind literals such as 1.0 for 1.0f and functions "
        "such as sqrt for sqrtf",
        execution.saved(demands={"pipe_fp64": 0.0, "pipe_fma": single}),
    )


@cause
def special_functions(execution: Execution) -> Iterator[Cause]:
    """Without them, and the instructions around them that belong to the same operation, the next part decides."""
    sm, demands, rows = execution.sm, execution.demands, execution.counts.operations
    busy = execution.values["pipe_xu"]
    if busy < _BUSY:
        return
    columns = zip(rows["text"], *(rows[name] for name in OPERATION_CYCLES), strict=True)
    own = [cycles for text, *cycles in columns if _SPECIAL.match(text)]
    issued = sum(cycles[0] for cycles in own)
    others = max(issued - sm["issued_xu"], 0)
    sub_cores = execution.sms * execution.peaks.sub_cores
    after = {
        "pipe_xu": 0.0,
        "pipe_fma": max(demands["pipe_fma"] - others * execution.peaks.intervals["fp32"] / sub_cores, 0.0),
        "issue_slots": demands["issue_slots"] - issued / sub_cores,
    }
    yield Cause(
        "XU pipe",
        f"{busy:.0f}% busy while an SM has a CTA (Math Pipe Throttle)",
        "Take what does not change out of the loop, divide by multiplying with a reciprocal, and avoid conversions "
        "between types",
        execution.saved(stalls=sum(map(sum, own)), demands=after),
    )
