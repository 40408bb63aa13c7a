# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu run --machine`: what is shown of a kernel's time, the run directory, and what is left after Ctrl-C."""

from __future__ import annotations

import html
import json
from pathlib import Path

import polars as pl
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from typer.testing import CliRunner

import manyscale.cli.progress
from manyscale import identical, load
from manyscale.cli.app import app, main
from manyscale.report.run_page import run_page

pytestmark = pytest.mark.core

DEMO = Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx"
HEADER = ".version 8.0\n.target sm_70\n.address_size 64\n"
SMALL = ("--machine", "v100", "--set", "gpu.sm_count=4", "--set", "gpu.l2_slices=4")
SAXPY = (
    *("demo.ptx", "-k", "saxpy", "-g", "64", "-b", "256"),
    *("-a", "2.5", "-a", "x=f32[16384]:arange", "-a", "y=f32[16384]:ones", "-a", "16384"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.ptx").write_text(DEMO.read_text())
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["gpu", "run", *arguments], env={"COLUMNS": "80"})
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def run_json(*arguments: str):
    return json.loads(run(*arguments, "--json"))


def test_it_shows_metrics_stalls_hot_lines_and_what_limits_the_kernel():
    lines = run(*SAXPY, *SMALL).splitlines()
    sections = [
        "Metrics",
        "Where the cycles of warps went",
        "Hot lines: their part of these cycles, and what most of it went to",
        "What limits it",
    ]
    starts = [lines.index(section) for section in sections]
    assert starts == sorted(starts)
    assert max(map(len, lines[starts[0] :])) <= 80
    words = [line.split() for line in lines]
    assert any(line[:2] == ["theoretical", "occupancy"] and "100.0%" in line for line in words)
    shares = [float(line.split("%")[0].split()[-1]) for line in lines[starts[1] + 1 : starts[2] - 1]]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert lines[starts[2] + 1].split()[1:3] == ["PTX", "line"]
    assert "█" in lines[starts[1] + 2]


def test_names_in_a_program_do_not_reach_the_terminal_as_they_are(folder):
    (folder / "odd.ptx").write_text(
        HEADER
        + """.file 1 "\x1b[31mred.cu"
.visible .entry odd() {
.loc 1 5 1
ret; }"""
    )
    shown = run("odd.ptx", *SMALL)
    assert "?[31mred.cu:5" in shown
    assert "\x1b" not in shown


def test_json_has_the_keys_that_scripts_rely_on():
    shown = run_json(*SAXPY, *SMALL)
    (kernel,) = shown["kernels"]
    assert {"name", "grid", "block", "cycles", "warp_instructions", "thread_instructions"} <= set(kernel)
    assert kernel["occupancy"] == 1.0
    assert shown["total_cycles"] == kernel["cycles"] == kernel["metrics"]["cycles"]["value"]
    assert shown["simulated_seconds"] == kernel["metrics"]["duration"]["value"]
    assert shown["wall_seconds"] > 0
    assert kernel["metrics"]["flops_fp32"] == {"value": 2 * 16384, "unit": "flop"}
    assert kernel["metrics"]["shared_wavefronts_per_request"]["value"] is None
    assert set(kernel["limit"]) == {"kind", "evidence", "advice", "gain", "saved_seconds", "notes", "text"}


def test_the_verdict_reads_the_same_on_the_terminal_as_data_and_in_the_report(folder):
    """Kind, evidence, advice and gain, and the other causes with theirs."""
    tiny = (
        str(DEMO),
        "-k",
        "saxpy",
        "-g",
        "1",
        "-b",
        "32",
        "-a",
        "2",
        "-a",
        "f32[32]",
        "-a",
        "f32[32]",
        "-a",
        "32",
    )
    shown = " ".join(run(*tiny, *SMALL, "--out", "told").split())
    (kernel,) = run_json(*tiny, *SMALL)["kernels"]
    verdict = kernel["limit"]
    assert verdict["kind"] == "launch overhead"
    assert verdict["gain"].startswith("saves about ")
    assert verdict["text"] in shown
    kept = json.loads((folder / "told" / "profiles.json").read_text())["saxpy"]["limit"]
    assert kept == verdict
    told = load("told")
    page = html.unescape(run_page(told).html())
    first = f"{verdict['kind']}: {verdict['evidence']}. {verdict['advice']} ({verdict['gain']})."
    assert verdict["text"].startswith(first)
    assert verdict["notes"]
    assert " Also: ".join((first, *verdict["notes"])).rstrip(".") in page


def test_a_run_directory_explains_itself(folder):
    run(*SAXPY, *SMALL, "--out", "first", "--timeline")
    done = load("first")
    assert done.status == "done"
    assert done.info["workload"]["kernel"] == "saxpy"
    assert done.headline["total_cycles"]["value"] == done.value("gpu", "cycles", scope="saxpy")
    assert done.headline["ipc"]["unit"] == "inst/cycle"
    assert done.value("sm[0]", "ctas") > 0
    assert done.value("gpu", "dram_read_bytes", scope="saxpy") == 2 * 4 * 16384
    assert set(done.stats["scope"]) == {"run", "saxpy"}
    operations = pl.read_parquet(folder / "first" / "operations.parquet")
    assert set(operations["scope"]) == {"saxpy"}
    assert operations["issued"].sum() == done.value("gpu", "issued_instructions", scope="saxpy")


def test_its_machine_gives_the_same_numbers_again():
    run(*SAXPY, *SMALL, "--set", "gpu.sm.timing.fp32.latency=9", "--out", "first", "--quiet")
    run(*SAXPY, "--machine", "first/machine.toml", "--out", "again", "--threads", "2", "--quiet")
    assert identical(load("first"), load("again"))
    compared = CliRunner().invoke(app, ["compare", "first", "again"])
    assert "The runs gave identical statistics." in compared.stdout
    assert CliRunner().invoke(app, ["show", "first"]).exit_code == 0


def test_another_machine_shows_in_a_comparison():
    run(*SAXPY, *SMALL, "--out", "first", "--quiet")
    run(*SAXPY, *SMALL, "--set", "gpu.memory.link_latency=1us", "--out", "slower", "--quiet")
    compared = json.loads(CliRunner().invoke(app, ["compare", "first", "slower", "--json"]).stdout)
    changed = {row["statistic"]: row for row in compared["statistics"] if row["scope"] == "saxpy"}
    assert changed["duration"]["difference"] > 2e-6
    assert "warp_instructions" not in changed


def test_the_timeline_has_the_ctas_of_each_sm(folder):
    run(*SAXPY, *SMALL, "--out", "first", "--timeline")
    trace = perfetto.Trace()
    trace.ParseFromString((folder / "first" / "timeline.pftrace").read_bytes())
    begins = [
        packet for packet in trace.packet if packet.track_event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert len(begins) == 64
    names = {name.name for packet in trace.packet for name in packet.interned_data.event_names}
    assert "saxpy" in names


def test_ctrl_c_leaves_what_there_is(folder, monkeypatch, capsys):
    (folder / "long.ptx").write_text(
        HEADER
        + """.visible .entry long() { .reg .b32 %i; .reg .pred %p; mov.u32 %i,0;
AGAIN: add.u32 %i,%i,1; setp.lt.u32 %p,%i,4000000000; @%p bra AGAIN; ret; }"""
    )

    def stop(*told: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manyscale.cli.progress.SimulationProgress, "update", stop)
    assert main(["gpu", "run", "long.ptx", "--isa", "ptx", *SMALL, "--out", "part", "--timeline"]) == 130
    assert "Partial results are in part" in capsys.readouterr().err
    part = load("part")
    assert (part.status, part.info["partial"]) == ("stopped", True)
    assert part.value("sm[0]", "issued_instructions") > 0
    assert part.headline["simulated_seconds"]["value"] > 0
    assert (folder / "part" / "timeline.pftrace").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x"], "--out keeps what a machine's time was spent on: give --machine as well"),
        ([*SMALL, "--timeline"], "--timeline writes to the run's directory: give --out as well"),
        (["--set", "gpu.clock=1GHz"], "--set changes a machine: give --machine as well"),
    ],
)
def test_slips_are_explained(arguments, message, capsys):
    assert main(["gpu", "run", *SAXPY, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_directory_that_holds_something_is_refused_before_the_run(capsys):
    assert main(["gpu", "run", *SAXPY, *SMALL, "--out", "."]) == 4
    assert ". is not empty (it holds demo.ptx); choose a new or empty directory" in capsys.readouterr().err


def test_a_fault_leaves_a_failed_run(capsys):
    arguments = [argument.replace("16384]", "100]") for argument in SAXPY]
    assert main(["gpu", "run", *arguments, *SMALL, "--out", "failed"]) == 5
    failed = load("failed")
    assert failed.status == "failed"
    assert "past the end of an array" in failed.info["error"]
