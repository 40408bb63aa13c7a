# SPDX-License-Identifier: Apache-2.0
"""Every page says the answer first: a verdict with advice, five numbers with units, one picture; details are folded."""

from __future__ import annotations

import re

import polars as pl
import pytest
from run_directories import kernel_run, make_run

from manyscale.report import run_page
from manyscale.report.evidence import Evidence
from manyscale.report.headline import headline
from manyscale.report.numbers import percent, shown
from manyscale.report.sections.kernel import roofline_chart, speed_of_light
from manyscale.report.sections.network import load_charts
from manyscale.report.verdict import verdict


def cores_run(path):
    rows = [(f"core[{k}]", name, "run", value) for k in range(2) for name, value in (
        ("cycles", 1000), ("instructions", 800), ("mispredicts", 4), ("instructions.branch", 100),
        ("tlb.data_hits", 90), ("tlb.data_misses", 8), ("prefetcher.issued", 20), ("prefetcher.useful", 15),
        ("l1.reads", 200), ("l1.hits", 150), ("l1.merged", 5),
    )]  # fmt: skip
    shares = {"base": 0.3, "dram": 0.45, "branch": 0.05, "idle": 0.2}
    stack = [(core, cause, 1000 * part, part, part) for core in range(2) for cause, part in shares.items()]
    caches = pl.DataFrame(
        {"level": ["l1", "shared"], "accesses": [400, 100], "misses": [90, 40], "mpki": [56.25, 25.0]}
    )
    names = ["core", "cause", "cycles", "cpi", "share"]
    tables = {"cpi_stack": pl.DataFrame(stack, schema=names, orient="row"), "caches": caches}
    return make_run(path, rows, kind="cpu-program", tables=tables)


def network_run(path):
    ranks = pl.DataFrame(
        {
            "rank": [0, 1], "node": [0, 1], "compute": [0.3e-3, 0.3e-3], "overhead": [0.1e-3, 0.1e-3],
            "waiting": [0.0, 0.0], "transfer": [0.6e-3, 0.6e-3], "end": [1e-3, 1e-3],
        }
    )  # fmt: skip
    links = pl.DataFrame(
        {
            "from": [0], "from_node": [True], "to": [3], "to_node": [False], "link": [0],
            "bytes": [10], "packets": [1], "busy": [0.12], "queueing": [4.1629e-6],
        }
    )  # fmt: skip
    return make_run(path, [], kind="network", tables={"ranks": ranks, "links": links})


def managed_run(path):
    rows = [
        ("uvm", "faults", "run", 50), ("uvm", "fault_batches", "run", 5), ("uvm", "stalled", "run", 9e11),
        ("uvm", "pages_prefetched", "run", 100), ("uvm", "prefetched_used", "run", 25),
        ("gpu", "duration", "k", 1e-3), ("gpu", "stall_fault", "k", 90.0),
    ]  # fmt: skip
    log = pl.DataFrame(
        {
            "begin": [0.0, 1e-4, 2e-4, 5e-4], "end": [0.0, 2e-4, 3e-4, 6e-4], "address": [4096, 4096, 8192, 4096],
            "pages": [1, 1, 15, 1], "kind": ["fault", "to_device", "to_device", "to_host"],
            "cause": ["fault", "fault", "prefetch", "eviction"],
        }
    )  # fmt: skip
    return make_run(path, rows, kind="gpu-program", tables={"pages": log})


def cuda_run(path):
    kernels = pl.DataFrame({"name": ["k"], "begin_ns": [100_000.0], "end_ns": [200_000.0], "stream": [0]})
    copies = pl.DataFrame(
        {"kind": ["host_to_device"], "bytes": [10], "begin_ns": [200_000.0], "end_ns": [900_000.0]}
    )
    calls = pl.DataFrame({"call": ["cudaLaunchKernel"], "begin_ns": [90_000.0], "end_ns": [95_000.0]})
    tables = {"kernels": kernels, "copies": copies, "calls": calls}
    return make_run(path, [], kind="cuda", tables=tables)


def memory_run(path):
    rows = [
        ("core[0]", "l1.reads", "run", 100), ("core[0]", "l1.hits", "run", 60),
        ("core[0]", "latency.count", "run", 100), ("core[0]", "latency.mean", "run", 29_360_127),
        ("channel[0]", "read_bytes", "run", 6400), ("channel[0]", "bus_busy", "run", 1e11),
    ]  # fmt: skip
    return make_run(path, rows, kind="memory")


def system_run(path):
    return make_run(path, [("relay", "stalled", "run", 50)])


RUNS = {
    "GPU kernel": (kernel_run, "limited by DRAM bandwidth"),
    "CUDA program": (cuda_run, "Copies take 70%"),
    "unified memory": (managed_run, "Page faults: in 90%"),
    "processor": (cores_run, "Memory bound: 45%"),
    "network": (network_run, "communicating, most of it waiting for messages"),
    "memory": (memory_run, "Latency: an access takes 29.36 ns"),
    "system": (system_run, "Nothing in the statistics"),
}


@pytest.fixture(params=RUNS)
def run(request, tmp_path):
    make, verdict_words = RUNS[request.param]
    return make(tmp_path / "run"), verdict_words


