# SPDX-License-Identifier: Apache-2.0
"""The GPU presets: their numbers, and latencies in cycles beside those published for the card."""

from __future__ import annotations

import pytest

from manyscale.machine import load_machine
from manyscale.machine.dram import dram_standard
from manyscale.machine.gpu_system import build_gpu
from manyscale.validation import gpu_micro
from manyscale.validation.gpu_target import GpuTarget

pytestmark = pytest.mark.core

FLOAT, INTEGER, DOUBLE = (
    lambda target, instruction=instruction: gpu_micro._instruction_latency(target, instruction)
    for instruction in (
        "fma.rn.f32 %f1, %f1, %f2, %f1;",
        "add.s32 %r2, %r2, %r1;",
        "fma.rn.f64 %d1, %d1, %d1, %d1;",
    )
)
# A ring of pointers that L1 holds, one that only L2 holds, and one that is never seen twice.
IN_L1, IN_L2, IN_MEMORY = (
    lambda target, ring=ring: gpu_micro._chase(target, **ring)
    for ring in (
        {"pointers": 64, "stride": 64, "loads": 128},
        {"pointers": 4096, "stride": 256, "loads": 2048},
        {"pointers": 768, "stride": 4096, "loads": 256},
    )
)
SHARED = gpu_micro._shared_latency


@pytest.mark.parametrize(
    ("machine", "measure", "published"),
    [
        # The Accel-Sim tuner's log of a Titan V.
        ("titanv", FLOAT, 4.12),
        ("titanv", DOUBLE, 8.06),
        ("titanv", SHARED, 27.0),
        ("titanv", IN_L1, 33.73),
        ("titanv", IN_L2, 211.07),
        ("titanv", IN_MEMORY, 313.46),
        # Jia et al., arXiv:1804.06826: Pascal's instructions, L1 of a P100; its L2 and shared memory are recalled.
        ("p100", FLOAT, 6),
        ("p100", INTEGER, 6),
        ("p100", SHARED, 24),
        ("p100", IN_L1, 82),
        ("p100", IN_L2, 234),
        # Luo et al., arXiv:2501.12084: A100 PCIe; L2 and memory are the mean of the near and the far partition.
        ("a100", FLOAT, 4),
        ("a100", SHARED, 30),
        ("a100", IN_L1, 32.5),
        ("a100", IN_L2, (208.0 + 356.6) / 2),
        ("a100", IN_MEMORY, (474.9 + 622.7) / 2),
        # RRZE-HPC gpu-benches, gpu-latency: an A40 at 1740 MHz, whose times are those of an A6000's 1800 MHz.
        ("a6000", IN_L1, 33),
        ("a6000", IN_L2, 250.4 * 1.8 / 1.74),
        ("a6000", IN_MEMORY, 547 * 1.8 / 1.74),
        # Luo et al., arXiv:2501.12084; the L1 is that of an L40 (gpu-benches).
        ("rtx4090", IN_L1, 34),
        ("rtx4090", IN_L2, 273),
        ("rtx4090", IN_MEMORY, 571),
        # Jia et al., arXiv:1903.07486 (recalled); memory is that of an RTX 2080 Ti (mt4g).
        ("t4", IN_L1, 32),
        ("t4", IN_L2, 188),
        ("t4", IN_MEMORY, 496),
    ],
)
def test_latencies_are_near_the_published_ones(machine, measure, published):
    one_sm = load_machine(machine, ["gpu.sm_count=1"]).machine
    cycles = measure(GpuTarget(one_sm))
    assert cycles == pytest.approx(published, rel=0.04), f"{cycles:.1f} cycles"


@pytest.mark.parametrize(
    ("machine", "sms", "slices", "capacity", "channels", "peak"),
    [
        ("titanv", 80, 48, 4.5 * 2**20, 24, 652.8e9),
        ("gv100", 80, 64, 6 * 2**20, 32, 870.4e9),
        ("p100", 56, 8, 4 * 2**20, 32, 732.2e9),
        ("a100", 108, 80, 40 * 2**20, 80, 1555.2e9),
        ("v100", 80, 64, 6 * 2**20, 32, 898.0e9),
        ("v100-pcie", 80, 64, 6 * 2**20, 32, 898.0e9),
        ("a100-80gb", 108, 80, 40 * 2**20, 80, 2039e9),
        ("t4", 40, 32, 4 * 2**20, 16, 320e9),
        ("a10", 72, 48, 6 * 2**20, 24, 600e9),
        ("a6000", 84, 48, 6 * 2**20, 24, 768e9),
        ("rtx3070", 46, 32, 4 * 2**20, 16, 448e9),
        ("rtx3080", 68, 40, 5 * 2**20, 20, 760e9),
        ("rtx4090", 128, 48, 72 * 2**20, 24, 1008e9),
        ("l4", 58, 24, 48 * 2**20, 12, 300e9),
        ("v100-sst", 84, 32, 6 * 2**20, 32, 898.0e9),
        ("sst-gpu-listing1", 80, 32, 6 * 2**20, 16, 512e9),
    ],
)
def test_the_chips_have_the_sizes_of_the_cards(machine, sms, slices, capacity, channels, peak):
    description = load_machine(machine).machine.gpu
    parts = build_gpu(load_machine(machine).machine)
    counts = [
        sum(name.startswith(f"{kind}[") for name in parts.system.components)
        for kind in ("sm", "slice", "channel")
    ]
    assert counts == [sms, slices, channels]
    assert description.l2_slices * description.l2_slice_capacity == capacity
    channel = parts.system.components["channel[0]"].spec
    bandwidth = channels * channel.burst_bytes / channel.burst_cycles * channel.clock
    assert bandwidth == pytest.approx(peak, rel=0.001)
    rows = channel.bank_groups * channel.banks * channel.ranks * channel.rows * channel.row_bytes
    assert (
        rows * channels >= description.memory.capacity // 2
    )  # Listing 1 prints half as many channels as it has room


def test_a_pascal_sm_has_two_sub_cores_and_memories_apart():
    sm = build_gpu(load_machine("p100").machine).sms[0].spec
    assert (sm.sub_cores, sm.timing.fp32.interval, sm.timing.fp64.interval) == (2, 1, 2)
    assert sm.l1.size == sm.l1.least == 24 * 1024
    assert load_machine("p100").machine.gpu.scheduler.limits.shared == 64 * 1024


@pytest.mark.parametrize("name", ["hbm2-titanv", "hbm2-p100", "hbm2-a100"])
def test_the_channels_have_their_sources(name):
    standard = dram_standard(name)
    assert set(standard.sources) == set(type(standard.channel).model_fields)
    assert all(len(source) > 10 for source in standard.sources.values())
