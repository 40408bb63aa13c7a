# SPDX-License-Identifier: Apache-2.0
"""Charts as plain data, drawn in a report by plotly (or a canvas) and for papers by `manyscale.report.paper`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Okabe and Ito's colours, which people with any kind of colour vision tell apart, on light and on dark ground.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c8c8c", "#b8a800")
PATTERNS = ("", "/", "x", ".")
"""With each round through the colours, bars have another pattern."""
SCALE = ((0.0, "#e8f1f8"), (0.25, "#a6cee3"), (0.5, "#56a0d3"), (0.75, "#1f6fb0"), (1.0, "#0b3c6f"))
"""From none to most: by lightness alone, so that it also works in grey."""

MARKS = ("#d55e00", "#009e73", "#cc79a7", "#000000")
"""Points on a heat map, which stand out from its scale."""

Points = Sequence[tuple[float, float]]

_UNSEEN = 5e-4  # of an axis: less than a pixel
_MOST_NAMED = 40  # things of a graph that have their names beside them


@dataclass(frozen=True)
class Chart:
    """What all charts have."""

    title: str

    @abstractmethod
    def plotly(self) -> dict[str, Any]:
        """The chart as a figure of plotly."""


@dataclass(frozen=True)
class Lines(Chart):
    """Lines over a quantity: name -> points.

    `dots` are points without a line, `roofs` lines without points, and `bands` what lies between a low and a high
    value around the line of the same name: name -> (x, low, high). With `steps`, a value lasts until the next; with
    `filled` the ground below the steps is filled, as in a histogram; with `stacked` each line stands on the one before,
    and all lines have the same x. `kin` gives a name the colour of another.
    """

    x: str
    y: str
    lines: Mapping[str, Points] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    dots: Mapping[str, Points] = field(default_factory=dict)
    roofs: Mapping[str, Points] = field(default_factory=dict)
    bands: Mapping[str, Sequence[tuple[float, float, float]]] = field(default_factory=dict)
    steps: bool = False
    filled: bool = False
    stacked: bool = False
    kin: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All names, each once; its index decides its colour."""
        found = list(dict.fromkeys([*self.roofs, *self.lines, *self.dots, *self.bands]))
        return sorted(found, key=lambda name: name in self.kin)

    def index(self, name: str) -> int:
        """Which colour a name has."""
        return self.names.index(self.kin.get(name, name))

    def tick_values(self) -> list[float]:
        """Where the lines have points, if a logarithmic axis can name all of them."""
        values = sorted({x for points in self.lines.values() for x, _ in points})
        few = self.log_x and len(values) <= 14 and not self.dots and not self.steps
        return values if few else []

    def plotly(self) -> dict[str, Any]:
        indices = {name: self.index(name) for name in self.names}
        symbols = {name: index for index, name in enumerate(self.dots)}
        data: list[dict[str, Any]] = []
        for name, band in self.bands.items():
            forth = [(x, high) for x, _, high in band]
            back = [(x, low) for x, low, _ in reversed(band)]
            fill = {
                "fill": "toself",
                "fillcolor": _faded(_colour(indices[name])),
                "line": {"width": 0},
                "mode": "lines",
                "hoverinfo": "skip",
                "showlegend": False,
            }
            data.append(_scatter(name, [*forth, *back]) | fill)
        for name, points in self.roofs.items():
            line = {"color": _colour(indices[name]), "width": 1.5, "dash": "dash"}
            data.append(_scatter(name, points) | {"mode": "lines", "line": line})
        for name, points in self.lines.items():
            shape = "hv" if self.steps else "linear"
            look: dict[str, Any] = {
                "color": _colour(indices[name]),
                "dash": _dash(indices[name]),
                "shape": shape,
            }
            marker = {"color": _colour(indices[name]), "symbol": _symbol(indices[name]), "size": 7}
            mode = "lines" if self.steps or len(points) > 200 else "lines+markers"
            fill = {"fill": "tozeroy", "fillcolor": _faded(_colour(indices[name]))} if self.filled else {}
            if self.stacked:
                look |= {"width": 0}
                fill = {
                    "stackgroup": "all",
                    "fillcolor": _colour(indices[name]),
                    "fillpattern": _pattern(indices[name]),
                }
            data.append(_scatter(name, points) | {"mode": mode, "line": look, "marker": marker} | fill)
        for name, points in self.dots.items():
            marker = {
                "color": _colour(indices[name]),
                "symbol": _symbol(symbols[name]),
                "size": 14 - 4 * (symbols[name] % 2),
            }
            data.append(_scatter(name, points) | {"mode": "markers", "marker": marker})
        layout = _layout(380) | {
            "xaxis": _axis(self.x, self.log_x, self.tick_values()),
            "yaxis": _axis(self.y, self.log_y) | ({"rangemode": "tozero"} if not self.log_y else {}),
            "showlegend": len(self.names) > 1,
        }
        return {"data": data, "layout": layout}


