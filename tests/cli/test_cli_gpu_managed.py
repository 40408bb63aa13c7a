# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu run --managed`: arrays in managed memory, what their pages cost, and the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app

pytestmark = pytest.mark.core

DEMO = Path(__file__).resolve().parents[2] / "examples" / "gpu" / "kernels.ptx"
SMALL = ("--machine", "v100", "--set", "gpu.sm_count=2", "--set", "gpu.l2_slices=2")
SAXPY = (
    *(str(DEMO), "-k", "saxpy", "-g", "64", "-b", "256"),
    *("-a", "2.5", "-a", "x=f32[16384]:arange", "-a", "y=f32[16384]:ones", "-a", "16384"),
)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["gpu", "run", *arguments], env={"COLUMNS": "100"})
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def test_pages_come_over_the_link_and_the_result_is_the_same():
    """Two arrays of 64 KiB: 32 pages come once; with a prefetcher most of them without a fault of their own."""
    plain, managed = (json.loads(run(*SAXPY, *SMALL, *option, "--json")) for option in ((), ("--managed",)))
    assert managed["arrays"] == plain["arrays"]
    assert managed["simulated_seconds"] > 10 * plain["simulated_seconds"]
    moved = managed["unified_memory"]
    assert moved["bytes_to_device"] == 2 * 65536
    assert moved["pages_faulted_in"] + moved["pages_prefetched"] == 32
    assert moved["bytes_to_host"] == 0  # counted before the results are read
    assert "unified_memory" not in plain
    each = json.loads(run(*SAXPY, *SMALL, "--managed", "--set", "gpu.uvm.prefetcher=none", "--json"))
    assert each["unified_memory"]["pages_faulted_in"] == 32


def test_people_see_what_limits_it():
    shown = run(*SAXPY, *SMALL, "--managed")
    assert "bytes to device" in shown
    assert "131,072 B" in shown
    assert "page faults: " in shown


def test_without_a_machine_managed_memory_is_memory():
    assert (
        json.loads(run(*SAXPY, "--managed", "--json"))["arrays"]
        == json.loads(run(*SAXPY, "--json"))["arrays"]
    )


def test_the_run_directory_says_so(tmp_path):
    run(*SAXPY, *SMALL, "--managed", "--out", str(tmp_path / "run"), "--quiet")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["workload"]["managed"] is True
