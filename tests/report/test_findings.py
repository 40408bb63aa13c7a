# SPDX-License-Identifier: Apache-2.0
"""What limits a run is told from its numbers, and the numbers stand in the sentence."""

from __future__ import annotations

import polars as pl
from run_directories import kernel_run, make_run

from manyscale.report.evidence import Evidence
from manyscale.report.findings import findings


def sentences(run) -> list[str]:
    return [finding.text for finding in findings(Evidence(run))]


def cpi(**shares: float) -> pl.DataFrame:
    rows = [(0, cause, round(1000 * share), share, share) for cause, share in shares.items()]
    return pl.DataFrame(rows, schema=["core", "cause", "cycles", "cpi", "share"], orient="row")


def test_a_kernel_is_limited_as_its_profile_says(tmp_path):
    first, *_ = sentences(kernel_run(tmp_path / "run"))
    assert first.startswith("stencil (1 ms): DRAM bandwidth: 81% of its peak while CTAs run")
    assert "most of its warps' cycles (70%) wait for global or local memory or texture" in first
    assert "DRAM moves 729 GB/s, 81% of its peak" in first
    assert "it reaches 81% of its roofline bound" in first


def test_page_faults_outweigh_what_kernels_do(tmp_path):
    rows = [
        ("uvm", "faults", "run", 50), ("uvm", "fault_batches", "run", 5), ("uvm", "stalled", "run", 9e11),
        ("uvm", "pages_faulted_in", "run", 50), ("uvm", "pages_prefetched", "run", 100),
        ("uvm", "prefetched_used", "run", 25), ("gpu", "duration", "k", 1e-3), ("gpu", "stall_fault", "k", 90.0),
    ]  # fmt: skip
    first, *_ = sentences(make_run(tmp_path / "run", rows))
    assert first.startswith("Page faults: for 900 us (90% of the simulated time)")
    assert "50 page faults were served in 5 batches" in first
    assert "100 were prefetched with them (25% of them used)" in first


def test_cores_that_wait_are_named_before_those_that_work(tmp_path):
    rows = [("core[0]", "cycles", "run", 1000), ("core[0]", "instructions", "run", 1500)]
    stack = cpi(base=0.3, dram=0.45, branch=0.05, idle=0.2)
    found = sentences(make_run(tmp_path / "run", rows, tables={"cpi_stack": stack}))
    assert found[0].startswith("45% of the cycles of 1 core went to 'dram': waiting for DRAM.")
    assert "IPC is 1.50" in found[0]
    assert any(
        "20% of the cycles of 1 core went to 'idle': without a thread to run" in text for text in found
    )


def test_cores_without_a_limit_are_said_to_have_none(tmp_path):
    rows = [("core[0]", "cycles", "run", 1000), ("core[0]", "instructions", "run", 3500)]
    run = make_run(tmp_path / "run", rows, tables={"cpi_stack": cpi(base=0.9, branch=0.1)})
    assert sentences(run) == [
        "Instructions: 90% of the cycles of 1 core commit at the width of the core, with nothing in particular in the "
        "way; IPC is 3.50 for each core."
    ]


def test_memory_that_is_saturated_is_a_limit(tmp_path):
    rows = [
        ("channel[0]", "read_bytes", "run", 9e6), ("channel[0]", "write_bytes", "run", 1e6),
        ("channel[0]", "bus_busy", "run", 9e11), ("channel[0]", "row_hits", "run", 30),
        ("channel[0]", "row_misses", "run", 10), ("channel[0]", "read_latency.count", "run", 4),
        ("channel[0]", "read_latency.mean", "run", 2e8), ("channel[0]", "queueing_delay.count", "run", 4),
        ("channel[0]", "queueing_delay.mean", "run", 1.5e8),
    ]  # fmt: skip
    (text,) = sentences(make_run(tmp_path / "run", rows))
    assert text == (
        "Memory bandwidth is nearly used up. The data buses of 1 DRAM channel are busy 90% of the time (10 GB/s); "
        "75% of bursts find their row open; a read takes 200 ns, 150 ns of it in queues."
    )


def test_ranks_that_communicate_more_than_they_compute(tmp_path):
    ranks = pl.DataFrame(
        {
            "rank": [0, 1], "node": [0, 1], "compute": [0.3e-3, 0.3e-3], "overhead": [0.1e-3, 0.1e-3],
            "waiting": [0.0, 0.0], "transfer": [0.6e-3, 0.6e-3], "end": [1e-3, 1e-3],
        }
    )  # fmt: skip
    links = pl.DataFrame(
        {
            "from": [0], "from_node": [True], "to": [3], "to_node": [False], "link": [0],
            "bytes": [10], "packets": [1], "busy": [0.8], "queueing": [0.0],
        }
    )  # fmt: skip
    run = make_run(tmp_path / "run", [], kind="network", tables={"ranks": ranks, "links": links})
    found = sentences(run)
    assert found[0].startswith("2 ranks spend 60% of their time waiting for messages on their way")
    assert any("bandwidth, latency and routes of the network decide" in text for text in found)
    assert any("(node 0 to switch 3) is busy 80% of the time" in text for text in found)


def test_imbalance_is_seen(tmp_path):
    ranks = pl.DataFrame(
        {
            "rank": [0, 1], "compute": [1e-3, 0.5e-3], "overhead": [0.0, 0.0], "waiting": [0.0, 0.5e-3],
            "transfer": [0.0, 0.0], "end": [1e-3, 1e-3],
        }
    )  # fmt: skip
    found = sentences(make_run(tmp_path / "run", [], tables={"ranks": ranks}))
    assert any("the busiest rank computes 1.33 times as long as the mean" in text for text in found)


def test_a_run_without_anything_still_gets_a_sentence(tmp_path):
    (text,) = sentences(make_run(tmp_path / "run", []))
    assert text.startswith("Nothing in the statistics")


def test_tables_of_another_shape_are_left_out_and_said_so(tmp_path):
    wrong = pl.DataFrame({"what": [1]})
    run = make_run(tmp_path / "run", [], tables={"ranks": wrong, "cpi_stack": wrong})
    evidence = Evidence(run)
    findings(evidence)
    assert any("ranks.parquet has no column" in trouble for trouble in evidence.troubles)
    (run.path / "links.parquet").write_bytes(b"PAR1 not really")
    evidence = Evidence(run)
    findings(evidence)
    assert any("links.parquet cannot be read" in trouble for trouble in evidence.troubles)