@dataclass(frozen=True)
class Stacks(Chart):
    """Bars whose parts are stacked: bar -> part -> value; horizontal unless there are many.

    With `most`, the axis ends there, such as at 100 of per cent; `labelled` bars have their value beside them.
    """

    y: str
    bars: Mapping[str, Mapping[str, float]]
    stacked: bool = True
    most: float | None = None
    labelled: bool = False

    @property
    def parts(self) -> list[str]:
        """The parts that can be seen somewhere, in their order."""
        names = dict.fromkeys(part for bar in self.bars.values() for part in bar)
        least = _UNSEEN * (self.most or 0.0)
        return [name for name in names if any(bar.get(name, 0.0) > least for bar in self.bars.values())]

    @property
    def horizontal(self) -> bool:
        return len(self.bars) <= 12

    def plotly(self) -> dict[str, Any]:
        data = []
        for index, part in enumerate(self.parts):
            values = [bar.get(part, 0.0) for bar in self.bars.values()]
            names = [_label(name) for name in self.bars]
            data.append(
                {
                    "type": "bar",
                    "name": _label(part),
                    "orientation": "h" if self.horizontal else "v",
                    "x": values if self.horizontal else names,
                    "y": names if self.horizontal else values,
                    "marker": {"color": _colour(index), "pattern": _pattern(index)},
                    **(
                        {
                            "text": [_beside(value, self.most) for value in values],
                            "textposition": "outside",
                            "cliponaxis": False,
                        }
                        if self.labelled
                        else {}
                    ),
                }
            )
        along = _axis(self.y, False)
        across = {"type": "category", "automargin": True, "showgrid": False}
        if self.most is not None:
            along |= {"range": [0, self.most * (1.08 if self.labelled else 1.0)], "tick0": 0}
        wide = 34 if self.stacked else 22 * max(len(self.parts), 1)
        legend = 24 * -(-len(self.parts) // 5) if len(self.parts) > 1 else 0
        height = 86 + legend + wide * len(self.bars) if self.horizontal else 380
        layout = _layout(height) | {
            "barmode": "stack" if self.stacked else "group",
            "xaxis": along if self.horizontal else across,
            "yaxis": (across | {"autorange": "reversed"}) if self.horizontal else along,
            "showlegend": len(self.parts) > 1,
        }
        return {"data": data, "layout": layout}


@dataclass(frozen=True)
class HeatMap(Chart):
    """A value for each cell of a grid, by its colour. `marks` are points on it: name -> (x, y).

    The colours use the range of the values, from 0; `unit` "%" writes shares as per cent.
    """

    x: str
    y: str
    across: Sequence[float | str]
    down: Sequence[float | str]
    rows: Sequence[Sequence[float | None]]
    scale: str
    marks: Mapping[str, Points] = field(default_factory=dict)
    unit: str = ""

    def plotly(self) -> dict[str, Any]:
        bar = {"title": {"text": _label(self.scale), "side": "right"}, "thickness": 14}
        map_of_values = {
            "type": "heatmap",
            "x": [_label(each) for each in self.across],
            "y": [_label(each) for each in self.down],
            "z": [list(row) for row in self.rows],
            "colorscale": [list(step) for step in SCALE],
            "colorbar": bar | ({"tickformat": ".0%"} if self.unit == "%" else {"exponentformat": "SI"}),
            "zmin": 0,
            "hoverongaps": False,
        }
        data: list[dict[str, Any]] = [map_of_values]
        for index, (name, points) in enumerate(self.marks.items()):
            marker = {"color": MARKS[index % len(MARKS)], "size": 4}
            data.append(_scatter(name, points) | {"mode": "markers", "marker": marker})
        legend = {"showlegend": bool(self.marks)}
        axes = {
            name: _axis(title) | _extent(labels)
            for name, title, labels in (("xaxis", self.x, self.across), ("yaxis", self.y, self.down))
        }
        named = any(isinstance(each, str) for each in self.down)
        height = min(900, max(300, 110 + 15 * len(self.down))) if named else 380
        return {"data": data, "layout": _layout(height) | axes | legend}


@dataclass(frozen=True)
class Lane:
    """What one thing did when: beginnings, ends, indices in the chart's names, and how busy each interval was.

    `kind` is the group that the lane belongs to. A lane with a `level` is a quantity over time: (time, value), each of
    which lasts until the next.
    """

    name: str
    begin: Sequence[float] = ()
    end: Sequence[float] = ()
    what: Sequence[int] = ()
    share: Sequence[float] | None = None
    kind: str = ""
    level: Points | None = None

    def data(self) -> dict[str, Any]:
        """What the script of the page draws."""
        found: dict[str, Any] = {"name": self.name} | ({"kind": self.kind} if self.kind else {})
        if self.level is not None:
            times, values = [time for time, _ in self.level], [value for _, value in self.level]
            return found | {"level": {"time": times, "value": values}, "most": max(values, default=0.0)}
        found |= {"begin": self.begin, "end": self.end, "what": self.what}
        return found | ({} if self.share is None else {"share": self.share})


@dataclass(frozen=True)
class Lanes(Chart):
    """Intervals over time, a lane for each thing."""

    unit: str
    names: Sequence[str]
    lanes: Sequence[Lane]
    from_zero: bool = False

    @property
    def extent(self) -> tuple[float, float]:
        """From the first beginning to the last end."""
        begins = [min(lane.begin) for lane in self.lanes if len(lane.begin)]
        ends = [max(lane.end) for lane in self.lanes if len(lane.end)]
        ends += [lane.level[-1][0] for lane in self.lanes if lane.level]
        return (0.0 if self.from_zero else min(begins, default=0.0)), max(ends, default=1.0)

    def data(self) -> dict[str, Any]:
        """What the script of the page draws."""
        begin, end = self.extent
        return {
            "title": self.title,
            "unit": self.unit,
            "begin": begin,
            "end": end,
            "names": list(self.names),
            "colours": COLOURS,
            "lanes": [lane.data() for lane in self.lanes],
        }

    def plotly(self) -> dict[str, Any]:
        data = []
        for index, name in enumerate(self.names):
            bars = [
                (lane.name, begin, end - begin)
                for lane in self.lanes
                for begin, end, what in zip(lane.begin, lane.end, lane.what, strict=True)
                if what == index
            ]
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": _label(name),
                    "y": [_label(lane) for lane, _, _ in bars],
                    "base": [begin for _, begin, _ in bars],
                    "x": [length for _, _, length in bars],
                    "marker": {"color": _colour(index)},
                }
            )
        layout = _layout(80 + 24 * len(self.lanes)) | {
            "barmode": "overlay",
            "xaxis": _axis(f"time in {self.unit}"),
            "yaxis": {"autorange": "reversed", "automargin": True},
        }
        return {"data": data, "layout": layout}


