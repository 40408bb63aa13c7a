# SPDX-License-Identifier: Apache-2.0
"""The command line on finished runs: messages, exit codes, and JSON that is only JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from manyscale.cli import app as app_module
from manyscale.cli import console
from manyscale.cli.app import app, main
from manyscale.cli.progress import SimulationProgress
from manyscale.errors import DeadlockError
from manyscale.results import RunWriter


def make_run(path, cycles=100):
    with RunWriter(path, command=["manyscale", "demo"], workload={}, seed=0) as run:
        run.write_stats(
            {
                "component": ["gpu.sm[3]", "gpu.sm[3]"],
                "statistic": ["cycles", "warps"],
                "kind": ["counter", "counter"],
                "unit": ["cycles", "warps"],
                "description": ["cycles that passed", "warps that ran"],
                "scope": ["run", "run"],
                "key": [None, None],
                "value": [cycles, 8],
            }
        )
        run.finish(
            {"cycles": {"value": cycles, "unit": "cycles"}, "wall_seconds": {"value": 0.5, "unit": "s"}}
        )
    return path


@pytest.fixture
def runs(tmp_path):
    return str(make_run(tmp_path / "a")), str(make_run(tmp_path / "b", cycles=150))


def invoke(*arguments):
    return CliRunner().invoke(app, list(arguments))


def manyscale(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", "manyscale.cli.app", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_show_tells_how_the_run_ended(runs):
    result = invoke("show", runs[0])
    assert result.exit_code == 0, result.output
    assert "done" in result.stdout
    assert "100 cycles" in result.stdout
    assert "manyscale demo" in result.stdout


def test_show_of_a_failed_run_shows_its_error(tmp_path):
    with pytest.raises(DeadlockError), RunWriter(tmp_path / "run", command=[], workload={}, seed=0):
        raise DeadlockError("gpu.sm[3] waits for ever")
    result = invoke("show", str(tmp_path / "run"))
    assert result.exit_code == 0
    assert "failed" in result.stdout
    assert "gpu.sm[3] waits for ever" in result.stdout


def test_show_json_is_json_only(runs):
    result = manyscale("show", runs[0], "--json")
    assert (result.returncode, result.stderr) == (0, "")
    shown = json.loads(result.stdout)
    assert shown["status"] == "done"
    assert shown["headline"]["cycles"] == {"value": 100, "unit": "cycles"}


def test_compare_shows_the_difference(runs):
    result = invoke("compare", *runs)
    assert result.exit_code == 0, result.output
    assert "gpu.sm: cycles" in result.stdout
    assert "+50%" in result.stdout
    assert "gpu.sm[3]" not in result.stdout  # components one by one are for --all


def test_compare_shows_every_statistic_on_request(runs):
    result = invoke("compare", *runs, "--all")
    assert "gpu.sm[3]" in result.stdout
    assert "Statistics that differ: 1." in result.stdout


def test_compare_writes_a_page(runs, tmp_path):
    result = invoke("compare", *runs, "--out", str(tmp_path / "page.html"))
    assert result.exit_code == 0, result.output
    text = (tmp_path / "page.html").read_text()
    assert text.index('class="verdict') < text.index('data-kind="table"')
    assert "What explains it" in text


def test_a_report_of_several_runs_is_one_page(runs, tmp_path):
    result = invoke("report", *runs, runs[0], "--out", str(tmp_path / "page.html"), "--json")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "page.html").read_text()
    assert "3 runs compared" in text
    assert text.count("<h2>Answer of") == 3


def test_compare_of_equal_runs_says_so(runs):
    assert "identical statistics" in invoke("compare", runs[0], runs[0]).stdout


def test_compare_with_a_threshold(runs):
    assert "No statistic differs by more than 60%." in invoke("compare", *runs, "--threshold", "60").stdout


def test_compare_json_is_json_only(runs):
    result = invoke("compare", *runs, "--json")
    assert result.stderr == ""
    compared = json.loads(result.stdout)
    assert compared["identical"] is False
    assert [row["name"] for row in compared["headline"]] == ["cycles", "wall_seconds"]
    assert [(row["statistic"], row["percent"]) for row in compared["statistics"]] == [("cycles", 50.0)]


def test_compare_json_writes_infinity_as_null(tmp_path, runs):
    zero = str(make_run(tmp_path / "zero", cycles=0))
    assert json.loads(invoke("compare", zero, runs[0], "--json").stdout)["statistics"][0]["percent"] is None


def test_compare_of_many_differences_says_what_it_hides(tmp_path, monkeypatch, runs):
    monkeypatch.setattr("manyscale.cli.runs._ROWS_SHOWN", 0)
    assert "not shown here: 1 (--json gives all)." in invoke("compare", *runs, "--all").stdout


def test_export_writes_csv_and_speaks_on_standard_error(tmp_path, runs):
    result = invoke("export", runs[0], "--csv", str(tmp_path / "out.csv"))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "Wrote 2 rows to" in result.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert invoke("export", runs[0], "--csv", str(tmp_path / "out.csv"), "--quiet").stderr == ""


def test_a_run_that_is_none_is_a_message_without_traceback(tmp_path):
    result = manyscale("show", str(tmp_path / "nowhere"), "--json")
    assert result.returncode == 4
    assert result.stdout == ""
    assert result.stderr == f"Error: {tmp_path}/nowhere is not a run: there is no such directory\n"


def test_a_message_keeps_its_square_brackets(capsys):
    console.complain("gpu.sm[3] is stuck")
    console.say("gpu.sm[3] moves")
    assert capsys.readouterr().err == "Error: gpu.sm[3] is stuck\ngpu.sm[3] moves\n"


def test_export_to_nowhere_names_the_file(tmp_path, runs, capsys):
    assert main(["export", runs[0], "--csv", str(tmp_path / "no/where.csv")]) == 2
    assert "no/where.csv: there is no folder" in capsys.readouterr().err


def test_a_missing_argument_is_a_usage_error():
    result = invoke("show")
    assert result.exit_code == 2
    assert "Missing argument" in result.stderr


def test_a_negative_threshold_says_the_range(runs):
    result = invoke("compare", *runs, "--threshold", "-1")
    assert result.exit_code == 2
    assert "--threshold" in result.stderr
    assert "x>=0" in result.stderr or "greater than or equal to 0" in result.stderr  # by typer's version


def test_without_arguments_there_is_help():
    result = invoke()
    assert "compare" in result.output
    assert "--install-completion" in result.output


def test_the_version_does_not_import_what_is_slow():
    program = (
        "import sys; from manyscale.cli.app import main; code = main(['--version']);"
        "print([name for name in ('polars', 'pydantic', 'manyscale._core') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = result.stdout.splitlines()
    assert first.startswith("manyscale ")
    assert second == "[]"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DeadlockError("two ranks wait for each other"), 3, "Error: two ranks wait for each other\n"),
        (KeyboardInterrupt(), 130, "Error: stopped\n"),
        (typer.Exit(7), 7, ""),
    ],
)
def test_errors_become_messages_and_exit_codes(monkeypatch, capsys, error, code, message):
    other = typer.Typer()

    @other.callback()
    def callback():
        pass

    @other.command()
    def fail():
        raise error

    monkeypatch.setattr(app_module, "application", lambda command: other)
    assert main(["fail"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", message)


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("manyscale.results.load", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["show", "x"])


@pytest.mark.parametrize("arguments", [["show", "{0}"], ["show", "{0}", "--json"], ["--help"]])
def test_a_closed_pipe_is_no_matter(runs, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        result = subprocess.run(
            [sys.executable, "-m", "manyscale.cli.app", *(text.format(*runs) for text in arguments)],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert result.stderr == b""
    assert result.returncode not in (0, 120)


def test_progress_is_silent_without_a_terminal(capsys):
    with SimulationProgress("saxpy", 10**15) as progress:
        progress.update(10**14, 1000)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("total", "quiet"), [(4 * 10**9, False), (None, False), (None, True)])
def test_progress_shows_simulated_time_rate_and_estimate(monkeypatch, total, quiet):
    from rich.console import Console

    clock = [0.0]
    screen = io.StringIO()
    terminal = Console(
        file=screen, force_terminal=True, width=120, color_system=None, get_time=lambda: clock[0]
    )
    monkeypatch.setattr("manyscale.cli.progress.messages", lambda: terminal)
    monkeypatch.setattr("manyscale.cli.progress.monotonic", lambda: clock[0])
    with SimulationProgress("saxpy[3]", total, quiet) as progress:
        for step in range(1, 4):
            clock[0] = float(step)
            progress.update(step * 10**9, step * 2_000_000)
            progress.update(step * 10**9 + 1, step * 2_000_000)  # too soon to be shown
        if progress._progress is not None:
            progress._progress.refresh()
    text = screen.getvalue().rpartition("saxpy")[2]  # the last frame
    if quiet:
        assert text == ""
        return
    assert text.startswith("[3]")
    assert "3us simulated" in text
    assert "2M events/s" in text
    assert ("75%" in text) == (total is not None)
    assert ("1 s left" in text) == (total is not None)
