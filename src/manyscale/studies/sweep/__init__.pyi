# SPDX-License-Identifier: Apache-2.0

from .axes import Axis
from .controller import Begun, Notice
from .executor import Executor, Finished, Lost
from .local import LocalExecutor
from .study import Study
from .sweep_directory import Sweep, load_sweep
from .workload import Given, Kind, Outcome, Parameter

__all__ = [
    "Axis",
    "Begun",
    "Executor",
    "Finished",
    "Given",
    "Kind",
    "LocalExecutor",
    "Lost",
    "Notice",
    "Outcome",
    "Parameter",
    "Study",
    "Sweep",
    "load_sweep",
]
