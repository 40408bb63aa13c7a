# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file that needs nothing else: words, numbers, charts, tables that sort and filter.

The library that draws charts and all data are in the file, compressed; a script of ours unpacks them. The file works
from a disk, without a network.
"""

from __future__ import annotations

import base64
import functools
import html
import importlib.resources
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyscale.errors import InputError
from manyscale.report.charts import Chart, Lanes
from manyscale.results.files import FileGroup, FileKind

if TYPE_CHECKING:
    import polars as pl

Rows = Iterable[Sequence[Any]]

PAGE = FileKind.magic("an HTML page", b"<!DOCTYPE html>")
_ROWS_ON_A_PAGE = 15
_SCRIPTS = ("page.js", "tables.js", "lanes.js", "listing.js", "start.js")  # in this order
_DIGITS = 7  # of numbers in charts: more than an eye sees
_SAFE_LINK = re.compile(
    r"(?:https?://|#|(?![a-zA-Z][a-zA-Z0-9+.-]*:)(?!//))"
)  # relative, within the page, web


class Section:
    """A part of a page with a title; what is added appears in that order."""

    def __init__(self, page: Page, title: str, level: int, anchor: str, folded: bool = False) -> None:
        self.title = title
        self.anchor = anchor
        self.folded = folded
        self._page = page
        self._level = level
        self._parts: list[str | Section] = []

    def section(self, title: str, *, folded: bool = False) -> Section:
        """A part within this one."""
        part = Section(self._page, title, self._level + 1, self._page._new_anchor(title), folded)
        self._parts.append(part)
        return part

    def answer(
        self,
        verdict: str,
        advice: str = "",
        *,
        numbers: Mapping[str, str] | None = None,
        mood: str = "",
    ) -> Section:
        """What a reader wants to know first: the verdict in a sentence, what to do, and a few numbers."""
        todo = f'<p class="advice">{_escaped(advice)}</p>' if advice else ""
        box = f'<div class="verdict {_escaped(mood)}"><p>{_escaped(verdict)}</p>{todo}</div>'
        return self._add(box + (_definitions("numbers", numbers, "<div>{}</div>") if numbers else ""))

    def words(self, text: str) -> Section:
        """A paragraph of plain text."""
        return self._add(f"<p>{_escaped(text)}</p>")

    def finding(self, text: str, mood: str = "") -> Section:
        """A sentence that matters, in a box; `mood` is "warn", "good" or nothing."""
        return self._add(f'<div class="finding {_escaped(mood)}">{_escaped(text)}</div>')

    def list(self, lines: Iterable[str]) -> Section:
        """Points, each with a dot."""
        return self._add("<ul>" + "".join(f"<li>{_escaped(line)}</li>" for line in lines) + "</ul>")

    def numbers(self, numbers: Mapping[str, str]) -> Section:
        """A few numbers, large: name -> value with its unit."""
        return self._add(_definitions("numbers", numbers, "<div>{}</div>"))

    def facts(self, facts: Mapping[str, str]) -> Section:
        """Names and what they are, one a line."""
        return self._add(_definitions("facts", facts, "{}"))

    def chart(self, chart: Chart, caption: str = "") -> Section:
        """A chart of `manyscale.report.charts`; it can also be saved for a paper, see `Page.save_charts`."""
        self._page.charts.append(chart)
        kind, data = ("lanes", chart.data()) if isinstance(chart, Lanes) else ("chart", chart.plotly())
        return self._figure(kind, data, caption, chart.title)

    def figure(self, figure: Any, caption: str = "", title: str = "") -> Section:
        """Any figure of plotly: a `plotly.graph_objects.Figure`, or the same as a dict with data and layout."""
        if hasattr(figure, "to_plotly_json"):
            figure = json.loads(figure.to_json())
        if not isinstance(figure, Mapping) or "data" not in figure:
            raise InputError("a figure is a plotly figure, or a dict with 'data' and 'layout'")
        return self._figure("chart", dict(figure), caption, title)

    def table(
        self,
        rows: pl.DataFrame | Rows,
        caption: str = "",
        *,
        columns: Sequence[str] | None = None,
        titles: Mapping[str, str] | None = None,
        units: Mapping[str, str | Sequence[str]] | None = None,
        names: Mapping[str, str] | None = None,
        links: Mapping[str, Sequence[str | None]] | None = None,
        page_size: int = _ROWS_ON_A_PAGE,
    ) -> Section:
        """A table that sorts, filters and exports: a polars.DataFrame, or rows with the names of their columns.

        `units` say in what a column is counted ("s", "B", "%" ...), or each of its rows; the page chooses the prefix.
        `names` are what people call the columns, `titles` explain them when the pointer rests on them; `links` say,
        for a column, where its cells lead. Values are numbers, text or None. Tens of thousands of rows are fine.
        """
        found, values = _columns(rows, columns)
        described = []
        for name, column in zip(found, values, strict=True):
            entry: dict[str, Any] = {"name": (names or {}).get(name, name), "values": column}
            if any(isinstance(value, int | float) for value in column):
                entry["number"] = True
            if units and name in units:
                entry["unit"] = units[name]
            if titles and name in titles:
                entry["title"] = titles[name]
            if links and name in links:
                entry["links"] = [_checked_link(link) for link in links[name]]
            described.append(entry)
        return self._figure("table", {"columns": described, "size": page_size}, caption, "")

    def listing(self, panes: Sequence[Mapping[str, Any]], caption: str = "", title: str = "") -> Section:
        """Code beside what it cost, in linked panes: each a `kind` (source, ptx, sass), a `title` and `rows`.

        A row has line, text, executed, percent, reason, bytes, and the keys that link it: source and ptx, or None.
        """
        return self._figure("listing", {"panes": list(panes)}, caption, title)

    def picture(self, svg: str, caption: str = "") -> Section:
        """A picture in SVG. Scripts in it do not run, so it may come from anywhere."""
        return self._figure("picture", {"svg": svg, "text": caption}, caption, "")

    def drawing(self, svg: str, caption: str = "") -> Section:
        """A picture in SVG that we have drawn ourselves: it takes the colours of the page."""
        return self._add(f"<figure>{svg}{_caption(caption)}</figure>")

    def code(self, text: str, title: str) -> Section:
        """A text as it stands, such as a file; folded until somebody wants it."""
        return self._add(
            f"<details><summary>{_escaped(title)}</summary><pre>{_escaped(text)}</pre></details>"
        )

    def link(self, href: str, text: str) -> Section:
        """A line that leads somewhere."""
        return self._add(f'<p><a href="{_escaped(_checked_link(href) or "#")}">{_escaped(text)}</a></p>')

    def html(self) -> str:
        """The section and all in it."""
        inner = self._inner()
        level = min(self._level, 6)
        heading = f"<h{level}>{_escaped(self.title)}</h{level}>"
        if self.folded:
            return (
                f'<details class="section" id="{self.anchor}"><summary>{heading}</summary>'
                f'<div class="inside">{inner}</div></details>'
            )
        return f'<section id="{self.anchor}">{heading}{inner}</section>'

    def _inner(self) -> str:
        return "".join(part.html() if isinstance(part, Section) else part for part in self._parts)

    def _figure(self, kind: str, data: Any, caption: str, title: str) -> Section:
        number = self._page._keep(data)
        heading = f"<h3>{_escaped(title)}</h3>" if title else ""
        drawn = f'<div class="{kind}" data-kind="{kind}" data-item="{number}"></div>'
        return self._add(f"<figure>{heading}{drawn}{_caption(caption)}</figure>")

    def _add(self, part: str) -> Section:
        self._parts.append(part)
        return self


class Page:
    """A report under construction: sections in their order, then `write`."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self.sections: list[Section] = []
        self.charts: list[Chart] = []
        """All charts on the page, for `save_charts`."""
        self._items: list[Any] = []
        self._anchors: set[str] = {"items", "plotly", "trouble", "answer"}
        self._first = Section(self, "", 2, "answer")

    def section(self, title: str, *, folded: bool | None = None) -> Section:
        """A new section, which the list below the answer names. Below an answer, sections are folded."""
        is_folded = bool(self._first._parts) if folded is None else folded
        section = Section(self, title, 2, self._new_anchor(title), is_folded)
        self.sections.append(section)
        return section

    def answer(
        self,
        verdict: str,
        advice: str = "",
        *,
        numbers: Mapping[str, str] | None = None,
        mood: str = "",
    ) -> Section:
        """What the page says first; one chart may be added to it."""
        return self._first.answer(verdict, advice, numbers=numbers, mood=mood)

    def html(self) -> str:
        """The whole page."""
        from manyscale.results.run_directory import package_version

        body = "".join(section.html() for section in self.sections)
        links = "".join(  # sections that are folded are a list of their own
            f'<a href="#{section.anchor}">{_escaped(section.title)}</a>'
            for section in self.sections
            if not section.folded
        )
        items = json.dumps(_plain(self._items), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        first = f'<div id="answer">{self._first._inner()}</div>' if self._first._parts else ""
        has_charts = 'data-kind="chart"' in first + body
        library = f'<script type="text/plain" id="plotly">{_library()}</script>' if has_charts else ""
        folds = any(section.folded for section in self.sections)
        unfold = '<button type="button" id="unfold">open all</button>' if folds else ""
        scripts = "".join(asset(name) for name in _SCRIPTS)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_escaped(self.title)}</title><style>{asset('page.css')}</style></head>\n<body>"
            f'<header><h1>{_escaped(self.title)}</h1><div class="subtitle">{_escaped(self.subtitle)}</div>'
            f'<div id="trouble"></div><noscript>Charts and tables need JavaScript.</noscript></header>\n'
            f"<main>{first}<nav>{links}{unfold}</nav>{body}</main>\n"
            f"<footer>Manyscale {_escaped(package_version())}</footer>\n"
            f'<script type="text/plain" id="items">{_packed(items.encode())}</script>{library}'
            f"<script>{scripts}</script></body></html>\n"
        )

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Writes the page to a file, whole or not at all; over another page only with `force`."""
        target = Path(path)
        with FileGroup(target.parent, PAGE, force=force) as group:
            return group.add(target.name, lambda file: file.write(self.html().encode()))

    def save_charts(
        self, folder: str | Path, formats: Sequence[str] = ("svg",), *, force: bool = False
    ) -> list[Path]:
        """Writes every chart of the page as a file for a paper: png, svg or pdf. Needs matplotlib.

        Charts that are there already are replaced only with `force`.
        """
        from manyscale.report.paper import save_charts

        return save_charts(self.charts, Path(folder), formats, force=force)

    def _repr_html_(self) -> str:
        # A notebook's page has a script of its own, so the report gets a frame to itself.
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" style="width:100%;height:800px;border:0"></iframe>'
        )

    def _keep(self, data: Any) -> int:
        self._items.append(data)
        return len(self._items) - 1

    def _new_anchor(self, title: str) -> str:
        stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        anchor, number = stem, 1
        while anchor in self._anchors:
            number += 1
            anchor = f"{stem}-{number}"
        self._anchors.add(anchor)
        return anchor


def _columns(rows: pl.DataFrame | Rows, columns: Sequence[str] | None) -> tuple[list[str], list[list[Any]]]:
    import polars as pl

    if isinstance(rows, pl.DataFrame):
        table = rows if columns is None else rows.select(columns)
        return table.columns, [series.to_list() for series in table.get_columns()]
    if columns is None:
        raise InputError("a table of rows needs the names of its columns: columns=[…]")
    found = [list(row) for row in rows]
    for row in found:
        if len(row) != len(columns):
            raise InputError(f"a row of a table has {len(row)} values for {len(columns)} columns: {row[:5]}")
    return list(columns), [[row[index] for row in found] for index in range(len(columns))]


def _plain(data: Any) -> Any:
    """Data as JSON can hold it: no number that is not finite, and of reals no more digits than anyone sees."""
    if data is None or isinstance(data, str | bool | int):
        return data
    if isinstance(data, float):
        if not math.isfinite(data):
            return None
        return int(data) if data == int(data) and abs(data) < 2**53 else float(f"{data:.{_DIGITS}g}")
    if isinstance(data, Mapping):
        return {str(name): _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if hasattr(data, "tolist"):  # numpy
        return _plain(data.tolist())
    return str(data)


def _checked_link(link: str | None) -> str | None:
    return link if link is not None and _SAFE_LINK.match(link.strip()) else None


def _definitions(style: str, entries: Mapping[str, str], around: str) -> str:
    inner = "".join(
        around.format(f"<dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd>")
        for name, value in entries.items()
    )
    return f'<dl class="{style}">{inner}</dl>'


def _caption(text: str) -> str:
    return f"<figcaption>{_escaped(text)}</figcaption>" if text else ""


def _escaped(text: Any) -> str:
    return html.escape(str(text))


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


@functools.cache
def _library() -> str:
    """The script that draws charts, packed; it comes with the plotly package, which need not be imported for it."""
    try:
        source = importlib.resources.files("plotly") / "package_data" / "plotly.min.js"
        return _packed(source.read_bytes())
    except (ModuleNotFoundError, OSError) as error:
        raise InputError(f"charts need the plotly package: pip install plotly ({error})") from None


@functools.cache
def asset(name: str) -> str:
    """A file of the page, such as its style."""
    return (importlib.resources.files("manyscale.report") / name).read_text(encoding="utf-8")
