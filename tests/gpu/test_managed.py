# SPDX-License-Identifier: Apache-2.0
"""Managed memory from Python: where pages are, host accesses and prefetches in time, freeing, the page log."""

import gc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from managed_support import (
    KIB,
    MIB,
    PAGE,
    PAGE_TIME,
    PAGES,
    PLAIN,
    SHOOTDOWN,
    TOUCH,
    add,
    counted,
    device,
    pages_of,
    put,
)

from manyscale import InputError, KernelError, gpu, identical, load_machine

pytestmark = pytest.mark.core


def test_kernels_and_python_use_the_same_array():
    on = device()
    n = 50_000
    a, total = on.managed(n), on.managed(n)
    a.set(np.arange(n))
    for factor in (2, 4):
        add(on, a, a, total)
        assert (total.numpy() == factor * np.arange(n, dtype=np.float32)).all()
        a[:] = total[:]


def test_the_functional_device_has_managed_memory_without_time():
    on = gpu.Device()
    a, total = on.managed(1000), on.managed((1000,))
    a.set(np.arange(1000))
    a.prefetch()
    a.advise("read_mostly")
    add(on, a, a, total)
    assert (total[10:12] == [20, 22]).all()
    assert set(a.locations()) == {"both"}
    assert on.managed_ranges() == [(a.address, 4000), (total.address, 4000)]
    with pytest.raises(InputError, match="has no time, and so no streams"):
        a.prefetch(stream=object())


def test_pages_go_where_they_are_used():
    """Not accessed yet, then accessed by the host, the device, and the host again."""
    on = device(*PLAIN, "gpu.uvm.first_touch=true")
    array = on.managed((PAGES, PAGE), np.uint8)
    assert set(array.locations()) == {"nowhere"}
    array[2:4] = 7
    assert list(array.locations()) == ["nowhere"] * 2 + ["host"] * 2 + ["nowhere"] * 4
    put(on, array)
    assert set(array.locations()) == {"device"}
    assert counted(on, "bytes_to_device") == 2 * PAGE  # pages that were nowhere need no transfer
    assert (array[5] == 5).sum() == 4 * 32
    assert array.locations()[5] == "host"


@pytest.mark.parametrize("pages", [1, 5, 16])
def test_pages_come_back_when_the_host_reads_them(pages):
    """In simulated time: TLBs forget them, then they cross the link; a second read takes none."""
    on = device(*PLAIN)
    array = pages_of(on, pages)
    put(on, array)
    assert set(array.locations()) == {"device"}
    first = on.host_access(array.address, array.nbytes)
    assert first.seconds == pytest.approx(SHOOTDOWN + 590.4e-9 + array.nbytes / 10e9, rel=1e-3)
    assert set(array.locations()) == {"host"}
    assert counted(on, "bytes_to_host") == array.nbytes
    assert on.host_access(array.address, array.nbytes).seconds == 0
    values = array.numpy()
    assert (values.reshape(-1).view(np.uint32).reshape(pages, -1)[:, ::32][:, :32] == 0x05050505).all()


def test_a_part_that_the_host_reads_comes_alone():
    on = device(*PLAIN, "gpu.uvm.host_granularity=4KiB")
    array = pages_of(on)
    put(on, array)
    assert array[3][0] == 5
    assert list(array.locations()).count("host") == 1
    assert array.locations()[3] == "host"
    array[6:8] = 9
    assert list(array.locations()).count("host") == 3
    put(on, array, 0)
    assert array[6][0] == 0
    assert array[6][1000] == 9


