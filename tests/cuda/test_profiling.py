# SPDX-License-Identifier: Apache-2.0
"""Runs as under a profiler: cold L2, warm instruction caches, and only some launches with time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from host_programs import sums_program

from manyscale.cuda import NodeOptions, Profiling, run
from manyscale.cuda.profiling import LaunchSelection
from manyscale.errors import InputError

pytestmark = pytest.mark.core

SMALL = ["gpu.sm_count=4", "gpu.l2_slices=4"]
SECTORS = 64 * 256 * 4 // 32  # of an array
ANSWER = "46 46"  # after four rounds


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sums_program(tmp_path_factory.mktemp("sums"))


def launches(sums: Path, rounds: int = 4, **options: Any) -> list[Any]:
    node = NodeOptions(isa="ptx", profiling=Profiling(**options))
    return run([str(sums), str(rounds)], "v100-sst", changes=SMALL, node=node, stdout=2).kernels


def cuda(sums: Path, *options: str) -> tuple[dict[str, Any], str]:
    """The result of a run by the command, and the program's own output."""
    changes = [word for change in SMALL for word in ("--set", change)]
    command = [*_COMMAND, "cuda", "--json", "--isa", "ptx", "-m", "v100-sst", *changes, *options]
    done = subprocess.run(
        [*command, "--", str(sums), "4"], cwd=sums.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


_COMMAND = [sys.executable, "-m", "manyscale.cli.app"]


def test_a_cold_l2_reads_everything_from_memory_in_each_launch(sums: Path) -> None:
    warm, cold = launches(sums), launches(sums, cold_l2=True)
    assert [record.dram_bytes // 32 for record in warm] == [0] * 8  # the copies left it in the L2
    assert [record.dram_bytes // 32 for record in cold] == [2 * SECTORS, SECTORS] * 4
    assert all(c.cycles > w.cycles for c, w in zip(cold, warm, strict=True))
    assert [record.l2_hit_rate for record in cold] != [record.l2_hit_rate for record in warm]


def test_a_cold_l2_gives_all_launches_of_a_kernel_the_same_traffic(sums: Path) -> None:
    cold = launches(sums, cold_l2=True, warm_instructions=True)
    traffic = {(record.name, record.l2_bytes, record.dram_bytes, record.l2_hit_rate) for record in cold}
    assert {name for name, *_ in traffic} == {"add", "twice"}
    assert len(traffic) == 2


@pytest.mark.parametrize("warm", [False, True])
def test_warm_instruction_caches_save_the_first_fetches(sums: Path, warm: bool) -> None:
    node = NodeOptions(isa="ptx", profiling=Profiling(warm_instructions=warm, kernel="."))
    done = run([str(sums), "1"], "v100-sst", changes=SMALL, node=node, stdout=2)
    missed = done.node.gpus[0].profiles["add"].counts.sm["fetch_l1_misses"]
    assert (missed == 0) == warm


def test_only_selected_launches_take_time_and_the_results_stay_right(sums: Path) -> None:
    data, output = cuda(sums, "--kernel", "^tw", "--skip", "1", "--launches", "2")
    assert [kernel["name"] for kernel in data["kernels"]] == ["twice", "twice"]
    assert data["untimed_launches"] == 6
    assert ANSWER in output


def test_a_program_can_end_with_the_last_selected_launch(sums: Path) -> None:
    data, output = cuda(sums, "--launches", "3", "--stop")
    assert [kernel["name"] for kernel in data["kernels"]] == ["add", "twice", "add"]
    assert ANSWER not in output
    recorded = json.loads((sums.parent / data["directory"] / "run.json").read_text())
    assert recorded["status"] == "done"
    assert recorded["workload"]["profiling"] == {"launches": 3, "stop": True}


def test_a_locked_clock_is_that_of_the_sms(sums: Path) -> None:
    data, _ = cuda(sums, "--lock-clock", "500MHz", "--launches", "1", "--stop")
    kernel = data["kernels"][0]
    seconds = kernel["end_seconds"] - kernel["begin_seconds"]
    assert kernel["cycles"] / seconds == pytest.approx(500e6, rel=1e-3)


def test_profiled_results_do_not_depend_on_threads(sums: Path) -> None:
    options = ("--cold-l2", "--warm-instructions", "--launches", "4")
    one, four = cuda(sums, *options)[0], cuda(sums, *options, "--threads", "4")[0]
    assert one["kernels"] == four["kernels"]


def test_launches_are_selected_by_name_first_then_by_number() -> None:
    selection = LaunchSelection(Profiling(kernel="a", skip=1, launches=2))
    assert [selection.takes_time(name) for name in ("a", "b", "a", "ba", "b", "a")] == [
        *(False, False, True, True, False, False)
    ]
    assert selection.untimed == 4
    assert selection.complete


@pytest.mark.parametrize(
    ("options", "words"),
    [({"kernel": "("}, "not a regular expression"), ({"stop": True}, "--stop needs --launches")],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Profiling(**options)
