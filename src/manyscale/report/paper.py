# SPDX-License-Identifier: Apache-2.0
"""Charts as files for papers: PNG, SVG and PDF by matplotlib, in a size that fits a column."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyscale.errors import InputError
from manyscale.report.charts import COLOURS, SCALE, Chart, Graph, HeatMap, Lanes, Lines, Stacks
from manyscale.results.files import FileGroup, FileKind

FORMATS = ("png", "svg", "pdf")
_WIDTH, _HEIGHT = 5.2, 3.2  # inches
_DOTS_PER_INCH = 300
_MARKS = "osD^xP+p"
_DASHES = ("-", "--", ":", "-.")
_HATCHES = ("", "//", "xx", "..")
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "manyscale",
    "pdf.fonttype": 42,
}


def save_charts(
    charts: Sequence[Chart], folder: Path, formats: Sequence[str], *, force: bool = False
) -> list[Path]:
    """Writes each chart in each format; names are made of the charts' titles."""
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(f"charts are written as {', '.join(FORMATS)}, not as '{kind}'")
    if not formats:
        raise InputError(f"say in which format: {', '.join(FORMATS)}")
    matplotlib = _matplotlib()
    written: list[Path] = []
    taken: set[str] = set()
    with FileGroup(folder, _kind, force=force) as group, matplotlib.rc_context(_STYLE):
        names = [_file_name(chart.title, taken) for chart in charts]
        # All are opened before the first is drawn, so that one that is there already costs no work.
        opened = {f"{name}.{form}": group.open(f"{name}.{form}") for name in names for form in formats}
        for chart, name in zip(charts, names, strict=True):
            figure = _figure(chart)
            for form in formats:
                drawn = io.BytesIO()
                # The same chart gives the same file, whenever it is written.
                figure.savefig(drawn, format=form, dpi=_DOTS_PER_INCH, metadata={_DATES[form]: None})
                with group.writing(f"{name}.{form}"):
                    opened[f"{name}.{form}"].write(drawn.getvalue())
                written.append(folder / f"{name}.{form}")
    return written


def paper_figure(chart: Chart) -> Any:
    """A chart as a matplotlib figure, in the size of a column."""
    with _matplotlib().rc_context(_STYLE):
        return _figure(chart)