def test_a_prefetch_leaves_no_faults():
    """Pages come in one transfer, in the order of the stream; the kernel after it finds them."""
    on = device(*PLAIN)
    array = pages_of(on, 16)
    stream = on.stream()
    moved = array.prefetch(stream=stream)
    kernel = on.load(TOUCH)["put"][16, 32, 0, stream](array, PAGE // 32, 3)
    stream.synchronize()
    assert moved.seconds == pytest.approx(590.4e-9 + array.nbytes / 10e9, rel=1e-2)
    assert kernel.begin == pytest.approx(moved.end, abs=1e-9)
    assert kernel.seconds < 10e-6
    assert counted(on, "faults") == 0
    assert counted(on, "pages_commanded_in") == 16
    back = array.prefetch("host")
    assert set(array.locations()) == {"host"}
    assert back.seconds == pytest.approx(moved.seconds + SHOOTDOWN, rel=1e-2)
    assert [activity.what for activity in on.timeline()][-1] == f"prefetch to host {array.nbytes} B"


def test_a_host_access_does_not_wait_for_kernels():
    """The host reads one array while a kernel waits for the pages of another."""
    on = device(*PLAIN)
    ours, theirs = pages_of(on, 1), pages_of(on, 64)
    ours.prefetch()
    stream = on.stream()
    kernel = on.load(TOUCH)["put"][64, 32, 0, stream](theirs, PAGE // 32, 3)
    read = on.host_access(ours.address, PAGE)
    assert read.done
    assert not kernel.done
    assert read.end < kernel.end


def test_fault_latency_costs_simulated_time_and_no_work():
    """45 us or 450 us for each fault batch: ten times the time, the same events."""
    events, seconds = [], []
    for latency in (45, 450):
        on = device(*PLAIN, f"gpu.uvm.fault_latency={latency}us")
        array = pages_of(on, 32)
        seconds.append(put(on, array).seconds)
        events.append(on.result.events)
    assert seconds[1] > 8 * seconds[0]
    assert events[1] == pytest.approx(events[0], rel=0.05)


@pytest.mark.parametrize("changes", [[], ["gpu.sm.tlb.faults=blocking"], ["gpu.uvm.remote=always"]])
def test_threads_do_not_show(changes):
    """Statistics of every component, values and the log, on several threads as on one, with too little memory."""
    results = []
    for threads in (1, 2, 4):
        on = device("gpu.sm_groups=4", *changes, threads=threads, page_log=100_000)
        n = 64 * KIB
        a, total = on.managed(n), on.managed(n)
        on.uvm.capacity = 256 * KIB
        a.set(np.arange(n))
        launches = [add(on, a, a, total).cycles for _ in range(2)]
        values = total.numpy()
        assert (values == 2 * np.arange(n, dtype=np.float32)).all()
        results.append((launches, on.result, on.uvm.log()))
    for other in results[1:]:
        assert other[0] == results[0][0]
        assert identical(other[1], results[0][1])
        assert other[2].equals(results[0][2])
    assert results[0][2].height > 20


def test_one_shared_memory_moves_nothing():
    """An APU: only translations are left; a kernel takes at most a few walks more than with memory of its own."""
    cycles = {}
    for kind in ("shared", "discrete"):
        on = device(*PLAIN, f"gpu.uvm.kind={kind}")
        n = 20_000
        a, total = on.managed(n), on.managed(n)
        a.set(np.arange(n))
        cycles[kind] = add(on, a, a, total).cycles
        assert (total.numpy() == 2 * np.arange(n)).all()
        counts = on.uvm.statistics()
        if kind == "shared":
            assert counts["faults"] == counts["bytes_to_device"] == counts["bytes_to_host"] == 0
            assert counts["translations"] > 0
    plain = device()
    a = plain.array(np.arange(n, dtype=np.float32))
    own = add(plain, a, a, plain.zeros(n)).cycles
    assert own < cycles["shared"] < own + 2000
    assert cycles["discrete"] > 10 * cycles["shared"]


def test_copies_of_managed_arrays_are_made_by_the_device():
    on = device(*PLAIN)
    array, other, host = pages_of(on), on.managed((PAGES, PAGE), np.uint8), np.zeros((PAGES, PAGE), np.uint8)
    other.copy_from(array)
    other.copy_to(host)
    assert (host == 1).all()
    assert set(other.locations()) == {"device"}
    other.fill(3)
    array.copy_from(other)
    assert (array.numpy() == 3).all()
    plain = on.empty((PAGES, PAGE), np.uint8)
    plain.copy_from(array)
    assert set(array.locations()) == {"device"}
    assert (plain.numpy() == 3).all()


def test_memory_can_be_given_back():
    on = device(*PLAIN)
    array = pages_of(on)
    put(on, array)
    address = array.address
    array.free()
    assert on.managed_ranges() == []
    with pytest.raises(InputError, match="memory was freed"):
        array.numpy()
    with pytest.raises(InputError, match="no managed memory begins"):
        on.managed_free(address)
    again = on.managed((PAGES, PAGE), np.uint8)
    assert again.address == address
    assert set(again.locations()) <= {"nowhere", "host"}
    assert (again.numpy() == 0).all()
    put(on, again)
    assert again[0][0] == 5
    del again
    gc.collect()
    assert on.managed_ranges() == []


def test_memory_can_be_given_back_while_its_pages_move():
    on = device(*PLAIN)
    first, array = pages_of(on, 1), pages_of(on, 64)
    first.prefetch(stream=on.stream())
    moving = array.prefetch(stream=on.stream())
    on.host_access(first.address, PAGE)
    assert not moving.done
    array.free()
    assert moving.done


def test_a_kernel_that_runs_over_the_end_of_managed_memory_faults():
    on = device()
    array = on.managed(100, np.uint32)
    array.set(np.zeros(100))
    with pytest.raises(KernelError, match="managed array"):
        on.load(TOUCH)["put"][1, 128](array, 4, 1)


def test_plain_functions_on_addresses():
    """What a runtime library of CUDA calls."""
    on = device(*PLAIN)
    address = on.managed_allocate(3 * PAGE)
    assert address % (2 * MIB) == 0
    assert on.managed_ranges() == [(address, 3 * PAGE)]
    on.native.write(address, b"\1" * PAGE)
    on.host_access(address, PAGE, True)
    on.advise_range(address + PAGE, PAGE, "preferred_location", at="host")
    stream = on.stream()
    moved = on.prefetch_range(address, PAGE, "device", stream)
    assert not moved.done
    stream.synchronize()
    assert on.page_locations(address, 3 * PAGE)[0] == "device"
    later = on.host_access(address, 100, wait=False)
    assert not later.done
    on.synchronize()
    assert later.seconds == pytest.approx(SHOOTDOWN + PAGE_TIME, rel=1e-2)
    on.managed_free(address)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda on, a: on.managed("x"), "not a shape"),
        (lambda on, a: on.managed(2**62), "do not fit"),
        (lambda on, a: on.managed_allocate(0), "at least one byte"),
        (lambda on, a: on.managed_free(a.address + 4096), "no managed memory begins"),
        (lambda on, a: on.prefetch_range(a.address, 10**6), "not within one piece"),
        (lambda on, a: on.prefetch_range(a.address - 1, 2), "not within one piece"),
        (lambda on, a: on.host_access(a.address, -1), "number of bytes"),
        (lambda on, a: a.prefetch("moon"), "'device' or 'host', not 'moon'"),
        (lambda on, a: a.prefetch(stream="first"), "made by device.stream"),
        (lambda on, a: a.prefetch(stream=device().stream()), "one of the same device"),
        (lambda on, a: a.advise("write_mostly"), "read_mostly, preferred_location, accessed_by"),
        (lambda on, a: a.advise("accessed_by", at="both"), "'device' or 'host', not 'both'"),
        (lambda on, a: a[::2], "without a step"),
        (lambda on, a: a[1000], "outside of an axis"),
        (lambda on, a: a["first"], "a whole number or a range"),
        (lambda on, a: a.__setitem__(slice(0, 2), [1, 2, 3]), "does not fit"),
        (lambda on, a: on.managed(())[0], "has no index"),
    ],
)
def test_mistakes_are_explained(call, message):
    on = device()
    array = on.managed(100)
    with pytest.raises(InputError, match=message):
        call(on, array)


