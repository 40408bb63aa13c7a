# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep: what each axis changes, curves with the extent of repetitions, failed points."""

from __future__ import annotations

import polars as pl
import pytest

from manyscale.report import charts, sweep_page

INFO = {
    "name": "study", "status": "done", "created": "now", "counts": {"points": 9, "done": 8, "failed": 1},
    "axes": [{"name": "nodes", "unit": None}, {"name": "link.bandwidth", "unit": "B/s"}],
    "metrics": [{"name": "simulated_seconds", "unit": "s"}, {"name": "wall_seconds", "unit": "s"}],
    "workload": {"kind": "network"}, "command": ["manyscale", "sweep"], "versions": {"manyscale": "1"},
}  # fmt: skip


def table() -> pl.DataFrame:
    rows = [
        (nodes, f"{speed}GB/s", speed * 1e9, "done", None, nodes * 1e-3 / speed * (1 + 0.1 * repetition), 1.0)
        for nodes in (2, 4)
        for speed in (1, 2)
        for repetition in (0, 1)
    ]
    rows.append((8, "1GB/s", 1e9, "failed", "no room", None, 1.0))
    columns = [
        "nodes",
        "link.bandwidth",
        "link.bandwidth [B/s]",
        "status",
        "error",
        "simulated_seconds",
        "wall_seconds",
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_what_matters_and_by_how_much(tmp_path):
    text = sweep_page(tmp_path, INFO, table()).html()
    assert "nodes changes simulated time by a factor of 2: from 1.575 ms at 2 to 3.15 ms at 4" in text
    assert "Least simulated time: 1 ms at nodes = 2, link.bandwidth = 2GB/s." in text
    assert "1 points failed" in text


def test_sensitivities_are_slopes_of_the_logarithms(tmp_path):
    """The time is nodes / speed, so 1% more nodes are 1% more time, and 1% more speed is 1% less."""
    page = sweep_page(tmp_path, INFO, table())
    (found,) = [
        item for item in page._items if any(c["name"] == "elasticity" for c in item.get("columns", ()))
    ]
    columns = {column["name"]: column["values"] for column in found["columns"]}
    assert dict(zip(columns["axis"], columns["elasticity"], strict=True)) == pytest.approx(
        {"nodes": 1.0, "link.bandwidth": -1.0}
    )


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [((1, 2, 4, 8), True), ((1, 2, 3, 4), False), ((1, 10, 50), True), ((2, 4), False)],
)
def test_an_axis_is_logarithmic_where_its_points_are(tmp_path, values, logarithmic):
    rows = pl.DataFrame(
        {"nodes": values, "status": ["done"] * len(values), "simulated_seconds": [1.0 / v for v in values]}
    )
    info = INFO | {"axes": [{"name": "nodes", "unit": None}]}
    assert sweep_page(tmp_path, info, rows).charts[0].log_x is logarithmic


def test_curves_have_a_line_for_each_other_value_and_the_extent_of_repetitions(tmp_path):
    page = sweep_page(tmp_path, INFO, table())
    lines = [chart for chart in page.charts if isinstance(chart, charts.Lines)]
    over_nodes = next(chart for chart in lines if chart.title == "simulated time over nodes")
    assert [(x, round(y, 9)) for x, y in over_nodes.lines["bandwidth 1GB/s"]] == [(2, 2.1), (4, 4.2)]
    assert [round(value, 9) for value in over_nodes.bands["bandwidth 1GB/s"][0]] == [2, 2.0, 2.2]
    over_speed = next(chart for chart in lines if "link.bandwidth" in chart.title)
    assert over_speed.x == "link.bandwidth [B/s]"
    assert [x for x, _ in over_speed.lines["nodes 2"]] == [1e9, 2e9]
    assert any(isinstance(chart, charts.HeatMap) for chart in page.charts)


def test_words_as_values_become_bars(tmp_path):
    info = INFO | {"axes": [{"name": "topology", "unit": None}]}
    rows = pl.DataFrame(
        {"topology": ["torus", "tree"], "status": ["done"] * 2, "simulated_seconds": [1.0, 2.0]}
    )
    (bars,) = sweep_page(tmp_path, info, rows).charts
    assert isinstance(bars, charts.Stacks)
    assert bars.bars == {"torus": {"simulated time": 1.0}, "tree": {"simulated time": 2.0}}


def test_a_sweep_without_results_still_has_a_page(tmp_path):
    empty = table().clear()
    text = sweep_page(tmp_path, INFO | {"status": "interrupted"}, empty).html()
    assert "The sweep is interrupted" in text