@dataclass(frozen=True)
class Graph(Chart):
    """Things with connections between them: (x, y, text) of each thing, (from, to, load from 0 to 1) of each line."""

    things: Sequence[tuple[float, float, str]]
    connections: Sequence[tuple[int, int, float]]
    scale: str = "busy"
    steps: int = 8

    def grouped(self) -> list[tuple[float, list[tuple[int, int]]]]:
        """Connections by their load, in a few steps from none to the most: (load of the step, their ends)."""
        most = max((load for _, _, load in self.connections), default=0.0) or 1.0
        found: dict[int, list[tuple[int, int]]] = {}
        for first, second, load in self.connections:
            found.setdefault(min(self.steps, round(self.steps * load / most)), []).append((first, second))
        return [(step / self.steps * most, found[step]) for step in sorted(found)]

    def relative(self, load: float) -> float:
        """A load as a share of the largest on the chart."""
        return load / (max((each for _, _, each in self.connections), default=0.0) or 1.0)

    def shade(self, load: float) -> str:
        """The colour of a load between none and the most."""
        return ("#b9c4ce", "#8fb7d9", "#e69f00", "#d55e00")[min(3, int(4 * self.relative(load)))]

    def plotly(self) -> dict[str, Any]:
        data: list[dict[str, Any]] = []
        for load, ends in self.grouped():
            x: list[float | None] = []
            y: list[float | None] = []
            for first, second in ends:
                x += [self.things[first][0], self.things[second][0], None]
                y += [self.things[first][1], self.things[second][1], None]
            data.append(
                {
                    "type": "scattergl" if len(self.connections) > 3000 else "scatter",
                    "mode": "lines",
                    "x": x,
                    "y": y,
                    "name": f"{load:.1%} {self.scale}" if load < 0.1 else f"{load:.0%} {self.scale}",
                    "hoverinfo": "skip",
                    "line": {"color": self.shade(load), "width": 1 + 2 * self.relative(load)},
                }
            )
        data.append(
            {
                "type": "scatter",
                "mode": "markers+text" if len(self.things) <= _MOST_NAMED else "markers",
                "textposition": "top center",
                "cliponaxis": False,
                "name": "",
                "x": [thing[0] for thing in self.things],
                "y": [thing[1] for thing in self.things],
                "text": [_label(thing[2]) for thing in self.things],
                "hoverinfo": "text",
                "showlegend": False,
                "marker": {"size": 7 if len(self.things) < 400 else 4, "color": "#56707f"},
            }
        )
        hidden = {"visible": False, "showgrid": False, "zeroline": False}
        loaded = any(load for _, _, load in self.connections)
        axes = {"xaxis": hidden, "yaxis": hidden | {"scaleanchor": "x"}, "showlegend": loaded}
        room = {"margin": {"l": 110, "r": 110, "t": 40, "b": 30}}  # for names at the rim
        return {"data": data, "layout": _layout(420) | axes | room}


