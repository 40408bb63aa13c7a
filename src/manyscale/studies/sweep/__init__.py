# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one workload at many points, on all cores, a Dask cluster or Slurm; a killed sweep goes on where it was.

>>> from manyscale import Study
>>> study = Study({"kind": "network", "work": "allreduce"}, axes={"workload.nodes": [4, 8]})
>>> study.run().table                                         # doctest: +SKIP
"""

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
