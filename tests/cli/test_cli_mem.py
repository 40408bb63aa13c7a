# SPDX-License-Identifier: Apache-2.0
"""`manyscale mem`: what it prints, what it leaves, that it can be run again, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from manyscale import identical, load
from manyscale.cli.app import app, main

pytestmark = pytest.mark.core

SMALL = ("--machine", "memory-small", "--accesses", "400")
KEYS = [
    "simulated_seconds",
    "wall_seconds",
    "accesses",
    "latency_seconds",
    "bandwidth_bytes_per_second",
    "levels",
    "interconnect",
    "channels",
    "directory",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_json(*arguments):
    result = CliRunner().invoke(app, ["mem", "run", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_it_prints_a_table_for_each_part_and_leaves_a_directory():
    result = CliRunner().invoke(app, ["mem", "run", "random", *SMALL])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0].startswith("simulated ")
    assert lines[1] == "accesses 1,600"
    assert lines[4] == "directory runs/mem-random-1"
    assert {"Caches", "Interconnect", "Channels"} <= set(lines)
    for row in ("l1", "l2", "shared", "channel[0]", "channel[1]"):
        assert any(line.startswith(f"│ {row} │") for line in lines), row
    run = load("runs/mem-random-1")
    assert run.status == "done"
    assert run.info["workload"]["kind"] == "memory"
    assert run.headline["accesses"] == {"value": 1600, "unit": "access"}


def test_json_has_the_keys_that_scripts_rely_on():
    shown = run_json("stream", *SMALL, "--writes", "0.5")
    assert list(shown)[: len(KEYS)] == KEYS
    assert shown["accesses"] == 1600
    assert shown["bandwidth_bytes_per_second"] == pytest.approx(1600 * 8 / shown["simulated_seconds"])
    assert [level["level"] for level in shown["levels"]] == ["l1", "l2", "shared"]
    first, second = shown["levels"][:2]
    assert first["accesses"] == 1600
    assert second["accesses"] == sum(first["misses"].values())
    assert second["accesses"] + first["merged"] == round(1600 * (1 - first["hit_rate"]))
    assert sum(channel["reads"] for channel in shown["channels"]) == 4 * 400 * 8 // 64
    assert [channel["channel"] for channel in shown["channels"]] == ["channel[0]", "channel[1]"]


@pytest.mark.parametrize("pattern", ["stream", "triad", "stride", "random", "chase", "gups"])
def test_each_pattern_runs(pattern):
    assert run_json(pattern, *SMALL, "--stride", "4KiB")["accesses"] == 1600


def test_the_machine_of_a_run_gives_the_same_statistics_again():
    options = (
        "random",
        "--accesses",
        "500",
        "--writes",
        "0.3",
        "--footprint",
        "64KiB",
        "--shared",
        "--seed",
        "5",
    )
    changes = ("--set", "memory.interconnect.kind=mesh", "--cores", "3", "--window", "4")
    run_json(*options, "--machine", "memory-small", *changes, "--out", "first")
    run_json(*options, "--machine", "first/machine.toml", "--threads", "2", "--out", "again")
    assert identical(load("first"), load("again"))
    text = load("first").path.joinpath("machine.toml").read_text()
    assert "window = 4 # command line" in text
    assert 'trcd = "17cycles" # ddr4-2400: DRAMsim3' in text


def test_quiet_says_nothing_and_a_timeline_is_written_when_asked_for(folder):
    result = CliRunner().invoke(app, ["mem", "run", "chase", *SMALL, "--quiet", "--timeline", "--out", "run"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (folder / "run/timeline.pftrace").exists()


def test_a_trace_runs_and_other_cores_are_idle(folder):
    (folder / "own.trace").write_text("R 0x1000 8\nR 0x1008 8\nW 0x2000 4\nA 0x2004 4\n")
    shown = run_json("trace", "own.trace", "--machine", "memory-small")
    assert shown["accesses"] == 4
    assert sum(channel["reads"] for channel in shown["channels"]) == 2
    assert (
        run_json("--trace", "own.trace", "--trace", "own.trace", "--machine", "memory-small")["accesses"] == 8
    )
    workload = load(shown["directory"]).info["workload"]
    assert [(trace["name"], trace["accesses"]) for trace in workload["traces"]] == [("own.trace", 4)]


def test_a_curve_rises_in_bandwidth_and_latency(folder):
    arguments = ["mem", "curve", "--machine", "memory-small", "--accesses", "300"]
    result = CliRunner().invoke(app, [*arguments, "--json", "--csv", "curve.csv"])
    assert result.exit_code == 0, result.output
    points = json.loads(result.stdout)["points"]
    assert len(points) == 10
    bandwidths = [point["bandwidth_bytes_per_second"] for point in points]
    latencies = [point["latency_seconds"] for point in points]
    # At light load an access each 512 cycles of 500 ps fetches a line of 64 bytes, on each of 4 cores.
    assert bandwidths[0] == pytest.approx(4 * 64 / 256e-9, rel=0.05)
    assert bandwidths[-1] > 10 * bandwidths[0]
    assert bandwidths[-1] < 2 * 19.2e9
    assert latencies[-1] > 1.2 * latencies[0]
    with (folder / "curve.csv").open() as file:
        assert [float(row["latency_seconds"]) for row in csv.DictReader(file)] == latencies
    printed = CliRunner().invoke(app, arguments).stdout
    assert "cycles between issues" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "strem", *SMALL], "there is no pattern 'strem'; known: stream, triad"),
        (["run", *SMALL], "say what to run: a pattern (stream, triad"),
        (["run", "trace", *SMALL], "the pattern trace needs a file"),
        (["run", "stream", "own.trace", *SMALL], "give a pattern or a trace, not both"),
        (["run", "trace", "absent", *SMALL], "cannot read absent: No such file"),
        (
            ["run", "trace", "own.trace", *SMALL],
            "own.trace, line 2: the trace ends in the middle of a record",
        ),
        (["run", "trace", "far.trace", *SMALL], "it reaches up to address 0x1000000000000"),
        (["run", "stream", *SMALL, "--footprint", "5"], "command line: footprint: '5' has no unit"),
        (["run", "stream", *SMALL, "--writes", "2"], "command line: writes: 2.0 is out of range"),
        (["run", "stream", *SMALL, "--cores", "0"], "--set memory.cores: memory.cores: 0 is out of range"),
        (
            ["run", "stream", "--machine", "v100-sst"],
            "v100-sst: memory.l1: there is no such section [memory.l1]",
        ),
        (["run", "stream", "--machine", "v10"], "there is no machine named 'v10'; did you mean 'v100'?"),
        (["curve", "--machine", "memory-small", "--csv", "no/x"], "cannot write no/x: there is no folder"),
        (["curve", "--machine", "memory-small", "--pattern", "x"], "there is no pattern 'x'"),
    ],
)
def test_a_mistake_is_a_message_and_leaves_no_directory(folder, capsys, arguments, message):
    (folder / "own.trace").write_text("R 0x1000 8\nR 0x10")
    (folder / "far.trace").write_text("R 0x1000000000000 8\n")
    assert main(["mem", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "runs").exists()
