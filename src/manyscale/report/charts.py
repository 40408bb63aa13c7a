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

Points = Sequence[tuple[float, float]]

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
    value around the line of the same name: name -> (x, low, high). With `steps`, a value lasts until the next.
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

    @property
    def names(self) -> list[str]:
        """All names, each once; its place decides its colour."""
        return list(dict.fromkeys([*self.lines, *self.dots, *self.roofs, *self.bands]))

    def _few_places(self) -> list[float]:
        """Where the lines have points, if an axis can name all these places; of a logarithmic one only."""
        places = sorted({x for points in self.lines.values() for x, _ in points})
        return places if self.log_x and len(places) <= 14 and not self.dots else []

    def plotly(self) -> dict[str, Any]:
        places = {name: place for place, name in enumerate(self.names)}
        data: list[dict[str, Any]] = []
        for name, band in self.bands.items():
            forth = [(x, high) for x, _, high in band]
            back = [(x, low) for x, low, _ in reversed(band)]
            fill = {
                "fill": "toself",
                "fillcolor": _faded(_colour(places[name])),
                "line": {"width": 0},
                "mode": "lines",
                "hoverinfo": "skip",
                "showlegend": False,
            }
            data.append(_scatter(name, [*forth, *back]) | fill)
        for name, points in self.roofs.items():
            line = {"color": _colour(places[name]), "width": 1.5, "dash": "dash"}
            data.append(_scatter(name, points) | {"mode": "lines", "line": line})
        for name, points in self.lines.items():
            shape = "hv" if self.steps else "linear"
            look = {"color": _colour(places[name]), "dash": _dash(places[name]), "shape": shape}
            marker = {"color": _colour(places[name]), "symbol": _symbol(places[name]), "size": 7}
            mode = "lines" if self.steps or len(points) > 200 else "lines+markers"
            data.append(_scatter(name, points) | {"mode": mode, "line": look, "marker": marker})
        for name, points in self.dots.items():
            marker = {"color": _colour(places[name]), "symbol": _symbol(places[name]), "size": 11}
            data.append(_scatter(name, points) | {"mode": "markers", "marker": marker})
        layout = _layout(360) | {
            "xaxis": _axis(self.x, self.log_x, self._few_places()),
            "yaxis": _axis(self.y, self.log_y),
            "showlegend": True,
        }
        return {"data": data, "layout": layout}


