# SPDX-License-Identifier: Apache-2.0
"""Comparing runs: what differs, by how much, and whether two runs are the same."""

from __future__ import annotations

import math

import pytest

from manyscale.errors import RunError
from manyscale.results import RunWriter, compare, compare_headline, identical, load


@pytest.fixture
def make(tmp_path):
    """Makes a run from rows (component, statistic, key, value) and headline numbers in seconds."""
    made = []

    def make_run(rows, unit="1", **headline):
        path = tmp_path / f"run-{len(made)}"
        made.append(path)
        with RunWriter(path, command=[], workload={}, seed=0) as run:
            run.write_stats(
                {
                    "component": [row[0] for row in rows],
                    "statistic": [row[1] for row in rows],
                    "kind": ["gauge"] * len(rows),
                    "unit": [unit] * len(rows),
                    "description": ["a number"] * len(rows),
                    "scope": ["run"] * len(rows),
                    "key": [row[2] for row in rows],
                    "value": [row[3] for row in rows],
                }
            )
            run.finish({name: {"value": value, "unit": "s"} for name, value in headline.items()})
        return load(path)

    return make_run


def test_the_largest_change_comes_first_and_what_is_equal_is_left_out(make):
    a = make([("gpu", "small", None, 100.0), ("gpu", "same", None, 5.0), ("gpu", "large", None, 10.0)])
    b = make([("gpu", "small", None, 101.0), ("gpu", "same", None, 5.0), ("gpu", "large", None, 5.0)])
    table = compare(a, b)
    assert table.columns == [
        "component",
        "statistic",
        "scope",
        "key",
        "unit",
        "a",
        "b",
        "difference",
        "percent",
    ]
    assert table["statistic"].to_list() == ["large", "small"]
    assert table["difference"].to_list() == [-5.0, 1.0]
    assert table["percent"].to_list() == [-50.0, 1.0]


def test_the_threshold_leaves_out_small_changes(make):
    a = make([("gpu", "x", None, 100.0), ("gpu", "y", None, 100.0)])
    b = make([("gpu", "x", None, 101.0), ("gpu", "y", None, 98.0)])
    assert compare(a, b, threshold_percent=1.0)["statistic"].to_list() == ["y"]
    assert compare(a, b, threshold_percent=2.0).is_empty()


def test_rows_of_one_side_have_null_on_the_other_whatever_the_threshold(make):
    a = make([("gpu", "old", None, 1.0), ("gpu", "x", 0.5, 1.0)])
    b = make([("gpu", "x", 0.5, 2.0), ("gpu", "new", None, 3.0)])
    table = compare(a, b, threshold_percent=50.0)
    assert table.select("statistic", "a", "b", "percent").rows() == [
        ("x", 1.0, 2.0, 100.0),
        ("old", 1.0, None, None),
        ("new", None, 3.0, None),
    ]


def test_rows_are_matched_by_key_and_by_their_turn(make):
    a = make([("link", "load", 0.0, 1.0), ("link", "load", 0.0, 2.0), ("link", "load", 1.0, 3.0)])
    b = make([("link", "load", 0.0, 1.0), ("link", "load", 0.0, 4.0), ("link", "load", 1.0, 3.0)])
    assert compare(a, b).select("key", "a", "b").rows() == [(0.0, 2.0, 4.0)]


def test_different_units_are_never_subtracted(make):
    table = compare(make([("gpu", "x", None, 1.0)], unit="s"), make([("gpu", "x", None, 1.0)], unit="ms"))
    assert table.select("unit", "a", "b").rows() == [("s", 1.0, None), ("ms", None, 1.0)]


def test_from_zero_is_infinitely_more(make):
    table = compare(make([("gpu", "x", None, 0)]), make([("gpu", "x", None, 3)]))
    assert table["percent"].to_list() == [math.inf]


def test_large_counts_that_differ_by_one_differ(make):
    a, b = make([("gpu", "x", None, 2**60)]), make([("gpu", "x", None, 2**60 + 1)])
    assert compare(a, b)["difference"].to_list() == [1.0]
    assert not identical(a, b)


def test_counts_far_apart_do_not_overflow(make):
    a, b = make([("gpu", "x", None, -(2**63))]), make([("gpu", "x", None, 2**63 - 1)])
    assert compare(a, b)["difference"].to_list() == [2.0**64]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0])
def test_special_values_equal_themselves(make, value):
    a, b = make([("gpu", "x", None, value)]), make([("gpu", "x", None, value)])
    assert compare(a, b).is_empty()
    assert identical(a, b)


def test_a_value_that_became_nan_is_shown(make):
    assert compare(make([("gpu", "x", None, 1.0)]), make([("gpu", "x", None, math.nan)])).height == 1


def test_headlines_stand_side_by_side(make):
    a = make([], simulated_seconds=2.0, wall_seconds=7.0)
    b = make([], simulated_seconds=3.0, extra=1)
    assert compare_headline(a, b).rows() == [
        ("simulated_seconds", "s", 2.0, 3.0, 1.0, 50.0),
        ("wall_seconds", "s", 7.0, None, None, None),
        ("extra", "s", None, 1.0, None, None),
    ]


def test_identical_leaves_out_wall_clock_times(make):
    rows = [("gpu", "x", None, 1), ("gpu", "y", 0.5, 2.0)]
    a = make(rows, simulated_seconds=2.0, wall_seconds=7.0)
    assert identical(a, make(rows, simulated_seconds=2.0, wall_seconds=8.0))
    assert not identical(a, make(rows, simulated_seconds=2.1, wall_seconds=7.0))
    assert not identical(a, make([*rows, ("gpu", "z", None, 1)], simulated_seconds=2.0))


def test_a_run_without_statistics_cannot_be_compared(make, tmp_path):
    with RunWriter(tmp_path / "empty", command=[], workload={}, seed=0) as run:
        run.finish({})
    with pytest.raises(RunError, match=r"empty \(done\) has no statistics"):
        compare(make([]), load(tmp_path / "empty"))
