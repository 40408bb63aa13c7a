# SPDX-License-Identifier: Apache-2.0
"""The INI listings of the reports load as they are printed, and wrong ones are refused with a line number."""

from pathlib import Path
from typing import Any

import pytest

from manyscale.errors import InputError
from manyscale.machine import ResolvedMachine, load_machine
from manyscale.spec import dump

# Listing 1 of the SST-GPU final report.
FINAL_REPORT = r"""
[CPU]

clock: 2660MHz
num_cores: 1
application: ariel
max_reqs_cycle: 3

[ariel]

executable: ./vectorAdd
gpu_mode: 2

[Memory]

clock: 200MHz
network_bw: 96GB/s
capacity: 16384MiB

[Network]

latency: 300ps
bandwidth: 96GB/s
flit_size: 8B

[GPU]

clock: 1200MHz
gpu_cores: 80
gpu_l2_parts: 32
gpu_l2_capacity: 192KiB
gpu_cpu_latency: 23840ps
gpu_cpu_bandwidth: 16GB/s
num_sm_blobs: 1

[GPUMemory]

clock: 1GHz
network_bw: 32GB/s
capacity: 16384MiB
memControllers: 2
hbmStacks: 4
hbmChan: 4
hbmRows: 16384

[GPUNetwork]

latency: 750ps
bandwidth: 4800GB/s
linkbandwidth: 37.5GB/s
flit_size: 40B
"""

# Listing 1 of the first SST-GPU report.
FIRST_REPORT = r"""
[CPU]

clock: 2660MHz
num_cores: 1
application: ariel
max_reqs_cycle: 3

[ariel]

executable: ./vectorAdd
gpu_enabled: 1

[Memory]

clock: 200MHz
network_bw: 96GB/s
capacity: 16384MiB

[Network]

latency: 300ps
bandwidth: 96GB/s
flit_size: 8B

[GPU]

clock: 1200MHz
gpu_cores: 80
gpu_l2_parts: 32
gpu_l2_capacity: 192KiB
gpu_cpu_latency: 23840ps
gpu_cpu_bandwidth: 16GB/s

[GPUMemory]

clock: 1GHz
network_bw: 32GB/s
capacity: 16384MiB
memControllers: 2
hbmStacks: 4
hbmChan: 4
hbmRows: 16384

[GPUNetwork]

latency: 750ps
bandwidth: 4800GB/s
linkbandwidth: 37.5GB/s
flit_size: 40B
"""

# Listing 1 of the report on UVM Smart in GPGPU-Sim 4.0, with the markup of the page it was copied from
# and the first word of the paragraph that follows it.
UVM_REPORT = r"""
### [GPU]

clock: 1200MHz
gpu\_cores: 80
gpu\_l2\_parts: 32

gpu\_l2\_capacity: 192KiB
gpu\_cpu\_latency: 23840ps
gpu\_cpu\_bandwidth: 16GB/s

### [GPUMemory]

page\_size: 4KB

page\_fault\_handling\_latency: 45 \$\mu s\$

page\_table\_walk\_latency: 100

#### [GPU-CPU Interconnect]

PCIe 3.0 16x, 8 GTPS per channel per direction We
"""


def load(folder: Path, text: str, name: str = "listing.ini") -> ResolvedMachine:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_machine(path, [])


def without_names(resolved: ResolvedMachine) -> dict[str, Any]:
    plain = dump(resolved.machine)
    return {name: value for name, value in plain.items() if isinstance(value, dict)}


def holds(whole: Any, part: Any) -> bool:
    """Whether all that is stated in `part` is stated in `whole`, and the same."""
    if isinstance(part, dict):
        return all(name in whole and holds(whole[name], value) for name, value in part.items())
    return bool(whole == part)


def test_the_preset_of_the_final_report_is_its_listing_and_what_it_does_not_state(tmp_path: Path) -> None:
    resolved, preset = load(tmp_path, FINAL_REPORT), load_machine("sst-gpu-listing1", [])
    assert holds(without_names(preset), without_names(resolved))
    printed = {
        name
        for name, source in preset.sources.items()
        if source.startswith("SST-GPU final report, Listing 1")
    }
    assert printed == {name for name in resolved.sources if name not in ("name", "description")}
    added = [source for name, source in preset.sources.items() if name not in resolved.sources]
    assert added
    assert all(
        source.startswith("not in the listing: ") or source.endswith("(inherited from v100)")
        for source in added
    )
    assert resolved.workload == {"application": "ariel", "executable": "./vectorAdd", "gpu_mode": "2"}
    assert resolved.machine.name == "listing"


