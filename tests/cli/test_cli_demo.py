# SPDX-License-Identifier: Apache-2.0
"""The demo runs, its claims are true, and it leaves runs and a report in which a browser shows every section."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import CHROMIUM, DRIVER, MISSING, Browser
from typer.testing import CliRunner

from manyscale import load
from manyscale.cli import demo_steps
from manyscale.cli.app import app
from sanitizers import SANITIZED

pytestmark = pytest.mark.core

SECTIONS = (
    *("In short", "A kernel on a V100", "The same after two fixes", "With unified memory on a GTX 1080 Ti"),
    *("An OpenMP program", "An MPI job on 512 nodes", "A training step", "Simulator and provenance"),
)
PARTS = ("Timeline", "Unified memory", "CPI stacks", "Time of ranks", "Critical path")


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> dict:
    """The demo as a process of its own, without nvcc, a cross-compiler or a network."""
    directory = tmp_path_factory.mktemp("demo") / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "manyscale.cli.app", "demo", "--out", str(directory), "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={"PATH": "/nowhere", "HOME": str(directory.parent), "http_proxy": "http://127.0.0.1:1"}
        | {name: os.environ[name] for name in ("LD_PRELOAD", "ASAN_OPTIONS") if name in os.environ},
    )
    return json.loads(done.stdout)


def microseconds(text: str) -> float:
    """The first time in a fact."""
    return float(re.search(r"([\d,.]+) us", text)[1].replace(",", ""))


def test_what_the_demo_tells_is_true(demo):
    steps = demo["steps"]
    slow = microseconds(steps["kernel"]["transpose of 1,024 x 1,024 floats"])
    tile, padded = (microseconds(fact) for fact in steps["fixed-kernel"].values())
    assert slow > 1.5 * tile > 2 * padded
    assert steps["kernel"]["limited by"].startswith("uncoalesced")
    assert "bank conflicts" in steps["fixed-kernel"]["a tile in shared memory"]
    assert "DRAM bandwidth" in steps["fixed-kernel"]["its rows padded by a word"]
    on_demand, prefetched = list(steps["unified-memory"].values())[:2]
    assert microseconds(on_demand) > 5 * microseconds(prefetched)
    assert " 0 page faults" in prefetched
    broadwell, thunderx, boom = (microseconds(fact) for fact in steps["processors"].values())
    assert broadwell < thunderx < boom
    times = [microseconds(steps["network"][kind]) for kind in ("fat-tree", "torus", "dragonfly")]
    assert times == sorted(times)
    assert times[0] > 200  # ten phases of computing of 20 us
    steps_of_training = [
        microseconds(steps["training"][f"on {count} GPUs"]) for count in ("4", "64", "1,024")
    ]
    assert steps_of_training == sorted(steps_of_training)
    assert steps_of_training[-1] < 2 * steps_of_training[0]


def test_the_demo_leaves_runs(demo):
    directory = Path(demo["directory"])
    for run in (
        "kernel/first",
        "fixed-kernel/padded",
        "unified-memory/managed",
        "processors/dibona",
        "network/torus",
        "training/1024-gpus",
    ):
        assert load(directory / run).status == "done"
    assert (directory / "kernel" / "first" / "timeline.pftrace").stat().st_size > 1000
    assert Path(demo["report"]).stat().st_size < 10e6


@pytest.mark.skipif(SANITIZED, reason="the bound is for a core without a sanitizer")
def test_the_demo_is_short(demo):
    """40 s are promised; this is the processor time of one core, on which nothing else has an influence."""
    assert demo["processor_seconds"] < 40


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_a_browser_shows_every_section(demo, tmp_path):
    with Browser() as browser:
        browser.open(Path(demo["report"]))
        browser.unfold()
        assert browser.errors() == []
        text = browser.text()
        missing = [title for title in (*SECTIONS, *PARTS) if title not in text]
        assert missing == []
        drawn = browser.run(
            "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg').length)"
        )
        assert len(drawn) > 15
        assert min(drawn) > 0
        assert browser.run("return [...document.querySelectorAll('canvas')].every(c => c.width > 300)")
        assert browser.run(
            "return [...document.querySelectorAll('.picture img')].every(i => i.naturalWidth > 0)"
        )
        picture = tmp_path / "report.png"
        browser.screenshot(picture)
        assert picture.stat().st_size > 150_000  # not an empty page


def test_the_demo_ends_with_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_steps, "STEPS", {"kernel": demo_steps.kernel})
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    lines = result.stdout.strip().splitlines()
    assert lines[0] == "[1/1] A kernel on a V100: how long does it take, and what limits it?"
    after = next(number for number, line in enumerate(lines) if line.startswith("Done in"))
    commands = dict(line.strip().split("  ", 1) for line in lines[after + 1 :])
    assert Path(commands["open the report"].split()[-1]).exists()
    assert load(commands["one of its runs"].split()[-1]).status == "done"


def test_the_stored_kernels_are_those_of_the_source():
    folder = Path(demo_steps.__file__).parent
    named = re.findall(r"__global__ void (\w+)", (folder / "demo_kernels.cu").read_text())
    assert named == re.findall(r"\.entry (\w+)", (folder / "demo_kernels.ptx").read_text())
