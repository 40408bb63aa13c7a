# SPDX-License-Identifier: Apache-2.0
"""Heat maps and lanes: what is drawn where, and what is refused."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from manyscale.errors import InputError
from manyscale.results.heat_map import Extent, heat_map
from manyscale.results.lane_chart import lane_chart

SVG = "{http://www.w3.org/2000/svg}"
X, Y = Extent("time in us", 0, 100), Extent("MiB", 0, 8)


def parts(picture: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(SVG + tag))


def cells(picture: str) -> list[tuple[float, float, str]]:
    group = ElementTree.fromstring(picture).find(SVG + "g")
    assert group is not None
    return [(float(cell.get("x", "")), float(cell.get("width", "")), cell.get("fill", "")) for cell in group]


def test_equal_neighbours_are_one_rectangle() -> None:
    drawn = cells(heat_map("pages", X, Y, [[0, 1, 1, 0], [0, 0, 0, 0]], scale="share", highest=1))
    assert [fill for _, _, fill in drawn] == ["#e9ecef", "#1864ab", "#e9ecef", "#e9ecef"]
    quarter = drawn[0][1]
    assert [width / quarter for _, width, _ in drawn] == pytest.approx([1, 2, 1, 4])


def test_a_value_that_is_no_number_leaves_its_cell_empty() -> None:
    assert len(cells(heat_map("pages", X, Y, [[math.nan, 1]], scale="share"))) == 1


def test_marks_are_where_the_axes_say() -> None:
    drawn = heat_map("pages", X, Y, [[0]], scale="share", marks={"faults": [(0, 0), (100, 8), (50, 4)]})
    dots = [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for dot in parts(drawn, "circle")][:3]
    (left, top), (right, bottom), middle = dots
    assert middle == pytest.approx(((left + right) / 2, (top + bottom) / 2), abs=0.1)
    assert left < right
    assert top < bottom  # the first row is at the top


def test_of_very_many_marks_some_are_drawn() -> None:
    marks = {"faults": [(i % 100, i % 8) for i in range(100_000)]}
    assert 2000 < len(parts(heat_map("pages", X, Y, [[0]], scale="share", marks=marks), "circle")) < 5000


def test_names_are_escaped() -> None:
    assert "a &lt;b&gt; &amp; c" in heat_map("a <b> & c", X, Y, [[0]], scale="share")


@pytest.mark.parametrize(
    ("rows", "x", "words"),
    [
        ([], X, "at least one row"),
        ([[]], X, "at least one row"),
        ([[1, 2], [1]], X, "equal lengths"),
        ([[1]], Extent("time", 5, 5), "ends after it begins"),
    ],
)
def test_a_heat_map_that_cannot_be_drawn(rows: list[list[float]], x: Extent, words: str) -> None:
    with pytest.raises(InputError, match=words):
        heat_map("pages", x, Y, rows, scale="share")


def test_a_lane_says_what_part_of_the_time_it_was_busy() -> None:
    drawn = lane_chart("busy", "us", {"kernels": [(0, 100)], "driver": [(10, 30), (20, 40), (60, 70)]})
    texts = [text.text for text in parts(drawn, "text")]
    assert "100% of the time" in texts
    assert "40% of the time" in texts  # overlapping bars count once


def test_bars_too_near_to_be_told_apart_are_one() -> None:
    lanes = {"transfers": [(i * 1e-4, i * 1e-4 + 0.5e-4) for i in range(10_000)] + [(10.0, 11.0)]}
    assert len(parts(lane_chart("busy", "us", lanes), "rect")) < 10


@pytest.mark.parametrize(
    ("bars", "words"), [([], "at least one bar"), ([(2.0, 1.0)], "ends after it begins")]
)
def test_lanes_that_cannot_be_drawn(bars: list[tuple[float, float]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lane_chart("busy", "us", {"driver": bars})
