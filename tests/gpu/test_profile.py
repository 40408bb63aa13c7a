# SPDX-License-Identifier: Apache-2.0
"""Profiles of kernels: counts made by hand, stacks that add up, and kernels that are each bound by one thing."""

import functools
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bound_kernels import BOUNDS, HEAD, SMALL, Bound, source, words

from manyscale import InputError, _core, gpu, load_machine

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"
WARPS = 16 * 8


def device(*changes, **options):
    options = {"isa": "ptx", "allow_newer": True, **options}
    return gpu.TimedDevice(load_machine("v100-sst", [*SMALL, *changes]).machine, **options)


def launched(bound: Bound, **options) -> gpu.TimedLaunch:
    on = device(*bound.changes, **options)
    return on.load(bound.source)["k"][bound.grid, bound.block](words(on, bound), bound.times)


@functools.cache
def profile_of(name: str) -> gpu.KernelProfile:
    return launched(BOUNDS[name]).profile


def profile(body, begin="", *, end="", times=1, words=1 << 18, shared=1):
    """Of a kernel of 16 blocks of 8 warps."""
    return launched(Bound("", source(body, begin, end, shared), times=times, words=words)).profile


# --- Counts by hand ---


def test_words_side_by_side_touch_four_sectors_and_move_once():
    on_memory = profile("ld.global.u32 %x1,[%a]; st.global.u32 [%a],%x1;")
    counted = on_memory.counts.sm
    assert (counted["global_requests"], counted["global_sectors"]) == (2 * WARPS, 8 * WARPS)
    assert (counted["l1_hits"], counted["l1_misses"]) == (0, 4 * WARPS)
    assert on_memory["sectors_per_request"] == 4
    assert on_memory["sector_bytes_used"] == 100
    assert on_memory["l2_bytes"] == 2 * 128 * WARPS
    assert on_memory["dram_read_bytes"] == 128 * WARPS
    assert on_memory["l2_hit_rate"] == 50  # the reads miss, the writes find the line there


def test_words_far_apart_touch_a_sector_each():
    apart = profile("ld.volatile.global.u32 %x1,[%e];", "mul.wide.u32 %e,%i,32; add.s64 %e,%data,%e;")
    assert apart["sectors_per_request"] == 32
    assert apart["sector_bytes_used"] == pytest.approx(100 * 4 / 32)
    assert apart["dram_read_bytes"] == 32 * 32 * WARPS


def test_what_is_read_again_is_in_l1():
    """Of three loads of a word the first misses; the others need its value for their address, so it is there."""
    again = profile(
        "ld.volatile.global.u32 %x1,[%a]; mul.wide.u32 %e,%x1,4; add.s64 %e,%a,%e; ld.volatile.global.u32 %x2,[%e];"
        "mul.wide.u32 %e,%x2,4; add.s64 %e,%a,%e; ld.volatile.global.u32 %x3,[%e];"
    )
    assert (again.counts.sm["l1_hits"], again.counts.sm["l1_misses"]) == (8 * WARPS, 4 * WARPS)
    assert again["l1_hit_rate"] == pytest.approx(100 * 2 / 3)


def test_a_second_launch_finds_all_in_l2_and_is_counted_by_itself():
    on = device()
    data = on.zeros(1 << 14, np.uint32)
    kernel = on.load(source("ld.volatile.global.u32 %x1,[%a];"))["k"]
    first, second = (kernel[16, 256](data, 1).profile for _ in range(2))
    assert (first["l2_hit_rate"], second["l2_hit_rate"]) == (0, 100)
    assert first["l2_bytes"] == second["l2_bytes"] == 128 * WARPS
    assert second["dram_read_bytes"] == 0
    assert first.counts.sm["warp_instructions"] == second.counts.sm["warp_instructions"]