@dataclass(frozen=True)
class Stacks(Chart):
    """Bars whose parts are stacked: bar -> part -> value; horizontal unless there are many."""

    y: str
    bars: Mapping[str, Mapping[str, float]]
    stacked: bool = True

    @property
    def parts(self) -> list[str]:
        """The parts that are not empty everywhere, in their order."""
        names = dict.fromkeys(part for bar in self.bars.values() for part in bar)
        return [name for name in names if any(bar.get(name) for bar in self.bars.values())]

    @property
    def horizontal(self) -> bool:
        return len(self.bars) <= 12

    def plotly(self) -> dict[str, Any]:
        data = []
        for place, part in enumerate(self.parts):
            values = [bar.get(part, 0.0) for bar in self.bars.values()]
            names = [_label(name) for name in self.bars]
            pattern = {
                "shape": PATTERNS[place // len(COLOURS) % len(PATTERNS)],
                "fgcolor": "rgba(255,255,255,0.6)",
                "size": 6,
                "fillmode": "overlay",
            }
            data.append(
                {
                    "type": "bar",
                    "name": _label(part),
                    "orientation": "h" if self.horizontal else "v",
                    "x": values if self.horizontal else names,
                    "y": names if self.horizontal else values,
                    "marker": {"color": _colour(place), "pattern": pattern},
                }
            )
        along, across = _axis(self.y, False), {"type": "category", "automargin": True}
        wide = 34 if self.stacked else 22 * max(len(self.parts), 1)
        height = 150 + wide * len(self.bars) if self.horizontal else 380
        layout = _layout(height) | {
            "barmode": "stack" if self.stacked else "group",
            "xaxis": along if self.horizontal else across,
            "yaxis": (across | {"autorange": "reversed"}) if self.horizontal else along,
            "showlegend": True,
        }
        return {"data": data, "layout": layout}


@dataclass(frozen=True)
class HeatMap(Chart):
    """A value for each place of a grid, by its colour. `marks` are points on it: name -> (x, y)."""

    x: str
    y: str
    across: Sequence[float | str]
    down: Sequence[float | str]
    rows: Sequence[Sequence[float | None]]
    scale: str
    marks: Mapping[str, Points] = field(default_factory=dict)

    def plotly(self) -> dict[str, Any]:
        map_of_values = {
            "type": "heatmap",
            "x": [_label(each) for each in self.across],
            "y": [_label(each) for each in self.down],
            "z": [list(row) for row in self.rows],
            "colorscale": [list(step) for step in SCALE],
            "colorbar": {"title": {"text": _label(self.scale), "side": "right"}, "thickness": 14},
            "zmin": 0,
        }
        data: list[dict[str, Any]] = [map_of_values]
        for place, (name, points) in enumerate(self.marks.items()):
            marker = {"color": ("#d55e00", "#000000")[place % 2], "size": 4}
            data.append(_scatter(name, points) | {"mode": "markers", "marker": marker})
        legend = {"showlegend": bool(self.marks)}
        axes = {
            name: _axis(title)
            | ({"type": "category"} if any(isinstance(each, str) for each in labels) else {})
            for name, title, labels in (("xaxis", self.x, self.across), ("yaxis", self.y, self.down))
        }
        return {"data": data, "layout": _layout(420) | axes | legend}


@dataclass(frozen=True)
class Lane:
    """What one thing did when: beginnings, ends, places in the chart's names, and how busy each interval was."""

    name: str
    begin: Sequence[float]
    end: Sequence[float]
    what: Sequence[int]
    share: Sequence[float] | None = None


@dataclass(frozen=True)
class Lanes(Chart):
    """Intervals over time, a lane for each thing."""

    unit: str
    names: Sequence[str]
    lanes: Sequence[Lane]

    @property
    def extent(self) -> tuple[float, float]:
        """From the first beginning to the last end."""
        begins = [min(lane.begin) for lane in self.lanes if len(lane.begin)]
        ends = [max(lane.end) for lane in self.lanes if len(lane.end)]
        return min(begins, default=0.0), max(ends, default=1.0)

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
            "lanes": [
                {
                    "name": lane.name,
                    "begin": lane.begin,
                    "end": lane.end,
                    "what": lane.what,
                    **({} if lane.share is None else {"share": lane.share}),
                }
                for lane in self.lanes
            ],
        }

    def plotly(self) -> dict[str, Any]:
        data = []
        for place, name in enumerate(self.names):
            bars = [
                (lane.name, begin, end - begin)
                for lane in self.lanes
                for begin, end, what in zip(lane.begin, lane.end, lane.what, strict=True)
                if what == place
            ]
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": _label(name),
                    "y": [_label(lane) for lane, _, _ in bars],
                    "base": [begin for _, begin, _ in bars],
                    "x": [length for _, _, length in bars],
                    "marker": {"color": _colour(place)},
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

    def shade(self, load: float) -> str:
        """The colour of a load between none and the most."""
        most = max((each for _, _, each in self.connections), default=0.0) or 1.0
        return ("#b9c4ce", "#8fb7d9", "#e69f00", "#d55e00")[min(3, int(4 * load / most))]

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
                    "name": f"{load:.0%} {self.scale}",
                    "hoverinfo": "skip",
                    "line": {"color": self.shade(load), "width": 1 + 2 * load},
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


def _axis(title: str, logarithmic: bool = False, places: Sequence[float] = ()) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": _label(title)}, "automargin": True, "exponentformat": "SI"}
    if places:
        axis |= {"tickvals": list(places), "ticktext": [f"{place:g}" for place in places]}
    return axis | ({"type": "log", "minor": {"showgrid": True}} if logarithmic else {})


def _layout(height: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 40, "b": 50},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
    }


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _dash(place: int) -> str:
    return ("solid", "dash", "dot", "dashdot")[place // len(COLOURS) % 4]


def _symbol(place: int) -> str:
    return ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "pentagon")[place % 8]


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"


def _label(text: Any) -> Any:
    """Text that plotly must not take for markup; numbers stay numbers."""
    return text.replace("&", "&amp;").replace("<", "&lt;") if isinstance(text, str) else text
