# SPDX-License-Identifier: Apache-2.0
"""Plots of a run in Python: `run.plot.roofline()` is a plotly figure, or one of matplotlib for a paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyscale.errors import InputError
from manyscale.report.charts import Chart
from manyscale.report.evidence import Evidence
from manyscale.report.headline import headline
from manyscale.report.run_page import first_picture, title_of
from manyscale.report.sections import cpu, general, gpu, kernel, memory, network, unified_memory
from manyscale.report.verdict import verdict
from manyscale.results import Run

BACKENDS = ("plotly", "matplotlib")
_WHAT: dict[str, Callable[[Evidence], Chart | None]] = {
    "speed_of_light": kernel.speed_of_light_chart,
    "stalls": kernel.stalls_chart,
    "warp_states": kernel.states_chart,
    "roofline": kernel.roofline_chart,
    "launches": gpu.launches_chart,
    "pages": unified_memory.page_map,
    "transfers": unified_memory.transfers_chart,
    "top_down": cpu.top_down_chart,
    "cpi": cpu.cpi_chart,
    "tasks": cpu.tasks_chart,
    "ranks": network.ranks_chart,
    "link_load": lambda evidence: next(iter(network.load_charts(evidence)), None),
    "message_latency": network.latency_chart,
    "critical_path": network.critical_path_chart,
    "memory_latency": memory.latency_chart,
    "dram_bandwidth": memory.bandwidth_chart,
    "timeline": general.timeline_chart,
}


class Plots:
    """What can be drawn of a run. Each method gives a plotly figure, or a matplotlib one (`backend="matplotlib"`)."""

    def __init__(self, run: Run) -> None:
        self._evidence = Evidence(run)

    def __call__(self, backend: str = "plotly") -> Any:
        """What a report of the run shows first."""
        return _drawn(first_picture(self._evidence), "picture", backend)

    @property
    def available(self) -> list[str]:
        """The plots for which this run has left something."""
        return [name for name, make in _WHAT.items() if make(self._evidence) is not None]

    def speed_of_light(self, backend: str = "plotly") -> Any:
        """Compute, L1, L2 and DRAM of the longest kernel as shares of their peaks."""
        return self._plot("speed_of_light", backend)

    def stalls(self, backend: str = "plotly") -> Any:
        """States of warps, by kernel."""
        return self._plot("stalls", backend)

    def warp_states(self, backend: str = "plotly") -> Any:
        """Warps of an SM by state over the time of the longest kernel."""
        return self._plot("warp_states", backend)

    def roofline(self, backend: str = "plotly") -> Any:
        """Kernels in the roofline model."""
        return self._plot("roofline", backend)

    def launches(self, backend: str = "plotly") -> Any:
        """Calls, kernels and copies of a CUDA program over time."""
        return self._plot("launches", backend)

    def pages(self, backend: str = "plotly") -> Any:
        """Pages of managed memory over time."""
        return self._plot("pages", backend)

    def transfers(self, backend: str = "plotly") -> Any:
        """Kernels, UVM driver and link over time."""
        return self._plot("transfers", backend)

    def top_down(self, backend: str = "plotly") -> Any:
        """Cycles of all cores by the groups of the top-down method."""
        return self._plot("top_down", backend)

    def cpi(self, backend: str = "plotly") -> Any:
        """CPI stacks of cores."""
        return self._plot("cpi", backend)

    def tasks(self, backend: str = "plotly") -> Any:
        """Which core executed a task when."""
        return self._plot("tasks", backend)

    def ranks(self, backend: str = "plotly") -> Any:
        """What ranks did with their time."""
        return self._plot("ranks", backend)

    def link_load(self, backend: str = "plotly") -> Any:
        """Load of the busiest links over time."""
        return self._plot("link_load", backend)

    def message_latency(self, backend: str = "plotly") -> Any:
        """Messages by latency."""
        return self._plot("message_latency", backend)

    def critical_path(self, backend: str = "plotly") -> Any:
        """The chain that decided the end of a job."""
        return self._plot("critical_path", backend)

    def memory_latency(self, backend: str = "plotly") -> Any:
        """Accesses to memory by latency."""
        return self._plot("memory_latency", backend)

    def dram_bandwidth(self, backend: str = "plotly") -> Any:
        """What DRAM read and wrote over time."""
        return self._plot("dram_bandwidth", backend)

    def timeline(self, backend: str = "plotly") -> Any:
        """What was busy when."""
        return self._plot("timeline", backend)

    def _plot(self, name: str, backend: str) -> Any:
        return _drawn(_WHAT[name](self._evidence), name, backend)

    def __repr__(self) -> str:
        return f"Plots of {title_of(self._evidence)}: {', '.join(self.available) or 'none'}"


def _drawn(chart: Chart | None, name: str, backend: str) -> Any:
    if backend not in BACKENDS:
        raise InputError(f"plots are drawn by {' or '.join(BACKENDS)}, not by '{backend}'")
    if chart is None:
        raise InputError(
            f"the run has left nothing for a plot of {name.replace('_', ' ')}; see run.plot.available"
        )
    if backend == "matplotlib":
        from manyscale.report.paper import paper_figure

        return paper_figure(chart)
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    figure = chart.plotly()
    layout = figure["layout"] | {"title": {"text": chart.title}, "template": "plotly_white"}
    margin = layout.get("margin", {})
    return go.Figure({"data": figure["data"], "layout": layout | {"margin": {**margin, "t": 90}}})


def answer_facts(run: Run) -> dict[str, str]:
    """The verdict, what to do, and the headline, for notebooks."""
    evidence = Evidence(run)
    found = verdict(evidence)
    advice = {"advice": found.advice} if found.advice else {}
    return {"verdict": found.text} | advice | headline(evidence)
