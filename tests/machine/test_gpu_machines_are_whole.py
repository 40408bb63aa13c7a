# SPDX-License-Identifier: Apache-2.0
"""Machines with a GPU state every parameter of its models: by themselves, or from another that they name."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path

import pytest

from manyscale.cuda.properties import Attribute, describe
from manyscale.errors import InputError
from manyscale.machine import Machine, list_presets, load_machine
from manyscale.machine.cuda_runtime import CudaRuntime, runtime_costs
from manyscale.machine.dram import dram_standard
from manyscale.machine.gpu_system import build_gpu
from manyscale.machine.link import add_host_side
from manyscale.machine.presets import preset_path
from manyscale.machine.uvm import add_unified_memory
from manyscale.spec import parameters
from manyscale.system.catalogue import model

pytestmark = pytest.mark.core

GPUS = [name for name in list_presets() if load_machine(name).machine.gpu is not None]

# A component of each model, and the section of a machine that states its parameters.
SECTIONS = {
    "sm[0]": "gpu.sm",
    "scheduler": "gpu.scheduler",
    "crossbar": "gpu.crossbar",
    "slice[0]": "gpu.l2",
    "channel[0]": "gpu.memory.channel",
    "host_link": "link",
    "copy_engine[0]": "link.copy_engine",
    "uvm": "gpu.uvm",
}
# Parameters that stand elsewhere in a machine; None: they follow from its numbers of slices and channels.
ELSEWHERE = {
    "sm[0]": {"clock": "gpu.clock", "l1.slices": None},
    "scheduler": {"clock": "gpu.clock"},
    "crossbar": {"flit": "gpu.crossbar.flit_size"},
    "slice[0]": {"cache.size": "gpu.l2_slice_capacity", "slices": None, "memory_interleave": None},
    "channel[0]": {"interleave_channels": None, "interleave_bytes": None, "refresh_offset": None},
    "host_link": {},
    "copy_engine[0]": {"slices": None, "line": "gpu.sm.l1.line", "slice_hash": "gpu.sm.l1.slice_hash"},
    "uvm": {"clock": "gpu.clock", "capacity": "gpu.memory.capacity", "log_rows": None},
}
# Of tests of a model alone; of the channel's other backend; and what the crossbar of a listing states otherwise.
NOT_OF_A_MACHINE = {"jitter", "reorder", "keep_values", "log_commands", "cache.classify_misses"}
OF_THE_SIMPLE_BACKEND = {"latency", "bandwidth"}
STATED_OTHERWISE = {
    "gpu.crossbar.clock": "gpu.crossbar.link_bandwidth",
    "gpu.crossbar.traversal": "gpu.crossbar.latency",
}


def build_all(machine: Machine) -> None:
    """All that runs make of a machine with a GPU."""
    parts = build_gpu(machine)
    add_host_side(parts, machine.link)
    add_unified_memory(parts, machine)
    runtime_costs(machine)


@pytest.mark.parametrize("name", GPUS)
def test_a_preset_states_or_inherits_every_parameter_of_its_models(name: str) -> None:
    resolved = load_machine(name)
    parts = build_gpu(resolved.machine)
    add_host_side(parts, resolved.machine.link)
    add_unified_memory(parts, resolved.machine)
    gpu = resolved.machine.gpu
    assert gpu is not None
    assert gpu.memory is not None
    assert gpu.memory.standard is not None
    standard = dram_standard(gpu.memory.standard).sources
    stated = {path for path, source in resolved.sources.items() if source != "default"}
    left_open = []
    for component, section in SECTIONS.items():
        for row in parameters(model(parts.system.components[component].model).spec):
            path = ELSEWHERE[component].get(row.path, f"{section}.{row.path}")
            if path is None or row.path in NOT_OF_A_MACHINE:
                continue
            if component == "channel[0]" and (row.path in standard or row.path in OF_THE_SIMPLE_BACKEND):
                continue
            if path not in stated and STATED_OTHERWISE.get(path) not in stated:
                left_open.append(path)
    left_open += [
        path
        for path in ("gpu.uvm.link_latency", *(f"cuda.{name}" for name in CudaRuntime.model_fields))
        if path not in stated
    ]
    assert not left_open, f"{name} leaves these to the models: {', '.join(left_open)}"


@pytest.mark.parametrize("kind", ["gpu.sm", "gpu.scheduler", "gpu.host_link", "gpu.copy_engine", "gpu.uvm"])
def test_the_models_have_no_defaults(kind: str) -> None:
    assert {row.default for row in parameters(model(kind).spec)} == {"required"}


def test_what_an_a100_has_from_a_v100_is_listed() -> None:
    resolved, v100 = load_machine("a100"), load_machine("v100").machine
    taken = [path for path, source in resolved.sources.items() if source.endswith("(inherited from v100)")]
    assert {"gpu.sm.memory_queue", "gpu.sm.timing.branch.latency", "gpu.scheduler.in_order"} <= set(taken)
    assert "gpu.sm.shared_latency" not in taken
    for path in taken:
        here, there = (reduce(getattr, path.split("."), machine) for machine in (resolved.machine, v100))
        assert here == there, path


@pytest.mark.parametrize(
    ("left_out", "path"),
    [
        ("memory_queue = 5", "gpu.sm.memory_queue"),
        ("cta_interval = 2", "gpu.scheduler.cta_interval"),
        ('flit_size = "40B"', "gpu.crossbar.flit_size"),
        ('batch_latency = "12200ns"', "gpu.uvm.batch_latency"),
        ('call_time = "1us"', "cuda.call_time"),
    ],
)
def test_a_machine_that_leaves_a_parameter_open_is_refused(left_out: str, path: str, tmp_path: Path) -> None:
    lines = preset_path("v100").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(left_out)]
    assert len(kept) == len(lines) - 1
    (tmp_path / "own.toml").write_text("\n".join(kept), encoding="utf-8")
    with pytest.raises(InputError, match=f"{path}: is not stated"):
        build_all(load_machine(tmp_path / "own.toml").machine)


def test_a_section_inherits_what_it_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'inherits = "p100"\n[gpu.sm.l1]\ninherits = "a100"\nways = 8  # own measurement\n', encoding="utf-8"
    )
    resolved = load_machine(tmp_path / "own.toml")
    sm, a100, p100 = (load_machine(name).machine.gpu.sm for name in (tmp_path / "own.toml", "a100", "p100"))  # type: ignore[union-attr]
    assert (sm.l1.ways, sm.l1.size, sm.shared_latency) == (8, a100.l1.size, p100.shared_latency)  # type: ignore[union-attr]
    assert resolved.sources["gpu.sm.l1.size"].endswith("(inherited from a100)")
    assert "gpu.sm.l1.ways" in resolved.changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[gpu.sm]\ninherits = "loggp"\n', r"gpu\.sm\.inherits: loggp has no section \[gpu\.sm\]"),
        ('[gpu.sm]\ninherits = "v10"\n', r"gpu\.sm\.inherits: there is no machine named 'v10'"),
        ("[gpu.sm]\ninherits = 3\n", r"gpu\.sm\.inherits: expected the name or file of a machine"),
        ('[gpu.sm]\ninherits = "own.toml"\n', r"gpu\.sm\.inherits: machines inherit in a circle"),
    ],
)
def test_a_section_that_cannot_inherit_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_machine(tmp_path / "own.toml")


@pytest.mark.parametrize("name", ["v100", "a100", "p100"])
def test_device_properties_do_not_depend_on_the_name_of_the_machine(name: str) -> None:
    other = "a100" if name != "a100" else "v100"
    own, renamed = (
        describe(load_machine(name, changes).machine, 0, 1) for changes in ([], [f"name={json.dumps(other)}"])
    )
    assert own.name != renamed.name
    assert own.attributes == renamed.attributes
    assert (own.capability, own.memory) == (renamed.capability, renamed.memory)


@pytest.mark.parametrize(("name", "reserved"), [("v100", 0), ("a100", 1024), ("t4", 0), ("rtx4090", 1024)])
def test_programs_see_the_shared_memory_that_the_system_takes(name: str, reserved: int) -> None:
    """CUDA C++ Programming Guide: from compute capability 8.0 on, 1 KB of each CTA's."""
    attributes = describe(load_machine(name).machine, 0, 1).attributes
    assert attributes[Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK] == reserved
