# SPDX-License-Identifier: Apache-2.0
"""The tidy table keeps what it is given, exactly, and names the row that is wrong."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyscale.errors import RunError
from manyscale.results import statistics


def columns(**changes):
    """Two rows: a counter and a bucket of a histogram; `changes` replace columns."""
    data = {
        "component": ["gpu.sm[3]", "gpu.sm[3]"],
        "statistic": ["warps", "latency.bucket"],
        "kind": ["counter", "histogram"],
        "unit": ["warps", "s"],
        "description": ["warps that ran", "latency of loads"],
        "scope": ["run", "kernel 1"],
        "key": [None, 0.5],
        "value": [7, 2.5],
    }
    return {**data, **changes}


def test_the_table_has_the_documented_columns_in_order():
    table = statistics.frame(columns())
    assert table.columns == [*statistics.COLUMNS, "count"]
    assert table.schema == pl.Schema(statistics.schema())
    assert table["key"].to_list() == [None, 0.5]
    assert table["value"].to_list() == [7.0, 2.5]
    assert table["count"].to_list() == [7, None]


def test_a_table_may_be_empty():
    table = statistics.frame({name: [] for name in statistics.COLUMNS})
    assert table.height == 0
    assert table.schema == pl.Schema(statistics.schema())


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_counter_keeps_every_digit(count):
    assert statistics.frame(columns(value=[count, 0.0]))["count"][0] == count


def test_a_counter_beyond_64_bits_is_refused():
    with pytest.raises(RunError, match=r"row 0 .*value 9223372036854775808 does not fit into 64 bits"):
        statistics.frame(columns(value=[2**63, 0.0]))


def test_a_counter_that_may_be_rounded_already_is_refused():
    with pytest.raises(
        RunError, match=r"row 0 .*counter given as the float 9007199254740992.0.*give an integer"
    ):
        statistics.frame(columns(value=[float(2**53), 0.0]))


def test_a_large_gauge_is_no_counter():
    assert statistics.frame(columns(kind=["gauge", "series"], value=[1e300, 1e20]))["value"][0] == 1e300


@pytest.mark.parametrize("name", statistics.TEXT_COLUMNS)
@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_an_empty_text_names_its_row_and_column(name, nothing):
    texts = columns()[name]
    with pytest.raises(RunError, match=f"row 1 of the statistics .*its {name} is empty"):
        statistics.frame(columns(**{name: [texts[0], nothing]}))


def test_a_missing_unit_says_how_to_write_none():
    with pytest.raises(RunError, match=r"a number without a unit has the unit '1'"):
        statistics.frame(columns(unit=["", "s"]))


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(
        RunError, match=r"row 1 .*kind is 'gague', which is none of counter, gauge, histogram, ser"
    ):
        statistics.frame(columns(kind=["counter", "gague"]))


@pytest.mark.parametrize("value", [None, "7", True])
def test_a_value_that_is_no_number_names_its_row(value):
    with pytest.raises(RunError, match=r"row 1 .*component 'gpu.sm\[3\]'.*which is not a number"):
        statistics.frame(columns(value=[1, value]))


def test_a_missing_column_is_named():
    data = columns()
    del data["scope"]
    with pytest.raises(RunError, match=r"no column 'scope'; they need component, statistic, kind"):
        statistics.frame(data)


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(RunError, match=r"unknown column 'scopes': did you mean 'scope'\?"):
        statistics.frame(columns(scopes=["a", "b"]))


def test_columns_of_different_length_are_listed():
    with pytest.raises(RunError, match=r"differ in length: component 2, .*key 1, value 2"):
        statistics.frame(columns(key=[None]))


def test_a_column_of_a_wrong_type_is_an_error_for_people():
    with pytest.raises(RunError, match=r"column of a wrong type"):
        statistics.frame(columns(key=[None, "soon"]))
