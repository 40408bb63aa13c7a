# SPDX-License-Identifier: Apache-2.0
"""Numbers that instructions are likely to get wrong, and a source of random ones that never changes."""

from __future__ import annotations

import random
import struct

SPECIAL_INTEGERS = [
    0,
    1,
    2,
    3,
    31,
    32,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0x100000000,
    0x7FFFFFFFFFFFFFFF,
    0x8000000000000000,
    0x8000000000000001,
    0xFFFFFFFF7FFFFFFF,
    0xFFFFFFFF80000000,
    0xFFFFFFFFFFFFFFFE,
    0xFFFFFFFFFFFFFFFF,
]
SPECIAL_NUMBERS = [
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    127.5,
    1e10,
    2.0**24 + 2,
    2.0**31 - 1,
    2.0**31 - 0.5,
    2.0**31,
    2.0**32 - 1,
    2.0**32 - 0.5,
    2.0**32,
    2.0**53 - 1,
    2.0**63,
    2.0**64,
]
SPECIAL_DOUBLES = [
    0x7FF0000000000000,  # infinity
    0x7FF8000000000000,  # quiet NaN
    0x7FF8000000001234,
    0x7FF0000000000001,  # signalling NaN
    0x7FF4000000000000,
    0x0000000000000001,  # smallest subnormal
    0x000FFFFFFFFFFFFF,  # largest subnormal
    0x0010000000000000,  # smallest normal
    0x7FEFFFFFFFFFFFFF,  # largest
    0x43DFFFFFFFFFFFFF,  # largest below 2^63
    0x43EFFFFFFFFFFFFF,  # largest below 2^64
    0x36A0000000000000,  # smallest subnormal of single precision
    0x3690000000000000,  # half of it
    0x380FFFFFF0000000,  # rounds to the smallest normal of single precision, or not
    0x47EFFFFFF0000000,  # rounds beyond the largest of single precision, or not
    0x47EFFFFFE0000000,  # largest of single precision
]
SPECIAL_SINGLES = [
    0x7F800000,
    0x7FC00000,
    0x7FC01234,
    0x7F800001,
    0x7FA00000,
    0x00000001,
    0x007FFFFF,
    0x00800000,
    0x7F7FFFFF,
    0x4EFFFFFF,
    0x5EFFFFFF,
    0x5F7FFFFF,
    0x00000003,
    0x00FFFFFF,
]
BOX = 0xFFFFFFFF00000000


class Source:
    """Random choices that depend on the seed alone, in every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 up to, not including, the bound."""
        return self._random.getrandbits(48) % bound

    def bits(self, count: int) -> int:
        """So many random bits."""
        return self._random.getrandbits(count)

    def between(self, low: int, high: int) -> int:
        """A whole number of a range, both ends included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred."""
        return self.below(100) < percent

    def one(self, choices):
        """One of a list, tuple or table."""
        items = choices if isinstance(choices, (list, tuple, range)) else list(choices)
        return items[self.below(len(items))]

    def integer(self) -> int:
        """64 bits for an integer register."""
        kind = self.below(4)
        if kind == 0:
            return self.bits(64)
        if kind == 1:
            return self.bits(self.between(1, 64))
        if kind == 2:
            return -self.bits(self.between(1, 33)) & (2**64 - 1)
        return self.one(SPECIAL_INTEGERS)

    def double(self) -> int:
        """The bits of a double: special, near 1, or anything."""
        sign = self.bits(1) << 63
        kind = self.below(8)
        if kind < 2:
            return sign | self.one(SPECIAL_DOUBLES)
        if kind < 4:
            return sign | struct.unpack("<Q", struct.pack("<d", self.one(SPECIAL_NUMBERS)))[0]
        if kind < 6:
            return sign | self.between(1023 - 3, 1023 + 3) << 52 | self.bits(52)
        if kind == 6:
            return sign | self.between(1023 - 40, 1023 + 70) << 52 | self.bits(52)
        return self.bits(64)

    def single(self) -> int:
        """The bits of a single, NaN-boxed as it should be, or now and then not."""
        sign = self.bits(1) << 31
        kind = self.below(8)
        if kind < 2:
            value = sign | self.one(SPECIAL_SINGLES)
        elif kind < 4:
            value = sign | struct.unpack("<I", struct.pack("<f", self.one(SPECIAL_NUMBERS)))[0]
        elif kind < 6:
            value = sign | self.between(127 - 3, 127 + 3) << 23 | self.bits(23)
        elif kind == 6:
            value = sign | self.between(127 - 40, 127 + 70) << 23 | self.bits(23)
        else:
            value = self.bits(32)
        return value | (BOX if self.chance(90) else self.bits(32) << 32)
