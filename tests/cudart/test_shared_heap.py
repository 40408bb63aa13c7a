# SPDX-License-Identifier: Apache-2.0
"""The memory of devices as a file that other processes map, and shared between devices."""

from __future__ import annotations

import mmap
import os
from itertools import pairwise

import numpy as np
import pytest

from manyscale import _core

pytestmark = pytest.mark.core
HEAP = 1 << 45


def write(device, address, values):
    assert device.write(address, np.asarray(values, np.uint8))


def read(device, address, count):
    values = np.empty(count, np.uint8)
    assert device.read(address, values)
    return values.tolist()


def in_file(descriptor, address, count):
    return list(os.pread(descriptor, count, address - HEAP))


def test_memory_keeps_its_contents_when_it_becomes_a_file():
    device = _core.GpuDevice()
    before = device.allocate(10_000, "before")
    assert HEAP <= before < HEAP + (1 << 40)
    write(device, before, [7] * 10_000)
    descriptor, size = device.share_memory()
    assert device.share_memory() == (descriptor, size)
    assert os.fstat(descriptor).st_size == size
    assert read(device, before, 10_000) == [7] * 10_000 == in_file(descriptor, before, 10_000)
    after = device.allocate(100, "after")
    write(device, after, range(100))
    assert in_file(descriptor, after, 100) == list(range(100))


def test_what_another_mapping_writes_is_in_the_memory():
    device = _core.GpuDevice()
    descriptor, _ = device.share_memory()
    address = device.allocate(4096, "shared", 4096)
    with mmap.mmap(descriptor, 4096, offset=address - HEAP) as other:
        other[5:8] = b"abc"
        assert read(device, address, 10) == [0, 0, 0, 0, 0, *b"abc", 0, 0]


def test_freed_memory_is_zero_and_takes_no_room():
    device = _core.GpuDevice()
    descriptor, _ = device.share_memory()
    address = device.allocate(1 << 24, "large")
    write(device, address, np.ones(1 << 24, np.uint8))
    taken = os.fstat(descriptor).st_blocks
    assert taken * 512 >= 1 << 24
    assert device.free(address)
    assert os.fstat(descriptor).st_blocks * 512 <= 2 * 4096
    again = device.allocate(1 << 24, "large")
    assert again == address
    assert not any(read(device, again, 1 << 24))


@pytest.mark.parametrize("alignment", [256, 4096, 65536, 1 << 21])
def test_alignment(alignment):
    """Addresses are multiples of it, and nobody else gets the run of bytes that an allocation ends in."""
    device = _core.GpuDevice()
    ranges = []
    for size in (1, 300, 4096, alignment, alignment + 1):
        ranges.append((device.allocate(size, "aligned", alignment), size, alignment))
        ranges.append((device.allocate(size, "other"), size, 256))
    for address, _, wanted in ranges:
        assert address % wanted == 0
    own = sorted((address, -(-size // wanted) * wanted) for address, size, wanted in ranges)
    assert all(begin + size <= following for (begin, size), (following, _) in pairwise(own))
    for address, _, _ in ranges:
        assert device.free(address)
    assert device.allocate(1, "first") == HEAP + 4096  # all of it is one hole again


@pytest.mark.parametrize("alignment", [0, 100, 128, 257])
def test_an_alignment_that_is_none(alignment):
    with pytest.raises(ValueError, match="a power of two from 256"):
        _core.GpuDevice().allocate(1, "odd", alignment)


def test_devices_share_one_memory():
    first = _core.GpuDevice()
    second = _core.GpuDevice(sharing_memory_of=first)
    address = first.allocate(64, "shared")
    write(second, address, [3] * 64)
    assert read(first, address, 64) == [3] * 64
    assert second.allocate(64, "more") != address
    del first
    assert read(second, address, 64) == [3] * 64


def test_memory_is_mapped_at_reserved_addresses():
    """Both addresses have the same bytes; ranges side by side are valid together, what is unmapped is not."""
    device = _core.GpuDevice()
    size = 2 << 20
    addresses = device.reserve_addresses(4 * size, size)
    memory = [device.allocate(size, "memory", size) for _ in range(2)]
    assert not device.holds(addresses, 1)
    for number, part in enumerate(memory):
        assert device.map(addresses + number * size, part, size)
    write(device, addresses + size - 4, range(8))
    assert read(device, memory[0] + size - 4, 4) == [0, 1, 2, 3]
    assert read(device, memory[1], 4) == [4, 5, 6, 7]
    assert device.holds(addresses, 2 * size)
    assert not device.holds(addresses, 2 * size + 1)
    assert not device.map(addresses + size, memory[0], size)  # has memory
    assert not device.map(addresses + 4 * size, memory[0], size)  # is not reserved
    assert not device.release_addresses(addresses, 4 * size)
    assert device.unmap(addresses, size)
    assert not device.unmap(addresses, size)
    assert not device.holds(addresses, 1)
    assert read(device, addresses + size, 4) == [4, 5, 6, 7]
    assert device.map(addresses + 3 * size, memory[1], size)
    assert read(device, addresses + 3 * size, 4) == [4, 5, 6, 7]
    for number in (1, 3):
        assert device.unmap(addresses + number * size, size)
    assert device.release_addresses(addresses, 4 * size)
    assert read(device, memory[0] + size - 4, 4) == [0, 1, 2, 3]
    again = device.allocate(4 * size, "again", size)
    zeros = np.ones(4 * size, np.uint8)
    assert device.read(again, zeros)
    assert not zeros.any()
