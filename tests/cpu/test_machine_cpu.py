# SPDX-License-Identifier: Apache-2.0
"""The [cpu] section: what is built from it, what it refuses, sockets, and that every processor can be built."""

from __future__ import annotations

import pytest

from manyscale.errors import InputError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.completing import complete
from manyscale.machine.cpu_system import CpuSystem, build_cpu

pytestmark = pytest.mark.core

PROCESSORS = ("broadwell", "nehalem", "dibona", "elasticsimmate", "boom")


def built(machine: str = "elasticsimmate", *changes: str, cores: int | None = None) -> CpuSystem:
    return build_cpu(load_machine(machine, changes).machine, cores)


def refusal(machine: str, *changes: str, cores: int | None = None) -> str:
    with pytest.raises(InputError) as caught:
        built(machine, *changes, cores=cores)
    return str(caught.value)


def count(parts: CpuSystem, kind: str) -> int:
    return sum(name.startswith(f"{kind}[") for name in parts.system.components)


@pytest.mark.parametrize("name", PROCESSORS)
def test_every_processor_can_be_built_with_one_core_and_with_all(name: str) -> None:
    machine = load_machine(name).machine
    assert machine.cpu is not None
    for cores in (1, machine.cpu.cores):
        parts = build_cpu(machine, cores)
        parts.system.check()
        assert count(parts, "core") == cores
        assert parts.program.spec.cores == cores  # type: ignore[attr-defined]


def test_a_description_becomes_program_cores_interconnect_slices_and_channels() -> None:
    parts = built(cores=2)
    assert list(parts.system.components) == [
        "program",
        "core[0]",
        "core[1]",
        "interconnect",
        "slice[0]",
        "channel[0]",
    ]
    core = parts.cores[1].spec
    assert (core.clock, core.reorder_buffer, core.coherent, core.homes) == (2_000_000_000, 40, True, 1)  # type: ignore[attr-defined]
    assert (core.l1i.size, core.l1.size, core.l2.size) == (32 * 1024, 64 * 1024, 0)  # type: ignore[attr-defined]
    assert core.timing.float_root.latency == 33  # type: ignore[attr-defined]


def test_changes_reach_the_core() -> None:
    changes = (
        "cpu.core.reorder_buffer=7",
        "cpu.core.timing.multiply.latency=9",
        "cpu.core.branch.kind=perfect",
    )
    core = built("boom", *changes, cores=1).cores[0].spec
    assert (core.reorder_buffer, core.timing.multiply.latency) == (7, 9)  # type: ignore[attr-defined]
    assert core.branch.kind == "perfect"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("cores", "sockets"), [(1, 1), (18, 1), (20, 2), (36, 2)])
def test_sockets_without_cores_are_left_out_with_their_share_of_the_memory(cores: int, sockets: int) -> None:
    parts = built("broadwell", cores=cores)
    assert count(parts, "slice") == 18 * sockets
    assert count(parts, "channel") == 4 * sockets
    assert parts.system.components["interconnect"].spec.sockets == sockets  # type: ignore[union-attr]
    assert parts.system.components["slice[0]"].spec.slices == 18  # type: ignore[union-attr]
    assert parts.system.components["channel[0]"].spec.interleave_channels == 4  # type: ignore[union-attr]
    assert parts.cores[0].spec.homes == 18 * sockets  # type: ignore[attr-defined]
    # A slice reaches the channels of its own socket only.
    last = f"slice[{18 * sockets - 1}].memory"
    reached = [link.b for link in parts.system.links if link.a == last]
    assert reached == [f"channel[{channel}].requests" for channel in range(4 * sockets - 4, 4 * sockets)]


def test_a_ring_of_two_sockets_has_the_stops_of_those_with_cores() -> None:
    changes = ("memory.interconnect.kind=ring", "memory.interconnect.stops=36")
    machine = load_machine("broadwell").machine
    assert machine.memory is not None
    ring = machine.memory.interconnect.model_copy(  # type: ignore[union-attr]
        update={"kind": "ring", "stops": 36}
        | dict.fromkeys(("traversal", "placement", "crossing_latency", "crossing_bandwidth"))
    )
    changed = machine.model_copy(update={"memory": machine.memory.model_copy(update={"interconnect": ring})})
    assert build_cpu(changed, 4).system.components["interconnect"].spec.stops == 18  # type: ignore[union-attr]
    assert "memory.ring has no such parameter" in refusal("broadwell", *changes)


def test_what_does_not_fit_is_said_with_its_path() -> None:
    assert refusal("v100-sst").startswith(
        "v100-sst: cpu.cores: there is no such parameter, which is required to run programs"
    )
    assert refusal("omnipath").startswith("omnipath: cpu: there is no section [cpu]")
    assert refusal("broadwell", cores=19).startswith(
        "broadwell: 19 cores cannot be divided evenly among the 2 sockets"
    )
    assert refusal("boom", cores=5) == "boom has 4 cores (cpu.cores), so 5 of them cannot be used"
    assert refusal("broadwell", "memory.shared.slices=35") == (
        "broadwell: memory.shared.slices: 35 cannot be divided among 2 sockets"
    )
    assert refusal("boom", "memory.l1.size=1000B").startswith("boom: memory.l1.size: 1000B is no multiple")
    assert "cpu.core" in refusal("boom", "cpu.core.ports=integer")
    with pytest.raises(
        InputError, match=r"cpu\.core\.reorder_bufer: there is no such parameter; did you mean"
    ):
        load_machine("boom", ["cpu.core.reorder_bufer=3"])


def test_a_machine_completed_from_its_system_gives_the_same_system(tmp_path) -> None:
    resolved = load_machine("boom")
    parts = build_cpu(resolved.machine, 2)
    machine, sources = complete(resolved.machine, resolved.sources, parts.system)
    assert sources["cpu.core.branch.indirect_tables"] == "default"
    (tmp_path / "whole.toml").write_text(to_toml(machine, sources), encoding="utf-8")
    again = build_cpu(load_machine(tmp_path / "whole.toml").machine, 2)
    for name, component in parts.system.components.items():
        assert again.system.components[name].spec == component.spec, name  # type: ignore[union-attr]


def test_the_former_name_of_outstanding_stores_is_understood():
    """Traces and run directories of earlier versions state it."""
    machine = load_machine("broadwell", ["cpu.core.stores_under_way=3"])
    assert "cpu.core.outstanding_stores" in machine.changed
    assert "outstanding_stores = 3" in to_toml(machine.machine, machine.sources)
