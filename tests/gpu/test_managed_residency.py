# SPDX-License-Identifier: Apache-2.0
"""Where managed pages reside: oversubscription, prefetching, read-mostly copies, remote accesses."""

import numpy as np
import pytest
from managed_support import MIB, PAGE, PAGES, PLAIN, TOUCH, add, counted, device, pages_of, put

from manyscale import InputError

pytestmark = pytest.mark.core


def test_too_little_memory_thrashes_and_loses_nothing():
    """Two sweeps over 8 MiB with room for 4: pages leave and come again, and each allocation says how often."""
    on = device("gpu.uvm.eviction=lru_block")
    n = MIB
    a, total = on.managed(n), on.managed(n)
    on.uvm.capacity = 4 * MIB
    assert on.uvm.capacity == 4 * MIB
    a.set(np.arange(n))
    for _ in range(2):
        add(on, a, a, total)
    counts = on.uvm.statistics()
    rows = on.uvm.allocations()
    assert counts["pages_evicted"] > 0
    assert rows["thrashed_pages"].sum() == counts["thrashed_pages"] > 0
    assert rows["faults"].sum() == counts["faults"]
    assert rows["resident_pages"].sum() <= 4 * MIB // PAGE
    assert (
        rows["resident_pages"].sum()
        == (a.locations() == "device").sum() + (total.locations() == "device").sum()
    )
    assert (total.numpy() == 2 * np.arange(n, dtype=np.float32)).all()


def test_other_allocations_take_room_from_pages():
    on = device("gpu.memory.capacity=16MiB")
    assert on.uvm.capacity == 16 * MIB
    explicit = on.empty(10 * MIB, np.uint8)
    array = on.managed(MIB)
    assert on.uvm.capacity == 6 * MIB
    on.uvm.capacity = 4 * MIB
    assert on.uvm.capacity == 4 * MIB
    on.uvm.capacity = None
    del explicit
    assert on.uvm.capacity == 16 * MIB
    assert array.size == MIB
    on.uvm.explicit_bytes = MIB
    assert on.uvm.capacity == 15 * MIB
    with pytest.raises(InputError, match="number of bytes"):
        on.uvm.capacity = -1


def test_memory_that_others_take_drives_pages_out():
    on = device("gpu.memory.capacity=8MiB", *PLAIN, "gpu.uvm.eviction=lru_page")
    array = pages_of(on, 512)
    array.prefetch()
    assert set(array.locations()) == {"device"}
    taken = on.empty(7 * MIB, np.uint8)
    put(on, array)
    assert (array.locations() == "device").sum() <= MIB // PAGE
    assert taken.nbytes == 7 * MIB


def test_prefetching_is_judged_by_what_was_used():
    """A tree brings 64 KiB around each fault; a kernel that uses all of it, and one that uses a page of each."""
    on = device("gpu.uvm.prefetcher=sequential_local")
    array = pages_of(on, 256)
    put(on, array)
    assert on.uvm.prefetch_accuracy == pytest.approx(1)
    assert on.uvm.prefetch_coverage == pytest.approx(counted(on, "prefetched_used") / 256)
    on = device("gpu.uvm.prefetcher=sequential_local")
    array = pages_of(on, 256)
    on.load(TOUCH)["put"][16, 1](array, 16 * PAGE, 1)
    assert on.uvm.prefetch_accuracy == 0
    assert counted(on, "pages_prefetched") == 240
    on = device("gpu.uvm.prefetcher=none")
    put(on, pages_of(on, 16))
    assert on.uvm.prefetch_accuracy is None
    assert on.uvm.prefetch_coverage == 0


def test_copies_for_reading_are_on_both_sides_until_someone_writes():
    on = device(*PLAIN)
    array, out = pages_of(on), on.zeros(PAGES * 32, np.uint32)
    array.advise("read_mostly")
    module = on.load(TOUCH)
    module["touch"][PAGES, 32](array, out, PAGE // 32)
    assert set(array.locations()) == {"both"}
    assert array[3][0] == 1
    assert counted(on, "host_faults") == 0
    assert (out.numpy() == 0x01010101).all()
    put(on, array)
    assert set(array.locations()) == {"device"}
    assert counted(on, "permission_faults") == PAGES
    array.advise("read_mostly", on=False)
    assert array[0][0] == 5
    assert array.locations()[0] == "host"


def test_a_write_after_a_read_of_a_copy_asks_again():
    """One kernel that reads and then writes each word of pages that are copies."""
    on = device(*PLAIN)
    array = on.managed(PAGES * PAGE // 4, np.uint32)
    array.set(np.arange(array.size))
    array.advise("read_mostly")
    on.load(TOUCH)["increase"][array.size // 1024, 1024](array, 4)
    assert (array.numpy() == np.arange(array.size) + 2).all()


@pytest.mark.parametrize("how", ["accessed_by", "preferred_location"])
def test_pages_that_stay_on_the_host_are_accessed_there(how):
    """No page moves; sectors of 32 B cross the link, and reads, writes and atomic operations are right."""
    on = device(*PLAIN)
    array, out = pages_of(on), on.zeros(PAGES * 32, np.uint32)
    array.advise(how, at="host" if how == "preferred_location" else "device")
    module = on.load(TOUCH)
    launch = module["touch"][PAGES, 32](array, out, PAGE // 32)
    assert (out.numpy() == 0x01010101).all()
    counts = on.uvm.statistics()
    assert counts["remote_sectors"] == PAGES * 32
    assert counts["remote_bytes"] == PAGES * 32 * 32
    assert counts["pages_faulted_in"] == counts["bytes_to_device"] == 0
    assert launch.profile["stall_fault"] == 0
    put(on, array)
    module["increase"][PAGES, 32](array, PAGE // 32)
    assert array.numpy().reshape(-1).view(np.uint32)[0] == 0x05050507
    assert set(array.locations()) == {"host"}


def test_pages_that_are_accessed_often_move_at_last():
    """Access counters: 64 KiB come to the device after so many accesses to them."""
    on = device(*PLAIN, "gpu.uvm.remote=always", "gpu.uvm.remote_threshold=8")
    array, out = pages_of(on, 16), on.zeros(16 * 32, np.uint32)
    module = on.load(TOUCH)
    for _ in range(3):
        module["touch"][16, 32](array, out, PAGE // 32)
    counts = on.uvm.statistics()
    assert 0 < counts["remote_reads"] < 3 * 16 * 32
    assert "device" in set(array.locations())
    assert (out.numpy() == 0x01010101).all()
