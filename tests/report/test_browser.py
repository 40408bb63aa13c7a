# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: everything is drawn, nothing fails, large runs open quickly, tables sort and filter."""

from __future__ import annotations

import time

import polars as pl
import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser
from run_directories import kernel_run, large_run

from manyscale.report import Page, charts, run_page

pytestmark = [
    pytest.mark.core,
    pytest.mark.long,  # a browser beside a sanitizer takes minutes
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING),
]


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    evil = "<img src=x onerror='window.broken=1'></script><script>window.broken=1</script>"
    page = Page(f"Everything {evil}", "one of each")
    section = page.section("Charts")
    section.chart(charts.Lines("Lines", "cores", evil, {"a": [(1, 1), (2, 3)], evil: [(1, 2)]}, log_x=True))
    section.chart(charts.Stacks("Stacks", "%", {evil: {f"p{k}": 1.0 for k in range(10)}}))
    section.chart(charts.HeatMap("Heat", "x", "y", ["a", "b"], [1, 2], [[0.0, 1.0], [None, 2.0]], "s"))
    section.chart(charts.Lanes("Lanes", "us", [evil, "b"], [charts.Lane(evil, [0, 2], [1, 3], [0, 1])]))
    section.chart(charts.Graph("Graph", [(0, 0, evil), (1, 1, "b")], [(0, 1, 0.5)]))
    script = "<script>window.broken=1</script>"
    section.picture(f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{script}</svg>')
    values = [((k * 37) % 100) / 3 for k in range(100)]
    table = pl.DataFrame(
        {
            "name": [f"row{k}" if k < 10 else f"other{k}" for k in range(100)],
            "value": [None, *values[1:]],
            evil: [evil] * 100,
        }
    )
    page.section("Table").table(table, "a hundred rows", titles={"value": evil})
    return page.write(tmp_path_factory.mktemp("page") / "page.html")


def rows(browser: Browser, column: int) -> list[str]:
    script = f"return [...document.querySelectorAll('tbody tr')].map(row => row.cells[{column}].textContent)"
    found: list[str] = browser.run(script)
    return found


def test_a_printed_page_has_all_of_its_width(tmp_path):
    """Charts keep the width of the screen that they were drawn on; on paper, nothing lies beyond the margin."""
    page = Page("Paper", "charts and a wide table")
    section = page.section("All", folded=False)
    section.chart(charts.Stacks("Stacks", "%", {"bar": {f"p{k}": 1.0 for k in range(10)}}))
    section.table(pl.DataFrame({f"a column {k}": [123456.0 + k] for k in range(30)}))
    file = page.write(tmp_path / "page.html")
    with Browser(1600, 900) as window:
        window.resize(1600, 900)
        window.open(file)
        window.command("Emulation.setEmulatedMedia", {"media": "print"})
        window.resize(734, 1040)  # A4 within margins of 8 mm
        widest = window.run(
            "return Math.max(...[...document.querySelectorAll('.main-svg, td')]"
            ".map((each) => each.getBoundingClientRect().right))"
        )
        assert 600 < widest <= 736


def test_everything_is_drawn_and_no_script_fails(browser, page):
    browser.open(page)
    assert browser.errors() == []
    assert browser.run("return window.broken") is None
    assert browser.run("return document.querySelectorAll('.js-plotly-plot .main-svg').length") >= 4
    assert browser.run("return document.querySelector('canvas').height") > 20
    assert browser.run("return document.querySelector('.picture img').naturalWidth") > 0
    text = browser.text()
    for word in (
        "Everything <img",
        "Lines",
        "Stacks",
        "Heat",
        "Lanes",
        "Graph",
        "a hundred rows",
        "of 100",
    ):
        assert word in text


def test_a_table_sorts_filters_and_turns_pages(browser, page):
    browser.open(page)
    click = "document.querySelectorAll('thead button')[{}].click()"
    browser.run(click.format(1))  # numbers: the largest first
    falling = [float(text) for text in rows(browser, 1)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == 33
    browser.run(click.format(1))
    rising = [float(text) for text in rows(browser, 1)]
    assert rising == sorted(rising)
    browser.run(
        "[...document.querySelectorAll('.tools button')].find(b => b.textContent.includes('next')).click()"
    )
    assert float(rows(browser, 1)[0]) >= rising[-1]
    browser.run(
        "const box = document.querySelector('input[type=search]'); box.value = 'ROW7';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert rows(browser, 0) == ["row7"]
    assert browser.errors() == []


def test_absent_values_come_last_whichever_way(browser, page):
    browser.open(page)
    browser.run(
        "const b = document.querySelector('input'); b.value = 'row1'; b.dispatchEvent(new Event('input'))"
    )
    browser.run(
        "const b = document.querySelector('input'); b.value = ''; b.dispatchEvent(new Event('input'))"
    )
    for _ in range(2):
        browser.run("document.querySelectorAll('thead button')[1].click()")
        next_page = (
            "[...document.querySelectorAll('.tools button')].find(b => b.textContent.includes('next'))"
        )
        browser.run(f"while (!{next_page}.disabled) {next_page}.click()")
        assert rows(browser, 1)[-1] == "\N{EN DASH}"


def test_the_report_of_a_run_shows_its_sections(browser, tmp_path):
    page = run_page(kernel_run(tmp_path / "run"))
    browser.open(page.write(tmp_path / "run" / "report.html"))
    browser.unfold()
    text = browser.text()
    for title in (
        *("What limits the run", "Machine", "Warp states and stall reasons", "Speed of light"),
        *("Roofline", "Caches and DRAM", "Metrics of kernels", "Simulator and provenance"),
    ):
        assert title in text
    assert "DRAM bandwidth: 81% of its peak" in text
    assert browser.errors() == []
    drawn = browser.run(
        "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg').length)"
    )
    assert len(drawn) >= 3
    assert min(drawn) > 0


def test_what_is_folded_is_drawn_when_it_is_opened(browser, tmp_path):
    browser.open(run_page(kernel_run(tmp_path / "run")).write(tmp_path / "report.html"))
    count = "return document.querySelectorAll('.js-plotly-plot').length"
    assert browser.run(count) == 1  # the picture of the answer
    assert browser.run("return document.querySelectorAll('details.section[open]').length") == 0
    browser.run("document.querySelector('#roofline summary').click()")
    browser.run("return new Promise((resolve) => setTimeout(resolve, 800))")
    assert browser.run("return document.querySelector('#roofline .js-plotly-plot') !== null")
    assert browser.errors() == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_verdict_and_five_numbers_are_on_the_first_screen(browser, tmp_path, width):
    browser.resize(width, 844)
    browser.open(run_page(kernel_run(tmp_path / "run")).write(tmp_path / "report.html"))
    bottom = "return document.querySelector('{}').getBoundingClientRect().bottom"
    assert 0 < browser.run(bottom.format(".verdict")) < 600
    assert browser.run(bottom.format(".numbers")) < 844
    assert browser.run("return document.documentElement.scrollWidth") <= width
    browser.resize(1280, 1600)


def test_a_large_run_opens_quickly(browser, tmp_path):
    """20,000 statistics and a million events: under 10 MB, and under 3 s with the processor to itself."""
    began = time.process_time()
    path = run_page(large_run(tmp_path / "run")).write(tmp_path / "report.html")
    assert time.process_time() - began < 30
    assert path.stat().st_size < 10e6
    browser.open(path)
    assert browser.page_seconds() < 3
    browser.unfold()
    assert browser.errors() == []
    text = browser.text()
    assert "of 20,003" in text
    assert "1,000,000 events" in text
    assert "Warp states" in text


def test_a_timeline_groups_tracks_and_finds_them_by_name(browser, tmp_path):
    lanes = [
        charts.Lane(f"{kind}[{k}]", [k], [k + 2], [0], kind=kind)
        for kind in ("sm", "slice")
        for k in range(40)
    ]
    lanes.append(charts.Lane("sm[0]: warps", kind="sm: warps", level=[(0, 3), (10, 0)]))
    page = Page("T")
    page.section("S").chart(charts.Lanes("Many", "us", ["busy"], lanes, from_zero=True))
    browser.open(page.write(tmp_path / "page.html"))
    height = "return document.querySelector('canvas').clientHeight"
    folded = browser.run(height)
    assert folded < 4 * 22 + 30  # two groups and a counter
    search = (
        "const box = document.querySelector('input[type=search]'); box.value = '{}';"
        "box.dispatchEvent(new Event('input'));"
    )
    browser.run(search.format("sm[39]"))
    assert browser.run(height) < folded
    browser.run(search.format("sm["))
    assert browser.run(height) > 20 * 22
    assert browser.errors() == []


def test_times_and_sizes_in_tables_have_units_and_rows_are_saved_as_csv(browser, tmp_path):
    page = Page("T")
    page.section("S").table(
        [("a", 4.1629e-6, 29_360_127.0, 2.5)], columns=("name", "time", "wait", "value"),
        units={"time": "s", "wait": "fs", "value": ["B/s"]},
    )  # fmt: skip
    browser.open(page.write(tmp_path / "page.html"))
    cells = browser.run("return [...document.querySelectorAll('tbody td')].map(c => c.textContent)")
    assert cells == ["a", "4.163 us", "29.36 ns", "2.5 B/s"]
    text = browser.run("return manyscaleReport.csv(manyscaleReport.items[0].columns, [0])")
    assert text == "name,time [s],wait [fs],value,unit\na,0.0000041629,29360127,2.5,B/s\n"


def test_the_dark_scheme_is_dark(page):
    with Browser(dark=True) as browser:
        browser.open(page)
        assert browser.errors() == []
        back = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(20, 24, 29)"
        colour = browser.run("return document.querySelector('.js-plotly-plot')._fullLayout.font.color")
        assert colour == "#e8ecf0"
