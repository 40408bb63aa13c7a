# SPDX-License-Identifier: Apache-2.0

from . import cpu, cuda, gpu, network
from .errors import (
    DeadlockError,
    GraphError,
    InputError,
    KernelError,
    ManyscaleError,
    OutOfMemoryError,
    ProgramError,
    RunError,
)
from .machine import Machine, load_machine
from .results import compare, identical, load
from .spec import Bandwidth, Bytes, Count, Cycles, Frequency, Ratio, Spec, Time, parameter
from .studies.sweep import Study
from .system import (
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
    "KernelError",
    "Machine",
    "ManyscaleError",
    "OutOfMemoryError",
    "Port",
    "ProgramError",
    "Ratio",
    "Result",
    "RunError",
    "Series",
    "Spec",
    "Study",
    "System",
    "Time",
    "Timer",
    "compare",
    "cpu",
    "cuda",
    "gpu",
    "identical",
    "load",
    "load_machine",
    "models",
    "network",
    "parameter",
]
