# SPDX-License-Identifier: Apache-2.0
"""Running an unmodified CUDA program on simulated GPUs."""

from __future__ import annotations

import gc
import hashlib
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyscale import units
from manyscale.errors import InputError
from manyscale.gpu.isa import described_code
from manyscale.guard import ProcessTree
from manyscale.interrupts import STOP_SIGNALS
from manyscale.machine import Machine, ResolvedMachine, resolve_machine
from manyscale.machine.cuda_runtime import runtime_costs
from manyscale.machine.loading import CUDA
from manyscale.results.notebook import NotebookView, facts_table, rows_table

from .commands import CopyRecord, LaunchRecord
from .executable import Executable
from .loader import library_folder, loader_variables, nvtx_variable, put_first
from .node import Node, NodeOptions
from .profiling import StopError
from .records import Records, copies_of, launches_of
from .server import Server
from .session import SessionOptions
from .timed_gpu import TimeLimitError

SOCKET = "MANYSCALE_CUDA_SOCKET"
_SIGNAL_EXIT = 128
_SAME_SIGNAL = 0.2  # seconds within which a signal for the whole job reaches this process too


@dataclass(frozen=True)
class HostOptions:
    """How the host's side of a program is simulated."""

    measured: bool = False  # the program's own time between its calls counts
    simulated_clock: bool = False  # clocks of the program tell simulated time
    operators: bool = False  # those of PyTorch are NVTX ranges


@dataclass
class CudaRun(NotebookView):
    """The result of a program: how it ended, its kernels and copies, and the simulated GPUs."""

    exit_code: int  # as a shell gives it: 128 and the number of the signal that ended the program
    wall_seconds: float
    simulated: int  # femtoseconds of the host's clock
    node: Node
    records: Records
    limit_reached: bool = False  # of simulated time
    killed_by: str | None = None  # the signal that ended the program, such as SIGSEGV
    kernels: list[LaunchRecord] = field(default_factory=list)
    copies: list[CopyRecord] = field(default_factory=list)

    @property
    def failure(self) -> str | None:
        """How the program failed; None if its exit code is 0."""
        if self.limit_reached:
            limit = units.format(self.node.options.until or 0, units.TIME)
            return f"the program was ended at the limit of {limit} simulated time"
        if self.killed_by is not None:
            return f"the program was ended by {self.killed_by}"
        return f"the program ended with exit code {self.exit_code}" if self.exit_code else None

    @property
    def code(self) -> dict[str, Any]:
        """What the kernels ran as: the ISA, the assembler that made it, and the same of each module."""
        gpus = (*self.node.retired, *self.node.gpus)
        loaded = {name: code for gpu in gpus for name, code in gpu.loaded_code.items()}
        return described_code(loaded, timed=not self.node.options.functional)

    def _notebook(self) -> Iterable[str]:
        facts = {
            "simulated time": units.humanize(self.simulated, units.TIME),
            "exit code": self.exit_code,
            "launches": len(self.kernels),
            "copies": len(self.copies),
        }
        yield facts_table("CUDA program", facts)
        rows = [
            (record.name, units.humanize(record.end - record.begin, units.TIME), record.cycles)
            for record in sorted(self.kernels, key=lambda record: record.begin - record.end)
        ]
        yield rows_table("Launches, the longest first", ("kernel", "time", "cycles"), rows)


def resolve(command: Sequence[str]) -> Path:
    """The file of a program; an error that says what is wrong if it cannot be run."""
    found = shutil.which(command[0])
    if found is None:
        path = Path(command[0])
        if path.is_dir():
            raise InputError(f"{path}: this is a folder, not a program")
        if path.exists() and os.sep in command[0]:
            raise InputError(f"{path}: this file may not be executed")
        if os.sep in command[0]:
            raise InputError(f"{path}: there is no such program")
        here = f"; is ./{path} meant?" if Path(command[0]).is_file() else ""
        raise InputError(f"{path}: there is no such program in the folders of PATH{here}")
    return Path(os.path.abspath(found))  # absolute, so that the PATH is not searched again


