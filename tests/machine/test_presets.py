# SPDX-License-Identifier: Apache-2.0
"""Audits: every preset loads, every number in it has a source, every parameter has a unit and a doc."""

import re
from functools import reduce
from pathlib import Path

import pytest
import tomlkit

from manyscale.errors import InputError
from manyscale.machine import Machine, list_presets, load_machine, to_toml
from manyscale.machine.presets import preset_path
from manyscale.spec import parameters

PRESETS = list_presets()


def test_the_presets_of_the_reports_are_there() -> None:
    assert {"v100", "p100", "titanv", "gv100", "a100", "sst-gpu-listing1", "uvm-listing1"} <= set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_loads_under_its_own_name(name: str) -> None:
    machine = load_machine(name, []).machine
    assert machine.name == name
    assert machine.description


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_a_preset_has_a_source_on_its_line(name: str) -> None:
    section = ""
    for number, line in enumerate(preset_path(name).read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("["):
            section = line
        elif section and line and not line.startswith("#"):
            statement, hash_sign, source = line.partition(" # ")
            assert tomlkit.parse(statement), f"{name}.toml, line {number}"
            assert hash_sign, f"{name}.toml, line {number} has no source: {line}"
            assert len(source.strip()) > 10, f"{name}.toml, line {number} has no source: {line}"


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_said_to_be_as_in_another_machine_is(name: str) -> None:
    resolved = load_machine(name, [])
    for path, source in resolved.sources.items():
        if said := re.search(r"as machines/([a-z0-9-]+)\.toml$", source):
            other = load_machine(said[1], []).machine
            here, there = (reduce(getattr, path.split("."), machine) for machine in (resolved.machine, other))
            assert here == there, f"{name}: {path} is {here}, and {there} in {said[1]}"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_saving(name: str, tmp_path: Path) -> None:
    resolved = load_machine(name, [])
    (tmp_path / "saved.toml").write_text(to_toml(resolved.machine, resolved.sources), encoding="utf-8")
    again = load_machine(tmp_path / "saved.toml", [])
    assert again.machine == resolved.machine
    assert again.sources == resolved.sources


def test_every_parameter_has_a_unit_and_a_doc() -> None:
    for row in parameters(Machine):
        assert len(row.doc) > 5, row.path
        unitless = row.type in ("text", "true or false") or " | " in row.type
        assert row.unit != "none" or unitless, row.path
        assert row.range or unitless, row.path


def test_an_unknown_preset_says_the_nearest() -> None:
    with pytest.raises(InputError, match=r"there is no machine named 'v10'; did you mean 'v100'\?"):
        load_machine("v10", [])


def test_installed_presets_are_found_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "site-packages" / "manyscale"
    (package / "machines").mkdir(parents=True)
    (package / "machines" / "installed.toml").write_text('name = "installed"\n', encoding="utf-8")
    monkeypatch.setattr("manyscale.machine.presets._PACKAGE", package)
    assert list_presets() == ["installed"]
    assert load_machine("installed", []).machine.name == "installed"


def test_the_v100_of_sst_has_the_numbers_of_table_2() -> None:
    machine = load_machine("v100-sst", []).machine
    assert machine.cpu is not None
    assert machine.gpu is not None
    assert machine.gpu.crossbar is not None
    assert machine.link is not None
    assert machine.cpu.clock == 2_660_000_000
    assert (machine.gpu.clock, machine.gpu.sm_count) == (1_312_000_000, 84)
    assert (machine.gpu.l2_slices, machine.gpu.l2_slice_capacity) == (32, 192 * 1024)
    assert (machine.gpu.crossbar.clock, machine.gpu.crossbar.input_ports) == (1_200_000_000, 2)
    assert machine.link.data_latency == machine.link.command_latency == 23_840_000


def test_the_p100_has_the_numbers_of_table_6() -> None:
    machine = load_machine("p100", []).machine
    assert machine.cpu is not None
    assert machine.memory is not None
    assert machine.gpu is not None
    assert machine.gpu.crossbar is not None
    assert (machine.cpu.clock, machine.memory.clock) == (1_200_000_000, 2_400_000_000)
    assert (machine.gpu.clock, machine.gpu.sm_count) == (1_328_000_000, 56)
    assert (machine.gpu.l2_slices, machine.gpu.l2_slice_capacity) == (8, 512 * 1024)
    assert machine.gpu.crossbar.clock == 1_000_000_000
