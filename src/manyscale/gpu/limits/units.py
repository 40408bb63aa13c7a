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
    busy = execution.values["unit_fp64"]
    if busy < _BUSY or peaks.intervals["fp64"] <= peaks.intervals["fp32"]:
        return
    sub_cores = execution.sms * peaks.sub_cores
    single = demands["unit_fp32"] + sm["issued_fp64"] * peaks.intervals["fp32"] / sub_cores
    slower = peaks.intervals["fp64"] / peaks.intervals["fp32"]
    yield Cause(
        "fp64 units",
        f"they are {busy:.0f}% busy while an SM has a CTA (Math Pipe Throttle), and an SM of this machine has "
        f"{slower:g} times as many fp32 lanes",
        "Compute in single precision where the accuracy allows it: mind literals such as 1.0 for 1.0f and functions "
        "such as sqrt for sqrtf",
        execution.saved(demands={"unit_fp64": 0.0, "unit_fp32": single}),
    )


@cause
def special_functions(execution: Execution) -> Iterator[Cause]:
    """Without them, and the instructions around them that belong to the same operation, the next part decides."""
    sm, demands, rows = execution.sm, execution.demands, execution.counts.operations
    busy = execution.values["unit_special"]
    if busy < _BUSY:
        return
    columns = zip(rows["text"], *(rows[name] for name in OPERATION_CYCLES), strict=True)
    own = [cycles for text, *cycles in columns if _SPECIAL.match(text)]
    issued = sum(cycles[0] for cycles in own)
    others = max(issued - sm["issued_special"], 0)
    sub_cores = execution.sms * execution.peaks.sub_cores
    after = {
        "unit_special": 0.0,
        "unit_fp32": max(demands["unit_fp32"] - others * execution.peaks.intervals["fp32"] / sub_cores, 0.0),
        "issue_slots": demands["issue_slots"] - issued / sub_cores,
    }
    yield Cause(
        "special-function units",
        f"they are {busy:.0f}% busy while an SM has a CTA (XU, Math Pipe Throttle)",
        "Take what does not change out of the loop, divide by multiplying with a reciprocal, and avoid conversions "
        "between types",
        execution.saved(stalls=sum(map(sum, own)), demands=after),
    )
