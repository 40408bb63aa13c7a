# SPDX-License-Identifier: Apache-2.0
"""The command `manyscale sweep`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyscale.cli.app import main
from manyscale.studies.sweep import load_sweep

pytestmark = pytest.mark.core

STUDY = """
name = "small"
machine = "omnipath"
metrics = ["simulated_seconds", "messages"]
[workload]
kind = "network"
work = "allreduce"
param = {iterations = 2}
[axes]
"workload.nodes" = [2, 4]
"network.link.latency" = ["100ns", "1us"]
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    return file


def test_a_study_becomes_a_table(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(study), "--json", "--workers", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["status"], data["points"], data["done"], data["failed"]) == ("done", 4, 4, 0)
    assert data["known_before"] == 0
    rows = data["rows"]
    assert [row["workload.nodes"] for row in rows] == [2, 2, 4, 4]
    assert rows[1]["network.link.latency [fs]"] == 10**9
    assert rows[1]["simulated_seconds"] > rows[0]["simulated_seconds"]
    assert data["directory"] == "sweeps/small"
    assert {path.name for path in Path("sweeps/small").iterdir()} == {
        ".lock",
        "results.log",
        "results.parquet",
        "study.toml",
        "sweep.json",
    }
    assert main(["sweep", str(study)]) == 0  # all of it is known
    shown = capsys.readouterr()
    assert "4 of 4 points done; 4 were known before." in shown.out
    assert "4 have a result already" in shown.err


def test_failures_are_told_and_change_the_exit_code(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(STUDY.replace('"1us"', '"1GB"'))
    assert main(["sweep", str(study), "--workers", "1"]) == 1
    shown = capsys.readouterr()
    assert "failed: --set network.link.latency: network.link.latency" in shown.err
    assert "2 of 4 points done; 2 failed (--retry runs them again)." in shown.out


def test_points_are_listed(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(study), "--points", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)
    assert points[3] == {
        "point": 3,
        "repetition": 0,
        "seed": 0,
        "workload.nodes": 4,
        "network.link.latency": "1us",
    }
    assert main(["sweep", str(study), "--points"]) == 0
    assert "small: 4 points" in capsys.readouterr().out
    assert not Path("sweeps").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.toml"], "there is no file"),
        (["study.toml", "--on", "mars"], "there is no executor 'mars'"),
        (["study.toml", "--set", "network.link.latenzy=1us"], "did you mean 'network.link.latency'"),
        (["study.toml", "--set", "latency"], "expected path=value"),
        (["study.toml", "--option", "?=1"], "write NAME=VALUE"),
    ],
)
def test_mistakes_are_explained(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["sweep", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_leaves_what_is_done(study: Path, tmp_path: Path) -> None:
    (tmp_path / "napping.py").write_text("import time\ndef nap(n):\n    time.sleep(0.05)\n    return n\n")
    study.write_text(
        '[workload]\nkind = "python"\nfunction = "napping:nap"\n'
        '[axes]\n"workload.n" = {from = 1, to = 400, step = 1}\n'
    )
    command = [sys.executable, "-m", "manyscale.cli.app", "sweep", "study.toml", "--out", "out"]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        log = Path("out/results.log")
        while not log.exists() or log.read_bytes().count(b"\n") < 5:
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "What is done is in out; the same command goes on" in said
    sweep = load_sweep("out")
    assert sweep.status == "stopped"
    assert 5 <= sweep.table.height < 400
