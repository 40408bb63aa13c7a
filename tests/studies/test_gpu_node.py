# SPDX-License-Identifier: Apache-2.0
"""Nodes with GPUs: phases of kernels from the model of the GPU, and what joins the GPUs."""

import numpy as np
import pytest

from manyscale.errors import InputError
from manyscale.network import Job, cluster, compile, motif
from manyscale.studies.gpu_node import LINKS, GpuNode, measure

pytestmark = pytest.mark.core

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 into, .param .u32 turns)
{
 .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<4>;
 ld.param.u64 %d1,[into]; ld.param.u32 %r4,[turns];
 mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.s32 %r1,%r1,%r2,%r3;
 mul.wide.s32 %d2,%r1,4; add.s64 %d3,%d1,%d2; mov.u32 %r2,0;
AGAIN:
 add.s32 %r2,%r2,1; sub.s32 %r4,%r4,1; setp.gt.s32 %p,%r4,0;
 @%p bra AGAIN;
 st.global.u32 [%d3],%r2;
 ret;
}
"""
CTAS, THREADS = 16, 1024


def program(device):
    """Two kinds of phases: the first of 100 and 300 turns in turn, the second longer from step to step."""
    kernel = device.load(PTX)["count"]
    array = device.zeros(CTAS * THREADS, np.uint32)
    steps = iter(range(100))

    def step(clock):
        for turns in (100, 300):
            with clock.phase("forward"):
                kernel[CTAS, THREADS](array, turns)
        with clock.phase("backward"):
            kernel[CTAS, THREADS](array, 100 + 20 * next(steps))
        with clock.phase("update"):
            array.copy_from(np.zeros(CTAS * THREADS, np.uint32))

    return step


@pytest.fixture(scope="module")
def timings():
    return measure(program, machine="v100", sm_counts=(8, 4), steps=6)


def test_a_gpu_of_half_the_sms_takes_twice_as_long(timings):
    """16 CTAs of 32 warps: two rounds on 4 SMs, one on 8, of which each holds two."""
    assert sorted(timings.profiles) == [4, 8]
    long = {count: profile["forward"].pattern.clusters[0].mean for count, profile in timings.profiles.items()}
    assert 1.3 < long[4] / long[8] < 2.2
    assert timings.profiles[8]["update"].mean == pytest.approx(timings.profiles[4]["update"].mean, rel=0.2)


def test_phases_come_in_their_pattern_and_vary(timings):
    forward, backward = (timings.profiles[8][name] for name in ("forward", "backward"))
    assert forward.samples == 12
    assert forward.pattern.order == (1, 0)
    first, second = (forward.pattern.clusters[index].mean for index in (1, 0))
    assert second > 1.5 * first
    assert backward.samples == 6
    cluster_of_all = backward.pattern.clusters[0]
    assert cluster_of_all.high.max() > 1.1 * cluster_of_all.low.min()


def step_time(timings, nodes, node, variant="variable", **parameters):
    skeleton = motif("gputraining", layers=2, steps=1, staging=node.staging, **parameters)
    timed = timings.on_gpus(skeleton, node, nodes, variant)
    fabric = cluster("omnipath", node.changes, nodes=nodes, ranks_per_node=node.gpus)
    return Job(compile(timed.emit, nodes * node.gpus), fabric, seed=3).run().simulated_seconds


def test_one_gpu_takes_the_sum_of_its_phases(timings):
    profile = timings.profiles[8]
    expected = 2 * profile["forward"].mean + 2 * profile["backward"].mean + profile["update"].mean
    assert step_time(timings, 1, GpuNode(gpus=1), "constant") == pytest.approx(expected, rel=0.01)


def test_the_slower_gpus_of_a_node_decide(timings):
    """With 4 and 8 SMs in turn, all wait for those of 4."""
    slow, fast = timings.profiles[4], timings.profiles[8]
    expected = 2 * slow["forward"].mean + 2 * slow["backward"].mean
    mixed = step_time(timings, 1, GpuNode(gpus=2), "constant", layer="1B")
    assert expected < mixed < expected + fast["update"].mean + 30e-6


def test_a_slower_link_takes_longer(timings):
    """A reduction of 8 MiB between two GPUs moves at least that much over their link in each direction."""
    times = {
        link: step_time(timings, 1, GpuNode(gpus=2, link=link), "constant", layer="8MiB") for link in LINKS
    }
    assert times["pcie"] - times["nvlink"] > 8 * 2**20 * (1 / 12e9 - 1 / 50e9)


def test_mistakes_are_explained(timings):
    with pytest.raises(InputError, match="no link 'ethernet'"):
        GpuNode(link="ethernet")
    with pytest.raises(InputError, match="'direct' or 'staged'"):
        GpuNode(staging="both")
    with pytest.raises(InputError, match="1 to 1024 GPUs"):
        GpuNode(gpus=0)
    with pytest.raises(InputError, match="at least one is needed"):
        measure(program, steps=0)
    with pytest.raises(InputError, match="no phases"):
        measure(lambda device: lambda clock: None, changes=["gpu.sm_count=4"])
    # The copies of a staged reduction were not measured.
    with pytest.raises(InputError, match="no site 'to_host'"):
        step_time(timings, 1, GpuNode(staging="staged"))
