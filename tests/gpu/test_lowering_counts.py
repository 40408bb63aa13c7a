# SPDX-License-Identifier: Apache-2.0
"""The instructions that PTX is lowered to, counted by class, beside those of real SASS.

The counts of SASS are kept (fixtures/make_sass_counts.py makes them), so this needs none of NVIDIA's
programs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))
from make_sass_counts import COUNTS, ROOT, comparison_tool

pytestmark = pytest.mark.core

TOLERANCE = 0.15


@pytest.fixture(scope="module")
def counted() -> list[tuple[str, Counter[str], Counter[str]]]:
    """Of each kernel its name, and the instructions by class: lowered, and as the assembler emits them."""
    tool = comparison_tool()
    rows = []
    for file, kernels in json.loads(COUNTS.read_text()).items():
        ours = tool.our_listings(ROOT / file)  # type: ignore[attr-defined]
        for name, theirs in kernels.items():
            kinds = Counter(instruction.kind for instruction in ours[name].instructions)
            classes = {
                title: sum(kinds[kind] for kind in members)
                for title, members in tool.CLASSES.items()  # type: ignore[attr-defined]
            }
            rows.append((f"{file}: {name}", Counter(classes), Counter(theirs)))
    return rows


def test_each_class_is_as_frequent_as_in_sass(counted) -> None:
    ours, theirs = Counter(), Counter()
    for _, lowered, emitted in counted:
        ours += lowered
        theirs += emitted
    assert len(counted) > 150
    errors = {name: ours[name] / count - 1 for name, count in theirs.items()}
    assert set(errors) >= {
        "integer",
        "fp32",
        "fp64",
        "special",
        "global",
        "shared",
        "local",
        "branch",
        "other",
    }
    assert {name: round(error, 3) for name, error in errors.items() if abs(error) > TOLERANCE} == {}


def test_most_kernels_have_as_many_instructions(counted) -> None:
    errors = [abs(lowered.total() / emitted.total() - 1) for _, lowered, emitted in counted]
    assert sum(errors) / len(errors) < 0.10
    assert sum(error <= TOLERANCE for error in errors) / len(errors) > 0.75