def test_an_array_without_elements_or_axes():
    on = device()
    none, one = on.managed(0), on.managed((), np.int32)
    assert none.numpy().shape == (0,)
    none.prefetch()
    one.set(7)
    assert one.numpy() == 7
    assert none[:].shape == (0,)


def test_numpy_takes_it_as_an_array():
    on = device(*PLAIN)
    array = on.managed((3, 2), np.int32)
    array.set([[1, 2], [3, 4], [5, 6]])
    assert (np.asarray(array) == [[1, 2], [3, 4], [5, 6]]).all()
    assert np.asarray(array, float).dtype == float
    assert [row.sum() for row in array] == [3, 7, 11]
    assert len(array) == 3
    assert array[-1][1] == 6


def test_the_log_agrees_with_the_statistics():
    """Rows in the order of their ends; pages and bytes of transfers add up to the statistics."""
    on = device("gpu.uvm.prefetcher=tree", "gpu.uvm.first_touch=false", page_log=10_000)
    array = pages_of(on, 200)
    on.uvm.capacity = 512 * KIB
    put(on, array)
    array.numpy()
    log, counts = on.uvm.log(), on.uvm.statistics()
    pages = {kind: rows["pages"].sum() for (kind,), rows in log.group_by("kind")}
    assert log["end"].is_sorted()
    assert (log["begin"] <= log["end"]).all()
    assert pages["to_device"] * PAGE == counts["bytes_to_device"]
    assert pages["to_host"] * PAGE == counts["bytes_to_host"]
    assert pages["fault"] == counts["faults"]
    assert (log["kind"] == "batch").sum() == counts["fault_batches"]
    assert counts["log_lost"] == 0
    evicted = log.filter(log["cause"] == "eviction")["pages"].sum()
    assert evicted == counts["pages_evicted"] > 0
    assert set(log["address"] // PAGE) <= set(range(array.address // PAGE, array.address // PAGE + 256))
    short = device(page_log=5)
    put(short, pages_of(short, 200))
    assert short.uvm.log().height == 5
    assert counted(short, "log_lost") > 0
    assert device().uvm.log().height == 0


KERNELS = Path(__file__).resolve().parents[2] / "src/manyscale/cli/demo_kernels.ptx"


def test_translations_that_wait_for_long_do_not_fill_the_fault_buffer():
    """Each warp of a transpose waits for 32 pages, so that far more translations wait than the GMMU writes faults
    during a batch. Every batch serves pages: none consists of faults that earlier replays have left behind."""
    on = gpu.TimedDevice("v100", page_log=100_000)
    transpose = on.load(KERNELS)["transpose"]
    matrix, transposed = on.managed((512, 512)), on.managed((512, 512))
    matrix[:] = np.arange(512 * 512).reshape(512, 512)
    transposed[:] = 0
    launch = transpose[(16, 16), (32, 8)](matrix, transposed, 512)
    log, counts = on.uvm.log(), on.uvm.statistics()
    served = (log["kind"] == "batch").sum()
    assert counts["fault_batches"] == served < 40
    assert counts["driver_busy"] * 1e-15 <= launch.seconds
    assert (transposed.numpy() == matrix.numpy().T).all()


def test_machines_without_a_section_have_unified_memory():
    on = gpu.TimedDevice(load_machine("v100", ["gpu.sm_count=2", "gpu.l2_slices=2"]).machine)
    assert on.uvm.capacity == on.machine.gpu.memory.capacity
    assert on.uvm.component.spec.model_dump()["clock"] == on.machine.gpu.clock


def test_the_listing_of_the_report_gives_its_numbers_to_the_model():
    """UVM Smart in GPGPU-Sim 4.0 report, Listing 1: a fixed 45 us and 100 cycles."""
    changes = ["gpu.sm_count=2", "gpu.l2_slices=2", "gpu.memory.standard=hbm2-v100"]
    on = gpu.TimedDevice(load_machine("uvm-listing1", changes).machine)
    spec = on.uvm.component.spec.model_dump()
    assert (spec["handling"], spec["fault_latency"], spec["walk_latency"]) == ("fixed", 45 * 10**9, 100)


@given(st.data())
@settings(max_examples=30)
def test_random_programs_see_the_newest_values(data):
    """Kernels, host accesses, prefetches and advice in any order, with little memory and any policy."""
    choose = data.draw
    eviction = choose(st.sampled_from(["lru_page", "lru_block", "random", "sequential_local", "tree", "lfu"]))
    prefetcher = choose(st.sampled_from(["none", "random", "sequential_local", "locality_aware", "tree"]))
    faults = choose(st.sampled_from(["replayable", "blocking"]))
    remote = choose(st.sampled_from(["off", "always", "oversubscribed", "adaptive"]))
    on = device(
        f"gpu.uvm.eviction={eviction}",
        f"gpu.uvm.prefetcher={prefetcher}",
        f"gpu.sm.tlb.faults={faults}",
        f"gpu.uvm.remote={remote}",
        f"gpu.sm.tlb.entries={choose(st.sampled_from([1, 8, 4096]))}",
        f"gpu.uvm.free_share={choose(st.sampled_from([0, 0.1]))}",
    )
    on.uvm.capacity = choose(st.sampled_from([2, 4, 64])) * MIB
    module, words = on.load(TOUCH), PAGE // 4
    arrays = [on.managed((pages, words), np.uint32) for pages in (700, 130)]
    expected = [np.zeros(array.shape, np.uint32) for array in arrays]
    out = on.empty(700, np.uint32)
    streams = [None, on.stream()]
    for step in range(choose(st.integers(1, 12))):
        which = choose(st.integers(0, 1))
        array, values = arrays[which], expected[which]
        count = len(values)
        match choose(st.sampled_from(["put", "touch", "increase", "write", "read", "prefetch", "advise"])):
            case "put":
                module["put"][count // 10, 10, 0, choose(st.sampled_from(streams))](array, PAGE, step)
                values[:, 0] = step
            case "increase":
                module["increase"][count // 10, 10](array, PAGE)
                values[:, 0] += 2
            case "touch":
                module["touch"][count // 10, 10](array, out, PAGE)
                assert (out.numpy()[:count] == values[:, 0]).all()
            case "write":
                first = choose(st.integers(0, count - 1))
                array[first : first + 40] = step
                values[first : first + 40] = step
            case "read":
                first = choose(st.integers(0, count - 1))
                assert (array[first : first + 40] == values[first : first + 40]).all()
            case "prefetch":
                array.prefetch(
                    choose(st.sampled_from(["device", "host"])), stream=choose(st.sampled_from(streams))
                )
            case "advise":
                advice = choose(st.sampled_from(["read_mostly", "preferred_location", "accessed_by"]))
                array.advise(advice, on=choose(st.booleans()), at=choose(st.sampled_from(["device", "host"])))
    on.synchronize()
    for array, values in zip(arrays, expected, strict=True):
        assert (array.numpy() == values).all()
    counts = on.uvm.statistics()
    came = counts["pages_faulted_in"] + counts["pages_prefetched"] + counts["pages_commanded_in"]
    assert came >= counts["pages_evicted"]
    assert on.uvm.allocations()["resident_pages"].sum() * PAGE <= on.uvm.capacity


def test_memory_beside_managed_memory_is_as_fast_as_alone():
    """Plain arrays do not pass the TLB: the same cycles to the last, with managed memory beside them or without."""
    cycles = []
    for managed in (False, True):
        on = device()
        a, total = on.array(np.arange(5000, dtype=np.float32)), on.zeros(5000)
        beside = pages_of(on) if managed else None
        cycles.append([add(on, a, a, total).cycles for _ in range(2)])
        assert (beside is not None) == managed
    assert cycles[0] == cycles[1]


def test_a_machine_can_state_every_parameter():
    from manyscale.machine.uvm import UnifiedMemory as Section
    from manyscale.system.catalogue import model

    assert set(Section.model_fields) >= set(model("gpu.uvm").spec.model_fields)
    on = device(
        "gpu.uvm.batch_size=17", "gpu.uvm.eviction=lfu", "gpu.uvm.cold_latency=3us", "gpu.uvm.capacity=1GiB"
    )
    spec = on.uvm.component.spec.model_dump()
    assert [spec[name] for name in ("batch_size", "eviction", "cold_latency")] == [17, "lfu", 3 * 10**9]
    assert on.uvm.capacity == 1024 * MIB
