# SPDX-License-Identifier: Apache-2.0
"""Charts as files: in every format, the same each time, and a clear word where matplotlib is missing."""

from __future__ import annotations

import sys

import pytest

from manyscale.errors import InputError
from manyscale.report import Page, charts

CHARTS = [
    charts.Lines("Speed-up", "cores", "x", {"a $": [(1, 1), (2, 2)]}, log_x=True, bands={"a $": [(1, 0, 2), (2, 1, 3)]},
                 dots={"d": [(1, 1)]}, roofs={"r": [(1, 2), (2, 2)]}),
    charts.Stacks("Stacks", "%", {f"bar {k}": {f"p{n}": 1.0 + n for n in range(9)} for k in range(3)}),
    charts.Stacks("Many bars", "%", {f"bar {k}": {"p": 1.0} for k in range(40)}),
    charts.HeatMap("Heat", "x", "y", [1.0, 2.0], ["a", "b"], [[0.0, 1.0], [None, 2.0]], "load"),
    charts.Lanes("Lanes", "us", ["run", "wait"], [charts.Lane("core", [0, 2], [1, 3], [0, 1], [1.0, 0.5])]),
    charts.Graph("Graph", [(0, 0, "a"), (1, 1, "b")], [(0, 1, 0.5)]),
    charts.Lines("Speed-up", "cores", "x", {"b": [(1, 1)]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    pytest.importorskip("matplotlib", reason="pip install 'manyscale[figures]'")
    page = Page("T")
    section = page.section("S")
    for chart in CHARTS:
        section.chart(chart)
    folder = tmp_path_factory.mktemp("figures")
    return page, folder, page.save_charts(folder, ["svg", "pdf", "png"])


def test_every_chart_in_every_format(saved):
    _, folder, files = saved
    assert len(files) == 3 * len(CHARTS)
    starts = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}
    for file in files:
        assert file.read_bytes().startswith(starts[file.suffix])
    assert {file.stem for file in files} == {
        "speed-up", "stacks", "many-bars", "heat", "lanes", "graph", "speed-up-2"
    }  # fmt: skip
    assert "wait" in (folder / "lanes.svg").read_text()


def test_the_same_chart_gives_the_same_file(saved, tmp_path):
    page, folder, _ = saved
    page.charts[1:] = []
    for file in page.save_charts(tmp_path, ["svg", "pdf"]):
        assert file.read_bytes() == (folder / file.name).read_bytes()


def test_formats_that_are_not_known(tmp_path):
    with pytest.raises(InputError, match="png, svg, pdf, not as 'gif'"):
        Page("T").save_charts(tmp_path, ["gif"])
    with pytest.raises(InputError, match="say in which format"):
        Page("T").save_charts(tmp_path, [])


def test_without_matplotlib_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'manyscale\[figures\]'"):
        Page("T").save_charts(tmp_path, ["svg"])
