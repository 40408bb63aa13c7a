# SPDX-License-Identifier: Apache-2.0
"""`manyscale cuda` and `manyscale check` on programs that the host's compiler makes."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from host_programs import EMPTY, compiled
from kernels import HEAD
from wire_client import container

from manyscale.cli.app import main
from manyscale.cuda import Executable
from manyscale.cuda.loader import library_folder

pytestmark = pytest.mark.core

SOURCE = Path(__file__).parents[2] / "benchmarks" / "support" / "cuda_calls.cpp"
# As nvcc's output has it: device code in a section of its own, and a record that points to it.
WITHOUT_RUNTIME = """
#include "container.h"
struct Wrapper { unsigned magic, version; const void *data, *file; };
__attribute__((section(".nvFatBinSegment"), used)) Wrapper wrapper{0x466243b1, 1, container, nullptr};
int main() { return 0; }
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that launches and copies as often as its arguments say."""
    if not SOURCE.exists():
        pytest.skip("only in a checkout")
    runtime = str(library_folder() / "libcudart.so.13")
    folder = tmp_path_factory.mktemp("calls")
    return compiled(folder, SOURCE.read_text(), container((EMPTY, 70)), "calls", runtime)


def cuda(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def test_a_run_leaves_a_directory_and_prints_one_line_of_json(calls: Path, tmp_path: Path) -> None:
    shutil.copy(calls, tmp_path / "here")
    done = cuda("--json", "--out", "run", "--", "./here", "5", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert len(done.stdout.splitlines()) == 1
    assert [kernel["name"] for kernel in data["kernels"]] == ["empty"] * 6
    for kernel in data["kernels"]:
        assert (kernel["grid"], kernel["block"]) == ([1, 1, 1], [32, 1, 1])
        assert kernel["thread_instructions"] == 32 * kernel["warp_instructions"] > 0
        assert kernel["cycles"] > 2000
        assert 0 < kernel["occupancy"] <= 1
    assert data["total_cycles"] == sum(kernel["cycles"] for kernel in data["kernels"])
    assert data["simulated_seconds"] > 0
    assert {row["kind"]: (row["number"], row["bytes"]) for row in data["copies"]} == {
        "to_device": (2, 128),
        "to_host": (2, 128),
    }
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["status"] == "done"
    assert run["headline"]["launches"]["value"] == 6
    assert run["workload"]["arguments"] == ["5", "4"]
    made = pl.read_parquet(tmp_path / "run" / "calls.parquet")
    assert made["call"].to_list().count("launch") == 6
    assert made["begin_ns"].is_sorted()
    assert pl.read_parquet(tmp_path / "run" / "kernels.parquet").height == 6
    copies = pl.read_parquet(tmp_path / "run" / "copies.parquet")
    assert copies["pageable"].all()
    assert copies["l2_bytes"].to_list() == copies["bytes"].to_list()  # whole sectors
    assert sum(row["l2_bytes"] for row in data["copies"]) == copies["l2_bytes"].sum()
    assert sum(row["dram_bytes"] for row in data["copies"]) == copies["dram_bytes"].sum()
    statistics = pl.read_parquet(tmp_path / "run" / "stats.parquet")
    assert set(statistics["scope"]) == {"run", "empty"}
    assert (tmp_path / "run" / "ptx" / "module-1.ptx").read_bytes() == EMPTY


def test_the_verdict_of_kernels_is_printed_and_in_the_json(calls: Path, tmp_path: Path) -> None:
    arguments = ("--", str(calls), "2", "0")
    limits = json.loads(cuda("--json", "--out", "first", *arguments, cwd=tmp_path).stdout)["limits"]
    assert set(limits) == {"empty"}
    assert limits["empty"]["kind"] == "launch overhead"
    assert limits["empty"]["saved_seconds"] > 0
    shown = " ".join(cuda("--out", "second", *arguments, cwd=tmp_path).stderr.split())
    assert f"empty: {limits['empty']['text']}" in shown


def test_the_output_and_the_exit_code_are_the_programs_own(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.sh").write_text(f"#!/bin/sh\n{calls} 1 1 && echo fine\nexit 42\n")
    (tmp_path / "wrong.sh").chmod(0o755)
    done = cuda("--functional", "--out", "run", "--", "./wrong.sh", cwd=tmp_path)
    assert done.stdout == "fine\n"
    assert done.returncode == 42
    assert "exit code 42" in done.stderr
    assert "empty" in done.stderr


def test_a_limit_ends_the_program_and_leaves_what_there_is(calls: Path, tmp_path: Path) -> None:
    done = cuda("--limit", "100us", "--out", "run", "--", str(calls), "1000", "0", cwd=tmp_path)
    assert done.returncode == 124
    assert "limit of 100us" in done.stderr
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["status"] == "failed"
    assert run["partial"] is True
    ended = pl.read_parquet(tmp_path / "run" / "kernels.parquet")
    assert 10 < ended.height < 100
    assert ended["end_ns"].max() <= 100_000


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./nothing", "nothing: there is no such program"),
        ("nothing_of_this_name", "no such program in the folders of PATH"),
        (".", "this is a folder"),
    ],
)
def test_a_program_that_cannot_start_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["cuda", "--", command]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_runtime_that_is_linked_in_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compiled(tmp_path, WITHOUT_RUNTIME, container((EMPTY, 70)), "static")
    assert main(["cuda", "--out", str(tmp_path / "run"), "--", str(program)]) == 2
    assert "-cudart shared" in capsys.readouterr().err
    assert main(["check", str(program), "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["files"][0]["problems"]
    assert "nvcc -cudart shared" in problem["why"]


def test_sass_alone_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = container((b"\x7fELF" + bytes(60), 61), kind=2)  # older than what can be executed
    program = compiled(tmp_path, WITHOUT_RUNTIME, data, "sass")
    assert main(["check", str(program), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["files"][0]["problems"]
    assert any("SASS for sm_61 only" in problem["why"] for problem in problems)


def test_the_kernels_of_a_program_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = (HEAD + ".visible .entry odd() { nonsense.u32; ret; }\n").encode()
    program = compiled(tmp_path, WITHOUT_RUNTIME, container((bad, 70)), "odd")
    assert main(["check", str(program), "--json"]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["files"][0]["kernels"]
    assert kernel["name"] == "odd"
    assert not kernel["supported"]


def test_a_program_that_is_fine_passes_the_check(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(calls)]) == 0
    assert "yes" in capsys.readouterr().out
    program = Executable.read(calls)
    assert program.runtime == "libcudart.so.13"
    assert {"cudaMalloc", "cudaLaunchKernel", "__cudaRegisterFatBinary"} <= set(program.imports)


def test_a_function_that_is_not_supported_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "cudaGraphicsMapResources"
    source = f'#include "container.h"\nextern "C" int {name}();\nint main() {{ return {name}(); }}\n'
    runtime = str(library_folder() / "libcudart.so.13")
    program = compiled(tmp_path, source, container((EMPTY, 70)), "graphics", runtime)
    assert main(["check", str(program), "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["files"][0]["problems"]
    assert problem["what"] == name
    assert "cudaErrorNotSupported" in problem["why"]


def test_damaged_programs_give_errors_only(tmp_path: Path) -> None:
    from random import Random

    from manyscale.errors import InputError

    program = compiled(tmp_path, WITHOUT_RUNTIME, container((EMPTY, 70)), "whole")
    good, chance = program.read_bytes(), Random(3)
    for _ in range(150):
        damaged = bytearray(good[: chance.choice((len(good), chance.randrange(len(good))))])
        for _ in range(8):
            limit = chance.choice((64, len(damaged))) if len(damaged) > 64 else len(damaged)
            if damaged:
                damaged[chance.randrange(max(limit, 1))] = chance.randrange(256)
        path = tmp_path / "damaged"
        path.write_bytes(damaged)
        with contextlib.suppress(InputError):
            Executable.read(path).ptx(70)
