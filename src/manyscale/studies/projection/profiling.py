# SPDX-License-Identifier: Apache-2.0
"""Phase 1: what each rank of a job does, counted natively or in the functional processor, and which ranks are alike.

Natively, every rank runs under `perf stat`, started by the user's mpirun or as a program of this package's MPI
library. Where the machine has no counters for us, or there is no native program, ranks are executed without time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyscale.cpu.mpi_host import SHARED_MEMORY, rank_environment, start_rank
from manyscale.cpu.program import Program
from manyscale.cpu.running import finish_functional, start_functional
from manyscale.errors import InputError
from manyscale.guard import ends_with_this, temporary_folder
from manyscale.studies.projection.rank_clusters import TOLERANCE, RankClusters, cluster_ranks

_EVENTS = {  # of perf: user space only, since the kernel's work depends on the machine
    "instructions": "instructions:u",
    "cycles": "cycles:u",
    "branches": "branches:u",
    "loads": "L1-dcache-loads:u",
}
_PATIENCE = 5.0  # seconds for perf to end with what it counts
# What MPI launchers tell a process of its rank.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "MV2_COMM_WORLD_RANK")


@dataclass(frozen=True)
class RankProfile:
    """What was counted of each rank, and the groups that follow."""

    source: str  # perf, functional or given
    counters: dict[str, list[float]]  # by name, then by rank
    clusters: RankClusters
    nodes: list[int]  # those to simulate
    ranks_per_node: int
    facts: dict[str, Any]

    @property
    def ranks(self) -> int:
        """Of the job."""
        return len(self.clusters.labels)

    def instructions(self, node: int) -> int | None:
        """RISC-V instructions of all ranks of a node; None if they were not counted."""
        counted = self.counters.get("instructions") if self.source == "functional" else None
        first = node * self.ranks_per_node
        return None if counted is None else round(sum(counted[first : first + self.ranks_per_node]))


def profile_given(labels: Sequence[int], ranks_per_node: int) -> RankProfile:
    """Groups by hand: the group of each rank."""
    numbers: dict[int, int] = {}
    found = RankClusters([numbers.setdefault(label, len(numbers)) for label in labels], [], "given by hand")
    return RankProfile("given", {}, found, found.nodes(ranks_per_node), ranks_per_node, {})


def profile_native(
    native_program: str | os.PathLike[str],
    ranks: int,
    args: Sequence[str] = (),
    *,
    ranks_per_node: int = 1,
    launcher: str | None = None,
    environment: Mapping[str, str] | None = None,
    tolerance: float = TOLERANCE,
    timeout: float | None = None,
) -> RankProfile:
    """Counts by `perf stat`. `launcher` is such as "mpirun -n 8"; without it the ranks are started here."""
    reason = perf_problem()
    if reason is not None:
        raise InputError(f"perf cannot count here: {reason}; give the program for RISC-V to count without it")
    with temporary_folder("manyscale-perf-", SHARED_MEMORY) as folder:
        if launcher is None:
            _run_here(native_program, ranks, args, folder, dict(environment or {}), timeout)
        else:
            _run_launched(native_program, ranks, args, folder, launcher, dict(environment or {}), timeout)
        rows = [_read_perf(folder / f"perf.{rank}") for rank in range(ranks)]
    counters = {event: [row[event] for row in rows] for event in _EVENTS if all(event in row for row in rows)}
    if "instructions" not in counters:
        raise InputError("perf counted no instructions of some ranks")
    if "cycles" in counters:
        cycles = counters.pop("cycles")
        counters["IPC"] = [
            done / max(took, 1.0) for done, took in zip(counters["instructions"], cycles, strict=True)
        ]
    facts = {"program": os.fspath(native_program), "arguments": list(args), "launcher": launcher}
    return _finished("perf", counters, ranks_per_node, tolerance, facts)


def profile_functional(
    program: Program,
    ranks: int,
    *,
    ranks_per_node: int = 1,
    tolerance: float = TOLERANCE,
    progress: Any = None,
) -> RankProfile:
    """Counts by executing all ranks of a RISC-V program without time; there is no IPC then."""
    whole = replace(program, ranks=ranks)
    native = start_functional(whole, ranks, 0, False, ())
    native.count_work()
    result = finish_functional(whole, native, None, progress)
    for rank, process in enumerate(result.processes):
        if process.exit_code:
            raise InputError(f"{program.path}: rank {rank} ended with code {process.exit_code}")
    rows: list[dict[str, int]] = native.work()
    counters = {
        name: [float(row[name]) for row in rows[:ranks]] for name in ("instructions", "branches", "loads")
    }
    facts = {"program": program.name, "arguments": [str(argument) for argument in program.args]}
    return _finished("functional", counters, ranks_per_node, tolerance, facts)


def perf_problem() -> str | None:
    """Why perf cannot count instructions here; None if it can."""
    if shutil.which("perf") is None:
        return "the command perf is not installed"
    command = ["perf", "stat", "-x", ";", "-e", _EVENTS["instructions"], "true"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode:
        return result.stderr.strip().splitlines()[-1] if result.stderr.strip() else "perf stat fails"
    fields = result.stderr.strip().splitlines()[-1].split(";")
    return None if fields[0].isdigit() else f"instructions are {fields[0] or 'not counted'}"


def _finished(
    source: str,
    counters: dict[str, list[float]],
    ranks_per_node: int,
    tolerance: float,
    facts: dict[str, Any],
) -> RankProfile:
    found = cluster_ranks(counters, tolerance)
    return RankProfile(source, counters, found, found.nodes(ranks_per_node), ranks_per_node, facts)


def _perf_command(output: str) -> list[str]:
    return ["perf", "stat", "-x", ";", "-o", output, "-e", ",".join(_EVENTS.values()), "--"]


def _run_here(
    program: str | os.PathLike[str],
    ranks: int,
    args: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    timeout: float | None,
) -> None:
    if not Path(program).is_file():
        raise InputError(f"{program}: there is no such program")
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(ranks):
            command = [
                *_perf_command(str(folder / f"perf.{rank}")),
                os.fspath(Path(program).resolve()),
                *args,
            ]
            variables = os.environ | environment | rank_environment(rank, ranks, folder / "segment")
            # perf ends what it counts when it is asked to end.
            processes.append(start_rank(command, variables, folder, rank, ended_by=signal.SIGTERM))
        for rank, process in enumerate(processes):
            if process.wait(timeout=timeout):
                raise InputError(f"{program}: rank {rank} ended with code {process.returncode}")
    except subprocess.TimeoutExpired:
        raise InputError(f"{program}: {ranks} ranks were not done after {timeout:g} s") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run_launched(
    program: str | os.PathLike[str],
    ranks: int,
    args: Sequence[str],
    folder: Path,
    launcher: str,
    environment: dict[str, str],
    timeout: float | None,
) -> None:
    """Each process of the launcher is a shell that finds out its rank and becomes perf."""
    rank = "0"
    for variable in reversed(_RANK_VARIABLES):
        rank = f"${{{variable}:-{rank}}}"
    script = f'out="$1/perf.{rank}"; shift; exec {shlex.join(_perf_command("OUT"))} "$@"'
    script = script.replace("OUT", '"$out"')
    command = [*shlex.split(launcher), "sh", "-c", script, "sh", str(folder), os.fspath(program), *args]
    try:
        result = subprocess.run(
            ends_with_this(command, signal.SIGTERM),
            env=os.environ | environment,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise InputError(f"cannot run {launcher}: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{launcher}: it was not done after {timeout:g} s") from None
    if result.returncode:
        words = result.stderr.decode(errors="replace").strip()[-400:]
        raise InputError(f"{launcher} ended with code {result.returncode}: {words}")
    if missing := [rank for rank in range(ranks) if not (folder / f"perf.{rank}").is_file()]:
        raise InputError(f"{launcher}: no counts of rank {missing[0]}; does it start {ranks} ranks?")


def _read_perf(path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    names = {event: name for name, event in _EVENTS.items()}
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        raise InputError(f"perf left no counts of rank {path.suffix[1:]}") from None
    for line in lines:
        fields = line.split(";")
        if len(fields) > 2 and fields[2] in names and fields[0].isdigit():
            found[names[fields[2]]] = float(fields[0])
    return found
