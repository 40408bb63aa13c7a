# SPDX-License-Identifier: Apache-2.0
"""Pictures of unified memory: what the log says is what is drawn, and kept with a run."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from manyscale import gpu
from manyscale.errors import InputError
from manyscale.gpu.uvm_pictures import page_map, save_pictures, transfer_lanes
from manyscale.validation.managed_programs import run

pytestmark = pytest.mark.core

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def device() -> gpu.TimedDevice:
    """A program with half of the memory it needs, after which its arrays are gone."""
    made = gpu.TimedDevice("gtx1080ti", page_log=100_000)
    run("random_access", made, 1 << 18, oversubscribed=1.5)
    return made


def texts(picture: str) -> list[str | None]:
    return [text.text for text in ElementTree.fromstring(picture).iter(SVG + "text")]


def test_pages_are_dark_where_they_are_on_the_device(device: gpu.TimedDevice) -> None:
    picture = page_map(device, "random accesses")
    shown = texts(picture)
    assert {"random accesses", "page fault", "eviction", "on the device", "managed memory in MiB"} <= set(
        shown
    )
    assert "3" in shown  # three arrays of 1 MiB
    fills = {cell.get("fill") for cell in ElementTree.fromstring(picture).iter(SVG + "rect")}
    assert {"#e9ecef", "#1864ab"} <= fills
    log = device.uvm.log()
    points = len(list(ElementTree.fromstring(picture).iter(SVG + "circle")))
    evictions = len(log.filter(kind="to_host", cause="eviction")) + len(
        log.filter(kind="drop", cause="eviction")
    )
    assert points == len(log.filter(kind="fault")) + evictions + 2  # and the two of the legend


def test_lanes_show_kernels_driver_and_link(device: gpu.TimedDevice) -> None:
    shown = texts(transfer_lanes(device, "random accesses"))
    assert [name for name in shown if name in ("kernels", "driver", "to the device", "to the host")] == [
        "kernels",
        "driver",
        "to the device",
        "to the host",
    ]


def test_pictures_and_their_log_are_kept_in_a_folder(device: gpu.TimedDevice, tmp_path: Path) -> None:
    files = save_pictures(device, tmp_path / "run")
    assert [file.name for file in files] == ["pages.svg", "transfers.svg", "pages.parquet"]
    assert pl.read_parquet(files[2]).equals(device.uvm.log())
    for file in files[:2]:
        ElementTree.parse(file)


def test_without_a_log_there_is_nothing_to_draw(tmp_path: Path) -> None:
    silent = gpu.TimedDevice("gtx1080ti")
    silent.managed(1000).set(np.zeros(1000, np.float32))
    with pytest.raises(InputError, match="make the device with page_log="):
        save_pictures(silent, tmp_path / "run")
    assert not (tmp_path / "run").exists()