def _figure(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    # Without pyplot: no window, no state that others could see.
    figure = Figure(figsize=(_WIDTH, _height(chart)), layout="constrained")
    _draw(figure.add_subplot(), chart)
    return figure


_BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def _kind(name: str) -> FileKind:
    form = name.rpartition(".")[2]
    return FileKind.magic(f"a chart as {form}", _BEGINNINGS[form])


_DATES = {"png": "Creation Time", "svg": "Date", "pdf": "CreationDate"}


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.ticker
    except ImportError:
        raise InputError(
            "charts as files need matplotlib: pip install 'manyscale[figures]' "
            "(the page itself needs nothing, and has a button at each chart that saves it as SVG)"
        ) from None
    return matplotlib


def _file_name(title: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "chart"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def _height(chart: Chart) -> float:
    if isinstance(chart, Lanes):
        return 1.4 + 0.16 * max(len(chart.lanes), 3)
    if isinstance(chart, Stacks) and chart.horizontal:
        return 1.2 + 0.3 * len(chart.bars) + 0.12 * len(chart.parts)
    return _HEIGHT


def _draw(axes: Any, chart: Chart) -> None:
    if isinstance(chart, Lines):
        _lines(axes, chart)
    elif isinstance(chart, Stacks):
        _stacks(axes, chart)
    elif isinstance(chart, HeatMap):
        _heat_map(axes, chart)
    elif isinstance(chart, Lanes):
        _lanes(axes, chart)
    elif isinstance(chart, Graph):
        _graph(axes, chart)
    else:
        raise InputError(f"there is no drawing of a {type(chart).__name__} for papers")
    axes.set_title(_plain(chart.title), fontsize=9, loc="left")


def _lines(axes: Any, chart: Lines) -> None:
    look = {
        name: (COLOURS[chart.index(name) % 8], _DASHES[chart.index(name) // 8 % 4], _MARKS[k % 8])
        for k, name in enumerate([*chart.dots, *(each for each in chart.names if each not in chart.dots)])
    }
    for name, band in chart.bands.items():
        x, low, high = zip(*band, strict=True)
        axes.fill_between(x, low, high, color=look[name][0], alpha=0.2, linewidth=0)
    for name, points in chart.roofs.items():
        axes.plot(*_split(points), color=look[name][0], linestyle="--", linewidth=1, label=_plain(name))
    if chart.stacked:
        _stacked_lines(axes, chart)
    for name, points in chart.lines.items() if not chart.stacked else ():
        colour, dash, mark = look[name]
        marker = mark if len(points) <= 60 and not chart.steps else None
        style = {"drawstyle": "steps-post"} if chart.steps else {}
        if chart.filled:
            axes.fill_between(*_split(points), step="post", color=colour, alpha=0.2, linewidth=0)
        axes.plot(
            *_split(points),
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            label=_plain(name),
            **style,
        )
    for name, points in chart.dots.items():
        colour, _, mark = look[name]
        axes.plot(*_split(points), color=colour, linestyle="", marker=mark, markersize=6, label=_plain(name))
    if chart.log_x:
        axes.set_xscale("log")
        if ticks := chart.tick_values():
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.xaxis.set_minor_locator(_matplotlib().ticker.NullLocator())
    if chart.log_y:
        axes.set_yscale("log")
    axes.set_xlabel(_plain(chart.x))
    axes.set_ylabel(_plain(chart.y))
    axes.grid(alpha=0.3)
    if len(chart.names) > 1:
        axes.legend(fontsize=7, frameon=False)


def _stacked_lines(axes: Any, chart: Lines) -> None:
    base: list[float] = []
    for name, points in chart.lines.items():
        index = chart.index(name)
        x, heights = _split(points)
        below = base or [0.0] * len(heights)
        base = [low + height for low, height in zip(below, heights, strict=True)]
        style = {"color": COLOURS[index % 8], "hatch": _HATCHES[index // 8 % 4], "edgecolor": "white"}
        step = "post" if chart.steps else None
        axes.fill_between(x, below, base, step=step, linewidth=0, label=_plain(name), **style)


def _stacks(axes: Any, chart: Stacks) -> None:
    names = [_plain(name) for name in chart.bars]
    positions = list(range(len(names)))
    width = 0.75 if chart.stacked else 0.8 / max(len(chart.parts), 1)
    base = [0.0] * len(names)
    for number, part in enumerate(chart.parts):
        values = [bar.get(part, 0.0) for bar in chart.bars.values()]
        look = {
            "color": COLOURS[number % 8],
            "hatch": _HATCHES[number // 8 % 4],
            "label": _plain(part),
            "edgecolor": "white",
            "linewidth": 0.3,
        }
        shift = 0.0 if chart.stacked else (number - (len(chart.parts) - 1) / 2) * width
        moved = [position + shift for position in positions]
        if chart.horizontal:
            axes.barh(moved, values, width, left=base, **look)
        else:
            axes.bar(moved, values, width, bottom=base, **look)
        if chart.stacked:
            base = [low + value for low, value in zip(base, values, strict=True)]
    if chart.horizontal:
        axes.set_yticks(positions, names)
        axes.invert_yaxis()
        axes.set_xlabel(_plain(chart.y))
    else:
        shown = positions[:: max(1, len(positions) // 16)]
        axes.set_xticks(shown, [names[position] for position in shown], rotation=60, ha="right")
        axes.set_ylabel(_plain(chart.y))
    if chart.most is not None:
        (axes.set_xlim if chart.horizontal else axes.set_ylim)(0, chart.most)
    if len(chart.parts) > 1:
        axes.legend(fontsize=7, frameon=False, ncols=3, loc="upper left", bbox_to_anchor=(0, -0.25))


def _heat_map(axes: Any, chart: HeatMap) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("lightness", [(at, colour) for at, colour in SCALE])
    rows = [[float("nan") if value is None else value for value in row] for row in chart.rows]
    drawn = axes.pcolormesh(rows, cmap=colours, vmin=0, rasterized=True)
    for axis, labels in ((axes.xaxis, chart.across), (axes.yaxis, chart.down)):
        step = max(1, len(labels) // 8)
        ticks = list(range(0, len(labels), step))
        axis.set_ticks([tick + 0.5 for tick in ticks], [_short(labels[tick]) for tick in ticks])
    axes.set_xlabel(_plain(chart.x))
    axes.set_ylabel(_plain(chart.y))
    axes.figure.colorbar(drawn, ax=axes, label=_plain(chart.scale))


def _lanes(axes: Any, chart: Lanes) -> None:
    for number, lane in enumerate(chart.lanes):
        if lane.level:
            most = max(value for _, value in lane.level) or 1.0
            heights = [number + 0.4 - 0.8 * value / most for _, value in lane.level]
            times = [time for time, _ in lane.level]
            axes.fill_between(times, heights, number + 0.4, step="post", color=COLOURS[0], linewidth=0)
        for what in sorted(set(lane.what)):
            bars = [
                (begin, max(end - begin, 0.0))
                for begin, end, of in zip(lane.begin, lane.end, lane.what, strict=True)
                if of == what
            ]
            axes.broken_barh(
                bars, (number - 0.4, 0.8), facecolors=COLOURS[what % 8], rasterized=len(bars) > 500
            )
    axes.set_yticks(range(len(chart.lanes)), [_plain(lane.name) for lane in chart.lanes], fontsize=6)
    axes.invert_yaxis()
    axes.set_xlim(*chart.extent)
    axes.set_xlabel(f"time in {chart.unit}")
    for number, name in enumerate(chart.names[:8]):
        axes.plot([], [], "s", color=COLOURS[number % 8], label=_plain(name))
    axes.legend(
        fontsize=6,
        frameon=False,
        ncols=4,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.22 - 0.5 / len(chart.lanes)),
    )


def _graph(axes: Any, chart: Graph) -> None:
    for load, ends in chart.grouped():
        for first, second in ends:
            x, y = zip(chart.things[first][:2], chart.things[second][:2], strict=True)
            axes.plot(x, y, color=chart.shade(load), linewidth=0.5 + chart.relative(load))
    axes.plot(
        [thing[0] for thing in chart.things], [thing[1] for thing in chart.things], "o", color="#56707f", ms=3
    )
    axes.set_axis_off()


def _split(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _short(label: Any) -> str:
    return f"{label:.4g}" if isinstance(label, float) else _plain(str(label))


def _plain(text: str) -> str:
    """Text that matplotlib must not take for a formula."""
    return text.replace("$", r"\$")
