# SPDX-License-Identifier: Apache-2.0
"""A page holds all it needs, and what comes from a run never becomes a part of its code."""

from __future__ import annotations

import base64
import json
import re
import zlib

import polars as pl
import pytest

from manyscale.errors import InputError
from manyscale.report import Page, charts


def unpacked(page: Page) -> list:
    text = re.search(r'id="items">([^<]*)</script>', page.html())[1]
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_a_page_asks_for_nothing_from_anywhere():
    page = Page("Title")
    page.section("Chart").chart(charts.Lines("L", "x", "y", {"a": [(1.0, 2.0)]}))
    text = page.html()
    # The library's own text is packed, so what is left is ours.
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', text) == []
    assert "http" not in re.sub(r"<script type=.*?</script>", "", text).replace("http://www.w3.org", "")
    assert "import(" not in text
    assert len(text) < 2.5e6


def test_without_charts_the_library_is_left_out():
    page = Page("Title")
    page.section("Words").words("only words").table([(1, "a")], columns=("n", "t"))
    assert len(page.html()) < 50_000


def test_text_never_becomes_markup():
    evil = "</script><script>alert(1)</script><b onclick=x>"
    page = Page(evil, evil)
    section = page.section(evil)
    section.words(evil).finding(evil, evil).list([evil]).numbers({evil: evil}).facts({evil: evil})
    section.code(evil, evil).link("javascript:alert(1)", evil).picture(f"<svg>{evil}</svg>", evil)
    section.table([(evil,)], evil, columns=(evil,), links={evil: ["javascript:x"]})
    text = page.html()
    assert "<script>alert" not in text
    assert "<b onclick" not in text
    assert "javascript:" not in text
    assert unpacked(page)[1]["columns"][0]["links"] == [None]
    assert unpacked(page)[1]["columns"][0]["values"] == [evil]


def test_labels_of_charts_are_not_markup_for_plotly():
    figure = charts.Lines("L", "<b>x", "y", {"<a href=x>k</a>": [(1, 2)]}).plotly()
    assert figure["data"][0]["name"] == "&lt;a href=x>k&lt;/a>"
    assert figure["layout"]["xaxis"]["title"]["text"] == "&lt;b>x"


@pytest.mark.parametrize("link", ["run/report.html", "#anchor", "https://example.org", "../up.html", None])
def test_links_that_lead_to_pages_stay(link):
    page = Page("T")
    page.section("S").table([(1,)], columns=("n",), links={"n": [link]})
    assert unpacked(page)[0]["columns"][0]["links"] == [link]


@pytest.mark.parametrize(
    "link", ["javascript:x", " JavaScript:x", "data:text/html,x", "vbscript:x", "//host/x", "file:///x"]
)
def test_links_that_could_do_harm_go(link):
    page = Page("T")
    page.section("S").table([(1,)], columns=("n",), links={"n": [link]})
    assert unpacked(page)[0]["columns"][0]["links"] == [None]


def test_tables_keep_numbers_and_nothing_that_json_lacks():
    page = Page("T")
    frame = pl.DataFrame({"x": [1.5, float("nan"), float("inf")], "n": [1, None, 3], "t": ["a", None, "c"]})
    page.section("S").table(frame)
    x, n, t = unpacked(page)[0]["columns"]
    assert x == {"name": "x", "values": [1.5, None, None], "number": True}
    assert n["values"] == [1, None, 3]
    assert t["values"] == ["a", None, "c"]
    assert "number" not in t


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="2 values for 1 columns"):
        Page("T").section("S").table([(1, 2)], columns=("n",))
    with pytest.raises(InputError, match="names of its columns"):
        Page("T").section("S").table([(1, 2)])
    with pytest.raises(InputError, match="plotly figure"):
        Page("T").section("S").figure({"layout": {}})


def test_any_plotly_figure_goes_onto_a_page():
    import plotly.graph_objects as go

    page = Page("T")
    page.section("S").figure(go.Figure(go.Bar(x=[1, 2], y=[3, 4])))
    assert unpacked(page)[0]["data"][0]["type"] == "bar"


def test_sections_of_one_name_have_anchors_of_their_own():
    page = Page("T")
    anchors = [page.section("Same").anchor, page.section("Same").anchor, page.section("items").anchor]
    assert len(set(anchors)) == 3
    assert "items" not in anchors  # where the page keeps its data


def test_a_page_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        Page("T").write(tmp_path / "file" / "page.html")
