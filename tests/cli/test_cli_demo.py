# SPDX-License-Identifier: Apache-2.0
"""The demo runs, its claims are true, and it leaves runs that can be looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from manyscale import load


def demo(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "manyscale.cli.app", "demo", "--out", str(directory), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_the_demo_tells_and_leaves_runs(tmp_path: Path) -> None:
    shown = demo(tmp_path / "demo").stdout
    assert "identical to the bit" in shown
    assert "they wait in a circle" in shown
    assert f"manyscale show {tmp_path / 'demo' / 'threads' / '2-threads'}" in shown
    assert load(tmp_path / "demo" / "threads" / "2-threads").status == "done"
    assert load(tmp_path / "demo" / "network" / "torus").status == "done"
    assert (tmp_path / "demo" / "credits" / "2-slots" / "timeline.pftrace").stat().st_size > 1000


def test_the_demo_in_json_is_nothing_but_json(tmp_path: Path) -> None:
    data = json.loads(demo(tmp_path / "demo", "--json").stdout)
    assert data["steps"]["threads"]["statistics of both runs"] == "identical to the bit"
    assert data["wall_seconds"] < 60
    assert "DRAM" in data["steps"]["timing"]["what limits it"]
    assert 1.5 < float(data["steps"]["programs"]["speed-up"].split()[0]) <= 4
    times = [float(data["steps"]["network"][kind].split()[0]) for kind in ("fat-tree", "torus", "dragonfly")]
    assert times == sorted(times)
    assert times[0] > 200  # ten phases of computing of 20 us
    for slots in (1, 2, 4, 8):
        measured, expected = (
            float(w) for w in data["steps"]["credits"][f"{slots} slots"].split() if "." in w
        )
        assert abs(measured / expected - 1) < 0.01