@pytest.mark.parametrize(
    ("stride", "load", "passes", "conflicts"),
    [
        (4, "ld.shared.u32 %x2", 1, 0),
        (8, "ld.shared.u32 %x2", 2, 1),
        (12, "ld.shared.u32 %x2", 1, 0),
        (128, "ld.shared.u32 %x2", 32, 31),
        (0, "ld.shared.u32 %x2", 1, 0),
        (16, "ld.shared.v4.u32 {%x2,%x3,%x4,%x5}", 4, 0),
    ],
)
def test_passes_over_banks(stride, load, passes, conflicts):
    begin = f"mov.u32 %x1,words; and.b32 %x2,%t,31; mad.lo.u32 %x1,%x2,{stride},%x1;"
    shared = profile(f"{load},[%x1];", begin, times=3, shared=1024)
    assert shared["shared_wavefronts_per_request"] == passes
    assert shared["shared_conflicts"] == 3 * conflicts * WARPS


def test_instructions_are_all_counted():
    """Eleven instructions once, and five in each of four rounds; the first of a round has the head of the loop too."""
    straight = profile("mul.lo.u32 %x1,%i,%m; mul.lo.u32 %x2,%x1,%t;", end="st.global.u32 [%a],%x2;", times=4)
    assert straight["warp_instructions"] == (11 + 4 * 5) * WARPS
    assert straight["thread_instructions"] == 32 * straight["warp_instructions"]
    table = straight.operations
    assert table.filter(text="mul.lo.u32")["issued"].to_list() == [2 * 4 * WARPS, 4 * WARPS]
    assert (
        table["issued"].sum() == straight["issued_instructions"] == straight.counts.sm["issued_instructions"]
    )


@pytest.mark.parametrize(
    ("instruction", "precision", "flops"),
    [
        ("fma.rn.f32 %f1,%f1,%f1,%f1;", "fp32", 2),
        ("add.f32 %f1,%f1,%f1;", "fp32", 1),
        ("mul.f64 %d1,%d1,%d1;", "fp64", 1),
        ("fma.rn.f64 %d1,%d1,%d1,%d1;", "fp64", 2),
        ("fma.rn.f16x2 %x1,%x1,%x1,%x1;", "fp16", 4),
        ("add.u32 %x1,%x1,%x1;", "fp32", 0),
    ],
)
def test_flops_by_precision(instruction, precision, flops):
    counted = profile(instruction * 5, times=2)
    assert counted[f"flops_{precision}"] == flops * 5 * 2 * 32 * WARPS
    assert sum(counted.counts.flops.values()) == counted[f"flops_{precision}"]


def test_flops_of_tensor_cores():
    """m16n8k16: 16 x 8 x 16 products and as many sums for each warp."""
    text = (
        HEAD.replace("sm_70", "sm_80")
        + """.visible .entry k() { .reg .f32 %f<4>; .reg .b32 %a<4>; .reg .b32 %b<2>;
 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%a0,%a1,%a2,%a3},{%b0,%b1},{%f0,%f1,%f2,%f3};
 ret; }"""
    )
    launch = device().load(text)["k"][4, 64]()
    assert launch.profile["flops_tensor"] == 2 * 16 * 8 * 16 * 8
    assert launch.profile.roofline.peak == pytest.approx(4 * 4 * 512 / 4 * 1.312e9)


def test_the_roofline_is_that_of_the_machine():
    """16 fused products for each word that is read: 32 flop on 4 bytes, which is below the ceiling of DRAM."""
    roofs = profile("ld.global.f32 %f1,[%a];" + "fma.rn.f32 %f1,%f1,%f1,%f1;" * 16).roofline
    counts = profile_of("fp32").counts
    channels = 32
    assert counts.peaks.flops["fp32"] == pytest.approx(4 * 64 * 2 * 1.312e9)
    assert counts.peaks.flops["fp64"] == pytest.approx(4 * 32 * 2 * 1.312e9)
    assert counts.peaks.l2_bytes == pytest.approx(4 * 64 * 1.008e9)
    assert counts.peaks.dram_bytes == pytest.approx(channels * 32 * 877e6)
    assert (roofs.arithmetic_intensity_dram, roofs.arithmetic_intensity_l2) == (8, 8)
    assert roofs.bound == pytest.approx(min(4 * 64 * 2 * 1.312e9, 8 * 4 * 64 * 1.008e9))
    assert roofs.percent == pytest.approx(100 * roofs.flops_per_second / roofs.bound)


