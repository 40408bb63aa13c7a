# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu run`: arguments from the shell, what is shown and saved, exit codes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app, main

pytestmark = pytest.mark.core

DEMO = Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx"
HEADER = ".version 8.0\n.target sm_70\n.address_size 64\n"
ADD_ONE = (
    HEADER
    + """\
.visible .entry add_one(.param .u64 out)
{
  .shared .align 4 .b32 word;
  .reg .b32 %i, %value;
  .reg .b64 %out;
  mov.u32 %i, %tid.x;
  ld.param.u64 %out, [out];
  mad.wide.u32 %out, %i, 4, %out;
  ld.global.u32 %value, [%out];
  add.u32 %value, %value, 1;
  st.shared.u32 [word], %value;
  st.global.u32 [%out], %value;
  ret;
}
"""
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.ptx").write_text(ADD_ONE)
    (tmp_path / "demo.ptx").write_text(DEMO.read_text())
    return tmp_path


SAXPY = ("demo.ptx", "--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "2.5")


def run(*arguments: str):
    result = CliRunner().invoke(app, ["gpu", "run", *arguments])
    return result.exit_code, [" ".join(line.split()) for line in result.stdout.splitlines()], result.stderr


def run_json(*arguments: str):
    result = CliRunner().invoke(app, ["gpu", "run", *arguments, "--json"])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def test_it_shows_counts_and_arrays():
    code, lines, errors = run(
        *SAXPY, "-a", "x=f32[1000]:arange", "-a", "y=f32[1000]:ones", "-a", "1000", "--show", "3"
    )
    assert (code, errors) == (0, "")
    assert lines[0] == "kernel saxpy, 4 blocks of 256 threads"
    assert lines[1].startswith("warp instructions ")
    assert "│ x │ float32 [1000] │ 0 1 2 │ 0 │ 999 │" in lines
    assert "│ y │ float32 [1000] │ 1 3.5 6 │ 1 │ 2498.5 │" in lines


def test_json_has_the_same_as_data():
    shown = run_json(*SAXPY, "-a", "f32[10,100]:ones", "-a", "f32[10,100]", "-a", "1000", "-t", "2")
    assert list(shown) == ["kernels", "wall_seconds", "printed", "warnings", "arrays", "isa", "code"]
    (kernel,) = shown["kernels"]
    assert (kernel["name"], kernel["grid"], kernel["block"]) == ("saxpy", [4], [256])
    assert kernel["thread_instructions"] > kernel["warp_instructions"] > 0
    assert (shown["printed"], shown["warnings"]) == ("", [])
    assert shown["arrays"]["3"] == {
        "dtype": "float32",
        "shape": [10, 100],
        "first": [2.5] * 8,
        "minimum": 2.5,
        "maximum": 2.5,
    }


def test_arrays_are_read_from_and_saved_to_files(folder):
    x = np.linspace(0, 1, 500, dtype=np.float32)
    np.save(folder / "x.npy", x)
    code, _, errors = run(
        *SAXPY, "-a", "x=@x.npy", "-a", "y=f32[500]:zeros", "-a", "500", "--save", "y=out.numpy"
    )
    assert (code, errors) == (0, "")
    np.testing.assert_array_equal(np.load(folder / "out.numpy"), np.float32(2.5) * x)


def test_random_arrays_follow_the_seed():
    def first(*options: str) -> list[float]:
        shown = run_json("one.ptx", "-b", "8", "-a", "x=i32[8]:random", *options)
        return shown["arrays"]["x"]["first"]

    assert first() == first("--seed", "0") != first("--seed", "1")
    assert all(1 <= value <= 100 for value in first())


def test_one_kernel_needs_no_name():
    assert run_json("one.ptx", "-b", "2", "-a", "u32[2]")["arrays"]["1"]["first"] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.ptx"], "none.ptx: there is no such file"),
        (["demo.ptx"], "demo.ptx: choose one of its kernels with --kernel: saxpy, sum"),
        (["demo.ptx", "-k", "saxp"], "demo.ptx: there is no kernel 'saxp'; did you mean 'saxpy'?"),
        (["one.ptx", "-g", "0", "-a", "u32[1]"], "--grid 0: write one, two or three whole numbers, such as 4 or 4,2,1"),
        (["one.ptx", "-b", "1,2,3,4"], "--block 1,2,3,4: write one, two or three whole numbers"),
        (["one.ptx", "-b", "2048", "-a", "u32[1]"], "kernel add_one: a block of this shape is not possible"),
        (["one.ptx"], "kernel add_one takes 1 arguments, but 0 were given; it is declared as (out: u64)"),
        (["one.ptx", "-a", "u32[1]", "--shared", "4"], "--shared: '4' has no unit"),
        (["one.ptx", "-a", "u32[1]", "--shared", "-1B"], "--shared -1B: it must not be negative"),
        (["one.ptx", "-a", "u33[1]"], "--arg u33[1]: 'u33' is not a type; did you mean 'u32'?"),
        (["one.ptx", "-a", "u32[4]:zeroes"], "'zeroes' is not a way to fill an array; did you mean 'zeros'?"),
        (["one.ptx", "-a", "u32[a]"], "--arg u32[a]: [a] is not a shape; write whole numbers such as [1024]"),
        (["one.ptx", "-a", "u32[0]"], "--arg u32[0]: [0] is not a shape"),
        (["one.ptx", "-a", f"u8[{2**62}]"], "does not fit into memory"),
        (["one.ptx", "-a", "what"], "--arg what: this is neither an array nor a number; write x=f32[1024]:random, "),
        (["one.ptx", "-a", "@none.npy"], "--arg @none.npy: none.npy: there is no such file"),
        (["one.ptx", "-a", "@one.ptx"], "--arg @one.ptx: one.ptx: this is not a file of a numpy array"),
        (["one.ptx", "-a", "x=1", "-a", "x=2"], "--arg x=2: there is already an argument called 'x'"),
        (["one.ptx", "-a", "x=u32[1]", "--save", "y=y.npy"], "there is no array 'y' among the arguments; known: x"),
        (["one.ptx", "-a", "x=u32[1]", "--save", "x"], "--save x: write NAME=FILE.npy"),
        (["one.ptx", "-a", "x=u32[1]", "--save", "x=no/x.npy"], "--save x=no/x.npy: there is no folder no"),
        (["one.ptx", "-a", "1.5"], "kernel add_one, argument 1 (out): it takes a whole number (u64), not 1.5"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)  # fmt: skip
def test_slips_are_explained(arguments, message, capsys):
    assert main(["gpu", "run", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_file_of_several_arrays_or_of_words_is_refused(folder, capsys):
    np.savez(folder / "two.npz", a=np.zeros(2), b=np.zeros(3))
    np.save(folder / "words.npy", np.array(["a", "b"]))
    assert main(["gpu", "run", "one.ptx", "-a", "@two.npz"]) == 2
    assert "two.npz: it holds several arrays; save one of them as .npy" in capsys.readouterr().err
    assert main(["gpu", "run", "one.ptx", "-a", "@words.npy"]) == 2
    assert "words.npy: it holds <U1, not numbers that a kernel could use" in capsys.readouterr().err


def test_a_fault_is_told_and_is_exit_code_5(capsys):
    assert main(["gpu", "run", "one.ptx", "--block", "8", "--arg", "x=i32[4]"]) == 5
    told = capsys.readouterr().err
    assert "0 bytes past the end of an array (4,) of int32 of 16 bytes" in told
    assert "kernel add_one, CTA (0, 0, 0), thread (4, 0, 0)" in told


def test_check_shows_what_it_finds_and_is_exit_code_1():
    code, lines, _ = run("one.ptx", "-b", "64", "-a", "x=i32[64]:arange", "--check")
    assert code == 1
    assert any(line.startswith("Warning: race in shared memory: ") for line in lines)
    assert run("one.ptx", "-b", "1", "-a", "x=i32[1]", "--check")[0] == 0
    assert run("one.ptx", "-b", "64", "-a", "x=i32[64]")[0] == 0


def test_a_kernel_may_be_given_up(folder, capsys):
    (folder / "spin.ptx").write_text(HEADER + ".visible .entry spin() { AGAIN: bra AGAIN; }\n")
    assert main(["gpu", "run", "spin.ptx", "--limit", "1000"]) == 5
    assert "kernel spin has executed more than the 1000 warp instructions it may" in capsys.readouterr().err


PRINTING = (
    HEADER
    + """\
.extern .func (.param .b32 written) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[3] = {104, 105, 0};
.visible .entry print_hello()
{
  .reg .b64 %text;
  cvta.global.u64 %text, text;
  {
    .param .b64 first;
    .param .b64 second;
    .param .b32 written;
    st.param.b64 [first], %text;
    st.param.b64 [second], 0;
    call (written), vprintf, (first, second);
  }
  ret;
}
"""
)


def test_what_a_kernel_prints_is_shown_or_in_the_json(folder):
    (folder / "print_hello.ptx").write_text(PRINTING)
    code, lines, _ = run("print_hello.ptx", "--grid", "2")
    assert code == 0
    assert lines[:2] == ["hihi", "kernel print_hello, 2 blocks of 1 threads"]
    assert run_json("print_hello.ptx")["printed"] == "hi"