def test_the_verdict_comes_before_the_numbers_the_picture_and_all_tables(run):
    found, words = run
    text = run_page(found).html()
    at = text.index('<div class="verdict')
    assert words in text[at : at + 600]
    assert at < text.index('<dl class="numbers">') < text.index('<details class="section"')
    assert at < text.index('data-kind="table"')


def test_details_are_folded_and_the_simulator_comes_last(run):
    text = run_page(run[0]).html()
    assert '<details class="section" id="simulator-and-provenance">' in text
    assert "<section" not in text.partition("<main>")[2]
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert (
        titles[-2:] == ["All statistics", "Simulator and provenance"]
        or titles[-1] == "Simulator and provenance"
    )


def test_no_text_has_femtoseconds_or_powers_of_ten(run):
    text = re.sub(r"<script.*?</script>", "", run_page(run[0]).html(), flags=re.DOTALL)
    text = text.partition("<main>")[2].partition("Simulator and provenance")[0]  # there are hashes
    assert re.findall(r"\d fs\b", text) == []
    assert re.findall(r"\b\d(?:\.\d+)?e[+-]?\d+", text) == []


def test_no_share_is_over_100_percent(run):
    shares = re.findall(r"(\d+(?:\.\d+)?)%", run_page(run[0]).html().partition("<main>")[2])
    assert [share for share in shares if float(share) > 100] == []


def test_no_chart_of_shares_goes_over_100(run):
    for chart in run_page(run[0]).charts:
        if getattr(chart, "most", None) == 100:
            for bar in chart.bars.values():
                assert sum(bar.values()) <= 100.0001 or not chart.stacked


def test_there_are_at_most_five_numbers_and_none_is_the_simulators(run):
    numbers = headline(Evidence(run[0]))
    assert 1 <= len(numbers) <= 5
    assert not [name for name in numbers if "wall" in name or "event" in name]


def test_speed_of_light_never_exceeds_the_peak_and_counts_the_whole_duration():
    light = speed_of_light(
        {
            "cycles": 1000,
            "sm_active_cycles": 500,
            "issue_slots_busy": 80,
            "pipe_fma": 90,
            "dram_utilization": 130,
        }
    )
    assert light == {"Compute (SM)": 45, "L1 and shared memory": 0, "L2": 0, "DRAM": 100}


def test_a_roof_of_the_roofline_is_over_the_bytes_of_its_own_memory(tmp_path):
    run = kernel_run(tmp_path / "run")
    chart = roofline_chart(Evidence(run))
    assert chart is not None
    assert chart.kin == {"over DRAM bytes": "DRAM 900 GB/s"}  # no point over L2 bytes: the run has none
    (low, at_low), (ridge, at_ridge) = chart.roofs["DRAM 900 GB/s"]
    assert at_low / low == pytest.approx(900)
    assert (ridge, at_ridge) == (pytest.approx(1.4e13 / 9e11), pytest.approx(14_000))
    assert "L2 2 TB/s" not in chart.roofs


def test_a_kernel_says_what_to_do(tmp_path):
    run = kernel_run(tmp_path / "run")
    found = verdict(Evidence(run))
    assert found.text == "stencil is limited by DRAM bandwidth: 81% of its peak while CTAs run."
    assert found.limit == "DRAM bandwidth"


def test_a_run_that_failed_says_so_first(tmp_path):
    run = system_run(tmp_path / "run")
    run.info |= {"status": "failed", "error": "the ring is full"}
    assert verdict(Evidence(run)).text == "The run is not whole (failed): the ring is full"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.1629e-6, "s", "4.163 us"), (29_360_127, "fs", "29.36 ns"), (0, "s", "0 s"), (9.9996e-4, "s", "1 ms"),
        (1536, "B", "1.5 KiB"), (8.98e11, "B/s", "898 GB/s"), (1, "cycle", "1 cycle"), (2, "cycle", "2 cycles"),
        (0.25, "%", "0.25%"), (12.345, "%", "12.3%"), (1234.5, "1", "1,234"), (None, "s", "none"),
        (1e-9, "1", "1·10^-9"), (2, "access", "2 accesses"), (3, "entry", "3 entries"), (2, "cycles", "2 cycles"),
        (0.5, "inst/cycle", "0.5 inst/cycle"), (2, "PTX instruction", "2 PTX instructions"),
        (0, "switch", "0 switches"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(value, unit, text):
    assert shown(value, unit) == text


def test_shares_stay_between_0_and_100():
    assert [percent(part) for part in (1.2, -0.1, 0.005, 1e-7)] == ["100%", "0%", "0.5%", "<0.1%"]


def test_a_link_is_never_loaded_over_its_bandwidth(tmp_path):
    """Flows share links to half a percent, which is not shown."""
    run = network_run(tmp_path / "run")
    load = pl.DataFrame(
        {
            "row": [0, 0, 0],
            "begin": [0.0, 1e-6, 2e-6],
            "seconds": [1e-6] * 3,
            "load": [1.004, 0.0, 0.5],
            "queue": [0.0] * 3,
        }
    )
    load.write_parquet(run.path / "load.parquet")
    (chart,) = load_charts(Evidence(run))
    assert chart.rows == [[1.0, 0.0, 0.5]]
    assert chart.unit == "%"