def test_a_kernel_that_is_compute_bound():
    assert profile_of("fp32").roofline.bound_by == "compute"
    assert 60 < profile_of("fp32")["roofline"] < 100
    assert profile_of("fp64").roofline.peak == profile_of("fp64").counts.peaks.flops["fp64"]


def test_occupancy_is_that_of_the_warps_that_are_there():
    """One block of 32 warps on each SM, which take turns to the end."""
    long = launched(
        Bound(
            "",
            source("fma.rn.f32 %f1,%f1,%f1,%f1;" * 500),
            grid=4,
            block=1024,
            times=1,
            changes=("gpu.sm.scheduler=lrr",),
        )
    ).profile
    assert long["theoretical_occupancy"] == 100
    assert long["achieved_occupancy"] == pytest.approx(50, rel=0.03)
    assert long["waves_per_sm"] == 0.5
    assert long["sm_active_cycles"] == pytest.approx(8 * 500 * 2, rel=0.1)  # 8 warps on a unit of 2 cycles


@pytest.mark.parametrize("name", BOUNDS)
def test_stalls_add_up_to_all_cycles_of_warps(name):
    one = profile_of(name)
    cycles = one.counts.sm["warp_cycles"]
    assert one.stalls["cycles"].sum() == cycles > 0
    assert one.stalls["percent"].sum() == pytest.approx(100)
    assert one.stalls["warps"].sum() == pytest.approx(one["achieved_occupancy"] / 100 * 64)
    assert set(one.counts.sm) >= {
        f"stall_{reason}" for reason in one.stalls["reason"] if reason != "selected"
    }
    assert one.operations["cycles"].sum() == cycles - one.counts.sm["stall_drain"]


def test_totals_are_those_of_the_table_of_statistics():
    on = device()
    on.load(BOUNDS["fp32"].source)["k"][4, 64](on.zeros(256, np.uint32), 1)
    slices = [on.parts.system.components[f"slice[{i}]"].native for i in range(4)]
    totals = _core.counter_totals(slices)
    rows = on.result.stats.filter(pl.col("component").str.starts_with("slice["), pl.col("kind") == "counter")
    assert totals == dict(rows.group_by("statistic").agg(pl.col("count").sum()).iter_rows())
    assert totals["writes"] == 8
    assert _core.counter_totals([]) == {}


# --- What limits a kernel ---


@pytest.mark.parametrize("name", BOUNDS)
def test_what_limits_a_kernel_is_found(name):
    limit = profile_of(name).limit
    assert limit.kind == BOUNDS[name].kind, str(limit)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("latency", r"^memory latency: \d\d% of warp cycles wait for global.* at \d% of DRAM bandwidth"),
        ("latency", "occupancy 12% is limited by shared memory"),
        ("registers", r"occupancy 25% is limited by registers \(\d+ a thread\)"),
        ("conflicts", "with 32.0 wavefronts for each request, 97% of them due to bank conflicts"),
        ("few CTAs", "a grid of 1 gives work to 1 of 4 SMs; SMs have a CTA 2[45]% of the time"),
        ("fetch", "the program has 11 KiB of instructions, a sub-core's cache 1 KiB"),
        (
            "short blocks",
            "8.0 of 32 threads take part in an instruction, since blocks of 8 threads do not fill",
        ),
    ],
)
def test_the_explanation_has_its_evidence(name, words):
    assert re.search(words, str(profile_of(name).limit)), str(profile_of(name).limit)


