# SPDX-License-Identifier: Apache-2.0
"""Quantities are exact, and what is wrong with one is said."""

import contextlib
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale import units
from manyscale.errors import InputError
from manyscale.units import (
    BANDWIDTH,
    BYTES,
    COUNT,
    CYCLES,
    DIMENSIONS,
    FREQUENCY,
    LARGEST,
    RATIO,
    SMALLEST,
    TIME,
    Dimension,
    humanize,
    parse,
)

WHOLE = [dimension for dimension in DIMENSIONS.values() if dimension.whole]
WITH_UNITS = [dimension for dimension in WHOLE if dimension.units]


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("1312MHz", FREQUENCY, 1_312_000_000),
        ("1e3MHz", FREQUENCY, 1_000_000_000),
        ("192KiB", BYTES, 192 * 1024),
        ("4kB", BYTES, 4000),
        ("4KB", BYTES, 4000),
        ("1TiB", BYTES, 2**40),
        ("23840ps", TIME, 23_840_000),
        ("45us", TIME, 45 * 10**9),
        ("45\u00b5s", TIME, 45 * 10**9),
        ("45\u03bcs", TIME, 45 * 10**9),
        ("0.75 ns", TIME, 750_000),
        (" -1fs ", TIME, -1),
        ("37.5GB/s", BANDWIDTH, 37_500_000_000),
        ("1GiB/s", BANDWIDTH, 2**30),
        ("100Gb/s", BANDWIDTH, 12_500_000_000),
        ("8Mbit/s", BANDWIDTH, 1_000_000),
        ("16b/s", BANDWIDTH, 2),
        ("100cycles", CYCLES, 100),
        ("1cycle", CYCLES, 1),
        ("7", CYCLES, 7),
        ("84", COUNT, 84),
        ("1e3", COUNT, 1000),
        ("0.5", RATIO, 0.5),
        (".25", RATIO, 0.25),
    ],
)
def test_a_text_has_an_exact_value(text: str, dimension: Dimension, value: float) -> None:
    assert parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("0.3fs", TIME, "'0.3fs' is finer than a time can be: it is not a whole number of fs"),
        ("100b/s", BANDWIDTH, "'100b/s' is finer than a bandwidth can be: it is not a whole number of B/s"),
        ("0.5", COUNT, "'0.5' is not whole; a count is a whole number"),
        ("12", TIME, "'12' has no unit; a time takes fs, ps, ns, us, ms, s"),
        ("12 parsecs", TIME, "'parsecs' is no unit of a time, which takes fs, ps, ns"),
        ("5GB", TIME, "'GB' is no unit of a time"),
        ("5s", BYTES, "'s' is no unit of an amount of bytes, which takes B, kB, MB"),
        ("84 things", COUNT, "'things' is no unit of a count, which takes no unit"),
        ("3ns", CYCLES, "'ns' is no unit of a number of cycles, which takes cycles, cycle or no unit"),
        ("9224s", TIME, "'9224s' is beyond the range of a time, at most 9223s"),
        ("9223372036854775808", COUNT, "beyond the range of a count"),
        ("1e999999999s", TIME, "'1e999999999s' is beyond the range of a time"),
        ("1e399", RATIO, "'1e399' is beyond the range of a ratio"),
        ("fast", FREQUENCY, "'fast' is not a frequency; write a number such as '1312MHz'"),
        ("", TIME, "'' is not a time"),
        ("1.5.5ns", TIME, "'1.5.5ns' is not a time"),
        ("9" * 5000 + "s", TIME, "is not a time"),
        ("nan", RATIO, "'nan' is not a ratio"),
    ],
)
def test_a_wrong_text_says_what_would_be_right(text: str, dimension: Dimension, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, dimension)
    assert message in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (750_000, TIME, "750ps"),
        (0, TIME, "0fs"),
        (1_312_000_000, FREQUENCY, "1312MHz"),
        (192 * 1024, BYTES, "192KiB"),
        (40, BYTES, "40B"),
        (16 * 10**9, BANDWIDTH, "16GB/s"),
        (1, CYCLES, "1cycle"),
        (100, CYCLES, "100cycles"),
        (84, COUNT, "84"),
        (0.1, RATIO, "0.1"),
    ],
)
def test_format_uses_the_largest_whole_unit(value: float, dimension: Dimension, text: str) -> None:
    assert units.format(value, dimension) == text


@given(st.sampled_from(WHOLE), st.integers(SMALLEST, LARGEST))
def test_format_and_parse_are_inverse(dimension: Dimension, value: int) -> None:
    assert parse(units.format(value, dimension), dimension) == value


@given(st.sampled_from(WITH_UNITS), st.integers(-(10**4), 10**4), st.data())
def test_format_and_parse_are_inverse_for_round_values(
    dimension: Dimension, count: int, data: st.DataObject
) -> None:
    factor = dimension.units[data.draw(st.sampled_from(dimension.written))]
    value = int(count * factor)
    if SMALLEST <= value <= LARGEST:
        assert parse(units.format(value, dimension), dimension) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_ratio_survives_being_written(value: float) -> None:
    assert parse(units.format(value, RATIO), RATIO) == value


@given(st.sampled_from(WITH_UNITS), st.decimals(-(10**6), 10**6, places=6), st.data())
def test_parse_is_exact_or_refuses(dimension: Dimension, number: object, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(dimension.units)))
    exact = Fraction(str(number)) * dimension.units[unit]
    if exact.denominator == 1 and SMALLEST <= exact <= LARGEST:
        assert parse(f"{number}{unit}", dimension) == exact
    else:
        with pytest.raises(InputError):
            parse(f"{number}{unit}", dimension)


@given(st.text(), st.sampled_from(list(DIMENSIONS.values())))
def test_any_text_is_a_value_or_an_input_error(text: str, dimension: Dimension) -> None:
    with contextlib.suppress(InputError):
        parse(text, dimension)


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (5_750_800_000, TIME, "5.751us"),
        (999_960_000, TIME, "1us"),
        (999_940_000, TIME, "999.9ns"),
        (0, TIME, "0fs"),
        (0.25, TIME, "0.25fs"),
        (-5_751_000_000, TIME, "-5.751us"),
        (192 * 2**20, BYTES, "192MiB"),
        (1023, BYTES, "1023B"),
        (15_753_846_153, BANDWIDTH, "15.75GB/s"),
        (12_454_750, COUNT, "12.45M"),
        (1, CYCLES, "1cycle"),
        (5751, CYCLES, "5.751kcycles"),
        (1 / 3, RATIO, "0.3333"),
        (float("nan"), TIME, "nanfs"),
    ],
)
def test_humanize_rounds_for_people(value: float, dimension: Dimension, text: str) -> None:
    assert humanize(value, dimension) == text


@given(st.sampled_from(WITH_UNITS), st.integers(1, LARGEST))
def test_humanize_is_within_a_part_in_two_thousand(dimension: Dimension, value: int) -> None:
    match = re.fullmatch(r"([0-9.]+)(.*)", humanize(value, dimension))
    assert match is not None
    factor = dimension.spoken.get(match.group(2), 1)
    assert abs(Fraction(match.group(1)) * factor - value) <= Fraction(value, 1999)
