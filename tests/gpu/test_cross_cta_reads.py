# SPDX-License-Identifier: Apache-2.0
"""Kernels whose CTAs may read what others store run in one partition; those that cannot are divided as before."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from instruction_support import HEADER

from manyscale import gpu, load_machine

pytestmark = pytest.mark.core

GRAPH = Path(__file__).parent / "fixtures" / "sm_60" / "graph_steps.ptx"
GRID, BLOCK = 8, 64
N = GRID * BLOCK
# %i is the thread in the grid; %a, %b, %c are pointers, %pa, %pb, %pc point to the thread's own elements.
START = """
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u32 %n, [n];
    mov.u32 %cta, %ctaid.x; mov.u32 %size, %ntid.x; mov.u32 %t, %tid.x;
    mad.lo.s32 %i, %cta, %size, %t;
    mul.wide.s32 %o, %i, 4;
    add.s64 %pa, %a, %o; add.s64 %pb, %b, %o; add.s64 %pc, %c, %o;
"""
CLEAN = {
    "vector add": "ld.global.f32 %x, [%pa]; ld.global.f32 %y, [%pb]; add.f32 %x, %x, %y; st.global.f32 [%pc], %x;",
    "saxpy in place": "ld.global.f32 %x, [%pa]; ld.global.f32 %y, [%pb]; fma.rn.f32 %y, %x, %x, %y;"
    " st.global.f32 [%pb], %y;",
    "in place, address computed twice": "ld.global.f32 %y, [%pb]; mul.wide.s32 %p, %i, 4; add.s64 %q, %b, %p;"
    " st.global.f32 [%q], %y;",
    "stencil to another allocation": "ld.global.f32 %x, [%pa]; ld.global.f32 %y, [%pa+4]; add.f32 %x, %x, %y;"
    " st.global.f32 [%pb], %x;",
    "two parts of a structure": "mul.wide.s32 %p, %i, 8; add.s64 %q, %a, %p; ld.global.f32 %x, [%q+4];"
    " st.global.f32 [%q], %x;",
    "histogram without results": "ld.global.u32 %r, [%pa]; mul.wide.u32 %p, %r, 4; add.s64 %q, %b, %p;"
    " red.global.add.u32 [%q], 1;",
    "reduction in shared memory": "ld.global.f32 %x, [%pa]; mul.lo.u32 %r, %t, 4; mov.u32 %s, tile;"
    " add.u32 %s, %s, %r; st.shared.f32 [%s], %x; bar.sync 0; ld.shared.f32 %y, [tile];"
    " mul.wide.u32 %p, %cta, 4; add.s64 %q, %b, %p; st.global.f32 [%q], %y;",
    "transpose": "div.s32 %r, %i, %n; rem.s32 %s, %i, %n; mad.lo.s32 %r, %s, %n, %r; mul.wide.s32 %p, %r, 4;"
    " add.s64 %q, %b, %p; ld.global.f32 %x, [%pa]; st.global.f32 [%q], %x;",
    "in place by rows and columns": "div.s32 %r, %i, %n; rem.s32 %s, %i, %n; mad.lo.s32 %r, %r, %n, %s;"
    " mul.wide.s32 %p, %r, 4; add.s64 %q, %b, %p; ld.global.f32 %x, [%q]; st.global.f32 [%q], %x;",
    "in place, the index is written again": "ld.global.u32 %i, [%pa]; st.global.u32 [%pa], %i;",
    "read-only loads": "ld.global.nc.f32 %x, [%pa+4]; st.global.f32 [%pa], %x;",
    "the same value to all": "ld.global.f32 %x, [%pa]; mov.u32 %r, 1; st.global.u32 [%b], %r;",
    "variables": "ld.global.u32 %r, [first]; mov.u64 %p, second; add.s64 %q, %p, %o; st.global.u32 [%q], %r;",
}
RACY = {
    "neighbour in place": "ld.global.f32 %x, [%pa+4]; st.global.f32 [%pa], %x;",
    "index from memory": "ld.global.u32 %r, [%pb]; mul.wide.u32 %p, %r, 4; add.s64 %q, %a, %p;"
    " ld.global.u32 %s, [%q]; add.u32 %s, %s, 1; st.global.u32 [%q], %s;",
    "a flag of all": "ld.global.u32 %r, [%b]; add.u32 %r, %r, 1; st.global.u32 [%b], %r;",
    "one element for several CTAs": "rem.s32 %r, %i, %n; mul.wide.s32 %p, %r, 4; add.s64 %q, %b, %p;"
    " ld.global.u32 %s, [%q]; add.u32 %s, %s, 1; st.global.u32 [%q], %s;",
    "a pointer from memory": "ld.global.u64 %p, [%a]; add.s64 %q, %p, %o; ld.global.f32 %x, [%q];"
    " st.global.f32 [%pb], %x;",
    "a store through a pointer from memory": "ld.global.u64 %p, [%a]; add.s64 %q, %p, %o;"
    " ld.global.f32 %x, [%pb]; st.global.f32 [%q], %x;",
    "reduction without result": "ld.global.u32 %r, [%pa]; mul.wide.u32 %p, %r, 4; add.s64 %q, %a, %p;"
    " red.global.min.u32 [%q], 1;",
    "one variable": "ld.global.u32 %r, [second+4]; mov.u64 %p, second; add.s64 %q, %p, %o; st.global.u32 [%q], %r;",
    "the pointer has moved on": "ld.global.f32 %x, [%pa]; add.s64 %pa, %pa, 4; st.global.f32 [%pa], %x;",
}


def source(body: str) -> str:
    return f"""{HEADER}
