# SPDX-License-Identifier: Apache-2.0
"""The pictures of pages in the documentation: one of every kind, on each screen, and small."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "report_screenshots", ROOT / "tools" / "report_screenshots.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_page_has_its_pictures_and_no_others_are_kept(tool):
    expected = {f"{name}{screen}.webp" for name in tool.KINDS for screen in tool.SCREENS}
    expected |= {f"{name}-{anchor}.webp" for name, anchors in tool.OPENED.items() for anchor in anchors}
    assert {file.name for file in tool.TARGET.iterdir()} == expected


def test_pictures_are_small(tool):
    large = {
        file.name: file.stat().st_size
        for file in tool.TARGET.iterdir()
        if file.stat().st_size >= tool.MOST_BYTES
    }
    assert large == {}


def test_a_picture_that_cannot_be_made_small_is_refused(tool):
    image = pytest.importorskip("PIL.Image")
    import io

    import numpy as np

    noise = np.random.default_rng(0).integers(0, 256, (1200, 1200, 3), dtype=np.uint8)
    png = io.BytesIO()
    image.fromarray(noise).save(png, "PNG")
    with pytest.raises(RuntimeError, match="more than 150,000"):
        tool.compressed(png.getvalue())
