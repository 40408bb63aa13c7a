# SPDX-License-Identifier: Apache-2.0
"""Points on a Dask cluster: one of this machine, one that runs already, or one whose workers Slurm starts."""

from __future__ import annotations

import itertools
import os
import queue
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from manyscale.errors import InputError, ManyscaleError
from manyscale.studies.sweep.executor import Finished, Lost
from manyscale.studies.sweep.local import usable_cores
from manyscale.studies.sweep.worker import Record, Task, failed, run_task

_PATIENCE = 0.5  # seconds until `wait` comes back without news
_CONNECT_SECONDS = 30
_POINTS_PER_THREAD = 4  # under way, so that no worker waits for the scheduler
_FIRST_POINTS = 32  # under way while it is not known how many workers there are


def connect(on: str, workers: int | None, threads: int, options: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """A client of the scheduler, and all that is to be closed in the end."""
    try:
        import distributed as library
    except ImportError:
        raise InputError("sweeps on clusters need Dask: pip install 'manyscale[dask]'") from None
    distributed: Any = library  # it has no types
    if on == "dask":
        number = workers or max(usable_cores() // threads, 1)
        cluster: Any = distributed.LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=None, **options
        )
    elif on == "slurm":
        cluster = _slurm(workers, threads, options)
    else:
        try:
            client = distributed.Client(on, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ManyscaleError(f"there is no Dask scheduler at {on}: {error}") from None
        return client, [client]
    client = distributed.Client(cluster, set_as_default=False)
    return client, [client, cluster]


def _slurm(workers: int | None, threads: int, options: Mapping[str, Any]) -> Any:
    """Workers as jobs of Slurm; what is not given here comes from Dask's own settings (jobqueue.slurm)."""
    try:
        import dask_jobqueue as library
    except ImportError:
        raise InputError("sweeps on Slurm need dask-jobqueue: pip install 'manyscale[dask]'") from None
    given = {"cores": 1, "processes": 1, "memory": "4GB", "job_cpu": threads, **options}
    jobqueue: Any = library
    try:
        cluster = jobqueue.SLURMCluster(**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"slurm: {error}") from None
    cluster.scale(workers or 4)
    return cluster


def run_elsewhere(task: Task, path: list[str]) -> Record:
    """Runs a point on a worker that was not started for it: modules are found where the controller found them."""
    sys.path += [folder for folder in path if folder not in sys.path and os.path.isdir(folder)]
    return run_task(task)


class ClusterExecutor:
    """Points as tasks of a Dask scheduler, which also gives those of lost workers to others, up to its own limit."""

    def __init__(self, connector: Callable[[], tuple[Any, list[Any]]], name: str) -> None:
        self._connector = connector
        self._name = name
        self._client: Any = None
        self._to_close: list[Any] = []
        self._points: dict[str, str] = {}  # by the key of the task
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._number = itertools.count()
        self._capacity = _FIRST_POINTS
        self._counted = 0.0
        self._path = [os.path.abspath(folder or ".") for folder in sys.path]

    def describe(self) -> str:
        """In words, where points are run."""
        return (
            f"the Dask cluster at {self._name}" if "://" in self._name else f"a Dask cluster ({self._name})"
        )

    @property
    def capacity(self) -> int:
        """Enough that no worker waits for the next point."""
        return self._capacity

    def __enter__(self) -> ClusterExecutor:
        self._client, self._to_close = self._connector()
        self._count_threads()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._futures:
            self._client.cancel(list(self._futures.values()), force=True)
        for one in self._to_close:
            one.close()

    def submit(self, task: Task) -> None:
        """Takes a point."""
        name = f"point-{task['key']}-{next(self._number)}"
        self._points[name] = task["key"]
        future = self._client.submit(run_elsewhere, task, self._path, key=name, pure=False)
        self._futures[name] = future
        future.add_done_callback(self._ended.put)

    def wait(self) -> list[Finished | Lost]:
        """What has happened; at least one thing, or nothing after a short while."""
        ended = []
        try:
            ended.append(self._ended.get(timeout=_PATIENCE))
            while True:
                ended.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        if time.monotonic() > self._counted + _PATIENCE:
            self._count_threads()
        whole = [future for future in ended if future.status == "finished"]
        records = self._client.gather(whole, errors="skip") if whole else []
        arrived = {record["key"]: record for record in records}
        return [self._news(future, arrived) for future in ended]

    def _news(self, future: Any, arrived: Mapping[str, Record]) -> Finished | Lost:
        point = self._points.pop(future.key)
        del self._futures[future.key]
        if point in arrived:
            return Finished(arrived[point])
        if future.status == "error":
            return Finished(failed(point, f"its workers died of it: {future.exception()}"))
        return Lost(point, f"the task was {future.status}", blamed=False)

    def _count_threads(self) -> None:
        """Workers come and go."""
        self._counted = time.monotonic()
        threads = sum(self._client.nthreads().values())
        self._capacity = max(threads * _POINTS_PER_THREAD, _FIRST_POINTS)
