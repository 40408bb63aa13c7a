# SPDX-License-Identifier: Apache-2.0
"""The kinds of runs that a study can be of. Each function makes one run; the table at the end lists them all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from manyscale.errors import InputError, ManyscaleError, nearest
from manyscale.studies.sweep.functions import call_function
from manyscale.studies.sweep.workload import Outcome, Parameter, RunRequest, WorkloadKind


def _network(request: RunRequest) -> Outcome:
    from manyscale import network

    options = dict(request.workload)
    result = network.run(
        options.pop("work"),
        machine=request.machine or network_machine(),
        changes=request.changes,
        seed=request.seed,
        threads=request.threads,
        **options.pop("param", {}),
        **options,
    )
    return Outcome(result.headline, lambda: result.columns)


def network_machine() -> str:
    """The machine of network jobs that name none."""
    from manyscale.network.job import DEFAULT_MACHINE

    return DEFAULT_MACHINE


def _cpu(request: RunRequest) -> Outcome:
    from manyscale import cpu
    from manyscale.cpu.running import DEFAULT_MACHINE

    options = dict(request.workload)
    program = cpu.Program(
        _program_file(options.pop("program")),
        args=[str(argument) for argument in options.pop("arguments", [])],
        environment={name: str(value) for name, value in options.pop("environment", {}).items()},
        ranks=options.pop("ranks", 1),
        memory=str(options.pop("memory", "4GiB")),
        root=options.pop("root", None),
        stdin=_content(options.pop("stdin", None)),
    )
    result = cpu.run(
        program,
        machine=request.machine or DEFAULT_MACHINE,
        changes=request.changes,
        seed=request.seed,
        threads=request.threads,
        regions=False,
        **options,
    )
    _refuse_exit(result.exit_code, program.name)
    return Outcome(result.headline, lambda: result.columns)


def _program_file(name: str) -> str:
    from manyscale.cpu.program import sample

    kind, colon, rest = name.partition(":")
    return str(sample(rest)) if colon and kind == "sample" else name


def _content(path: str | None) -> bytes:
    if path is None:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _replay(request: RunRequest) -> Outcome:
    from manyscale import cpu

    options = dict(request.workload)
    result = cpu.replay(
        options.pop("trace"),
        machine=request.machine,
        changes=request.changes,
        seed=request.seed,
        threads=request.threads,
        **options,
    )
    return Outcome(result.headline, lambda: result.columns)


def _gpu(request: RunRequest) -> Outcome:
    import numpy as np

    from manyscale.gpu import TimedDevice, TimedLaunch
    from manyscale.gpu.argument_text import parse_arguments
    from manyscale.gpu.headline import headline
    from manyscale.system.running import statistics_columns
    from manyscale.units import BYTES, parse

    options = request.workload
    device = TimedDevice(
        request.machine or "v100",
        changes=request.changes,
        seed=request.seed,
        threads=request.threads,
        echo=False,
        allow_newer=options.get("allow_newer", False),
    )
    module = device.load(options["file"], target=options.get("target"))
    name = options.get("kernel") or (module.kernels[0] if len(module.kernels) == 1 else None)
    if name is None:
        raise InputError(
            f"{options['file']}: say which kernel: {', '.join(module.kernels) or 'there is none'}"
        )
    random = np.random.default_rng(request.seed)
    values: list[Any] = []
    for argument in parse_arguments([str(text) for text in options.get("arguments", [])], random):
        if not argument.is_array:
            values.append(argument.value)
        elif options.get("managed"):
            array = device.managed(np.shape(argument.value), np.asarray(argument.value).dtype)
            array.set(argument.value)
            values.append(array)
        else:
            values.append(device.array(argument.value))
    shape = _extents(options.get("grid", 1), "grid"), _extents(options.get("block", 1), "block")
    configuration = (*shape, int(parse(str(options.get("shared", "0B")), BYTES)))
    launch = module[name][configuration](*values)
    assert isinstance(launch, TimedLaunch)
    system = device.parts.system
    moved = device.uvm.statistics() if options.get("managed") else None
    return Outcome(headline([launch], moved), lambda: statistics_columns(system))


def _extents(value: Any, what: str) -> list[int]:
    try:
        extents = [int(one) for one in (value if isinstance(value, list) else str(value).split(","))]
    except (ValueError, TypeError):
        extents = []
    if not 1 <= len(extents) <= 3 or min(extents) < 1:
        raise InputError(f"{what} {value}: give one, two or three whole numbers, such as 4 or [4, 2, 1]")
    return extents


def _cuda(request: RunRequest) -> Outcome:
    from manyscale.cuda import HostOptions, NodeOptions, Program
    from manyscale.cuda.headline import headline
    from manyscale.machine import load_machine

    options = request.workload
    machine = load_machine(request.machine or "v100", request.changes)
    node = NodeOptions(
        gpus=options.get("gpus", 1),
        functional=options.get("functional", False),
        threads=request.threads,
        seed=request.seed,
        allow_newer=options.get("allow_newer", False),
    )
    command = [options["program"], *(str(argument) for argument in options.get("arguments", []))]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        program = Program(command, machine, node, HostOptions(), lambda text: None)
        run = program.run(stdout=nowhere)
    finally:
        os.close(nowhere)
    _refuse_exit(run.exit_code, str(options["program"]))
    return Outcome(headline(run))


def _memory(request: RunRequest) -> Outcome:
    from manyscale.machine import load_machine
    from manyscale.machine.loading import TRAFFIC
    from manyscale.machine.memory import MemoryWorkload, build_memory
    from manyscale.machine.memory_summary import headline, summary
    from manyscale.spec import build
    from manyscale.workloads import read_memory_trace

    if request.machine is None:
        raise InputError("say which machine: memory runs have none of their own")
    options = dict(request.workload)
    files = options.pop("traces", [])
    options.setdefault("pattern", "trace" if files else None)
    if options["pattern"] is None:
        raise InputError("workload: say the pattern, such as stream or random, or give traces")
    resolved = load_machine(request.machine, request.changes)
    machine = resolved.machine
    line = getattr(machine.memory.l1 if machine.memory else None, "line", 64)
    traces = [read_memory_trace(file, line).records for file in files]
    system = build_memory(
        machine, build(MemoryWorkload, options, "workload"), traces=traces, seed=request.seed
    )
    resolved.check_read(TRAFFIC)
    result = system.run(threads=request.threads)
    return Outcome(headline(summary(system, result), result), lambda: result.columns)


def _system(request: RunRequest) -> Outcome:
    from manyscale.system import System

    system = System.load(request.workload["file"], changes=request.changes, seed=request.seed)
    result = system.run(until=request.workload.get("until"), threads=request.threads)
    return Outcome(result.headline, lambda: result.columns)


def _refuse_exit(code: int, program: str) -> None:
    if code:
        raise ManyscaleError(f"{program} ended with exit code {code}")


_KINDS = (
    WorkloadKind(
        "network",
        "an MPI job on a network",
        (
            Parameter("work", "text", "a built-in skeleton, or a file.goal", required=True, file=True),
            Parameter("nodes", "whole", "nodes of the job"),
            Parameter("ranks_per_node", "whole", "ranks on each node"),
            Parameter("ranks", "whole", "ranks, if fewer than the nodes take"),
            Parameter("topology", "text", "a kind of topology, such as fat-tree"),
            Parameter("fidelity", "text", "packet, train, flow or ideal"),
            Parameter("mapping", "text", "block, cyclic, random, or a file", file=True),
            Parameter("param", "table", "parameters of the skeleton"),
        ),
        _network,
        modules=("manyscale.network",),
    ),
    WorkloadKind(
        "cpu",
        "a RISC-V program on simulated cores",
        (
            Parameter("program", "text", "its file, or sample:NAME", required=True, file=True),
            Parameter("arguments", "list", "its arguments"),
            Parameter("environment", "table", "its environment"),
            Parameter("stdin", "text", "a file that it reads as standard input", file=True),
            Parameter("root", "text", "a folder that it sees as /"),
            Parameter("memory", "text", "that a process may touch"),
            Parameter("ranks", "whole", "processes that are started"),
            Parameter("cores", "whole", "cores of the machine"),
            Parameter("roi", "text", "a region of interest: only its visits count"),
        ),
        _cpu,
        modules=("manyscale.cpu",),
    ),
    WorkloadKind(
        "replay",
        "a recorded trace of a program on simulated cores",
        (
            Parameter("trace", "text", "the trace", required=True, file=True),
            Parameter("cores", "whole", "cores of the machine"),
            Parameter("replicate", "whole", "copies of the trace, side by side"),
            Parameter("offset", "switch", "whether each copy has private data of its own"),
            Parameter("scheduler", "text", "which core executes a task"),
            Parameter("task2core", "text", "a file of lines: task core", file=True),
            Parameter("overheads", "table", "parameters of cpu.trace"),
        ),
        _replay,
        modules=("manyscale.cpu",),
    ),
    WorkloadKind(
        "gpu",
        "a GPU kernel with its arguments",
        (
            Parameter("file", "text", "PTX (.ptx) or CUDA C++ (.cu)", required=True, file=True),
            Parameter("kernel", "text", "its name, if the file has several"),
            Parameter("grid", "text", "blocks: a number, or text such as 4,2"),
            Parameter("block", "text", "threads of a block"),
            Parameter("arguments", "list", "as for --arg: 2.5, x=f32[1024]:random, @file.npy"),
            Parameter("shared", "text", "dynamic shared memory of a block"),
            Parameter("managed", "switch", "whether arrays are managed memory that the host has written"),
            Parameter("target", "text", "the architecture to compile for"),
            Parameter("allow_newer", "switch", "whether PTX for newer GPUs than the machine's is taken"),
        ),
        _gpu,
        modules=("manyscale.gpu",),
    ),
    WorkloadKind(
        "cuda",
        "an unmodified CUDA program",
        (
            Parameter("program", "text", "its file", required=True, file=True),
            Parameter("arguments", "list", "its arguments"),
            Parameter("gpus", "whole", "GPUs that it sees"),
            Parameter("functional", "switch", "whether nothing takes time"),
            Parameter("allow_newer", "switch", "whether PTX for newer GPUs than the machine's is taken"),
        ),
        _cuda,
        modules=("manyscale.cuda",),
    ),
    WorkloadKind(
        "memory",
        "accesses by a pattern, or of traces, on a machine's memory",
        (
            Parameter("pattern", "text", "stream, triad, stride, random, chase or gups"),
            Parameter("traces", "list", "files of traces, one for each core", file=True),
            Parameter("accesses", "whole", "that each core makes"),
            Parameter("footprint", "text", "memory that each core touches"),
            Parameter("stride", "text", "distance of two accesses of the pattern stride"),
            Parameter("writes", "ratio", "share of stores"),
            Parameter("shared", "switch", "whether all cores use the same memory"),
        ),
        _memory,
        modules=("manyscale.machine", "manyscale.workloads"),
    ),
    WorkloadKind(
        "system",
        "a saved system",
        (
            Parameter("file", "text", "the system", required=True, file=True),
            Parameter("until", "text", "simulated time at which it ends"),
        ),
        _system,
        modules=("manyscale.system",),
    ),
    WorkloadKind(
        "python",
        "any function: it is request the workload's other parameters, and machine and seed if it takes them",
        (Parameter("function", "text", "module:function", required=True),),
        call_function,
        free=True,
    ),
)

KINDS: Mapping[str, WorkloadKind] = {kind.name: kind for kind in _KINDS}


def kind_of(name: object) -> WorkloadKind:
    """The kind of run of that name."""
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(f"there is no kind of run {name!r}; {nearest(str(name), KINDS)}")
    return KINDS[name]
