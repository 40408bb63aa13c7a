# SPDX-License-Identifier: Apache-2.0
"""What has to hold of a file that a reader takes, found without that reader.

A reader in Python that forgets a check does not crash: it takes what it should refuse. So what it takes is compared
with the format's own rules.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from manyscale.cuda.fatbin import Image
from manyscale.errors import ManyscaleError
from manyscale.network.goal import ANYONE, RECV, GoalSchedule
from manyscale.studies.correlation.values import BY_NAME, LaunchValues

_LZ4, _ZSTD = 0x2000, 0x8000
_LARGEST = 1 << 20  # bytes that are unpacked a second time


def expect_peers(schedule: GoalSchedule) -> None:
    """Messages of a GOAL schedule go to ranks that exist; only a receive may name any."""
    for rank, part in schedule.by_rank.items():
        assert 0 <= rank < schedule.ranks, f"rank {rank} of {schedule.ranks}"
        for kind, peer in zip(part.kinds, part.peers, strict=True):
            if kind != "calc":
                is_any = peer == ANYONE and kind == RECV
                assert is_any or 0 <= peer < schedule.ranks, f"peer {peer} of {schedule.ranks} ranks"


def expect_launches(launches: Sequence[LaunchValues]) -> None:
    """A measured launch has finite values under known names, and extents of three numbers."""
    for launch in {id(one): one for one in launches}.values():
        for name, value in launch.values.items():
            assert name in BY_NAME, f"an unknown quantity {name}"
            assert math.isfinite(value), f"{name} is {value}"
        for extent in (launch.grid, launch.block):
            assert extent is None or len(extent) == 3, f"extents {extent}"


def expect_images(content: bytes, images: Sequence[Image]) -> None:
    """Images of a fat binary lie one after the other in their container, and are as long as their headers state."""
    _, _, header, size = struct.unpack_from("<IHHQ", content)
    at, end = header, header + size
    assert end <= len(content), f"a container of {end} bytes in {len(content)}"
    taken = iter(images)
    while at < end:
        kind, _, header, size, compressed = struct.unpack_from("<HHIQI", content, at)
        assert at + header + size <= end, f"an entry from {at} to {at + header + size} of {end} bytes"
        if kind in (1, 2):
            image = next(taken)
            stored = compressed if compressed and image.flags & (_LZ4 | _ZSTD) else size
            assert len(image.packed) == stored, f"an image of {stored} bytes has {len(image.packed)}"
            expect_unpacked(image)
        at += header + size


def expect_unpacked(image: Image) -> None:
    """An LZ4 block that is unpacked is one by the rules of its format, and gives the same bytes."""
    if image.flags & _LZ4 and not image.flags & _ZSTD and image.unpacked_bytes <= _LARGEST:
        try:
            content = image.unpacked()
        except ManyscaleError:
            return
        assert content == unpacked_lz4(image.packed, image.unpacked_bytes), "an LZ4 block gives other bytes"


def unpacked_lz4(block: bytes, size: int) -> bytes:
    """A block of LZ4, byte by byte as its description says, until it has given `size` bytes."""
    out = bytearray()
    source = iter(block)

    def byte() -> int:
        value = next(source, None)
        assert value is not None, "an LZ4 block ends early"
        return value

    def length(base: int) -> int:
        more = 255 if base == 15 else 0
        while more == 255:
            more = byte()
            base += more
        return base

    while len(out) < size:
        token = byte()
        out += bytes(byte() for _ in range(length(token >> 4)))
        if len(out) < size:
            distance = byte() | byte() << 8
            assert 0 < distance <= len(out), f"an LZ4 copy from {distance} bytes before, after {len(out)}"
            for _ in range(length(token & 15) + 4):
                out.append(out[-distance])
    assert len(out) == size, f"an LZ4 block gives {len(out)} bytes instead of {size}"
    return bytes(out)
