# SPDX-License-Identifier: Apache-2.0
"""`manyscale cpu`: output, tables, JSON, exit codes, run directories, listings, and what cannot be run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from manyscale.cli.app import app, main
from manyscale.cpu import Program, sample
from manyscale.results import load

pytestmark = pytest.mark.core

HEAT = str(sample("heat"))
WRITES = "2 steps on 16 x 16 cells"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cpu(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["cpu", *arguments])


def test_a_run_shows_output_time_stack_and_caches_and_leaves_a_directory(folder: Path) -> None:
    done = cpu(
        "run",
        HEAT,
        "-m",
        "boom",
        "-n",
        "2",
        "--out",
        "here",
        "--regions",
        "--hot-lines",
        "--",
        "2",
        "16",
        "2",
    )
    assert done.exit_code == 0, done.output
    assert WRITES in done.stdout
    for part in (
        "IPC",
        "Where the cycles of 2 cores went",
        "Caches",
        "Regions",
        "iteration",
        "Hot lines",
        "heat.c:",
    ):
        assert part in done.stdout, part
    run = load(folder / "here")
    assert run.info["status"] == "done"
    assert run.info["workload"]["arguments"] == ["2", "16", "2"]
    assert (folder / "here" / "stdout.txt").read_text().startswith(WRITES)
    stack = pl.read_parquet(folder / "here" / "cpi_stack.parquet")
    cycles = {
        core: run.stats.filter(component=f"core[{core}]", statistic="cycles")["value"].item()
        for core in (0, 1)
    }
    for core, total in cycles.items():
        assert stack.filter(core=core)["cycles"].sum() == total
    assert pl.read_parquet(folder / "here" / "regions.parquet").height > 3


def test_json_alone_is_on_standard_output(folder: Path) -> None:
    done = cpu("run", HEAT, "-m", "boom", "--json", "--", "1", "16", "2")
    data = json.loads(done.stdout)
    assert done.exit_code == 0
    assert WRITES in done.stderr
    keys = ["cycles", "instructions", "simulated_seconds", "wall_seconds", "cores", "exit_code"]
    assert set(keys) <= set(data)
    assert data["simulated_seconds"] == pytest.approx(data["cycles"] / 1e9)
    assert (data["cores"], data["exit_code"]) == (1, 0)
    assert sum(data["shares"].values()) == pytest.approx(1)


def test_the_saved_machine_gives_the_same_numbers_on_two_threads(folder: Path) -> None:
    first = json.loads(
        cpu("run", HEAT, "-m", "boom", "-n", "2", "--out", "a", "--json", "--", "2", "16", "2").stdout
    )
    again = json.loads(
        cpu(
            "run",
            HEAT,
            "-m",
            "a/machine.toml",
            "-n",
            "2",
            "-t",
            "2",
            "--out",
            "b",
            "--json",
            "--",
            "2",
            "16",
            "2",
        ).stdout
    )
    assert (first["cycles"], first["instructions"]) == (again["cycles"], again["instructions"])
    assert CliRunner().invoke(app, ["compare", "a", "b"]).exit_code == 0


def test_without_time_it_is_only_executed(folder: Path) -> None:
    done = cpu("run", HEAT, "--functional", "--regions", "--", "2", "16", "2")
    assert done.exit_code == 0, done.output
    assert WRITES in done.stdout
    assert "instructions" in done.stdout
    assert "iteration" in done.stdout
    assert not (folder / "runs").exists()
    data = json.loads(cpu("run", HEAT, "--functional", "--json", "--", "2", "16", "2").stdout)
    assert data["cycles"] is None
    assert data["instructions"] > 10_000


@pytest.mark.parametrize("mode", [["--functional"], ["-m", "boom", "--quiet"]])
def test_the_exit_code_is_the_programs(mode: list[str]) -> None:
    done = cpu("run", HEAT, *mode, "--", "0")
    assert done.exit_code == 1
    assert "heat: write heat THREADS SIZE STEPS" in done.stderr


def test_a_pipeline_log_of_some_instructions(folder: Path) -> None:
    options = ("--konata", "pipe.log", "--konata-from", "1000", "--konata-count", "50")
    done = cpu("run", HEAT, "-m", "boom", "--quiet", *options, "--", "1", "16", "1")
    assert done.exit_code == 0, done.output
    lines = (folder / "pipe.log").read_text().splitlines()
    assert lines[0] == "Kanata\t0004"
    assert sum(line.startswith("I\t") for line in lines) == 50
    assert sum(line.startswith("R\t") for line in lines) == 50
    assert main(["cpu", "run", HEAT, "-m", "boom", "--konata", "none/pipe.log"]) == 2


def test_a_listing_with_source_lines_and_cycles_of_a_run(folder: Path) -> None:
    plain = cpu("disassemble", HEAT, "--function", "main").stdout.splitlines()
    assert plain[1] == "main:"
    assert any(line.strip().startswith("heat.c:") for line in plain)
    assert (
        cpu("run", HEAT, "-m", "boom", "--hot-lines", "--out", "r", "-q", "--", "1", "24", "4").exit_code == 0
    )
    listed = cpu("disassemble", HEAT, "--run", "r").stdout
    assert "step._omp_fn.0:" in listed
    assert "%" in listed
    assert main(["cpu", "disassemble", HEAT, "--function", "mian"]) == 2


def test_what_cannot_be_run_is_said_before_a_directory_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "text").write_text("no program\n")
    for arguments, message in (
        (["none"], "cannot read none: No such file"),
        (["text"], "text is not an ELF file"),
        ([HEAT, "-m", "boom", "--cores", "9"], "boom has 4 cores (cpu.cores), so 9 of them cannot be used"),
        ([HEAT, "-m", "v100"], "v100: cpu: there is no section [cpu]"),
        ([HEAT, "--env", "A"], "--env A: write NAME=VALUE"),
        ([HEAT, "--root", "nowhere"], "nowhere: there is no such folder"),
        ([HEAT, "--memory", "many"], "many"),
    ):
        assert main(["cpu", "run", *arguments]) == 2, arguments
        assert message in capsys.readouterr().err
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())


def test_check_looks_at_every_instruction_of_a_program(folder: Path) -> None:
    program = folder / "program"
    data = bytearray(Program(HEAT).data)
    program.write_bytes(data)
    done = CliRunner().invoke(app, ["check", "program", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["supported"] is True
    # Over the first instruction of main: vadd.vv v1, v2, v3.
    name, start, code = Program(HEAT).symbols.code[0]
    main_at = Program(HEAT).symbols.addresses["main"] - start
    at = data.index(code[main_at : main_at + 64])
    data[at : at + 4] = (0x022180D7).to_bytes(4, "little")
    program.write_bytes(data)
    done = CliRunner().invoke(app, ["check", "program", "--json"])
    assert done.exit_code == 1
    problem = json.loads(done.stdout)["files"][0]["problems"][0]
    assert (name, problem["function"]) == (".text", "main")
    assert problem["why"] == "the extension V (vectors) is not executed"
    assert "main" in CliRunner().invoke(app, ["check", "program"]).stdout


def test_check_refuses_what_is_no_program_for_these_processors(folder: Path) -> None:
    data = bytearray(Program(HEAT).data)
    data[18] = 62  # x86-64
    (folder / "other").write_bytes(data)
    done = CliRunner().invoke(app, ["check", "other"])
    assert done.exit_code == 2
    assert "other is for x86-64, not for RISC-V" in done.stderr


@pytest.mark.skipif(shutil.which("riscv64-linux-gnu-gcc") is None, reason="no cross-compiler")
def test_a_program_can_be_compiled_and_run(folder: Path) -> None:
    (folder / "three.c").write_text(
        '#include "manyscale.h"\nint main(void) { MANYSCALE_BEGIN("x"); return 3; }\n'
    )
    assert cpu("cc", "three.c", "-o", "three").exit_code == 0
    assert cpu("run", "three", "--functional").exit_code == 3


def test_what_cannot_be_compiled_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "cc", "none.c", "-o", "none"]) == 2
    assert "none.c: there is no such file to compile" in capsys.readouterr().err