.global .align 4 .b8 first[4];
.global .align 4 .b8 second[{4 * N + 8}];
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{{
    .reg .b64 %a, %b, %c, %o, %pa, %pb, %pc, %p, %q;
    .reg .b32 %cta, %size, %t, %i, %n, %r, %s;
    .reg .f32 %x, %y;
    .shared .align 4 .b8 tile[{4 * BLOCK}];
    {START}
    {body}
    ret;
}}"""


def small(threads: int = 1) -> gpu.TimedDevice:
    machine = load_machine("v100", ["gpu.sm_count=8", "gpu.l2_slices=4"]).machine
    return gpu.TimedDevice(machine, allow_newer=True, threads=threads, isa="ptx")


def order_matters(body: str, grid: object = GRID, shared: bool = False) -> bool:
    """Of a launch whose three pointers are to three arrays, or all to one."""
    device = small()
    arrays = [device.zeros(2 * N, np.uint64) for _ in range(1 if shared else 3)] * (3 if shared else 1)
    kernel = device.load(source(body))["kernel"]
    return kernel[grid, BLOCK, 0, device.stream()](*arrays, 16).order_matters


@pytest.mark.parametrize("name", CLEAN)
def test_kernels_without_cross_cta_reads_keep_their_partitions(name: str) -> None:
    assert not order_matters(CLEAN[name])


@pytest.mark.parametrize("name", RACY)
def test_kernels_with_cross_cta_reads_need_one_partition(name: str) -> None:
    assert order_matters(RACY[name])


def test_the_arrays_of_the_launch_decide() -> None:
    """A stencil from one array to another is safe; onto itself it is not."""
    assert not order_matters(CLEAN["stencil to another allocation"])
    assert order_matters(CLEAN["stencil to another allocation"], shared=True)


def test_one_cta_reads_only_what_it_stores() -> None:
    assert not order_matters(RACY["neighbour in place"], grid=1)


def test_all_axes_of_the_grid_count() -> None:
    """CTAs of one column have the same %ctaid.x, so that they update the same elements."""
    assert order_matters(CLEAN["saxpy in place"], grid=(4, 2))


@pytest.mark.parametrize(("kernel", "arrays"), [("shorten", 1), ("hook", 4)])
def test_steps_over_graphs_need_one_partition(kernel: str, arrays: int) -> None:
    device = small()
    arguments = [device.zeros(N, np.int32) for _ in range(arrays)]
    launched = device.load(GRAPH)[kernel][GRID, BLOCK, 0, device.stream()]
    assert launched(*arguments, N).order_matters


@pytest.mark.parametrize("kernel", ["pagerank_pull"])
def test_a_step_from_one_array_to_another_keeps_its_partitions(kernel: str) -> None:
    device = small()
    arguments = [device.zeros(N, kind) for kind in (np.int32, np.int32, np.int32, np.float32, np.float32)]
    launched = device.load(GRAPH)[kernel][GRID, BLOCK, 0, device.stream()]
    assert not launched(*arguments, 0.5, N - 1).order_matters


def test_races_give_the_same_statistics_on_any_number_of_threads() -> None:
    """Chains of labels across CTAs: what a load finds depends on which stores came before it."""
    nodes = 4096
    chains = np.maximum(np.arange(nodes, dtype=np.int32) - 1, 0)
    chains[::512] = np.arange(nodes, dtype=np.int32)[::512]
    seen = set()
    for threads in (1, 2, 4) * 3:
        device = gpu.TimedDevice("v100", threads=threads, allow_newer=True, isa="ptx")
        labels = device.array(chains)
        launch = device.load(GRAPH)["shorten"][nodes // 64, 64](labels, nodes)
        assert device.result is not None
        rows = repr(device.result.stats.rows()).encode()
        seen.add((launch.cycles, hashlib.sha256(rows).hexdigest(), labels.numpy().tobytes()))
    assert len(seen) == 1


def test_functional_runs_of_races_give_the_same_values() -> None:
    """Each element becomes its neighbour's value; which value that is depends on the order of CTAs."""
    values = np.arange(4 * N, dtype=np.uint32)
    results = set()
    for threads in (1, 4) * 3:
        device = gpu.Device(threads=threads)
        array = device.array(values)
        device.load(source(RACY["neighbour in place"]))["kernel"][GRID, BLOCK](array, array, array, 1)
        results.add(array.numpy().tobytes())
    assert len(results) == 1
