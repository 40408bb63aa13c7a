# SPDX-License-Identifier: Apache-2.0
"""`manyscale check`: tables, every problem with its line, JSON, and exit codes 0, 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app
from manyscale.gpu import cuda_compiler

pytestmark = pytest.mark.core

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
GOOD = HEADER + ".visible .entry fine() { ret; }\n.visible .entry fine_too() { ret; }\n"
BAD = (
    HEADER
    + """\
.func helper() { .reg .b64 %a; frobnicate.u64 %a, %a; ret; }
.visible .entry fine() { ret; }
.visible .entry wrong()
{
  call helper;
  twist.sync;
  ret;
}
"""
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels" / "deeper").mkdir(parents=True)
    (tmp_path / "kernels" / "good.ptx").write_text(GOOD)
    (tmp_path / "kernels" / "deeper" / "bad.ptx").write_text(BAD)
    (tmp_path / "kernels" / "notes.txt").write_text("nothing\n")
    (tmp_path / "broken.ptx").write_text("this is not PTX\n")
    return tmp_path


def check(*arguments: str):
    result = CliRunner().invoke(app, ["check", *arguments])
    return result.exit_code, [" ".join(line.split()) for line in result.stdout.splitlines()], result.stderr


def test_a_file_without_problems():
    code, lines, errors = check("kernels/good.ptx")
    assert (code, errors) == (0, "")
    assert "│ kernels/good.ptx │ 2 │ yes │ - │" in lines
    assert "Problems" not in lines


def test_a_single_file_shows_every_problem():
    code, lines, errors = check("kernels/deeper/bad.ptx")
    assert (code, errors) == (1, "")
    row = "│ kernels/deeper/bad.ptx │ 2 │ 1 of 2 │ line 4: frobnicate.u64 (the instruction is not known) │"
    assert row in lines
    problems = [line for line in lines[lines.index("Problems") :] if line.startswith("│")]
    assert problems == [
        "│ bad.ptx │ 4:32 │ wrong (in helper) │ frobnicate.u64 │ the instruction is not known │",
        "│ bad.ptx │ 9:3 │ wrong │ twist.sync │ the instruction is not known │",
    ]


def test_folders_are_searched_and_show_the_first_problem_of_each_file():
    code, lines, errors = check("kernels")
    assert (code, errors) == (1, "")
    rows = [line for line in lines if line.startswith("│")]
    assert [row.split()[1] for row in rows] == ["kernels/deeper/bad.ptx", "kernels/good.ptx"]
    assert "Problems" not in lines
    assert "Problems" in check("kernels", "--all")[1]


def test_what_cannot_be_read_does_not_keep_the_others_from_being_checked(folder):
    (folder / "empty").mkdir()
    code, lines, errors = check("broken.ptx", "kernels", "none.ptx", "kernels/notes.txt", "empty")
    assert code == 2
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) == 6
    assert rows[0] == "│ broken.ptx │ - │ cannot be read │ - │"
    assert "│ kernels/good.ptx │ 2 │ yes │ - │" in rows
    assert [line.partition(" ")[2] for line in errors.splitlines()] == [
        "broken.ptx:1:1: expected '.version' at the start of the module, found 'this'",
        "none.ptx: there is no such file",
        "kernels/notes.txt: it is not known how to check this; "
        "give a CUDA or RISC-V program or a file named .ptx or .cu or .cubin",
        "empty: there is no file named .ptx or .cu or .cubin in this folder",
    ]


def test_json_has_all_of_it():
    result = CliRunner().invoke(app, ["check", "--json", "kernels", "broken.ptx"])
    assert (result.exit_code, result.stderr) == (2, "")
    shown = json.loads(result.stdout)
    assert list(shown) == ["supported", "files"]
    assert shown["supported"] is False
    bad, good, broken = shown["files"]
    assert (good["file"], good["supported"], good["error"]) == ("kernels/good.ptx", True, None)
    assert [kernel["name"] for kernel in good["kernels"]] == ["fine", "fine_too"]
    assert [kernel["supported"] for kernel in bad["kernels"]] == [True, False]
    assert bad["kernels"][1]["problems"][0] == {
        "function": "helper",
        "instruction": "frobnicate.u64",
        "why": "the instruction is not known",
        "line": 4,
        "column": 32,
    }
    assert (broken["supported"], broken["kernels"]) == (False, [])
    assert broken["error"].startswith("broken.ptx:1:1: ")
    assert (
        json.loads(CliRunner().invoke(app, ["check", "--json", "kernels/good.ptx"]).stdout)["supported"]
        is True
    )


def test_cuda_without_a_compiler(folder, monkeypatch):
    (folder / "kernel.cu").write_text("__global__ void f() {}\n")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(cuda_compiler, "_find_nvrtc", lambda: None)
    code, lines, errors = check("kernel.cu")
    assert code == 2
    assert "│ kernel.cu │ - │ cannot be read │ - │" in lines
    assert errors == (
        "Error: kernel.cu: this is CUDA C++; pip install 'manyscale[cuda]' brings a compiler (NVRTC), "
        "or put nvcc on the PATH\n"
    )


def test_without_a_path_there_is_a_hint():
    assert CliRunner().invoke(app, ["check"]).exit_code == 2
