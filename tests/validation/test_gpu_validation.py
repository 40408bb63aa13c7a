# SPDX-License-Identifier: Apache-2.0
"""The simulated V100 is near what was measured on hardware: two programs, and the latencies."""

from __future__ import annotations

import pytest

from manyscale.errors import ManyscaleError
from manyscale.validation import Row, gpu_apps, gpu_micro, max_error_percent, mean_error_percent

pytestmark = pytest.mark.core


def test_errors_are_relative_to_the_reference():
    rows = [Row("more", 110, 100, "cycles", "nobody"), Row("less", 150, 200, "cycles", "nobody")]
    assert [row.error_percent for row in rows] == [10, -25]
    assert mean_error_percent(rows) == 17.5
    assert max_error_percent(rows) == 25


def test_programs_take_about_as_long_as_on_hardware():
    add, lu = gpu_apps.rows()
    assert (add.name.split(",")[0], lu.name.split(",")[0]) == ("vectorAdd", "blocked LU")
    assert abs(add.error_percent) < 9
    assert abs(lu.error_percent) < 15


def test_a_wrong_result_is_an_error(monkeypatch):
    monkeypatch.setattr(gpu_apps.np, "array_equal", lambda *_: False)
    with pytest.raises(ManyscaleError, match="differ from numpy's"):
        gpu_apps.vector_add("v100")


def test_latencies_are_those_of_hardware():
    rows = gpu_micro.latency_rows()
    assert len(rows) == 14
    for row in rows:
        assert abs(row.error_percent) <= 3 or abs(row.simulated - row.reference) <= 2, row