# --- Where ---


def test_hot_lines_name_the_source_where_there_is_one():
    body = "ld.global.u32 %x1,[%a];\n .loc 1 7 3\n mul.lo.u32 %x2,%x1,%x1;\n .loc 1 9 3\n"
    text = source(body, end="st.global.u32 [%a],%x2;").replace(
        ".visible", '.file 1 "/home/somebody/wait.cu"\n.visible'
    )
    hot = launched(Bound("", text)).profile.hot_lines(3)
    assert hot["location"][0] == "wait.cu:7"
    assert hot["reason"][0] == "Long Scoreboard, LG Throttle"
    assert hot["text"][0] == "mul.lo.u32"
    assert hot["percent"][0] > 40


def test_hot_lines_of_what_a_compiler_wrote():
    """The line of vector_add.cu that adds waits for what it has loaded."""
    on = device()
    x = on.zeros(4096)
    module = on.load(FIXTURES / "sm_75-lineinfo" / "vector_add.ptx")
    hot = module["vector_add"][16, 256](x, x, x, 4096).profile.hot_lines(1)
    name, line = hot["location"][0].split(":")
    assert name == "vector_add.cu"
    assert "+" in (FIXTURES.parents[0] / "programs" / name).read_text().splitlines()[int(line) - 1]


def test_hot_lines_fall_back_to_the_ptx():
    body = "ld.global.u32 %x1,[%a]; mul.lo.u32 %x2,%x1,%x1;"
    hot = profile(body, end="st.global.u32 [%a],%x2;", times=8).hot_lines()
    assert hot["location"].to_list()[0] == "PTX line 16"
    assert hot.height <= 10
    assert hot["cycles"].is_sorted(descending=True)


def test_hot_instructions_are_single_ones():
    hot = profile_of("barrier").hot_instructions(2)
    assert hot["text"][0] == "bar.sync"
    assert hot["reason"][0] == "Short Scoreboard, Barrier"
    assert hot.height == 2


# --- As people see it ---


def test_metrics_have_units_and_meanings_and_the_names_of_nsight_compute():
    metrics = profile_of("fp32").metrics
    assert all(metric.unit and metric.doc and metric.name == name for name, metric in metrics.items())
    assert metrics["achieved_occupancy"].nsight == "sm__warps_active.avg.pct_of_peak_sustained_active"
    assert str(metrics["l1_hit_rate"]) == "-"
    assert str(metrics["pipe_fma"]).endswith("%")
    with pytest.raises(InputError, match="there is no metric 'icp'; did you mean 'ipc'"):
        profile_of("fp32")["icp"]


def test_it_is_shown_in_words_and_in_notebooks():
    shown = profile_of("latency")
    assert "limited by memory latency" in repr(shown)
    page = shown._repr_html_()
    assert page.count("<table>") == 3
    assert "PTX line 16" in page
    assert "memory latency" in page


def test_names_are_escaped_in_notebooks():
    text = (
        BOUNDS["launch"]
        .source.replace(".visible", '.file 1 "<b>.cu"\n.visible')
        .replace("AGAIN:", "AGAIN:\n.loc 1 1 1")
    )
    assert "<b>" not in launched(Bound("", text, times=1)).profile._repr_html_()


def test_threads_do_not_show():
    one, two = (launched(BOUNDS["l2"], threads=threads).profile for threads in (1, 2))
    assert one.metrics == two.metrics
    assert one.operations.equals(two.operations)


def test_a_kernel_that_waits_for_nothing_can_be_profiled():
    launch = device().load(HEAD + ".visible .entry k() { ret; }")["k"][1, 1]()
    assert launch.profile["flops_fp32"] == 0
    assert launch.profile["roofline"] is None
    assert launch.profile["sectors_per_request"] is None
    assert launch.profile.limit.kind == "launch overhead"
    assert launch.profile.hot_lines().height == 1
