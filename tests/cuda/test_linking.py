# SPDX-License-Identifier: Apache-2.0
"""Linking of PTX modules into one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from manyscale import gpu
from manyscale.cuda.linking import link, split

pytestmark = pytest.mark.core

HEAD = ".version {version}\n.target {target}\n.address_size 64\n"

MAIN = (
    HEAD.format(version="7.0", target="sm_70")
    + """
.file 1 "main.cu"
.extern .func (.param .b32 result) twice(.param .b32 x);
.extern .global .align 4 .u32 shared_number;
.global .align 4 .u32 own = 3;
.func (.param .b32 result) helper(.param .b32 x) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x]; add.u32 %r1, %r1, 100; st.param.b32 [result], %r1; ret;
}
.visible .entry run(.param .u64 out) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .loc 1 5 0
  ld.global.u32 %r1, [own];
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), twice, (p); ld.param.b32 %r2, [q]; }
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call (q), helper, (p); ld.param.b32 %r3, [q]; }
  ld.global.u32 %r4, [shared_number];
  add.u32 %r5, %r3, %r4;
  ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r5; ret;
}
"""
)

OTHER = (
    HEAD.format(version="8.0", target="sm_75")
    + """
.file 1 "other.cu"
.visible .global .align 4 .u32 shared_number = 1000;
.global .align 4 .u32 own = 7;
.func (.param .b32 result) helper(.param .b32 x) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x]; ld.global.u32 %r2, [own]; mul.lo.u32 %r1, %r1, %r2; st.param.b32 [result], %r1; ret;
}
.visible .func (.param .b32 result) twice(.param .b32 x) {
  .reg .b32 %r<4>;
  .loc 1 9 0
  ld.param.b32 %r1, [x];
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), helper, (p); ld.param.b32 %r2, [q]; }
  st.param.b32 [result], %r2; ret;
}
"""
)


def result(ptx: bytes) -> int:
    device = gpu.Device()
    out = device.zeros(1, np.uint32)
    device.load(ptx)["run"][1, 1](out)
    return int(out.numpy()[0])


@pytest.mark.parametrize("texts", [(MAIN, OTHER), (OTHER, MAIN)])
def test_functions_and_variables_of_other_modules_are_found(texts: tuple[str, str]) -> None:
    # 3 (own of main) x 7 (own of other, in its own helper) + 100 (main's helper) + 1000 (other's variable).
    assert result(link([text.encode() for text in texts])) == 3 * 7 + 100 + 1000


def test_the_newest_version_and_target_are_kept() -> None:
    text = link([MAIN.encode(), OTHER.encode()])
    assert text.startswith(b".version 8.0\n.target sm_75")
    assert text.count(b".version") == 1


def test_source_files_are_renumbered() -> None:
    text = link([MAIN.encode(), OTHER.encode()])
    assert b'.file 1 "main.cu"' in text
    assert b'.file 2 "other.cu"' in text
    assert b".loc 2 9 0" in text


def test_weak_definitions_are_kept_once() -> None:
    weak = ".weak .func (.param .b32 r) w(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r1, [x]; ret; }\n"
    text = link([(MAIN + weak).encode(), (OTHER + weak).encode()])
    assert text.count(b".weak .func") == 1


def test_names_in_strings_and_longer_names_are_left_alone() -> None:
    strings = '\n.global .align 1 .b8 own_more[4];\n.section .debug_str { .b8 111, 119 }\n.file 7 "own.cu"\n'
    text = link([(MAIN + strings).encode(), OTHER.encode()])
    assert b'"own.cu"' in text
    assert b" own_more[4]" in text


def test_a_single_module_is_not_touched() -> None:
    assert link([MAIN.encode()]) == MAIN.encode()


def test_the_device_runtime_is_left_out() -> None:
    runtime = HEAD.format(version="9.0", target="sm_75") + (
        ".visible .func (.param .b32 r) cudaCDP2Free(.param .b64 p) { ret; }\n"
        ".visible .entry memcpy_3d_device(.param .u64 p) { ret; }\n"
    )
    text = link([MAIN.encode(), OTHER.encode(), runtime.encode()])
    assert b"memcpy_3d_device" not in text


def test_statements_are_separated() -> None:
    module = split(MAIN.encode())
    named = {definition.name: definition for definition in module.definitions if definition.name}
    assert set(named) == {b"twice", b"shared_number", b"own", b"helper", b"run"}
    assert named[b"run"].is_entry
    assert named[b"run"].has_body
    assert not named[b"twice"].has_body
    assert named[b"own"].linkage == b""


@pytest.mark.parametrize(
    "text", [b"", b"{{{{", b"}}}", b'.file 1 "x', b".func", b".global .u32", b"\0\xff" * 50]
)
def test_broken_text_is_passed_on_for_the_parser_to_refuse(text: bytes) -> None:
    link([text, text])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
def test_relocatable_code_without_ptx_runs_as_it_was_linked(tmp_path: Path) -> None:
    programs = Path(__file__).parent / "programs"
    sources = [str(programs / "relocatable" / name) for name in ("main.cu", "shapes.cu")]
    options = ["-std=c++17", "-rdc=true", "-gencode", "arch=compute_80,code=sm_80", f"-I{programs}"]
    subprocess.run(["nvcc", *options, *sources, "-o", str(tmp_path / "program")], check=True)
    command = [sys.executable, "-m", "manyscale.cli.app", "cuda", "--machine", "a100", "--functional"]
    done = subprocess.run(
        [*command, "--", str(tmp_path / "program")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
