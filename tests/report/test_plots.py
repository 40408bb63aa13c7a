# SPDX-License-Identifier: Apache-2.0
"""Plots of a run in Python, and what a notebook shows of it."""

from __future__ import annotations

import polars as pl
import pytest
from run_directories import kernel_run, make_run

from manyscale.errors import InputError
from manyscale.gpu.metrics import STALLS
from manyscale.report import run_page
from manyscale.results import load
from manyscale.results.notebook import NotebookView


def test_a_plot_is_a_plotly_figure_or_one_of_matplotlib(tmp_path):
    run = kernel_run(tmp_path / "run")
    figure = run.plot.roofline()
    assert type(figure).__module__.startswith("plotly")
    assert figure.layout.title.text == "Roofline"
    assert figure.layout.xaxis.type == "log"
    pytest.importorskip("matplotlib", reason="pip install 'manyscale[figures]'")
    (axes, *_) = run.plot.roofline(backend="matplotlib").axes
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "Gflop/s"


def test_every_plot_that_is_available_is_drawn(tmp_path):
    run = kernel_run(tmp_path / "run")
    assert run.plot.available == ["speed_of_light", "stalls", "roofline"]
    for name in run.plot.available:
        assert getattr(run.plot, name)().data
    assert run.plot().layout.title.text == "Speed of light"
    assert repr(run.plot) == "Plots of made on v100: speed_of_light, stalls, roofline"


def with_states(path):
    """A run of a kernel that begins after an interval and then waits, of 8 and then 24 warps."""
    states = {stall.name: [0.0] * 5 for stall in STALLS}
    states |= {"selected": [0.0, 2.0, 2.0, 1.0, 1.0], "long_scoreboard": [0.0, 6.0, 22.0, 23.0, 7.0]}
    begins = [each * 2e-7 for each in range(5)]
    table = pl.DataFrame({"scope": "stencil", "begin": begins, "seconds": 2e-7, **states})
    run = kernel_run(path)
    table.write_parquet(path / "warp_states.parquet")
    return load(run.path)


def test_states_of_warps_over_time_are_stacked_as_the_stall_reasons_are(tmp_path):
    run = with_states(tmp_path / "run")
    figure = run.plot.warp_states()
    assert [trace.name for trace in figure.data] == ["Selected", "Long Scoreboard"]
    assert {trace.stackgroup for trace in figure.data} == {"all"}
    assert list(figure.data[1].y) == [0, 6, 22, 23, 7, 0]
    assert list(figure.data[0].x) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert figure.layout.xaxis.title.text == "time in us"
    bars = run.plot.stalls()
    assert {bar.name: bar.marker.color for bar in bars.data} == {
        trace.name: trace.fillcolor for trace in figure.data
    }
    pytest.importorskip("matplotlib", reason="pip install 'manyscale[figures]'")
    (axes, *_) = run.plot.warp_states(backend="matplotlib").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Selected", "Long Scoreboard"]
    assert axes.dataLim.ymax == 24


def test_a_page_shows_states_of_warps_over_time(tmp_path):
    assert "Warp states over time" in run_page(with_states(tmp_path / "run")).html()
    assert "Warp states over time" not in run_page(kernel_run(tmp_path / "without")).html()


def test_a_plot_of_what_the_run_has_not_left_says_so(tmp_path):
    run = make_run(tmp_path / "run", [])
    with pytest.raises(InputError, match=r"nothing for a plot of critical path; see run\.plot\.available"):
        run.plot.critical_path()
    with pytest.raises(InputError, match="plotly or matplotlib, not by 'gnuplot'"):
        kernel_run(tmp_path / "kernel").plot.stalls(backend="gnuplot")


def test_a_notebook_shows_the_verdict_before_the_numbers(tmp_path):
    shown = kernel_run(tmp_path / "run")._repr_html_()
    assert shown.index("limited by DRAM bandwidth") < shown.index("DRAM throughput") < shown.index("Headline")


def test_every_result_shows_itself_in_a_notebook():
    from manyscale import cpu, cuda, gpu, network, system
    from manyscale.studies import detailed_cluster, sweep
    from manyscale.studies.projection import predict

    results = [
        *(gpu.Launch, gpu.TimedLaunch, gpu.KernelProfile, cuda.CudaRun, cpu.CpuResult, cpu.FunctionalResult),
        *(
            network.JobResult,
            system.running.Result,
            sweep.Sweep,
            predict.Prediction,
            detailed_cluster.DetailedResult,
        ),
    ]
    for result in results:
        assert result._notebook is not NotebookView._notebook, result


def test_a_prediction_in_a_notebook_has_its_interval():
    from manyscale.studies.projection.predict import PARTS, Prediction

    made = Prediction(64, "ext-var", [1.0e-3, 1.1e-3, 1.2e-3], dict.fromkeys(PARTS, 0.2))
    assert "64 nodes, ext-var" in made._repr_html_()
    assert "1.1 ms ± " in made._repr_html_()
