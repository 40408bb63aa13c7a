# SPDX-License-Identifier: Apache-2.0
"""A parameter that the user changes has an effect on what is simulated, or is refused: for each kind of run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from manyscale import cpu
from manyscale.cli.app import main
from manyscale.errors import InputError
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.machine.cpu_system import build_cpu
from manyscale.machine.description import Machine
from manyscale.machine.loading import CUDA, JOBS, PROGRAMS, TRAFFIC
from manyscale.machine.memory import MemoryWorkload, build_memory
from manyscale.spec import Parameter, Spec, dump, parameters

SMALL_GPU = ("gpu.sm_count=2", "gpu.l2_slices=2", "gpu.memory.stacks=1", "gpu.memory.channels_per_stack=2")


def kernels(resolved: ResolvedMachine) -> Any:
    """All that a GPU run makes of a machine."""
    from manyscale.gpu import TimedDevice

    device = TimedDevice(resolved, echo=False)
    return device.parts.system.to_toml(), device.host_side.command_latency, device.code_rules()


def cuda(resolved: ResolvedMachine) -> Any:
    """All that `manyscale cuda` makes of it: the GPUs, and what programs are told of them."""
    from manyscale.cuda.node import Node, NodeOptions
    from manyscale.machine.cuda_runtime import runtime_costs

    node = Node(resolved.machine, NodeOptions())
    costs = runtime_costs(resolved.machine)
    resolved.check_read(CUDA)
    gpu = node.gpus[0]
    return (
        costs,
        gpu.parts.system.to_toml(),
        gpu.host_side.command_latency,
        repr(gpu.description),
        gpu.code_rules(),
    )


def programs(resolved: ResolvedMachine) -> Any:
    parts = build_cpu(resolved.machine, 2)
    resolved.check_read(PROGRAMS)
    return parts.system.to_toml(), resolved.machine.cpu.cores


def replays(resolved: ResolvedMachine) -> Any:
    parts = build_cpu(resolved.machine, 2, trace={})
    resolved.check_read(PROGRAMS)
    return parts.system.to_toml(), resolved.machine.cpu.cores


def traffic(resolved: ResolvedMachine) -> Any:
    workload = MemoryWorkload(pattern="stream", footprint="64KiB", accesses=10)
    system = build_memory(resolved.machine, workload)
    resolved.check_read(TRAFFIC)
    return system.to_toml(), resolved.machine.memory.capacity


def jobs(resolved: ResolvedMachine) -> Any:
    from manyscale.network.job import Cluster, network_description

    found = network_description(Cluster(resolved, 4))
    resolved.check_read(JOBS)
    return repr(found)


class Case(NamedTuple):
    make: Callable[[ResolvedMachine], Any]
    machine: str
    base: tuple[str, ...]


CASES = {
    "gpu run": Case(kernels, "v100-sst", SMALL_GPU),
    "gpu run, uvm": Case(
        kernels, "gtx1080ti", ("gpu.sm_count=2", "gpu.l2_slices=2", "gpu.memory.channels=2")
    ),
    "cuda": Case(cuda, "v100-sst", SMALL_GPU),
    "cpu run": Case(programs, "broadwell", ()),
    "cpu replay": Case(replays, "broadwell", ()),
    "mem run": Case(traffic, "memory-small", ()),
    "net run": Case(jobs, "omnipath", ()),
}


def stated(spec: Spec, prefix: str = "") -> Iterator[str]:
    """All parameters of a machine's sections that it states."""
    for name, value in dump(spec, reads=False).items():
        inner = vars(spec)[name]
        if isinstance(inner, Spec):
            yield from stated(inner, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield prefix + name


def values(machine: Machine, path: str) -> list[str]:
    """Other values of a parameter to try, the likeliest first."""
    spec: Any = machine
    *sections, name = path.split(".")
    for section in sections:
        spec = vars(spec)[section]
    value = dump(spec, reads=False)[name]
    row = next(row for row in parameters(type(spec)) if row.path == name)
    if isinstance(value, bool):
        return [str(not value).lower()]
    if "|" in row.type:
        return [f'"{choice.strip()}"' for choice in row.type.split("|") if choice.strip() != value]
    number = re.fullmatch(r"(-?[0-9.]+(?:e[-+]?\d+)?)(.*)", str(value))
    if number is not None:
        amount, unit = float(number[1]), number[2]
        tried = (amount * 2, amount / 2, amount + 1, amount - 1, 1, 2, 3, 64)
        return [f"{one:.15g}{unit}" for one in tried if one != amount]
    words = re.findall(r"[a-z_0-9-]+", row.doc)
    return [f'"{word}"' for word in dict.fromkeys(words) if word != value]


def test_each_parameter_has_an_effect_or_is_refused():
    """Of each parameter that the presets state. What is refused says who reads it."""
    wrong: list[str] = []
    refused: dict[str, set[str]] = {}
    for name, case in CASES.items():
        base = load_machine(case.machine, case.base)
        before = case.make(base)
        for path in stated(base.machine):
            if "." not in path:
                continue
            for value in values(base.machine, path):
                try:
                    after = case.make(load_machine(case.machine, [*case.base, f"{path}={value}"]))
                except InputError as error:
                    if "nothing in a run of" in str(error):
                        assert f"--set {path}: {path}: " in str(error)  # noqa: PT017
                        refused.setdefault(name, set()).add(path)
                        break
                    continue  # a value that does not fit the others
                if after == before:
                    wrong.append(f"{name}: {path}={value}")
                break
            else:  # whatever was tried, somebody read it and refused it
                assert values(base.machine, path), path
    assert not wrong, "\n".join(wrong)
    assert {"cpu.clock", "memory.clock", "memory.capacity", "mesh.clock"} <= refused["gpu run"]
    assert {"cpu.clock", "memory.clock", "mesh.clock"} <= refused["cuda"]
    assert not any(path.startswith("gpu.sm") for path in refused["gpu run"])
    assert not refused.get("net run", set())


SMALL_GPUS = {
    "v100": SMALL_GPU,
    "v100-sst": SMALL_GPU,
    "a100": ("gpu.sm_count=2", "gpu.l2_slices=4", "gpu.memory.stacks=1", "gpu.memory.channels_per_stack=4"),
    "p100": ("gpu.sm_count=2",),
    "titanv": ("gpu.sm_count=2",),
    "gtx1080ti": ("gpu.sm_count=2",),
    "sst-gpu-listing1": ("gpu.sm_count=2",),
}
PRESETS: dict[str, tuple[Callable[[ResolvedMachine], Any], dict[str, tuple[str, ...]], set[str]]] = {
    "gpu run": (kernels, SMALL_GPUS, {"gpu", "link"}),
    "cuda": (cuda, SMALL_GPUS, {"gpu", "link", "cuda"}),
    "cpu run": (programs, dict.fromkeys(("broadwell", "dibona", "nehalem", "boom"), ()), {"cpu", "memory"}),
    "cpu replay": (replays, dict.fromkeys(("elasticsimmate", "broadwell"), ()), {"cpu", "memory"}),
    "mem run": (traffic, dict.fromkeys(("memory-small", "sst-stream"), ()), {"memory"}),
    "net run": (jobs, dict.fromkeys(("omnipath", "omnipath-torus", "sst-cluster"), ()), {"network"}),
}
"""How the machine of a run is made, presets to try it with, and the sections that such runs read."""
_OTHERS = 40  # of so many parameters of sections that a run does not read, one is tried
_BY_UNIT = {
    "fs": ("1ns", "7ns"),
    "Hz": ("1GHz", "700MHz"),
    "B": ("64B", "128B", "4KiB", "64KiB", "1MiB"),
    "B/s": ("1GB/s", "7GB/s"),
    "cycles": ("1", "7"),
    "1": ("1", "2", "3", "0.25"),
}


def candidates(row: Parameter) -> list[str]:
    """Values to try of a parameter that a machine may not state."""
    if row.type == "true or false":
        return ["true", "false"]
    if "|" in row.type:
        return [f'"{choice.strip()}"' for choice in row.type.split("|")]
    words = [f'"{word}"' for word in dict.fromkeys(re.findall(r"[a-z_0-9-]+", row.doc))]
    return list(_BY_UNIT.get(row.unit, words))


def sampled() -> Iterator[tuple[str, str, Parameter]]:
    """Kinds of runs and presets, with each parameter in one of the runs that read its section."""
    rows = [row for row in parameters(Machine) if "." in row.path and "[]" not in row.path]
    turns: dict[str, int] = {}
    for index, row in enumerate(rows):
        section = row.path.partition(".")[0]
        reading = [name for name, (_, _, sections) in PRESETS.items() if section in sections]
        others = [name for name in PRESETS if name not in reading]
        chosen = [reading[index % len(reading)]] if reading else []
        chosen += [others[index % len(others)]] if index % _OTHERS == 0 or not reading else []
        for name in chosen:
            turns[name] = turns.get(name, -1) + 1
            presets = list(PRESETS[name][1])
            yield name, presets[turns[name] % len(presets)], row


def test_each_parameter_that_there_is_has_an_effect_or_is_refused():
    """Also of those that a preset does not state: a value that is taken is in what is simulated."""
    before = {
        (name, preset): make(load_machine(preset, base))
        for name, (make, presets, _) in PRESETS.items()
        for preset, base in presets.items()
    }
    wrong, refused, effective = [], 0, 0
    for name, preset, row in sampled():
        make, presets, sections = PRESETS[name]
        taken: list[str] = []
        for value in candidates(row):
            try:
                after = make(load_machine(preset, [*presets[preset], f"{row.path}={value}"]))
            except InputError as error:
                if "nothing in a run of" in str(error):
                    refused += 1
                    taken = []
                    break
                continue  # a value that does not fit the others
            if after != before[name, preset]:
                effective += 1
                taken = []
                break
            taken.append(value)
        if len(taken) > 1 or (taken and row.path.partition(".")[0] not in sections):
            wrong.append(f"{name} on {preset}: {row.path} can be {' or '.join(taken)}, and nothing changes")
    assert not wrong, "\n".join(wrong)
    assert effective > 350
    assert refused > 50


def test_parameters_of_the_file_that_a_run_does_not_use_are_reported_once(tmp_path: Path, caplog):
    path = tmp_path / "mine.toml"
    path.write_text('inherits = "v100"\nname = "mine"\n[gpu.crossbar]\nbandwidth = "1GB/s"\n')
    for _ in range(2):
        kernels(load_machine(path, SMALL_GPU))
    said = "mine: a run of GPU kernels does not use gpu.crossbar.bandwidth"
    assert [record.getMessage() for record in caplog.records] == [said]
    assert load_machine("memory-small").unused()  # nothing has read it
    resolved = load_machine("memory-small")
    traffic(resolved)
    assert not resolved.unused()


def test_a_number_of_stacks_alone_is_refused_and_so_is_a_graph_of_another_topology():
    with pytest.raises(InputError, match=r"gpu\.memory\.stacks: nothing in a run"):
        kernels(load_machine("gtx1080ti", ["gpu.sm_count=2", "gpu.memory.stacks=2"]))
    with pytest.raises(InputError, match=r"network\.graph: nothing in a run"):
        jobs(load_machine("omnipath", ['network.graph="file"']))


def test_what_another_parameter_decides_cannot_be_stated():
    with pytest.raises(InputError, match=r"gpu\.l2\.cache\.size: state the capacity of a slice"):
        kernels(load_machine("v100", [*SMALL_GPU, "gpu.l2.cache.size=64KiB"]))
    with pytest.raises(InputError, match=r"gpu\.memory\.channel\.rows: gpu\.memory\.rows says 32768"):
        kernels(load_machine("gv100", ["gpu.sm_count=2", "gpu.memory.channel.rows=16384"]))


COMMANDS = {
    "gpu": ("gpu run k.ptx -k saxpy -g 1 -b 32 --machine v100-sst", "cpu.clock=1MHz", "cpu run"),
    "gpu, mesh": (
        "gpu run k.ptx -k saxpy -g 1 -b 32 --machine v100-sst",
        "mesh.latency=1ns",
        "no run simulates it",
    ),
    "gpu, memory": (
        "gpu run k.ptx -k saxpy -g 1 -b 32 --machine v100-sst",
        "memory.capacity=1GiB",
        "mem run",
    ),
    "cuda": ("cuda --machine v100-sst {set} -- {true}", "cpu.clock=1MHz", "cpu run"),
    "cpu": ("cpu run heat.xz --machine broadwell", "memory.cores=4", "another one replaces it"),
    "net": ("net run allreduce --nodes 2 --machine simgrid-cluster", "gpu.clock=1GHz", "gpu run"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_refuse_what_nothing_reads(name: str, tmp_path: Path, monkeypatch, capsys):
    import shutil

    words, change, said = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parents[2] / "examples/gpu/kernels.ptx", "k.ptx")
    shutil.copy(cpu.sample("heat"), "heat.xz") if Path(str(cpu.sample("heat"))).is_file() else None
    true = shutil.which("true")
    if "{set}" in words:
        command = words.format(set=f"--set {change}", true=true).split()
    else:
        command = [*words.split(), "--set", change]
    assert main(command) != 0
    shown = " ".join(capsys.readouterr().err.split())
    path = change.partition("=")[0]
    assert f"{path}: nothing in a run of" in shown
    assert said in shown


def test_a_file_that_inherits_is_held_to_what_it_changes(tmp_path: Path):
    """A value of its own instead of another is a change; a further section is not."""
    path = tmp_path / "mine.toml"
    path.write_text('inherits = "v100-sst"\n[cpu]\nclock = "1MHz"\n[gpu]\nclock = "1GHz"\n')
    with pytest.raises(InputError, match=r"mine\.toml: cpu\.clock: nothing in a run of GPU kernels"):
        kernels(load_machine(path))
    path.write_text('inherits = "v100-sst"\n[cpu]\ncores = 4\n[gpu]\nclock = "1GHz"\n')
    kernels(load_machine(path, SMALL_GPU))


def test_to_be_written_is_not_to_be_read():
    from manyscale.machine import to_toml

    resolved = load_machine("v100-sst", [*SMALL_GPU, "cpu.clock=1MHz"])
    to_toml(resolved.machine, resolved.sources)
    repr(resolved.machine)
    with pytest.raises(InputError, match=r"cpu\.clock"):
        kernels(resolved)
