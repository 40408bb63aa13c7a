# SPDX-License-Identifier: Apache-2.0
"""Sweeps on Dask clusters: the same table as here, also when a worker dies, and with workers that Slurm starts."""

import os
import signal
import stat
import sys
from pathlib import Path

import psutil
import pytest
from polars.testing import assert_frame_equal

from manyscale.errors import InputError, ManyscaleError
from manyscale.studies.sweep import Begun, Notice, Study
from manyscale.studies.sweep.cluster import connect

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


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of commands instead of Slurm's; sweeps run in the folder above it."""
    pytest.importorskip("dask_jobqueue", reason="sweeps on Slurm need dask-jobqueue")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return folder


def test_slurm_starts_the_workers(tmp_path: Path, slurm: Path) -> None:
    """With commands instead of Slurm's, the workers are started by job scripts, and ended afterwards."""
    seen: list[object] = []
    keys: list[Path] = []

    def notice(news: object) -> None:
        seen.append(news)
        if isinstance(news, Notice):
            keys.extend(tmp_path.glob(".manyscale-keys-*"))

    sweep = study().run(
        tmp_path / "sweep",
        on="slurm",
        workers=2,
        notice=notice,
        queue="short",
        walltime="00:10:00",
        memory="1GB",
        interface="lo",
    )
    assert isinstance(seen[0], Begun)
    assert sweep.info["counts"]["done"] == 12
    assert len((slurm / "jobs").read_text().split()) == 2
    assert len((slurm / "cancelled").read_text().split()) == 2
    scripts = [script.read_text() for script in slurm.glob("job.*.sh")]
    assert all("tls://127.0.0.1:" in script and "tcp://" not in script for script in scripts)
    assert keys, "the workers had keys while they ran"
    assert not list(tmp_path.glob(".manyscale-keys-*")), "and nothing is left of them"


def listening(process: psutil.Process) -> set[str]:
    """The addresses at which a process and its children take connections."""
    return {
        connection.laddr.ip
        for one in [process, *process.children(recursive=True)]
        for connection in one.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def refused(address: str) -> None:
    """A client without the key gets nothing from a scheduler, neither with TLS of its own nor without."""
    import distributed

    where = address.split("://")[1]
    with pytest.raises((OSError, TimeoutError)):
        distributed.Client(f"tcp://{where}", timeout=2, set_as_default=False).close()
    with pytest.raises((OSError, TimeoutError)):
        distributed.Client(
            f"tls://{where}", timeout=2, set_as_default=False, security=distributed.Security.temporary()
        ).close()


def test_a_local_cluster_is_for_this_machine_and_who_has_its_key() -> None:
    before = listening(psutil.Process())
    client, to_close = connect("dask", 1, 1, {})
    try:
        assert client.submit(sum, [1, 2]).result() == 3
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert listening(psutil.Process()) - before <= {"127.0.0.1"}
        refused(client.scheduler.address)
    finally:
        for one in to_close:
            one.close()


@pytest.mark.parametrize(
    ("options", "address"),
    [({"interface": "lo"}, "127.0.0.1"), ({"scheduler_options": {"host": "127.0.0.2"}}, "127.0.0.2")],
    ids=["an interface", "an address"],
)
def test_a_scheduler_of_slurm_workers_is_bound_to_what_was_asked_for(
    tmp_path: Path, slurm: Path, options: dict[str, object], address: str
) -> None:
    before = listening(psutil.Process())
    client, to_close = connect("slurm", 1, 1, {"memory": "1GB", **options})
    try:
        assert client.submit(sum, [1, 2]).result() == 3
        assert client.scheduler.address.startswith(f"tls://{address}:")
        assert listening(psutil.Process()) - before <= {address, "127.0.0.1"}
        refused(client.scheduler.address)
        (folder,) = tmp_path.glob(".manyscale-keys-*")
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
        private = stat.S_IRUSR | stat.S_IWUSR
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {private}
    finally:
        for one in to_close:
            one.close()
    assert not list(tmp_path.glob(".manyscale-keys-*"))


def test_without_an_interface_the_scheduler_is_bound_to_one_address(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed.utils.get_ip", lambda: "127.0.0.3")
    before = listening(psutil.Process())
    _, to_close = connect("slurm", 1, 1, {"memory": "1GB"})
    try:
        assert listening(psutil.Process()) - before <= {"127.0.0.3", "127.0.0.1"}
    finally:
        for one in to_close:
            one.close()


def test_nothing_of_the_key_is_left_when_the_cluster_does_not_start(
    tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**options: object) -> None:
        assert list(tmp_path.glob(".manyscale-keys-*/*"))
        raise ValueError("no such queue")

    monkeypatch.setattr("dask_jobqueue.SLURMCluster", refuse)
    with pytest.raises(InputError, match="slurm: no such queue"):
        connect("slurm", 1, 1, {"memory": "1GB"})
    assert not list(tmp_path.glob(".manyscale-keys-*"))


def test_unknown_executors_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'slurm'"):
        study().run(tmp_path / "sweep", on="slrum")
    with pytest.raises(InputError, match="cannot run on 0 workers"):
        study().run(tmp_path / "sweep", workers=0)


def test_an_absent_scheduler_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyscale.studies.sweep.cluster._CONNECT_SECONDS", 1)
    with pytest.raises(ManyscaleError, match="there is no Dask scheduler at"):
        study().run(tmp_path / "sweep", on="tcp://127.0.0.1:1")
