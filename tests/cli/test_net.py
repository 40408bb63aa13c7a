# SPDX-License-Identifier: Apache-2.0
"""`manyscale net`: what it prints, what it leaves, and what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from manyscale import load
from manyscale.cli.app import app, main
from manyscale.network import MOTIFS

pytestmark = pytest.mark.core


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments):
    result = CliRunner().invoke(app, ["net", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_json_has_the_keys_that_scripts_rely_on():
    result = invoke(
        *("run", "hpcg", "--nodes", "8", "--ranks-per-node", "2", "--topology", "fat-tree"),
        *("--set", "network.link.bandwidth=100Gb/s", "--param", "iterations=1", "--param", "nx=16"),
        *("--param", "ny=16", "--param", "nz=16", "--json", "--out", "here"),
    )
    assert result.stderr == ""
    data = json.loads(result.stdout)
    assert {"simulated_seconds", "wall_seconds", "messages", "packets", "ranks"} <= set(data)
    assert data["ranks"] == 16
    assert data["directory"] == "here"
    assert load("here").headline["messages"]["value"] == data["messages"]


def test_it_prints_what_came_out_and_leaves_a_directory():
    lines = [
        " ".join(line.split()) for line in invoke("run", "allreduce", "--nodes", "4").stdout.splitlines()
    ]
    assert lines[0].startswith("simulated ")
    assert lines[1] == "ranks 4"
    assert lines[-1] == "directory runs/net-allreduce-1"
    assert load("runs/net-allreduce-1").info["workload"]["kind"] == "network"


def test_the_longest_queue_is_named_where_it_was_recorded():
    arguments = ("run", "incast", "--nodes", "5", "--fidelity", "packet", "--param", "bytes=64KiB")
    words = " ".join(invoke(*arguments, "--load", "1us").stdout.split())
    assert "longest queue switch 0 to node 0, " in words
    assert "longest queue" not in invoke(*arguments).stdout


def test_fidelities_threads_and_mappings_can_be_chosen():
    times = set()
    for threads in ("1", "2"):
        for fidelity in ("packet", "train", "flow", "ideal"):
            options = ("--fidelity", fidelity, "--threads", threads, "--mapping", "cyclic", "--seed", "3")
            result = invoke("run", "halo3d", "--nodes", "8", "--param", "iterations=2", *options, "--json")
            times.add((fidelity, json.loads(result.stdout)["simulated_seconds"]))
    assert len(times) == 4


def test_the_list_of_motifs_and_their_parameters():
    assert [row["name"] for row in json.loads(invoke("list", "--json").stdout)] == list(MOTIFS)
    assert "halo3d" in invoke("list").stdout
    rows = json.loads(invoke("show", "halo3d", "--json").stdout)
    assert {"face", "points", "iterations"} <= {row["path"] for row in rows}
    assert "bytes of a face" in invoke("show", "halo3d").stdout


def test_a_goal_file_is_written_and_run():
    invoke("goal", "pingpong", "job.goal", "--ranks", "4", "--param", "iterations=3")
    data = json.loads(invoke("run", "job.goal", "--json").stdout)
    assert data["messages"] == 6
    assert data["ranks"] == 4


def test_a_timeline_of_some_ranks():
    invoke("run", "halo3d", "--nodes", "8", "--timeline", "0,2-3", "--param", "iterations=1", "--out", "here")
    data = (load("here").path / "timeline.pftrace").read_bytes()
    assert b"rank 2" in data
    assert b"rank 1" not in data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "halo4d", "--nodes", "4"], "there is no motif named 'halo4d'"),
        (["run", "halo3d", "--nodes", "4", "--param", "face"], "write NAME=VALUE"),
        (["run", "halo3d", "--nodes", "4", "--param", "faces=1KiB"], "did you mean 'face'"),
        (["run", "halo3d", "--nodes", "4", "--timeline", "x"], "write ranks such as"),
        (["run", "halo3d", "--nodes", "4", "--timeline", "0-99999999"], "more ranks than a picture"),
        (["run", "missing.goal"], "cannot read missing.goal"),
        (["run", "halo3d", "--nodes", "4", "--topology", "star"], "there is no topology 'star'"),
        (["show", "halo4d"], "there is no motif named"),
        (["goal", "halo3d", "no/such/folder.goal", "--ranks", "2"], "cannot write"),
    ],
)
def test_mistakes_are_refused(arguments, message, capsys):
    assert main(["net", *arguments]) == 2
    assert message in capsys.readouterr().err
