# SPDX-License-Identifier: Apache-2.0
"""The annotated listing: source, PTX and SASS in order, with what each line cost, and links between them."""

from __future__ import annotations

import polars as pl
import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser
from run_directories import make_run

from manyscale import gpu, load
from manyscale.report import run_page
from manyscale.report.evidence import Evidence
from manyscale.report.sections.listing import panes, ptx_modules

SOURCE = """// two lines
__global__ void k(float* x) {
  float y = x[threadIdx.x];
  x[threadIdx.x] = y * y;
}
"""
KERNEL = """.version 7.0
.target sm_60
.address_size 64
.visible .entry store(.param .u64 x)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
"""
PTX = """.version 7.0
.visible .entry k()
{
  ld.global.f32 %f1, [%rd1];
  mul.f32 %f2, %f1, %f1;
  st.global.f32 [%rd1], %f2;
  ret;
}
"""


def operations(file: str, *, sass: bool = False) -> pl.DataFrame:
    names = ("LDG.E", "FMUL", "STG.E") if sass else ("ld.global.f32", "mul.f32", "st.global.f32")
    return pl.DataFrame(
        {
            "scope": ["k"] * 3, "function": ["k"] * 3, "text": list(names), "file": [file] * 3,
            "source_line": [3, 4, 4], "ptx_line": [4, 5, 6], "issued": [10, 10, 10], "threads": [320] * 3,
            "executed": [10, 10, 10], "stall_memory": [0, 60, 0], "stall_shared": [0] * 3, "stall_fault": [0] * 3,
            "stall_execution": [5, 0, 5], "stall_other": [0] * 3, "cycles": [15, 70, 15], "percent": [15.0, 70.0, 15.0],
        }
    )  # fmt: skip


@pytest.fixture
def source(tmp_path) -> str:
    (tmp_path / "k.cu").write_text(SOURCE)
    return str(tmp_path / "k.cu")


def test_lines_of_the_source_add_up_what_their_instructions_cost(source):
    first, _ = panes(operations(source).to_dicts(), [PTX.splitlines()])
    assert first["title"] == "Source"
    by_line = {row["line"]: row for row in first["rows"]}
    assert list(by_line) == ["2", "3", "4", "5"]  # in order, with a line before and one after
    assert by_line["3"]["text"] == "  float y = x[threadIdx.x];"
    assert (by_line["4"]["percent"], by_line["4"]["reason"]) == (85.0, "Long Scoreboard, LG Throttle")
    assert (by_line["3"]["bytes"], by_line["4"]["bytes"]) == (1280, 1280)
    assert by_line["2"]["percent"] == 0


def test_ptx_has_its_text_in_order_and_the_keys_of_the_source(source):
    _, ptx = panes(operations(source).to_dicts(), [["nothing"], PTX.splitlines()])
    assert [(row["line"], row["text"].strip()) for row in ptx["rows"]] == [
        ("4", "ld.global.f32 %f1, [%rd1];"), ("5", "mul.f32 %f2, %f1, %f1;"), ("6", "st.global.f32 [%rd1], %f2;"),
    ]  # fmt: skip
    assert [(row["source"], row["ptx"]) for row in ptx["rows"]] == [
        ("k.cu:3", 4),
        ("k.cu:4", 5),
        ("k.cu:4", 6),
    ]


def test_without_the_text_of_a_module_opcodes_are_shown():
    source, ptx = panes(operations("/gone/k.cu").to_dicts(), [])
    assert [row["text"] for row in source["rows"]] == ["k.cu, line 3", "k.cu, line 4"]
    assert [row["text"] for row in ptx["rows"]] == ["ld.global.f32", "mul.f32", "st.global.f32"]


def test_sass_is_a_pane_of_its_own(source):
    titles = [pane["title"] for pane in panes(operations(source, sass=True).to_dicts(), [])]
    assert titles == ["Source", "PTX", "SASS"]


@pytest.mark.core
def test_a_run_keeps_the_ptx_that_its_listing_shows(tmp_path):
    device = gpu.TimedDevice("v100", isa="ptx")
    module = device.load(KERNEL)
    with device.record(tmp_path / "run", workload={"kind": "gpu-kernel", "name": "store"}):
        module["store"][1, 32](device.zeros(32))
    run = load(tmp_path / "run")
    assert "ptx/ptx.ptx" in run.files
    rows = Evidence(run).table("operations").to_dicts()
    (pane,) = panes(rows, ptx_modules(Evidence(run)))
    assert "st.global.u32 [%rd2], %r1;" in [row["text"].strip() for row in pane["rows"]]
    assert Evidence(run).profiles["store"]["occupancy_limit"] == "the CTAs that an SM holds"
    assert next(row for row in pane["rows"] if "st.global" in row["text"])["bytes"] == 128


@pytest.mark.core
@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_a_click_on_a_line_marks_what_belongs_to_it(source, tmp_path):
    run = make_run(
        tmp_path / "run", [("gpu", "duration", "k", 1e-6)], tables={"operations": operations(source)}
    )
    assert [pane["kind"] for pane in panes(Evidence(run).table("operations").to_dicts(), [])] == [
        "source",
        "ptx",
    ]
    with Browser() as browser:
        browser.open(run_page(run).write(tmp_path / "page.html"))
        browser.unfold()
        click = "[...document.querySelectorAll('.code-box tr')].find(r => r.textContent.includes('x[threadIdx.x] = '))"
        browser.run(f"{click}.click()")
        marked = "return [...document.querySelectorAll('.marked')].map(r => r.cells[5].textContent.trim())"
        assert browser.run(marked) == ["x[threadIdx.x] = y * y;", "mul.f32", "st.global.f32"]
        assert browser.errors() == []
