# SPDX-License-Identifier: Apache-2.0
"""The command that runs a saved system: numbers, directories, Ctrl-C and deadlock."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from manyscale import Component, System, identical, load
from manyscale.cli.app import app, main

pytestmark = pytest.mark.core


def phold():
    """Jobs that wander between four components without end."""
    system = System("phold", seed=7)
    nodes = [system.add("synthetic.phold", f"node[{index}]") for index in range(4)]
    for index, node in enumerate(nodes):
        for other in nodes[:index]:
            system.connect(node.peers, other.peers, latency="2ns")
    return system


def ring(tokens):
    """A ring of relays, which blocks when it is given more tokens than it has slots."""
    system = System("ring")
    stages = [system.add("synthetic.relay", f"stage[{index}]", tokens=tokens, slots=4) for index in range(3)]
    for index, stage in enumerate(stages):
        system.connect(stage.output, stages[(index + 1) % 3].input, latency="1ns")
    return system


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    phold().save("phold.toml")
    return tmp_path


def run_json(*arguments):
    result = CliRunner().invoke(app, ["run", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_it_prints_headline_numbers_and_leaves_a_directory(folder):
    result = CliRunner().invoke(app, ["run", "phold.toml", "--until", "1us"])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0].startswith("simulated 1us in ")
    assert lines[0].endswith("events/s)")
    assert lines[1] == "outcome at the time limit"
    assert lines[2].startswith("events ")
    assert lines[3] == "directory runs/phold-1"
    run = load("runs/phold-1")
    assert run.status == "done"
    assert run.info["workload"] == {"kind": "system", "name": "phold", "until": "1us"}
    assert run.info["command"][0] == "manyscale"


def test_json_has_the_keys_that_scripts_rely_on(folder):
    first = run_json("phold.toml", "--until", "1us")
    assert set(first) == {*load(first["directory"]).headline, "outcome", "directory"}
    assert set(first) >= {"simulated_seconds", "wall_seconds", "events", "wall_threads"}
    assert first["simulated_seconds"] == 1e-6
    assert (first["outcome"], first["wall_threads"], first["directory"]) == ("limit", 1, "runs/phold-1")
    assert first["events"] > 1000
    assert run_json("phold.toml", "--until", "1us")["directory"] == "runs/phold-2"


def test_a_system_that_ends_by_itself(folder):
    ring(tokens=1).save("ring.toml")
    assert run_json("ring.toml")["outcome"] == "finished"


def test_quiet_says_nothing(folder):
    result = CliRunner().invoke(app, ["run", "phold.toml", "--until", "1us", "--quiet"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert load("runs/phold-1").status == "done"


def test_the_machine_of_a_run_runs_again_with_the_same_statistics(folder):
    run_json("phold.toml", "--until", "2us", "--out", "first")
    until = load("first").info["workload"]["until"]
    run_json("first/machine.toml", "--until", until, "--out", "again", "--threads", "2")
    assert identical(load("first"), load("again"))


def test_a_timeline_is_written_when_asked_for(folder):
    run_json("phold.toml", "--until", "100ns", "--out", "with", "--timeline")
    run_json("phold.toml", "--until", "100ns", "--out", "without")
    assert (folder / "with/timeline.pftrace").stat().st_size > 0
    assert not (folder / "without/timeline.pftrace").exists()


def test_a_deadlock_exits_3_with_the_explanation(folder, capsys):
    ring(tokens=5).save("ring.toml")
    assert main(["run", "ring.toml"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error: deadlock at 5ns" in captured.err
    assert "they wait in a circle: stage[0] -> stage[1] -> stage[2] -> stage[0]" in captured.err
    assert load("runs/ring-1").status == "failed"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--until", "5"], 2, "--until: '5' has no unit; a time takes fs"),
        (["--until=-5ns"], 2, "--until: -5ns is before the start"),
        (["--out", "phold.toml"], 4, "phold.toml is a file; choose a new or empty directory"),
    ],
)
def test_a_mistake_is_a_message_and_leaves_no_directory(folder, capsys, arguments, code, message):
    assert main(["run", "phold.toml", *arguments]) == code
    assert message in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_a_file_that_is_no_system(folder, capsys):
    (folder / "other.toml").write_text("answer = 42\n")
    assert main(["run", "other.toml"]) == 2
    assert "other.toml is not a saved system" in capsys.readouterr().err
    assert main(["run", "nowhere.toml"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_system_that_is_not_whole_leaves_no_directory(folder, capsys):
    system = System("lonely")
    system.add("synthetic.phold", "node")
    system.save("lonely.toml")
    assert main(["run", "lonely.toml"]) == 2
    assert "node.peers" in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_a_model_written_in_python_is_not_imported(folder, capsys):
    class Mine(Component):
        """A model that a file cannot bring along."""

    system = System("python")
    system.add(Mine, "one")
    system.save("python.toml")
    assert main(["run", "python.toml"]) == 2
    assert "component one is a Python model 'Mine'" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_within_a_second_and_keeps_partial_results(folder, threads):
    """The quickest of a few tries, since the host may be busy with other tests."""
    took = []
    while not took or (min(took) >= 1.0 and len(took) < 4):
        took.append(seconds_to_stop(folder, f"phold-{len(took) + 1}", threads))
    assert min(took) < 1.0


def seconds_to_stop(folder, name, threads):
    """Interrupts a run and looks at what it leaves."""
    # A shell that started the tests in the background may have had them ignore SIGINT.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from manyscale.cli.app import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "run", "phold.toml", "--threads", str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        machine = folder / f"runs/{name}/machine.toml"
        deadline = time.monotonic() + 20
        while not machine.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert load(f"runs/{name}").status == "running"
        time.sleep(0.3)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
        took = time.monotonic() - asked
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert output == ""
    assert errors == f"Partial results are in runs/{name}\nError: stopped\n"
    run = load(f"runs/{name}")
    assert run.status == "stopped"
    assert run.info["partial"] is True
    assert run.headline["events"]["value"] > 0
    assert run.value("node[0]", "received") > 0
    return took
