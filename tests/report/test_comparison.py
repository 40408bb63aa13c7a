# SPDX-License-Identifier: Apache-2.0
"""Two runs compared: parameters that changed, what that did, and the differences that explain it by share."""

from __future__ import annotations

import polars as pl
import pytest
from run_directories import kernel_run, make_run

from manyscale.errors import InputError
from manyscale.report.comparison import Comparison
from manyscale.report.comparison_page import comparison_page


def cores_run(path, latency: str, seconds: float, **shares: float):
    rows = [(0, cause, round(1e6 * share), share, share) for cause, share in shares.items()]
    stack = pl.DataFrame(rows, schema=["core", "cause", "cycles", "cpi", "share"], orient="row")
    found = [("core[0]", "cycles", "run", 1000), ("core[0]", "instructions", "run", 1500)]
    machine = f'name = "made"\n[memory.dram]\nlatency = "{latency}"\nbanks = 8\n'
    return make_run(
        path, found, seconds=seconds, machine=machine, kind="cpu-program", tables={"cpi_stack": stack}
    )


@pytest.fixture
def compared(tmp_path) -> Comparison:
    """30 of 100 us wait for DRAM, then 80 of 150: all of the change is DRAM's."""
    return Comparison(
        cores_run(tmp_path / "near", "30ns", 100e-6, base=0.7, dram=0.3),
        cores_run(tmp_path / "far", "90ns", 150e-6, base=70 / 150, dram=80 / 150),
    )


def test_only_parameters_that_changed_are_listed(compared):
    assert [(each.name, each.a, each.b) for each in compared.changes] == [
        ("memory.dram.latency", "30ns", "90ns")
    ]


def test_parts_of_the_time_have_their_share_of_the_change(compared):
    (dram,) = compared.differences  # the base is the same, and explains nothing
    assert dram.what == "time: DRAM"
    assert (dram.a, dram.b) == (pytest.approx(30e-6), pytest.approx(80e-6, rel=1e-4))
    assert dram.share == pytest.approx(1.0, rel=1e-4)


def test_the_sentence_says_time_and_limit(compared):
    assert compared.sentence == (
        "B takes 150 us where A takes 100 us: 1.5 times as slow. The limit moves from Retiring to Memory bound."
    )


def test_warp_states_explain_kernels(tmp_path):
    slow = kernel_run(tmp_path / "a", duration=2e-3, stall_long_scoreboard=85.0, stall_selected=15.0)
    fast = kernel_run(tmp_path / "b", duration=1e-3, stall_long_scoreboard=70.0, stall_selected=30.0)
    first = Comparison(slow, fast).differences[0]
    assert first.what == "time: Long Scoreboard"
    assert first.share == pytest.approx(1.0)  # 1.7 ms become 0.7 ms
    assert first.change == "-58.8%"


def test_counters_of_equal_components_are_one_row(tmp_path):
    runs = []
    for name, value in (("a", 10), ("b", 15)):
        runs.append(
            make_run(tmp_path / name, [(f"channel[{k}]", "refreshes", "run", value) for k in range(25)])
        )
        table = runs[-1].stats.with_columns(pl.lit("counter").alias("kind"))
        runs[-1].__dict__["stats"] = table
    (found,) = Comparison(*runs).differences
    assert (found.what, found.a, found.b, found.change) == ("channel: refreshes", 250, 375, "+50%")


def test_there_are_never_more_than_ten_differences(tmp_path):
    runs = [
        make_run(tmp_path / str(factor), [("gpu", f"count_{k}", "run", factor * k) for k in range(1, 30)])
        for factor in (1, 2)
    ]
    for run in runs:
        run.__dict__["stats"] = run.stats.with_columns(pl.lit("counter").alias("kind"))
    assert len(Comparison(*runs).differences) == 10


def test_the_page_says_it_first_and_has_all_statistics_only_on_request(compared):
    runs = [compared.a.run, compared.b.run]
    text = comparison_page(runs).html()
    assert "far takes 150 us where near takes 100 us" in text
    assert "Changed: memory.dram.latency: 30ns \u2192 90ns." in text
    assert text.index('class="verdict') < text.index('data-kind="table"')
    assert "All statistics that differ" not in text
    assert "All statistics that differ" in comparison_page(runs, everything=True).html()


def test_one_run_cannot_be_compared(compared):
    with pytest.raises(InputError, match="two or more"):
        comparison_page([compared.a.run])
