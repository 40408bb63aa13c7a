# SPDX-License-Identifier: Apache-2.0
"""`manyscale report`: pages of runs and sweeps of every kind, and messages where there is none."""

from __future__ import annotations

import json

import pytest
from run_directories import kernel_run, without_checksums
from typer.testing import CliRunner

from manyscale import System, cpu, network
from manyscale.cli.app import app, main
from manyscale.results.integrity import sealed

pytestmark = pytest.mark.core


def report(*arguments: str) -> dict:
    result = CliRunner().invoke(app, ["report", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def titles(text: str) -> list[str]:
    return [part.partition("</h2>")[0] for part in text.split("<h2>")[1:]]


def test_a_run_of_a_system(tmp_path):
    system = System("line")
    first = system.add("synthetic.relay", "first", clock="1GHz", tokens=100, hops=1)
    last = system.add("synthetic.relay", "last", clock="1GHz", slots=2)
    system.connect(first.output, last.input, latency="2ns")
    system.run(out=tmp_path / "run", timeline=True)
    told = report(str(tmp_path / "run"))
    text = (tmp_path / "run" / "report.html").read_text()
    assert told["bytes"] == len(text.encode())
    assert titles(text) == [
        *("What limits the run", "Timeline", "Machine", "All statistics", "Simulator and provenance")
    ]
    assert "first: stalled is 50 cycles" in text


def test_a_run_of_a_job(tmp_path):
    network.run(
        "halo3d", nodes=8, iterations=2, topology="torus", load="10us", timeline=[0, 1], out=tmp_path / "run"
    )
    report(str(tmp_path / "run"), "--out", str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    assert titles(text) == [
        *("What limits the run", "Time of each rank", "Network: topology, load and queues", "Critical path"),
        *("Timeline", "Machine", "All statistics", "Simulator and provenance"),
    ]
    assert "8 ranks spend" in text
    assert "8 nodes" in text  # of the picture


def test_a_run_and_a_replay_of_a_program(tmp_path):
    program = cpu.Program(cpu.sample("elastic"), ["matrix_tasks", "1", "16"])
    cpu.record(program, tmp_path / "trace", machine="elasticsimmate", cores=1)
    cpu.replay(
        tmp_path / "trace", changes=["cpu.cores=4"], cores=2, scheduler="fifo", out=tmp_path / "replay"
    )
    cpu.run(program, machine="elasticsimmate", cores=1, out=tmp_path / "run")
    for name, also in (("run", "Output of the program"), ("replay", "Tasks over time")):
        report(str(tmp_path / name))
        text = (tmp_path / name / "report.html").read_text()
        shown = titles(text)
        assert {"Top-down and CPI stacks", "Caches and DRAM", "Regions of the program", also} <= set(shown)
        assert "IPC is" in text


def test_a_run_of_kernels_and_its_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'manyscale[figures]'")
    kernel_run(tmp_path / "run")
    told = report(str(tmp_path / "run"), "--figures", str(tmp_path / "figures"), "--format", "svg,png")
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    assert {"roofline.svg", "roofline.png", "warp-states.svg"} <= names
    assert len(told["figures"]) == len(names)


def test_a_run_that_was_killed_says_so(tmp_path):
    run = kernel_run(tmp_path / "run")
    (run.path / "stats.parquet").unlink()
    del run.info["files"]["stats.parquet"]
    (run.path / "run.json").write_bytes(sealed(run.info | {"status": "running"}))
    report(str(run.path))
    assert "The run is not whole (interrupted)" in (run.path / "report.html").read_text()


def test_files_that_are_broken_are_named_on_the_page(tmp_path):
    run = kernel_run(tmp_path / "run")
    names = ("profiles.json", "machine.toml", "links.parquet", "timeline.pftrace")
    for name in names:
        (run.path / name).write_bytes(b"\xff\x00 broken [")
    without_checksums(run.path)
    report(str(run.path))
    text = (run.path / "report.html").read_text()
    for name in names:
        assert name in text.partition("Not all that the run left could be shown")[2]


def test_statistics_that_are_broken_are_named_on_the_page(tmp_path):
    run = kernel_run(tmp_path / "run")
    (run.path / "stats.parquet").write_bytes(b"PAR1")
    without_checksums(run.path)
    report(str(run.path))
    assert "stats.parquet is damaged" in (run.path / "report.html").read_text()


@pytest.mark.parametrize("name", ["nothing", "."])
def test_what_is_not_a_run(tmp_path, name, capsys):
    assert main(["report", str(tmp_path / name)]) != 0
    assert "is not a run" in capsys.readouterr().err


def test_a_sweep(tmp_path):
    pl = pytest.importorskip("polars")
    folder = tmp_path / "sweep"
    folder.mkdir()
    info = {
        "schema_version": 1, "kind": "sweep", "name": "speeds", "status": "done",
        "counts": {"points": 2, "distinct": 2, "done": 2, "failed": 0},
        "axes": [{"name": "speed", "unit": None}], "metrics": [{"name": "time", "unit": "s"}], "workload": {},
    }  # fmt: skip
    (folder / "sweep.json").write_text(json.dumps(info))
    numbers = {
        "point": [0, 1],
        "repetition": [0, 0],
        "seed": [1, 1],
        "attempts": [1, 1],
        "wall_seconds": [0.1, 0.1],
    }
    table = pl.DataFrame({**numbers, "speed": [1, 2], "status": ["done", "done"], "time": [2e-3, 1e-3]})
    table.write_parquet(folder / "results.parquet")
    report(str(folder))
    text = (folder / "report.html").read_text()
    assert titles(text) == ["Sensitivities", "Points", "Simulator and provenance"]
    assert "speed changes time by a factor of 2: from 1 ms at 2 to 2 ms at 1" in text
