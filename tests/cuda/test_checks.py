# SPDX-License-Identifier: Apache-2.0
"""`manyscale cuda --check`: races and the like in the kernels of a whole program, and nothing where there is none."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from host_programs import FIXTURES, compiled
from kernels import HEAD
from wire_client import container

from manyscale.cli.app import main
from manyscale.cuda.checks import CHECKS, bits_of, checks_of
from manyscale.cuda.loader import library_folder
from manyscale.errors import InputError

pytestmark = pytest.mark.core

_OWN = """
  .reg .b32 %i, %a, %own; .reg .b64 %m; .reg .pred %last, %p;
  mov.u32 %i, %tid.x; setp.eq.u32 %last, %i, 63;
  shl.b32 %own, %i, 2; cvt.u64.u32 %m, %own;
  { .reg .b64 %base; ld.param.u64 %base, [memory]; add.u64 %m, %m, %base; }"""
_LATER = "mad.lo.u32 %a, %a, 3, 1;" * 64  # so many instructions
# The first two: what the last thread wrote is read by all, and written again with and without a barrier before.
_BROADCAST = """
.visible .entry {name}(.param .u64 memory) {{
  .shared .align 4 .u32 word;{own}
  @%last st.shared.u32 [word], 7;
  bar.sync 0;
  ld.shared.u32 %a, [word];
  {later}
  {barrier}
  @%last st.shared.u32 [word], %a;
  st.global.u32 [%m], %a;
  ret;
}}
"""
KERNELS = (
    HEAD
    + '.file 1 "broadcast.cu"\n'
    + _BROADCAST.format(name="race", own=_OWN, later=_LATER, barrier=".loc 1 12 0")
    + _BROADCAST.format(name="ordered", own=_OWN, later=_LATER, barrier="bar.sync 0;")
    + f"""
.visible .entry reads(.param .u64 memory) {{{_OWN}
  ld.global.u32 %a, [%m]; add.u32 %a, %a, 1; st.global.u32 [%m], %a; ret;
}}
.visible .entry past(.param .u64 memory) {{{_OWN}
  st.global.u32 [%m+2096896], %i; ret;
}}
.visible .entry beyond(.param .u64 memory) {{{_OWN}
  st.global.u32 [%m+2097152], %i; ret;
}}
.visible .entry divergent(.param .u64 memory) {{{_OWN}
  and.b32 %a, %i, 1; setp.eq.u32 %p, %a, 0;
  @%p bra even;
  bar.sync 0;
  bra done;
even:
  bar.sync 0;
done:
  st.global.u32 [%m], %a; ret;
}}
"""
)


# What is read, 7, after so many steps.
PRINTED = str(functools.reduce(lambda value, _: (3 * value + 1) % 2**32, range(64), 7))


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    runtime = str(library_folder() / "libcudart.so.13")
    source = (FIXTURES / "checked.cpp").read_text()
    folder = tmp_path_factory.mktemp("checked")
    return compiled(folder, source, container((KERNELS.encode(), 70)), "checked", runtime)


def run(capfd, tmp_path: Path, program: Path, *arguments: str, check: str | None):
    """The exit code, what the program printed, and the findings."""
    checks = [] if check is None else ["--check", check]
    out = tmp_path / "run"
    command = ["cuda", "--machine", "v100", "--functional", *checks, "--json", "--out", str(out), "--force"]
    code = main([*command, "--", str(program), *arguments])
    captured = capfd.readouterr()
    data = json.loads(captured.out)
    notes = out / "notes.txt"
    kept = notes.read_text() if notes.exists() else ""
    assert all(finding in kept for finding in data["findings"])
    printed = next(line for line in captured.err.splitlines() if line.isdigit())
    return code, printed, data["findings"]


def test_a_race_is_named_with_its_source_line_once(program, capfd, tmp_path):
    code, printed, findings = run(capfd, tmp_path, program, "race", check="racecheck")
    assert code == 1
    assert printed == PRINTED
    [finding] = findings
    assert finding.startswith("race in shared memory")
    assert "broadcast.cu:12" in finding


def test_a_barrier_between_makes_it_no_race(program, capfd, tmp_path):
    assert run(capfd, tmp_path, program, "ordered", check="all") == (0, PRINTED, [])


def test_warps_leave_a_barrier_together(program, capfd, tmp_path):
    """As on hardware: what a warp writes after it comes too late for those that read right behind the barrier."""
    assert run(capfd, tmp_path, program, "race", check=None) == (0, PRINTED, [])


def test_memory_that_nobody_has_written_is_named(program, capfd, tmp_path):
    code, _, [finding] = run(capfd, tmp_path, program, "reads", check="initcheck")
    assert code == 1
    assert finding.startswith("uninitialised global memory is read")
    assert run(capfd, tmp_path, program, "reads", "filled", check="all") == (0, str(0x01010102), [])


def test_lanes_at_different_barriers_are_named(program, capfd, tmp_path):
    code, _, findings = run(capfd, tmp_path, program, "divergent", check="synccheck")
    assert code == 1
    assert [finding.split(":")[0] for finding in findings] == ["divergent barrier"]


@pytest.mark.parametrize(("kernel", "check"), [("race", "memcheck,synccheck"), ("reads", "racecheck")])
def test_only_what_is_asked_for_is_looked_for(program, capfd, tmp_path, kernel, check):
    assert run(capfd, tmp_path, program, kernel, check=check)[2] == []


@pytest.mark.parametrize(
    ("bounds", "kernel", "passes"),
    [("exact", "past", False), ("pages", "past", True), ("pages", "beyond", False)],
)
def test_accesses_past_the_end_pass_up_to_the_page_if_wanted(
    program, capfd, tmp_path, bounds, kernel, passes
):
    """The last words of the page of the memory, and the first behind it."""
    command = [
        "cuda",
        "--machine",
        "v100",
        "--functional",
        "--bounds",
        bounds,
        "--out",
        str(tmp_path / "run"),
    ]
    status = main([*command, "--", str(program), kernel])
    message = capfd.readouterr().err
    assert (status == 0) == passes
    assert ("invalid address" in message) != passes
    assert ("with --bounds pages" in message) != passes


def test_names_of_checks():
    assert checks_of("synccheck, memcheck") == ("memcheck", "synccheck")
    assert checks_of("all") == CHECKS
    with pytest.raises(InputError, match="'leakcheck' is none of memcheck, racecheck"):
        checks_of("leakcheck")


def test_races_are_not_looked_for_in_sass():
    assert bits_of(CHECKS, "ptx") & ~bits_of(CHECKS, "sass") == bits_of(("racecheck",), "ptx")
