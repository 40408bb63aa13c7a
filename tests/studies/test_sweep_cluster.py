# SPDX-License-Identifier: Apache-2.0
"""Sweeps on Dask clusters: the same table as here, also when a worker dies, and with workers that Slurm starts."""

import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from manyscale.errors import InputError, ManyscaleError
from manyscale.studies.sweep import Begun, Notice, Study

pytest.importorskip("distributed", reason="sweeps on clusters need Dask: pip install 'manyscale[dask]'")

pytestmark = pytest.mark.filterwarnings("default")  # Dask has warnings of its own

HOST_TIMES = ("wall_seconds", "attempts")


def study() -> Study:
    return Study(
        {"kind": "network", "work": "allreduce", "param": {"iterations": 2}},
        name="cluster",
        machine="omnipath",
        axes={"workload.nodes": [2, 3, 4], "network.link.bandwidth": ["25Gb/s", "100Gb/s", "oops"]},
        repetitions=2,
    )


def test_a_dask_cluster_gives_the_same_table(tmp_path: Path) -> None:
    here = study().run(tmp_path / "here", workers=2)
    there = study().run(tmp_path / "there", on="dask", workers=2)
    assert (
        there.info["counts"] == here.info["counts"] == {"points": 18, "distinct": 18, "done": 12, "failed": 6}
    )
    assert_frame_equal(there.table.drop(HOST_TIMES), here.table.drop(HOST_TIMES))


def test_a_running_scheduler_survives_the_death_of_a_worker(tmp_path: Path) -> None:
    import distributed

    (tmp_path / "slow_work.py").write_text(
        "import os, time\ndef work(n):\n    time.sleep(0.02)\n    return {'double': 2 * n, 'process': os.getpid()}\n"
    )
    sys.path.insert(0, str(tmp_path))
    killed: list[int] = []

    def kill_one(news: object) -> None:
        if isinstance(news, Notice) and news.arrived == 10:
            killed.append(int(news.record["values"]["process"] or 0))
            os.kill(killed[0], signal.SIGKILL)

    try:
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            sweep = Study(
                {"kind": "python", "function": "slow_work:work"},
                axes={"workload.n": {"from": 0, "to": 59, "step": 1}},
            ).run(tmp_path / "sweep", on=cluster.scheduler_address, notice=kill_one)
    finally:
        sys.path.remove(str(tmp_path))
    assert killed
    assert sweep.table["double"].to_list() == [2 * n for n in range(60)]


SBATCH = """#!/bin/sh
# Stands for Slurm: keeps the script, which is gone soon, and runs it in the background as a session of its own.
cp "$1" "{folder}/job.$$.sh"
setsid sh "{folder}/job.$$.sh" > "{folder}/job.$$.log" 2>&1 &
echo $! >> {folder}/jobs
echo "Submitted batch job $!"
"""

SCANCEL = """#!/bin/sh
echo "$@" >> {folder}/cancelled
kill -TERM -- -$1 2> /dev/null || true
"""


def test_slurm_starts_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With commands in the place of Slurm's, the workers are started by job scripts, and ended afterwards."""
    pytest.importorskip("dask_jobqueue", reason="sweeps on Slurm need dask-jobqueue")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    seen: list[object] = []
    sweep = study().run(
        tmp_path / "sweep",
        on="slurm",
        workers=2,
        notice=seen.append,
        queue="short",
        walltime="00:10:00",
        memory="1GB",
        interface="lo",
        scheduler_options={"dashboard_address": None},
    )
    assert isinstance(seen[0], Begun)
    assert sweep.info["counts"]["done"] == 12
    assert len((folder / "jobs").read_text().split()) == 2
    assert len((folder / "cancelled").read_text().split()) == 2


def test_places_that_are_none_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'slurm'"):
        study().run(tmp_path / "sweep", on="slrum")
    with pytest.raises(InputError, match="cannot run on 0 workers"):
        study().run(tmp_path / "sweep", workers=0)


def test_an_absent_scheduler_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyscale.studies.sweep.cluster._CONNECT_SECONDS", 1)
    with pytest.raises(ManyscaleError, match="there is no Dask scheduler at"):
        study().run(tmp_path / "sweep", on="tcp://127.0.0.1:1")