def _scatter(name: str, points: Points) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": _label(name),
        "x": [point[0] for point in points],
        "y": [point[1] for point in points],
    }


def _axis(title: str, logarithmic: bool = False, ticks: Sequence[float] = ()) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": _label(title)}, "automargin": True, "exponentformat": "SI"}
    if not logarithmic:
        return axis
    if ticks:  # a line for each value, and no others
        return axis | {"type": "log", "tickvals": list(ticks), "ticktext": [_tick(tick) for tick in ticks]}
    return axis | {"type": "log", "dtick": 1}


def _extent(labels: Sequence[float | str]) -> dict[str, Any]:
    """An axis of a heat map ends where its cells do."""
    numbers = [float(each) for each in labels if not isinstance(each, str)]
    if len(numbers) < len(labels):
        return {"type": "category"}
    if len(numbers) < 2:
        return {}
    half = (numbers[-1] - numbers[0]) / (len(numbers) - 1) / 2
    return {"range": [numbers[0] - half, numbers[-1] + half]}


def _beside(value: float, most: float | None) -> str:
    """A bar's value; of shares of a peak, as per cent."""
    if most != 100:
        return f"{value:,.3g}"
    return "<0.1%" if 0 < value < 0.05 else f"{value:.1f}%"


def _tick(value: float) -> str:
    """A value on a logarithmic axis: powers of two that are sizes with their prefix."""
    for name, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if value >= size and value % size == 0:
            return f"{value / size:g}{name}"
    for name, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def _layout(height: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 12, "b": 44},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
    }


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _pattern(index: int) -> dict[str, Any]:
    """Of an area; those of one colour have different ones."""
    return {
        "shape": PATTERNS[index // len(COLOURS) % len(PATTERNS)],
        "fgcolor": "rgba(255,255,255,0.6)",
        "size": 6,
        "fillmode": "overlay",
    }


def _dash(index: int) -> str:
    return ("solid", "dash", "dot", "dashdot")[index // len(COLOURS) % 4]


def _symbol(index: int) -> str:
    return ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "pentagon")[index % 8]


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"


def _label(text: Any) -> Any:
    """Text that plotly must not take for markup; numbers stay numbers."""
    return text.replace("&", "&amp;").replace("<", "&lt;") if isinstance(text, str) else text
