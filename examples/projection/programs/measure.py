# SPDX-License-Identifier: Apache-2.0
"""Phase 2 for the programs of this folder: simulates a node of each and stores the timings that the figures take.

Run by hand where a compiler for this machine is installed; it takes some minutes:

    python examples/projection/programs/measure.py [PROGRAM...]

Each program has 2 ranks on each node. The node is simulated alone, and as one of 4 nodes of which the others run
natively. `truth.json` has what a detailed simulation of all nodes says, for few of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from manyscale import cpu
from manyscale.cpu.building import build
from manyscale.studies.detailed_cluster import run_detailed
from manyscale.studies.projection.measured_job import GroupTimings, MeasuredJob, measure_job
from manyscale.studies.projection.profiling import profile_given
from manyscale.studies.projection.timings import TimingProfile

HERE = Path(__file__).parent
STORED = HERE.parent / "timings"
RANKS, NODES = 2, 4


@dataclass(frozen=True)
class Study:
    """A program with its arguments, and the same problem for each rank where there are fewer ranks."""

    arguments: str
    alone: str = ""
    truth: tuple[int, ...] = (2,)  # nodes that are all simulated in detail
    groups: tuple[int, ...] = (0,) * (RANKS * NODES)


STUDIES = {
    "hpcg": Study("8 8 8 3 8"),
    "snap": Study("20 4 4 10 6 2 1"),
    "milc": Study("4 3"),
    "fft2d": Study("128 4", alone="64 4", truth=(4,)),
    "training": Study("24 4 8 4", groups=(0, *[1] * (RANKS * NODES - 1))),
}


def main() -> None:
    """Builds, simulates, stores."""
    wanted = sys.argv[1:] or list(STUDIES)
    with tempfile.TemporaryDirectory() as folder:
        native = Path(folder) / "programs"
        build(sorted(HERE.glob("*.c")), native, mpi=True, host=True)
        for name in wanted:
            study = STUDIES[name]
            program = cpu.Program(HERE / "programs.xz", [name, *study.arguments.split()])
            measured = measure_job(
                program,
                native,
                profile_given(study.groups, RANKS),
                alone_args=[name, *(study.alone or study.arguments).split()],
                say=lambda text, name=name: print(f"{name}: {text}", flush=True),
            )
            _only_sites(measured).save(STORED / name, force=True)
            _store_truth(name, program, study)


def _only_sites(measured: MeasuredJob) -> MeasuredJob:
    """Without what skeletons do not need, and without names of this machine."""

    def slim(groups: list[GroupTimings]) -> list[GroupTimings]:
        return [GroupTimings(TimingProfile([]), group.call_sites) for group in groups]

    facts = {**measured.facts, "native_program": None}
    return changed(measured, external=slim(measured.external), alone=slim(measured.alone), facts=facts)


def _store_truth(name: str, program: cpu.Program, study: Study) -> None:
    single = changed(program, args=(name, *(study.alone or study.arguments).split()), ranks=RANKS)
    found = {"1": cpu.run(single, cores=RANKS).simulated_seconds}
    for nodes in study.truth:
        print(f"{name}: all of {nodes} nodes in detail", flush=True)
        found[str(nodes)] = run_detailed(program, nodes=nodes, ranks_per_node=RANKS).seconds
    path = STORED / "truth.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**known, name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
