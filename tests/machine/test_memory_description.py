# SPDX-License-Identifier: Apache-2.0
"""The [memory] section: what is built from it, what it refuses, and that the older presets still load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyscale.errors import InputError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.completing import complete
from manyscale.machine.memory import MemoryWorkload, build_memory
from manyscale.spec import parameters
from manyscale.system import System, model

pytestmark = pytest.mark.core

SMALL = "memory-small"


def built(*changes: str, machine: str = SMALL, **workload: Any) -> System:
    given = {"accesses": 50, "footprint": "64KiB", **workload}
    return build_memory(load_machine(machine, changes).machine, MemoryWorkload(**given))


def refusal(*changes: str, machine: str = SMALL, **workload: Any) -> str:
    with pytest.raises(InputError) as caught:
        built(*changes, machine=machine, **workload)
    return str(caught.value)


def file_of(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_description_becomes_cores_interconnect_slices_and_channels() -> None:
    system = built()
    assert list(system.components) == [
        *(f"core[{index}]" for index in range(4)),
        "interconnect",
        *(f"slice[{index}]" for index in range(4)),
        "channel[0]",
        "channel[1]",
    ]
    models = {name.partition("[")[0]: part.model for name, part in system.components.items()}  # type: ignore[union-attr]
    assert models == {
        "core": "memory.generator",
        "interconnect": "memory.crossbar",
        "slice": "memory.home",
        "channel": "memory.dram",
    }
    # A link for each core and slice to the crossbar, and for each slice to each channel.
    assert len(system.links) == 4 + 4 + 4 * 2
    system.check()


def test_parameters_reach_the_components() -> None:
    system = built("memory.l1.ways=4", "memory.core.window=3", pattern="stride", stride="128B")
    core, dram = system.components["core[1]"].spec, system.components["channel[1]"].spec
    assert (core.l1.ways, core.l2.size, core.window) == (4, 256 * 1024, 3)
    assert (core.pattern, core.stride, core.homes, core.coherent) == ("stride", 128, 4, True)
    assert (dram.backend, dram.ranks, dram.interleave_channels, dram.interleave_bytes) == (
        "timing",
        2,
        2,
        256,
    )
    assert system.components["slice[0]"].spec.memory_interleave == 256


def test_cores_have_memory_of_their_own_unless_it_is_shared() -> None:
    def bases(shared: bool) -> list[int]:
        system = built(footprint="5000B", shared=shared)
        return [system.components[f"core[{index}]"].spec.base for index in range(4)]

    assert bases(False) == [0, 8192, 16384, 24576]
    assert bases(True) == [0, 0, 0, 0]


def test_a_cache_section_has_exactly_the_parameters_of_the_core() -> None:
    memory = load_machine(SMALL).machine.memory
    assert memory is not None
    section = model("memory.generator").spec.model_fields["l1"].annotation
    assert section is not None
    assert parameters(type(memory.l1)) == parameters(section)


@pytest.mark.parametrize("kind", ["crossbar", "ring", "mesh"])
@pytest.mark.parametrize("coherence", ["mesi", "none"])
def test_each_kind_of_interconnect_and_slice_runs(kind: str, coherence: str) -> None:
    changes = (f"memory.interconnect.kind={kind}", f"memory.shared.coherence={coherence}")
    result = built(*changes, pattern="random", writes=0.3).run()
    assert sum(result.value(f"core[{index}]", "completed") for index in range(4)) == 200


def test_without_shared_cache_and_interconnect_the_core_speaks_to_the_channel() -> None:
    system = built(machine="sst-stream", pattern="triad")
    assert list(system.components) == ["core[0]", "channel[0]"]
    assert system.run().value("channel[0]", "reads") > 0


def test_without_shared_cache_an_interconnect_leads_to_the_channels() -> None:
    system = built("memory.interconnect.kind=ring", "memory.dram.channels=4", machine="sst-stream")
    assert len(system.links) == 1 + 4
    assert system.components["channel[3]"].spec.interleave_bytes == 64
    result = system.run()
    assert all(result.value(f"channel[{index}]", "reads") > 0 for index in range(4))


def test_the_stream_job_of_sst_takes_as_long_as_there() -> None:
    """SST simulates 13.43 ms for 3 M accesses: 4.477 ns each, here within 2%."""
    result = built(machine="sst-stream", pattern="triad", accesses=90_000, footprint="720kB").run()
    each = result.value("core[0]", "finished") / 1e6 / 90_000
    assert each == pytest.approx(13.43e6 / 3e6, rel=0.02), f"{each:.3f} ns an access"


def test_the_completed_machine_builds_an_equal_system(tmp_path: Path) -> None:
    resolved = load_machine(SMALL, ["memory.interconnect.kind=ring"])
    system = build_memory(resolved.machine, MemoryWorkload())
    machine, sources = complete(resolved.machine, resolved.sources, system)
    assert sources["memory.dram.trcd"].startswith("ddr4-2400: DRAMsim3")
    assert sources["memory.interconnect.hop"] == sources["memory.shared.inclusive"] == "default"
    assert sources["memory.interconnect.kind"] == "command line"
    saved = load_machine(file_of(tmp_path, to_toml(machine, sources)))
    assert saved.machine == machine
    assert build_memory(saved.machine, MemoryWorkload()).to_toml() == system.to_toml()


@pytest.mark.parametrize("name", ["v100", "p100", "sst-gpu-listing1", "uvm-listing1"])
def test_the_presets_of_the_reports_load_and_say_what_they_lack(name: str) -> None:
    assert load_machine(name).machine.name == name
    message = refusal(machine=name)
    if load_machine(name).machine.memory is None:
        assert f"{name}: memory: there is no section [memory]" in message
    else:
        assert f"{name}: memory.cores: there is no such parameter, which is required" in message
        assert f"{name}: memory.dram: there is no such section [memory.dram], which is required" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("memory.l1.size=1000B", "memory.l1.size: 1000B is no multiple of line x ways (64B x 8 = 512B)"),
        ("memory.l2.size=1000B", "memory.l2.size: 1000B is no multiple of line x ways"),
        ("memory.l2.size=0B", "memory.l2.size: is required"),
        ("memory.l2.line=128B", "memory.l2.line: all levels need the same line size"),
        ("memory.l1.replacement=lifo", "memory.l1: there is no replacement policy 'lifo'"),
        ("memory.shared.cache.size=1000B", "memory.shared.cache.size: 1000B is no multiple of line x ways"),
        (
            "memory.shared.cache.line=128B",
            "memory.shared.cache.line: 128B is not the line of the cores' caches",
        ),
        ("memory.shared.coherence=moesi", "memory.shared.coherence: expected 'mesi' or 'none', got 'moesi'"),
        ("memory.shared.width=8B", "memory.shared.width: memory.home has no such parameter"),
        ("memory.interconnect.kind=none", "memory.shared.slices: 4 of them need an interconnect"),
        ("memory.interconnect.width=2", "memory.interconnect.width: memory.crossbar has no such parameter"),
        ("memory.cores=257", "memory.cores: a directory tracks at most 256 cores, not 257"),
        ("memory.dram.standard=ddr4-240", "no DRAM standard named 'ddr4-240'; did you mean 'ddr4-2400'?"),
        ("memory.dram.backend=exact", "memory.dram: there is no backend 'exact'"),
        ("memory.dram.interleave=32B", "memory.dram.interleave: 32B is no multiple of a line of 64B"),
        (
            "memory.l3.size=1MiB",
            "memory.l3.size: there is no such parameter; did you mean 'memory.shared.cache.size'?",
        ),
        ("memory.l1.sise=1MiB", "memory.l1.sise: there is no such parameter; did you mean 'memory.l1.size'"),
        ("memory.core.window=0", "memory.core.window: 0 is out of range"),
    ],
)
def test_a_mistake_names_its_parameter(change: str, message: str) -> None:
    assert message in refusal(change)


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    message = refusal(machine=file_of(tmp_path, "[memory]\ncores = 2\n[memory.l1]\n"))
    assert [line.partition(": there")[0] for line in message.splitlines()] == [
        "own: memory.core",
        "own: memory.dram",
    ]


def test_channels_without_slices_are_interleaved_by_line() -> None:
    changes = ("memory.interconnect.kind=ring", "memory.dram.channels=2", "memory.dram.interleave=256B")
    assert "so it must be 64B" in refusal(*changes, machine="sst-stream")


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"pattern": "strem"}, "there is no pattern 'strem'; known: stream"),
        ({"pattern": "trace"}, "the pattern trace needs a trace"),
        ({"pattern": "triad", "footprint": "128B"}, "128B is too little for triad; give at least 192B"),
        ({"pattern": "chase", "footprint": "32B"}, "32B is too little for chase; give at least 64B"),
        ({"size": "24B"}, "accesses of 24B would cross lines of 64B"),
        ({"writes": 0.7, "atomics": 0.7}, "are together more than 1"),
        ({"footprint": "16GiB"}, "4 cores reach up to 0x1000000000, but memory-small has 32GiB of memory"),
    ],
)
def test_a_workload_that_does_not_fit(workload: dict[str, Any], message: str) -> None:
    assert message in refusal(**workload)


def test_traces_that_do_not_fit() -> None:
    machine, trace = load_machine(SMALL).machine, MemoryWorkload(pattern="trace")
    record = (2**40).to_bytes(8, "little") + (8 << 32).to_bytes(8, "little")
    with pytest.raises(
        InputError, match=r"trace: it reaches up to address 0x10000000000, but memory-small has 32GiB"
    ):
        build_memory(machine, trace, traces=[record])
    with pytest.raises(InputError, match="5 traces are too many for the 4 cores of memory-small"):
        build_memory(machine, trace, traces=[b""] * 5)
    with pytest.raises(InputError, match="a trace was given for stream"):
        build_memory(machine, MemoryWorkload(), traces=[b""])
