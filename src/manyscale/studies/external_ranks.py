# SPDX-License-Identifier: Apache-2.0
"""One node of a job in detail, while the ranks of all other nodes run natively on this machine and talk to it.

The job is as large as the user says, and nothing of its problem has to be scaled down to one node; only the
simulated node costs time. What is measured on it is the time between MPI calls: no simulated time passes while its
ranks wait for ranks elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyscale import _core
from manyscale.cpu.mpi_host import SHARED_MEMORY, rank_environment, start_rank
from manyscale.cpu.program import Program
from manyscale.cpu.running import launch_of, program_errors
from manyscale.errors import DeadlockError, InputError, ProgramError
from manyscale.guard import temporary_folder
from manyscale.machine.cpu_system import CpuSystem
from manyscale.system.running import core_errors, explain_deadlock

_POLL_SECONDS = 0.0002
_PATIENCE = 600.0  # seconds that native ranks may compute without an answer


class ExternalRanks:
    """The native processes of a job of which one node is simulated; a context in which that node can be run."""

    def __init__(
        self,
        native_program: str | os.PathLike[str],
        program: Program,
        *,
        node: int,
        nodes: int,
        ranks_per_node: int,
    ) -> None:
        """`native_program` is the same program as `program`, compiled for this machine (`manyscale cpu cc --mpi
        --host`); node number `node` of `nodes` is simulated."""
        if not 0 <= node < nodes:
            raise InputError(f"there is no node {node}; the nodes are 0 to {nodes - 1}")
        if not Path(native_program).is_file():
            raise InputError(f"{native_program}: there is no such program for the native ranks")
        self.native_program = Path(native_program).resolve()
        self.program = replace(program, ranks=ranks_per_node)
        self.first = node * ranks_per_node
        self.ranks = nodes * ranks_per_node
        self.bytes_out = self.bytes_in = 0

    def launch(self, parts: CpuSystem) -> None:
        """Starts the simulated ranks on a system, as a part of the job."""
        part = {"job_ranks": self.ranks, "first_rank": self.first}
        with program_errors(self.program):
            _core.cpu_launch(parts.program.native, launch_of(self.program, True, ()) | part)

    def run(
        self,
        parts: CpuSystem,
        *,
        threads: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Runs the node and the native ranks in turn until all have ended; returns the core's report."""
        with temporary_folder("manyscale-mpi-", SHARED_MEMORY) as folder:
            shared = folder / "segment"
            engine = None if parts.dma is None else parts.dma.native
            bridge = _core.ExternalRanks(parts.program.native, str(shared), engine)
            processes: dict[int, subprocess.Popen[bytes]] = {}
            try:
                self._start(processes, folder, shared)
                report = self._take_turns(parts, bridge, processes, threads, progress)
                self._wait_for_end(processes, folder)
            finally:
                for process in processes.values():
                    if process.poll() is None:
                        process.kill()
                    process.wait()
            self.bytes_out, self.bytes_in = bridge.bytes_out, bridge.bytes_in
            return report

    def _start(self, processes: dict[int, subprocess.Popen[bytes]], folder: Path, shared: Path) -> None:
        command = [os.fspath(self.native_program), *(str(argument) for argument in self.program.args)]
        simulated = range(self.first, self.first + self.program.ranks)
        for rank in range(self.ranks):
            if rank in simulated:
                continue
            variables = os.environ | dict(self.program.environment)
            variables |= rank_environment(rank, self.ranks, shared)
            processes[rank] = start_rank(command, variables, folder, rank)

    def _take_turns(
        self,
        parts: CpuSystem,
        bridge: _core.ExternalRanks,
        processes: dict[int, subprocess.Popen[bytes]],
        threads: int,
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, Any]:
        native = parts.program.native
        simulation = parts.system.simulation
        while True:
            ended = lambda: (_core.cpu_failure(native), _core.cpu_processes(native))  # noqa: E731
            with program_errors(self.program, ended), core_errors():
                report: dict[str, Any] = simulation.run(threads=threads, progress=progress)
            if report["outcome"] == "interrupted":
                raise KeyboardInterrupt
            sent = bridge.send()
            if report["outcome"] != "deadlock":
                return report
            self._wait_for_natives(bridge, processes)
            if not bridge.receive() and not sent:
                raise DeadlockError(explain_deadlock(report))

    def _wait_for_natives(
        self, bridge: _core.ExternalRanks, processes: dict[int, subprocess.Popen[bytes]]
    ) -> None:
        """Until all native ranks wait for something or have ended."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            codes = {rank: process.poll() for rank, process in processes.items()}
            failed = {rank: code for rank, code in codes.items() if code}
            if failed:
                rank, code = next(iter(failed.items()))
                raise ProgramError(f"{self.native_program}: the native rank {rank} ended with code {code}")
            if bridge.all_wait([rank for rank, code in codes.items() if code is not None]):
                return
            if time.monotonic() > give_up:
                raise ProgramError(
                    f"{self.native_program}: its ranks computed for {_PATIENCE:g} s without waiting for one that is "
                    "simulated"
                )
            time.sleep(_POLL_SECONDS)

    def _wait_for_end(self, processes: dict[int, subprocess.Popen[bytes]], folder: Path) -> None:
        for rank, process in processes.items():
            try:
                code = process.wait(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                raise ProgramError(
                    f"{self.native_program}: rank {rank} did not end with the simulated ones"
                ) from None
            if code:
                raise ProgramError(f"{self.native_program}: the native rank {rank} ended with code {code}")


def outputs(processes: Sequence[Any]) -> str:
    """What the simulated ranks wrote, rank by rank."""
    return b"".join(process[1] for process in processes).decode(errors="replace")
