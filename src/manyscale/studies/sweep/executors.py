# SPDX-License-Identifier: Apache-2.0
"""Executors of studies by the words of `--on`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError, nearest
from manyscale.studies.sweep.executor import Executor
from manyscale.studies.sweep.local import LocalExecutor, usable_cores

if TYPE_CHECKING:
    from manyscale.studies.sweep.study import Study

EXECUTORS = ("local", "dask", "slurm")
_SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://", "inproc://")


def make_executor(on: str, study: Study, workers: int | None, options: Mapping[str, Any]) -> Executor:
    """The executor of that name: local, dask, slurm, or the address of a Dask scheduler."""
    if workers is not None and workers < 1:
        raise InputError(f"cannot run on {workers} workers; give at least 1")
    if on == "local":
        number = workers or max(usable_cores() // study.plan.threads, 1)
        return LocalExecutor(number, modules=study.kind.modules, timeout=study.timeout)
    if on not in EXECUTORS and not on.startswith(_SCHEMES):
        raise InputError(
            f"there is no executor '{on}'; {nearest(on, EXECUTORS)} Or give the address of a Dask scheduler, such as "
            "tcp://host:8786"
        )
    if study.timeout is not None:
        raise InputError("a timeout is kept by local workers only; on a cluster, limit the jobs")
    from manyscale.studies.sweep.cluster import ClusterExecutor, connect

    return ClusterExecutor(lambda: connect(on, workers, study.plan.threads, options), on)