class Program:
    """A program and its server; `run` returns when both have ended. `keep` is called now and then while it runs."""

    def __init__(
        self,
        command: Sequence[str],
        machine: str | os.PathLike[str] | Machine | ResolvedMachine,
        node_options: NodeOptions,
        host: HostOptions,
        notify: Callable[[str], None],
    ) -> None:
        self.path = resolve(command)
        self._command = [str(self.path), *command[1:]]
        self._folder = library_folder()
        self.machine = resolve_machine(machine)
        self.node = Node(self.machine.machine, node_options)
        executable = Executable.read(self.path)
        executable.check_runnable(self.node.gpus[0].capability, node_options.allow_newer)
        self._static_runtime = executable.static_runtime
        self.runtime = runtime_costs(self.machine.machine)
        self.machine.check_read(CUDA)
        self.records = Records()
        self._host = host
        self._notify = notify
        self.keep: Callable[[], None] = lambda: None
        self._status = 0  # as os.waitpid gives it
        self._abandoned = False  # the program died while kernels were simulated
        self._limit_reached = False
        self._stopped = False  # on purpose, with the last launch that was wanted
        self._simulated = 0
        self._wall_seconds = 0.0

    def run(self, *, stdout: int | None = None) -> CudaRun:
        """Starts the program and serves it until it has ended. `stdout` replaces its standard output."""
        begin = time.perf_counter()
        gc.freeze()  # objects of now stay alive: the collector can skip them
        options = SessionOptions(self.runtime.call_time, self._host.measured, self.runtime.pageable_bandwidth)
        address = f"@manyscale-cuda-{secrets.token_hex(16)}"
        watch = not self.node.options.functional
        server = Server(
            address,
            self.node,
            options,
            self.records,
            self._notify,
            watch_managed=watch,
            keep=lambda: self.keep(),
        )
        try:
            self._serve(server, address, stdout)
        finally:
            self._simulated = server.host_time
            server.close()
            gc.unfreeze()
            self._wall_seconds = time.perf_counter() - begin
        return self.result()

    def result(self) -> CudaRun:
        """The result so far."""
        code = 0 if self._stopped else os.waitstatus_to_exitcode(self._status)
        return CudaRun(
            code if code >= 0 else _SIGNAL_EXIT - code,
            self._wall_seconds,
            self._simulated,
            self.node,
            self.records,
            self._limit_reached,
            None if code >= 0 else _signal_name(-code),
            launches_of(self.node),
            copies_of(self.node),
        )

    def workload(self) -> dict[str, Any]:
        """The description of the program in the run directory."""
        options, host = self.node.options, self._host
        return {
            "kind": "cuda",
            "program": self.path.name,
            "hash": f"sha256:{hashlib.sha256(self.path.read_bytes()).hexdigest()}",
            "arguments": self._command[1:],
            "gpus": options.gpus,
            "functional": options.functional,
            **({"checks": list(options.checks)} if options.checks else {}),
            **({"bounds": "pages"} if options.page_bounds else {}),
            "host_time": "measured" if host.measured else "zero",
            "host_clock": "simulated" if host.simulated_clock else "real",
            "call_time_fs": self.runtime.call_time,
            "pageable_bandwidth": self.runtime.pageable_bandwidth,
            **({"profiling": options.profiling.data()} if options.profiling.data() else {}),
        }

    def _serve(self, server: Server, address: str, stdout: int | None) -> None:
        loaded = loader_variables(
            self._folder,
            self._static_runtime,
            program=self.path,
            host_clock=self._host.simulated_clock,
            operators=self._host.operators,
        )
        environment = os.environ | put_first(loaded, os.environ) | nvtx_variable(self._folder)
        environment |= {SOCKET: address}
        try:
            tree = ProcessTree(self._command, environment, f"{SOCKET}={address}", stdout=stdout)
        except OSError as error:
            raise InputError(f"cannot start {self.path}: {error.strerror or error}") from None
        monitor = self.node.monitor
        monitor.collected, monitor.abandoned = self.keep, lambda: self._died(tree)
        try:
            server.serve(tree.fileno())
            if self._died(tree) and os.WTERMSIG(tree.status or 0) in STOP_SIGNALS:
                time.sleep(_SAME_SIGNAL)  # if the signal was for the whole job, it is raised here
        except TimeLimitError:
            self._limit_reached = True
        except StopError:
            self._stopped = True
        except KeyboardInterrupt:
            if not self._abandoned:
                raise
        finally:
            self._status = tree.end()

    def _died(self, tree: ProcessTree) -> bool:
        """Whether a signal has ended the program, so that its queued work need not be simulated."""
        self._abandoned = tree.poll() and os.WIFSIGNALED(tree.status or 0)
        return self._abandoned


def run(
    program: Sequence[str],
    machine: str | os.PathLike[str] | Machine | ResolvedMachine = "v100",
    *,
    changes: Sequence[str] = (),
    node: NodeOptions | None = None,
    host: HostOptions | None = None,
    out: str | os.PathLike[str] | None = None,
    stdout: int | None = None,
    command: Sequence[str] = (),
) -> CudaRun:
    """Runs a CUDA program (its file and its arguments) to its end; messages go to standard error.

    `changes` are changes of the machine's parameters, such as "gpu.clock=1GHz". `stdout`: a file descriptor that
    replaces the standard output of the program. With `out`, leaves a run directory.
    """
    from .run_directory import run_recorded

    resolved = resolve_machine(machine, changes)
    started = Program(program, resolved, node or NodeOptions(), host or HostOptions(), _to_standard_error)
    if out is None:
        return started.run(stdout=stdout)
    return run_recorded(started, out, stdout=stdout, command=command)


def _to_standard_error(text: str) -> None:
    print(f"manyscale: {text}", file=sys.stderr)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
