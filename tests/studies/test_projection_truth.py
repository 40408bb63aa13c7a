# SPDX-License-Identifier: Apache-2.0
"""A projection from one node beside a detailed simulation of all nodes: the smallest case; the rest is validated."""

import shutil

import pytest

from manyscale.validation import VALIDATIONS
from manyscale.validation.projection import CASES, Case, build_native, compare

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine"),
]


def test_two_nodes_are_foretold_from_one(tmp_path):
    """Within 12%, the bound for each program; without external ranks and variability it is further off."""
    outcome = compare(Case("fft2d", "32 4", 2, 1, "16 4"), build_native(tmp_path))
    assert abs(outcome.error_percent("ext-var")) < 12
    assert abs(outcome.error_percent("no ext-ct")) > abs(outcome.error_percent("ext-var"))


def test_five_programs_on_two_to_eight_nodes_are_validated():
    assert {case.program for case in CASES} == {"hpcg", "snap", "milc", "fft2d", "training"}
    assert {case.nodes for case in CASES} == {2, 4, 8}
    assert "projection" in VALIDATIONS
