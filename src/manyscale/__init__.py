# SPDX-License-Identifier: Apache-2.0
"""Manyscale: a simulator of parallel machines at every scale."""

from manyscale.errors import DeadlockError, GraphError, InputError, ManyscaleError, RunError
from manyscale.machine import Machine, load_machine
from manyscale.results import compare, identical, load
from manyscale.spec import Bandwidth, Bytes, Count, Cycles, Frequency, Ratio, Spec, Time, parameter
from manyscale.system import (
    Clock,
    Component,
    Counter,
    Gauge,
    Histogram,
    Port,
    Result,
    Series,
    System,
    Timer,
    models,
)

__all__ = [
    "Bandwidth",
    "Bytes",
    "Clock",
    "Component",
    "Count",
    "Counter",
    "Cycles",
    "DeadlockError",
    "Frequency",
    "Gauge",
    "GraphError",
    "Histogram",
    "InputError",
    "Machine",
    "ManyscaleError",
    "Port",
    "Ratio",
    "Result",
    "RunError",
    "Series",
    "Spec",
    "System",
    "Time",
    "Timer",
    "compare",
    "identical",
    "load",
    "load_machine",
    "models",
    "parameter",
]
