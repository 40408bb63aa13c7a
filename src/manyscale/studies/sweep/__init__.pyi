# SPDX-License-Identifier: Apache-2.0

from .axes import Axis
from .controller import Begun, Notice
from .executor import Executor, Finished, Lost
from .local import LocalExecutor
from .study import Study
from .sweep_directory import Sweep, load_sweep
from .workload import Outcome, Parameter, RunRequest, WorkloadKind

__all__ = [
    "Axis",
    "Begun",
    "Executor",
    "Finished",
    "LocalExecutor",
    "Lost",
    "Notice",
    "Outcome",
    "Parameter",
    "RunRequest",
    "Study",
    "Sweep",
    "WorkloadKind",
    "load_sweep",
]
