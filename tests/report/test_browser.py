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
    text = browser.text()
    for title in (
        "What limits the run",
        "Machine",
        "Where the cycles of warps went",
        "Roofline",
        "Memory",
        "Kernels",
    ):
        assert title in text
    assert "DRAM bandwidth: 81% of its peak" in text
    assert browser.errors() == []


def test_a_large_run_opens_quickly(browser, tmp_path):
    """20,000 statistics and a million events: under 10 MB, and under 3 s with the processor to itself."""
    began = time.process_time()
    path = run_page(large_run(tmp_path / "run")).write(tmp_path / "report.html")
    assert time.process_time() - began < 30
    assert path.stat().st_size < 10e6
    browser.open(path)
    assert browser.page_seconds() < 3
    assert browser.errors() == []
    text = browser.text()
    assert "of 20,003" in text
    assert "1,000,000 events" in text
    assert "Stall stacks" in text


def test_the_dark_scheme_is_dark(page):
    with Browser(dark=True) as browser:
        browser.open(page)
        assert browser.errors() == []
        back = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(20, 24, 29)"
        colour = browser.run("return document.querySelector('.js-plotly-plot')._fullLayout.font.color")
        assert colour == "#e8ecf0"
