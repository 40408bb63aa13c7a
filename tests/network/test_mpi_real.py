# SPDX-License-Identifier: Apache-2.0
"""The same programs on a real MPI deliver the same messages to the same receives, and the same results."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mpi_programs import Call, core_program, finished, make_job, split
from reference_matcher import Matcher, random_program

pytestmark = pytest.mark.core

MPIEXEC = Path(sys.executable).parent / "mpiexec"


def on_real_mpi(tmp_path: Path, ranks: int, programs: list[dict[str, Any]]) -> Any:
    """For each program and rank: the messages received, and the results of collectives."""
    if importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists():
        pytest.skip("mpi4py and mpich are not installed")
    (tmp_path / "programs.json").write_text(json.dumps(programs), encoding="utf-8")
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, str(Path(__file__).with_name("real_mpi.py"))]
    done = subprocess.run(
        [*command, str(tmp_path / "programs.json"), str(tmp_path / "results.json")],
        env=os.environ | {"HWLOC_COMPONENTS": "-gl", "FI_PROVIDER": "tcp"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))


def simulated(program: dict[str, Any]) -> list[tuple[list[list[int]], list[list[int]]]]:
    """The same from the simulator."""
    core, origin = core_program(program["calls"], [split(*group) for group in program["groups"]])
    done = finished(make_job(core, per_node=2, check=True)).completions()
    found: list[tuple[list[list[int]], list[list[int]]]] = [([], []) for _ in program["calls"]]
    for rank, operation, source, tag, value in zip(*done.values(), strict=True):
        index = origin[operation][1]
        name = program["calls"][rank][index][0]
        if name in ("recv", "irecv", "sendrecv"):
            found[rank][0].append([index, int(source), int(tag), int(value)])
        elif name != "barrier":
            found[rank][1].append([index, int(value)])
    return [(sorted(got), sorted(results)) for got, results in found]


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_random_programs(ranks: int, tmp_path: Path) -> None:
    """Programs that are safe (they end even if every send waits) and whose outcome does not depend on timing."""
    programs: list[dict[str, Any]] = []
    seed = 0
    while len(programs) < 12:
        calls = random_program(random.Random(1000 * ranks + seed), ranks, phases=3, messages=10)
        seed += 1
        if not Matcher(calls, [[list(range(ranks))] * ranks], eager_limit=-1).stuck:
            programs.append({"calls": calls, "groups": []})
    real = on_real_mpi(tmp_path, ranks, programs)
    for program, got in zip(programs, real, strict=True):
        assert [(r[0], r[1]) for r in got] == simulated(program)


def test_collectives_and_split_communicators(tmp_path: Path) -> None:
    """Sums, prefix sums and broadcasts over the world and over two groups in falling order."""
    ranks = 5
    groups = [([0, 1, 0, 1, 0], [9, 8, 7, 6, 5])]
    own: list[Call] = [
        ("allreduce", {"bytes": 8}),
        ("reduce", {"bytes": 8, "peer": 1, "comm": 1}),
        ("broadcast", {"bytes": 8, "peer": 3}),
        ("scan", {"bytes": 8, "comm": 1}),
        ("exscan", {"bytes": 8}),
        ("allreduce", {"bytes": 8, "comm": 1}),
        ("broadcast", {"bytes": 8, "peer": 0, "comm": 1}),
    ]
    calls = [[*own] for _ in range(ranks)]
    # Within the groups, counted there: the last tells the first.
    for rank in (4, 3):
        calls[rank].append(("recv", 2 if rank == 4 else 1, -2, {"comm": 1}))
    for rank in (0, 1):
        calls[rank].append(("send", 0, 6, 8, {"comm": 1}))
    program = {"calls": calls, "groups": groups}
    real = on_real_mpi(tmp_path, ranks, [program])[0]
    for rank, (got, results) in enumerate(simulated(program)):
        assert got == real[rank][0]
        assert meaningful(rank, results) == meaningful(rank, real[rank][1])


def meaningful(rank: int, results: list[list[int]]) -> list[list[int]]:
    """Only a reduction's root has its result; in the groups that is number 1: ranks 2 and 1."""
    return [result for result in results if result[0] != 1 or rank in (2, 1)]