def test_the_listing_of_the_first_report_differs_in_its_groups(tmp_path: Path) -> None:
    resolved, final = load(tmp_path, FIRST_REPORT), without_names(load(tmp_path, FINAL_REPORT, "final.ini"))
    del final["gpu"]["sm_groups"]
    assert without_names(resolved) == final
    assert resolved.workload == {"application": "ariel", "executable": "./vectorAdd", "gpu_enabled": "1"}


def test_the_listing_of_the_uvm_report_loads_with_its_markup(tmp_path: Path) -> None:
    resolved = load(tmp_path, UVM_REPORT)
    assert without_names(resolved) == {
        "gpu": {
            "clock": "1200MHz",
            "sm_count": 80,
            "l2_slices": 32,
            "l2_slice_capacity": "192KiB",
            "uvm": {
                "page_size": "4KiB",
                "walk_latency": "100cycles",
                "handling": "fixed",
                "fault_latency": "45us",
            },
        },
        "link": {"data_latency": "23840ps", "command_latency": "23840ps", "bandwidth": "15753846153B/s"},
    }
    assert resolved.machine.link is not None
    assert resolved.machine.link.bandwidth == 8 * 10**9 * 16 * 128 // 130 // 8


def test_the_preset_of_the_uvm_report_holds_its_listing(tmp_path: Path) -> None:
    assert holds(without_names(load_machine("uvm-listing1", [])), without_names(load(tmp_path, UVM_REPORT)))


def test_a_source_is_the_line_of_the_listing(tmp_path: Path) -> None:
    resolved = load(tmp_path, "[CPU]\nclock: 1GHz\n")
    assert resolved.sources["cpu.clock"] == f"{tmp_path / 'listing.ini'}, line 2"


@pytest.mark.parametrize("name", ["listing.cfg", "listing.txt", "listing"])
def test_a_listing_is_known_by_its_name_or_its_content(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, UVM_REPORT, name).machine.gpu is not None


def test_a_listing_may_have_comments_and_equal_signs(tmp_path: Path) -> None:
    resolved = load(tmp_path, "; old style\n[CPU]\n# [Memory]\nnum_cores = 3\n")
    assert without_names(resolved) == {"cpu": {"cores": 3}}


def test_a_toml_file_may_inherit_from_a_listing(tmp_path: Path) -> None:
    load(tmp_path, FINAL_REPORT)
    (tmp_path / "child.toml").write_text('inherits = "listing.ini"\n[gpu]\nsm_count = 4\n', encoding="utf-8")
    resolved = load_machine(tmp_path / "child.toml", [])
    assert resolved.machine.gpu is not None
    assert (resolved.machine.gpu.sm_count, resolved.machine.gpu.l2_slices) == (4, 32)
    assert resolved.sources["gpu.l2_slices"].endswith("(inherited from listing)")
    assert resolved.workload["executable"] == "./vectorAdd"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[GPUMemry]\nx: 1\n", "listing.ini, line 1: unknown section [GPUMemry]; did you mean 'GPUMemory'?"),
        ("[GPU]\n\ngpu_coers: 1\n", "line 3: unknown key 'gpu_coers' in [GPU]; did you mean 'gpu_cores'?"),
        (
            "[ariel]\nexecutible: x\n",
            "line 2: unknown key 'executible' in [ariel]; did you mean 'executable'?",
        ),
        ("clock: 1GHz\n", "line 1: expected a section such as [CPU] before 'clock: 1GHz'"),
        ("[CPU]\nhello\n", "line 2: expected 'key: value', got 'hello'"),
        ("[CPU]\nclock: 1GHz\nclock: 2GHz\n", "line 3: 'clock' is stated twice in [CPU]"),
        ("[CPU]\nclock: 1\n", "listing.ini, line 2: cpu.clock: '1' has no unit; a frequency takes Hz"),
        ("[CPU]\nclock:\n", "line 2: cpu.clock: '' is not a frequency"),
        ("[GPU]\ngpu_cores: 0\n", "line 2: gpu.sm_count: 0 is out of range; it must be at least 1"),
        (
            "[GPU-CPU Interconnect]\nPCIe 9\n",
            "line 2: expected 'PCIe 3.0 16x, 8 GTPS per channel per direction'",
        ),
    ],
)
def test_a_wrong_listing_says_which_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert message in str(error.value)


def test_all_unknown_names_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path, "[CPU]\nclok: 1GHz\n[Bus]\nignored: 1\n[GPU]\ncolour: red\n")
    assert [line.split(": ")[0][-6:] for line in str(error.value).splitlines()] == [
        "line 2",
        "line 3",
        "line 6",
    ]
