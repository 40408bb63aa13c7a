# SPDX-License-Identifier: Apache-2.0
"""The GPU with time: gates of single instructions in closed form, published latencies, and the same on any threads."""

from pathlib import Path

import numpy as np
import pytest

from manyscale import InputError, KernelError, gpu, identical, load_machine
from manyscale.gpu import command_queue

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"

SMALL = ["gpu.sm_count=4", "gpu.l2_slices=4"]

CHAIN = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 next)
{{
 .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %o, %n, %t<4>; .reg .f32 %f<3>; .reg .f64 %d<2>;
 .shared .align 8 .b32 words[64];
 ld.param.u64 %o,[out]; ld.param.u64 %n,[next];
 mov.u32 %r1,%tid.x; mov.u32 %r2,0; cvt.rn.f32.u32 %f1,%r1; mov.f32 %f2,0f3F000000; cvt.rn.f64.u32 %d1,%r1;
 mov.u32 %r3,words; st.shared.u32 [%r3],%r3;
AGAIN:
 mov.u64 %t1,%clock64;
 {chain}
 mov.u64 %t2,%clock64;
 add.s32 %r2,%r2,1; setp.lt.s32 %p,%r2,3;
 @%p bra AGAIN;
 sub.s64 %t3,%t2,%t1;
 st.global.u64 [%o],%t3; st.global.f32 [%o+8],%f1; st.global.f64 [%o+16],%d1; st.global.u32 [%o+24],%r1;
 st.global.u64 [%o+32],%n; st.global.u32 [%o+40],%r3;
 ret;
}}
"""
REPEATED = 64


def device(*changes, machine="v100", **options):
    options = {"isa": "ptx", "allow_newer": True, **options}
    return gpu.TimedDevice(load_machine(machine, [*SMALL, *changes]).machine, **options)


def cycles_of(instruction, *changes, ring=None, machine="v100"):
    """Cycles of one instruction in a chain of equal ones, each of which needs the result of the one before."""
    on = device(*changes, machine=machine)
    out, chased = on.zeros(8, np.uint64), on.empty(len(ring) if ring is not None else 1, np.uint64)
    chased.set(chased.address + 8 * ring if ring is not None else np.zeros(1))
    on.load(CHAIN.format(chain=instruction * REPEATED))["k"][1, 1](out, chased)
    return out.numpy()[0] / REPEATED


@pytest.mark.parametrize(
    ("instruction", "kind", "default"),
    [
        ("add.f32 %f1,%f1,%f2;", "fp32", 4),
        ("fma.rn.f32 %f1,%f1,%f2,%f1;", "fp32", 4),
        ("add.s32 %r1,%r1,%r1;", "integer", 4),
        ("mad.lo.s32 %r1,%r1,%r1,%r1;", "multiply_add", 5),
        ("fma.rn.f64 %d1,%d1,%d1,%d1;", "fp64", 8),
    ],
)
@pytest.mark.parametrize("change", [0, 3])
def test_a_chain_takes_the_latency_of_its_kind_each(instruction, kind, default, change):
    """n dependent instructions take n latencies, the last of which the clock does not see: exact to a cycle in all."""
    latency = default + change
    measured = cycles_of(instruction, f"gpu.sm.timing.{kind}.latency={latency}")
    assert measured == pytest.approx(latency, abs=latency / REPEATED + 0.02)


def test_shared_memory_takes_its_latency():
    assert cycles_of("ld.shared.u32 %r3,[%r3];") == pytest.approx(19, abs=0.5)


@pytest.mark.parametrize(
    ("elements", "stride", "published"),
    [(64, 1, 28), (1 << 16, 16 * 61, 212)],
    ids=["hit in L1", "hit in L2"],
)
def test_published_latencies(elements, stride, published):
    """RRZE-HPC gpu-benches, a V100 at 1380 MHz: a chase over lines that are in L1, and over more than it holds."""
    ring = np.zeros(elements, np.uint64)
    at = np.arange(0, elements, stride)
    ring[at] = np.roll(at, -1)
    small = ("gpu.sm.l1.size=1KiB", "gpu.sm.l1.least=1KiB")
    measured = cycles_of("ld.global.u64 %n,[%n];", *small, ring=ring, machine="v100-pcie")
    assert measured == pytest.approx(published, abs=max(2, 0.03 * published))


@pytest.mark.parametrize(("threads", "sms"), [(2, 99), (4, 99), (1, 1), (2, 1)])
def test_threads_and_partitions_do_not_show(threads, sms, monkeypatch):
    """Statistics of every component, and the results, on several threads and partitions as on one."""
    results = []
    for count, of_a_partition in ((1, 99), (threads, sms)):
        monkeypatch.setattr(command_queue, "_SMS_OF_A_PARTITION", of_a_partition)
        on = device(threads=count)
        a = on.array(np.arange(5000, dtype=np.float32))
        total = on.zeros(5000)
        launch = on.load(FIXTURES / "sm_75" / "vector_add.ptx")["vector_add"][40, 128](a, a, total, 5000)
        results.append((launch.cycles, on.result, total.numpy()))
    assert results[0][0] == results[1][0]
    assert identical(results[0][1], results[1][1])
    assert (results[0][2] == 2 * np.arange(5000)).all()
    assert (results[1][2] == results[0][2]).all()


def test_stalls_add_up_to_all_cycles_of_all_warps():
    on = device()
    a = on.array(np.arange(5000, dtype=np.float32))
    on.load(FIXTURES / "sm_75" / "vector_add.ptx")["vector_add"][40, 128](a, a, on.zeros(5000), 5000)
    for index in range(4):
        name = f"sm[{index}]"
        stalls = sum(
            on.result.value(name, f"stall_{reason}")
            for reason in (
                "wait",
                "long_scoreboard",
                "short_scoreboard",
                "barrier",
                "no_instruction",
                "math_pipe_throttle",
                "not_selected",
                "lg_throttle",
                "mio_throttle",
                "tex_throttle",
                "drain",
            )
        )
        issued = on.result.value(name, "issued_instructions")
        assert stalls + issued == on.result.value(name, "warp_cycles")


def test_a_later_kernel_waits_for_the_one_before_and_finds_its_data_in_l2():
    on = device()
    a, total = on.array(np.arange(5000, dtype=np.float32)), on.zeros(5000)
    kernel = on.load(FIXTURES / "sm_75" / "vector_add.ptx")["vector_add"]
    first, second = (kernel[40, 128](a, a, total, 5000) for _ in range(2))
    assert second.cycles < first.cycles


def test_occupancy_follows_from_what_a_block_takes():
    on = device("gpu.scheduler.limits.shared=8KiB")
    source = CHAIN.format(chain="").replace("words[64]", "words[1024]")
    launch = on.load(source)["k"][1, 32](on.zeros(8, np.uint64), on.zeros(8, np.uint64))
    assert launch.occupancy == 2 / 64  # two blocks of one warp with 4 KiB each


@pytest.mark.parametrize(
    ("changes", "blocks"),
    [
        (["units.shared=4KiB"], 2),
        (["units.shared=5KiB"], 1),  # 5 KiB each
        (["units.shared=128B", "units.shared_reserved=1KiB"], 1),  # 5 KiB each
        (["units.shared=128B", "units.shared_reserved=1KiB", "limits.shared=10KiB"], 2),
        (["units.registers=256", "limits.registers=1024"], 2),
        (["units.registers=1024", "limits.registers=1024"], 1),
    ],
)
def test_resources_are_allocated_in_units(changes, blocks):
    on = device("gpu.scheduler.limits.shared=8KiB", *(f"gpu.scheduler.{change}" for change in changes))
    source = CHAIN.format(chain="").replace("words[64]", "words[1024]")
    launch = on.load(source)["k"][1, 32](on.zeros(8, np.uint64), on.zeros(8, np.uint64))
    assert launch.occupancy == blocks / 64


def test_a_fault_is_explained_as_without_time():
    on = device()
    with pytest.raises(KernelError, match=r"kernel vector_add, CTA \(0, 0, 0\), thread"):
        on.load(FIXTURES / "sm_75" / "vector_add.ptx")["vector_add"][1, 32](
            on.zeros(1), on.zeros(1), on.zeros(1), 99
        )


def test_a_machine_without_a_gpu_is_refused():
    with pytest.raises(InputError, match=r"gpu: there is no section \[gpu\]"):
        gpu.TimedDevice("memory-small")


def test_a_cta_leaves_with_its_stores_and_the_launch_ends_with_their_confirmation():
    """An L2 that confirms writes 1000 cycles later adds as much to a launch, however many CTAs it has."""
    store = """.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<2>; .reg .b64 %d<3>;
 ld.param.u64 %d1,[out]; mov.u32 %r1,%ctaid.x; mul.wide.u32 %d2,%r1,128; add.s64 %d1,%d1,%d2;
 st.global.u32 [%d1],%r1; ret;
}
"""
    for ctas in (1, 2, 9):
        cycles = []
        for latency in (23, 1023):
            one = ("gpu.sm_count=1", "gpu.scheduler.limits.ctas=1", "gpu.l2.clock=1530MHz")
            on = device(*one, f"gpu.l2.cache.tag_latency={latency}")
            cycles.append(on.load(store)["k"][ctas, 32](on.zeros(32 * ctas, np.uint32)).cycles)
        assert cycles[1] - cycles[0] == pytest.approx(1000, abs=1), (ctas, cycles)


@pytest.mark.parametrize(("pages", "misses"), [(4, False), (5, True)])
def test_a_chase_beyond_the_reach_of_the_tlb_takes_its_miss_latency_longer(pages, misses):
    """Four entries hold four pages of 64 KiB; five in turn miss each time, by the latency of a miss and no more."""
    ring = np.zeros(8192 * pages, np.uint64)
    number = np.arange(4 * pages)  # of lines, more than L1 holds; neighbours are in different pages
    at = number % pages * 8192 + 16 * number
    ring[at] = np.roll(at, -1)
    small = ("gpu.sm.l1.size=1KiB", "gpu.sm.l1.least=1KiB")
    tlb = ("gpu.sm.device_tlb.entries=4", "gpu.sm.device_tlb.page=64KiB")
    cycles = [
        cycles_of(
            "ld.global.u64 %n,[%n];", *small, *tlb, f"gpu.sm.device_tlb.miss_latency={latency}", ring=ring
        )
        for latency in (0, 50)
    ]
    assert cycles[1] - cycles[0] == pytest.approx(50 if misses else 0, abs=1), cycles
