# SPDX-License-Identifier: Apache-2.0
"""How evenly lines fall on slices: the fullest slice against the mean."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import _core

pytestmark = pytest.mark.core

LINE = 128
STRIDES = [LINE << shift for shift in range(14)]  # one line to 1 MiB
LINES_PER_SLICE = 64
POWERS = [1, 2, 4, 16, 32, 64, 128, 1024]
OTHERS = [3, 5, 6, 7, 10, 12, 20, 24, 40, 48, 56, 60, 72, 80, 96, 100, 127, 160, 192]
# What the polynomial hash promises for 64 lines per slice at any stride of a power of two. Its constants were searched
# for on 31 numbers of slices, where it stays below 1.13; the promise is for all numbers up to 256.
IMBALANCE = 1.25


def imbalance(slices: int, hash_name: str, stride: int, first: int = 0) -> float:
    """The fullest slice over the mean; 1 is perfect, the number of slices the worst."""
    hashing = _core.SliceHash(slices=slices, line_size=LINE, hash=hash_name)
    lines = hashing.lines_per_slice(first, stride, slices * LINES_PER_SLICE)
    assert sum(lines) == slices * LINES_PER_SLICE
    return max(lines) / LINES_PER_SLICE


@pytest.mark.parametrize("hash_name", ["xor", "polynomial"])
@pytest.mark.parametrize("slices", POWERS)
def test_powers_of_two_are_perfectly_balanced(slices: int, hash_name: str) -> None:
    for stride in STRIDES:
        assert imbalance(slices, hash_name, stride) == 1, f"stride {stride}"


@pytest.mark.parametrize("hash_name", ["polynomial", "interleaved"])
@pytest.mark.parametrize("stride", STRIDES)
def test_every_number_of_slices_is_balanced(stride: int, hash_name: str) -> None:
    worst = max((imbalance(slices, hash_name, stride), slices) for slices in range(1, 257))
    assert worst[0] <= IMBALANCE, f"stride {stride}: {worst[0]} with {worst[1]} slices"


@pytest.mark.parametrize("slices", OTHERS)
def test_balance_does_not_hang_on_the_first_address(slices: int) -> None:
    for stride in STRIDES:
        found = imbalance(slices, "polynomial", stride, 0x7F12_3456_7000)
        assert found <= IMBALANCE, f"{slices} slices, stride {stride}: {found}"


@pytest.mark.parametrize("slices", [40, 48, 80, 96])
@pytest.mark.parametrize("first", [0, 0x7F12_3456_7000])
def test_neighbouring_lines_are_in_different_slices(slices: int, first: int) -> None:
    """Of an aligned run of 16 lines no two share a slice, so that bins of a histogram queue at many."""
    hashing = _core.SliceHash(slices=slices, line_size=LINE, hash="interleaved")
    first -= first % (16 * LINE)
    for run in range(64):
        found = {hashing.slice_of(first + (16 * run + line) * LINE) for line in range(16)}
        assert len(found) == 16, f"run {run}"


@pytest.mark.parametrize("slices", POWERS + OTHERS)
def test_modulo_is_as_uneven_as_its_common_factor_with_the_stride(slices: int) -> None:
    """Of n slices a stride of s lines meets n / gcd(n, s), so the fullest has gcd(n, s) times the mean."""
    for stride in STRIDES:
        assert imbalance(slices, "modulo", stride) == math.gcd(slices, stride // LINE)


def test_folding_fails_where_the_polynomial_does_not() -> None:
    """A stride of n + 1 lines has the same bits at both positions, and xor makes 0 of them."""
    assert imbalance(64, "xor", 65 * LINE) > 10
    assert imbalance(64, "polynomial", 65 * LINE) < 2


@pytest.mark.parametrize("hash_name", ["modulo", "polynomial"])
@given(slices=st.integers(1, 300), address=st.integers(0, 2**64 - 1))
def test_a_line_is_in_one_slice(hash_name: str, slices: int, address: int) -> None:
    hashing = _core.SliceHash(slices=slices, line_size=LINE, hash=hash_name)
    found = hashing.slice_of(address)
    assert 0 <= found < slices
    assert hashing.slice_of(address // LINE * LINE) == found
    assert hashing.slice_of(address | (LINE - 1)) == found


@given(bits=st.integers(0, 10), address=st.integers(0, 2**64 - 1))
def test_xor_folds_all_bits(bits: int, address: int) -> None:
    expected, line = 0, address // LINE
    while line and bits:
        expected ^= line % (1 << bits)
        line >>= bits
    assert _core.SliceHash(slices=1 << bits, line_size=LINE, hash="xor").slice_of(address) == expected


# The primitive polynomials, written as exponents.
POLYNOMIALS = {
    2: [2, 1, 0],
    3: [3, 1, 0],
    4: [4, 1, 0],
    5: [5, 2, 0],
    6: [6, 1, 0],
    7: [7, 1, 0],
    10: [10, 3, 0],
}


@pytest.mark.parametrize("bits", sorted(POLYNOMIALS))
@given(address=st.integers(0, 2**64 - 1))
def test_the_polynomial_hash_is_a_remainder(bits: int, address: int) -> None:
    """By long division over GF(2)."""
    divisor = sum(1 << exponent for exponent in POLYNOMIALS[bits])
    rest = address // LINE
    while rest.bit_length() > bits:
        rest ^= divisor << (rest.bit_length() - bits - 1)
    assert _core.SliceHash(slices=1 << bits, line_size=LINE).slice_of(address) == rest


@pytest.mark.parametrize("slices", [4, 16, 64, 256])
def test_slice_and_upper_bits_name_the_line(slices: int) -> None:
    """With a power of two of slices, line number // slices is an index within the slice that no other line has."""
    for hash_name in ("modulo", "xor", "polynomial"):
        hashing = _core.SliceHash(slices=slices, line_size=LINE, hash=hash_name)
        found = {(hashing.slice_of(line * LINE), line // slices) for line in range(8 * slices)}
        assert len(found) == 8 * slices


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slices": 12, "hash": "xor"}, "the xor hash needs a power of two of slices, not 12"),
        ({"hash": "sha"}, "no slice hash 'sha': modulo, xor, polynomial or interleaved"),
        ({"line_size": 96}, "power of two, not 96"),
    ],
)
def test_a_hash_that_cannot_be_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.SliceHash(**parameters)
