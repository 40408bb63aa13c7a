# SPDX-License-Identifier: Apache-2.0
"""Points on a Dask cluster: one of this machine, one that runs already, or one whose workers Slurm starts."""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import sys
import tempfile
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
_POINTS_PER_THREAD = 4  # submitted at a time, so that no worker waits for the scheduler
_FIRST_POINTS = 32  # submitted while it is not known how many workers there are


def connect(on: str, workers: int | None, threads: int, options: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """A client of the scheduler, and all that is to be closed in the end.

    What a cluster of ours runs is whatever it is sent, so it talks TLS only, with a key made for the one sweep.
    """
    try:
        import distributed as library
    except ImportError:
        raise InputError("sweeps on clusters need Dask: pip install 'manyscale[dask]'") from None
    distributed: Any = library  # it has no types
    if on not in ("dask", "slurm"):
        return _running(distributed, on, options)
    to_close: list[Any] = []
    try:
        make = _local if on == "dask" else _slurm
        cluster = make(distributed, workers, threads, options, to_close)
        to_close.insert(0, cluster)
        client = distributed.Client(cluster, set_as_default=False)
    except BaseException:
        for one in to_close:
            one.close()
        raise
    return client, [client, *to_close]


def _running(distributed: Any, on: str, options: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """A cluster that runs already; options are the files of `distributed.Security`, for one that talks TLS."""
    try:
        security = distributed.Security(**options) if options else None
        client = distributed.Client(on, timeout=_CONNECT_SECONDS, set_as_default=False, security=security)
    except TypeError as error:
        raise InputError(f"{on}: {error}") from None
    except (OSError, TimeoutError, ValueError) as error:
        raise ManyscaleError(f"there is no Dask scheduler at {on}: {error}") from None
    return client, [client]


def _temporary_key(distributed: Any) -> Any:
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise InputError(
            "sweeps on clusters need the package cryptography: pip install 'manyscale[dask]'"
        ) from None


def _local(
    distributed: Any, workers: int | None, threads: int, options: Mapping[str, Any], to_close: list[Any]
) -> Any:
    """A cluster of this machine, which no other machine reaches; its key is nowhere but in memory."""
    number = workers or max(usable_cores() // threads, 1)
    given = {"host": "127.0.0.1", "protocol": "tls://", "dashboard_address": None, **options}
    if given["protocol"] == "tls://" and "security" not in given:
        given["security"] = _temporary_key(distributed)
    try:
        return distributed.LocalCluster(n_workers=number, threads_per_worker=1, **given)
    except (TypeError, ValueError) as error:
        raise InputError(f"dask: {error}") from None


def _slurm(
    distributed: Any, workers: int | None, threads: int, options: Mapping[str, Any], to_close: list[Any]
) -> Any:
    """Workers as jobs of Slurm; what is not given here comes from Dask's own settings (jobqueue.slurm).

    The workers read the key from files of this user alone, in a folder that is gone with the cluster. Pages of
    diagnosis, which have no TLS, are for the machine alone that serves them.
    """
    try:
        import dask
        import dask_jobqueue as library
    except ImportError:
        raise InputError("sweeps on Slurm need dask-jobqueue: pip install 'manyscale[dask]'") from None
    given = {"cores": 1, "processes": 1, "memory": "4GB", "job_cpu": threads, **options}
    settings: Any = dask.config.get

    def setting(name: str) -> Any:
        return given.get(name.replace("-", "_")) or settings(f"jobqueue.slurm.{name}", None)

    scheduler = {
        "dashboard_address": "127.0.0.1:0",
        "dashboard": False,
        **(setting("scheduler-options") or {}),
    }
    if not setting("interface") and not {"host", "interface"} & set(scheduler):
        # The address by which other machines reach this one, and no other.
        scheduler["host"] = distributed.utils.get_ip()
    given["scheduler_options"] = scheduler
    pages = ["--dashboard-address", "127.0.0.1:0", "--no-dashboard"]
    given["worker_extra_args"] = [*pages, *(setting("worker-extra-args") or [])]
    if "security" not in given:
        folder = KeyFolder(setting("shared-temp-directory"))
        to_close.append(folder)
        given["security"] = folder.keep(distributed, _temporary_key(distributed))
    jobqueue: Any = library
    try:
        cluster = jobqueue.SLURMCluster(**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"slurm: {error}") from None
    cluster.scale(workers or 4)
    return cluster


class KeyFolder:
    """A folder that none but this user can look into, for the keys of workers; by default in the working directory,
    since workers on other machines have to find it."""

    def __init__(self, parent: str | None) -> None:
        within = os.path.expanduser(os.path.expandvars(parent)) if parent else os.getcwd()
        self.path = tempfile.mkdtemp(prefix=".manyscale-keys-", dir=within)

    def keep(self, distributed: Any, key: Any) -> Any:
        """The key in files; Dask's own way leaves them to Python's garbage collector."""
        files = {"cert": key.tls_ca_file, "key": key.tls_worker_key}  # the certificate signs itself
        for name, text in files.items():
            path = os.path.join(self.path, name)
            with open(path, "w", opener=lambda path, flags: os.open(path, flags | os.O_EXCL, 0o600)) as file:
                file.write(text)
            files[name] = path
        given = {
            f"tls_{role}_{name}": path
            for role in ("scheduler", "worker", "client")
            for name, path in files.items()
        }
        return distributed.Security(tls_ca_file=files["cert"], require_encryption=True, **given)

    def close(self) -> None:
        """Removes it and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


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
