# SPDX-License-Identifier: Apache-2.0
"""Configurations of GPGPU-Sim become machines: their numbers by card, their sources, a run, and what is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyscale import gpu
from manyscale.cli.app import main
from manyscale.errors import InputError
from manyscale.machine import load_machine, to_toml
from manyscale.machine.gpgpusim import ImportedConfig, import_gpgpusim
from manyscale.machine.gpu_system import build_gpu
from manyscale.spec import dump

VECTOR_ADD = Path(__file__).parents[1] / "gpu" / "fixtures" / "sm_75" / "vector_add.ptx"

# Options and values as GPGPU-Sim has them for its cards (configs/tested-cfgs and deprecated-cfgs).
VOLTA = {
    "gpgpu_kernel_launch_latency": "5000",
    "gpgpu_n_clusters": "80",
    "gpgpu_n_cores_per_cluster": "1",
    "gpgpu_n_mem": "32",
    "gpgpu_n_sub_partition_per_mchannel": "2",
    "gpgpu_clock_domains": "1447.0:1447.0:1447.0:850.0",
    "gpgpu_shader_registers": "65536",
    "gpgpu_shader_core_pipeline": "2048:32",
    "gpgpu_shader_cta": "32",
    "gpgpu_num_sp_units": "4",
    "gpgpu_num_sfu_units": "4",
    "gpgpu_num_dp_units": "4",
    "gpgpu_num_int_units": "4",
    "gpgpu_num_tensor_core_units": "4",
    "ptx_opcode_latency_int": "4,13,4,5,145,21",
    "ptx_opcode_initiation_int": "2,2,2,2,8,4",
    "ptx_opcode_latency_fp": "4,13,4,5,39",
    "ptx_opcode_initiation_fp": "2,2,2,2,4",
    "ptx_opcode_latency_dp": "8,19,8,8,330",
    "ptx_opcode_initiation_dp": "4,4,4,4,130",
    "ptx_opcode_latency_sfu": "100",
    "ptx_opcode_initiation_sfu": "8",
    "ptx_opcode_latency_tesnor": "64",
    "ptx_opcode_initiation_tensor": "64",
    "gpgpu_shmem_num_banks": "32",
    "gpgpu_num_sched_per_core": "4",
    "gpgpu_scheduler": "lrr",
    "gpgpu_adaptive_cache_config": "1",
    "gpgpu_unified_l1d_size": "128",
    "gpgpu_cache:dl1": "S:4:128:64,L:T:m:L:L,A:512:8,16:0,32",
    "gpgpu_shmem_size": "98304",
    "gpgpu_l1_latency": "20",
    "gpgpu_smem_latency": "20",
    "gpgpu_cache:dl2": "S:32:128:24,L:B:m:L:P,A:192:4,32:0,32",
    "gpgpu_memory_partition_indexing": "2",
    "gpgpu_cache:il1": "N:64:128:16,L:R:f:N:L,S:2:48,4",
    "icnt_flit_size": "40",
    "gpgpu_l2_rop_latency": "160",
    "dram_latency": "100",
    "gpgpu_frfcfs_dram_sched_queue_size": "64",
    "gpgpu_n_mem_per_ctrlr": "1",
    "gpgpu_dram_buswidth": "16",
    "gpgpu_dram_burst_length": "2",
    "dram_data_command_freq_ratio": "2",
    "dram_dual_bus_interface": "1",
    "dram_bnk_indexing_policy": "0",
    "gpgpu_dram_timing_opt": '"nbk=16:CCD=1:RRD=4:RCD=12:RAS=29:RP=12:RC=40:\n'
    '   CL=12:WL=2:CDLR=3:WR=11:nbkgrp=4:CCDL=2:RTPL=4"',
}
TITANV = {
    **VOLTA,
    "gpgpu_n_clusters": "40",
    "gpgpu_n_cores_per_cluster": "2",
    "gpgpu_n_mem": "24",
    "gpgpu_clock_domains": "1200.0:1200.0:1200.0:850.0",
    "dram_bnk_indexing_policy": "1",
}
RTX2060 = {
    **VOLTA,
    "gpgpu_n_clusters": "30",
    "gpgpu_n_mem": "12",
    "gpgpu_clock_domains": "1365:1365:1365:3500.5",
    "gpgpu_shader_core_pipeline": "1024:32",
    "gpgpu_shader_cta": "16",
    "ptx_opcode_latency_dp": "64,64,64,64,330",
    "ptx_opcode_initiation_dp": "64,64,64,64,130",
    "ptx_opcode_latency_sfu": "21",
    "gpgpu_unified_l1d_size": "96",
    "gpgpu_cache:dl1": "S:4:128:64,L:T:m:L:L,A:256:32,16:0,32",
    "gpgpu_shmem_size": "65536",
    "gpgpu_l1_latency": "32",
    "gpgpu_smem_latency": "30",
    "gpgpu_cache:dl2": "S:64:128:16,L:B:m:L:P,A:192:4,32:0,32",
    "gpgpu_memory_partition_indexing": "0",
    "gpgpu_l2_rop_latency": "194",
    "dram_latency": "96",
    "gpgpu_dram_buswidth": "2",
    "gpgpu_dram_burst_length": "16",
    "dram_data_command_freq_ratio": "4",
    "dram_dual_bus_interface": "0",
    "gpgpu_dram_timing_opt": "nbk=16:CCD=4:RRD=12:RCD=24:RAS=55:RP=24:RC=78:"
    "CL=24:WL=8:CDLR=10:WR=24:nbkgrp=4:CCDL=6:RTPL=4",
}
# An older form: no units for integers and doubles, a cache without its kind, timings without names.
P100 = {
    "gpgpu_n_clusters": "28",
    "gpgpu_n_cores_per_cluster": "2",
    "gpgpu_n_mem": "32",
    "gpgpu_n_sub_partition_per_mchannel": "1",
    "gpgpu_clock_domains": "1480.0:1480.0:1480.0:715.0",
    "gpgpu_shader_registers": "65536",
    "gpgpu_shader_core_pipeline": "2048:32",
    "gpgpu_shader_cta": "32",
    "gpgpu_num_sp_units": "2",
    "gpgpu_num_sfu_units": "1",
    "ptx_opcode_latency_int": "4,13,4,5,145",
    "ptx_opcode_initiation_int": "1,1,1,1,4",
    "ptx_opcode_latency_dp": "8,19,8,8,330",
    "ptx_opcode_initiation_dp": "2,2,2,2,130",
    "gpgpu_num_sched_per_core": "2",
    "gpgpu_scheduler": "gto",
    "gpgpu_cache:dl1": "64:128:6,L:L:m:N:H,A:128:8,16",
    "gpgpu_shmem_size": "65536",
    "gpgpu_cache:dl2": "64:128:16,L:B:m:W:L,A:128:8,4:0,32",
    "rop_latency": "120",
    "dram_latency": "100",
    "gpgpu_dram_buswidth": "16",
    "gpgpu_dram_burst_length": "2",
    "gpgpu_dram_timing_opt": "16:1:3:10:24:10:34:10:2:3:9:4:2:3",
}


def text_of(options: dict[str, str]) -> str:
    return "# comment\n" + "".join(f"-{name} {value}  # note\n" for name, value in options.items())


def imported(folder: Path, text: str, name: str = "card.config") -> ImportedConfig:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return import_gpgpusim(path)


def numbers(folder: Path, options: dict[str, str]) -> dict[str, Any]:
    gpu_section: dict[str, Any] = dump(imported(folder, text_of(options)).resolved.machine)["gpu"]
    return gpu_section


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        imported(folder, text)
    return str(caught.value)


def test_the_chip_and_its_sms(tmp_path: Path) -> None:
    volta, titan, turing, pascal = (numbers(tmp_path, card) for card in (VOLTA, TITANV, RTX2060, P100))
    assert [card["sm_count"] for card in (volta, titan, turing, pascal)] == [80, 80, 30, 56]
    assert [card["clock"] for card in (volta, titan, turing)] == ["1447MHz", "1200MHz", "1365MHz"]
    assert [card["l2_slices"] for card in (volta, titan, turing, pascal)] == [64, 48, 24, 32]
    assert [card["l2_slice_capacity"] for card in (volta, turing, pascal)] == ["96KiB", "128KiB", "128KiB"]
    assert [card["sm"]["sub_cores"] for card in (volta, pascal)] == [4, 2]
    assert [card["sm"]["scheduler"] for card in (volta, pascal)] == ["lrr", "gto"]
    assert volta["scheduler"]["limits"] == {
        "ctas": 32,
        "threads": 2048,
        "warps": 64,
        "registers": 65536,
        "shared": "96KiB",
    }
    assert turing["sm"]["warps"] == turing["scheduler"]["limits"]["warps"] == 32
    assert volta["scheduler"]["kernel_latency"] == "5000cycles"


def test_instructions_share_the_units_of_the_sm(tmp_path: Path) -> None:
    volta, turing, pascal = (numbers(tmp_path, card)["sm"]["timing"] for card in (VOLTA, RTX2060, P100))
    assert volta["integer"] == volta["logic"] == {"latency": "4cycles", "interval": "2cycles"}
    assert volta["multiply_add"]["latency"] == "5cycles"
    assert volta["fp64"] == {"latency": "8cycles", "interval": "4cycles"}
    assert volta["special_function"] == {"latency": "100cycles", "interval": "8cycles"}
    assert volta["shuffle"] == {"latency": "21cycles", "interval": "4cycles"}
    # 64 cycles for a product of 16 steps: the last step ends 15 intervals after the first began, and a latency later.
    assert volta["tensor_half"] == {"latency": "4cycles", "interval": "4cycles"}
    assert turing["fp64"] == {"latency": "64cycles", "interval": "64cycles"}
    assert pascal["integer"] == {"latency": "4cycles", "interval": "1cycle"}  # two units for two schedulers


def test_fewer_units_than_schedulers_make_intervals_longer(tmp_path: Path) -> None:
    half = numbers(tmp_path, {**VOLTA, "gpgpu_num_dp_units": "2", "gpgpu_num_int_units": "0"})["sm"]["timing"]
    assert half["fp64"]["interval"] == "8cycles"
    assert (
        half["integer"]["interval"] == "2cycles"
    )  # with no units of their own, integers go to the single ones


def test_the_first_level_shares_its_memory_where_it_is_adaptive(tmp_path: Path) -> None:
    volta, turing, pascal = (numbers(tmp_path, card)["sm"]["l1"] for card in (VOLTA, RTX2060, P100))
    assert (volta["size"], volta["least"], volta["line"], volta["ways"]) == ("128KiB", "32KiB", "128B", 64)
    assert (volta["outstanding_lines"], volta["hit_latency"], volta["slice_hash"]) == (
        512,
        "20cycles",
        "polynomial",
    )
    assert (turing["size"], turing["least"], turing["slice_hash"]) == ("96KiB", "32KiB", "modulo")
    assert (pascal["size"], pascal["least"], pascal["ways"]) == ("48KiB", "48KiB", 6)
    without = {name: value for name, value in VOLTA.items() if name != "gpgpu_unified_l1d_size"}
    assert numbers(tmp_path, without)["sm"]["l1"]["size"] == "128KiB"  # 32 KiB and 96 KiB of shared memory


def test_the_second_level(tmp_path: Path) -> None:
    volta, pascal = (numbers(tmp_path, card)["l2"]["cache"] for card in (VOLTA, P100))
    assert volta == {
        "line": "128B",
        "ways": 24,
        "sectored": True,
        "write": "back",
        "tag_latency": "160cycles",
        "data_latency": "0cycles",
        "outstanding_misses": 192,
        "merged_misses": 4,
        "hash_index": True,
    }
    assert (pascal["sectored"], pascal["hash_index"], pascal["tag_latency"]) == (False, False, "120cycles")


def test_the_memory(tmp_path: Path) -> None:
    volta, titan, turing, pascal = (
        numbers(tmp_path, card)["memory"] for card in (VOLTA, TITANV, RTX2060, P100)
    )
    assert [card["channels"] for card in (volta, titan, turing)] == [32, 24, 12]
    assert [card["standard"] for card in (volta, turing)] == ["hbm2-v100", "gddr6"]
    assert [card["clock"] for card in (volta, turing)] == ["850MHz", "3500500kHz"]
    # 100 cycles of 1200 MHz are 83.3 ns there and back.
    assert titan["link_latency"] == "41666666fs"
    assert [card["channel"]["bank_xor"] for card in (volta, titan)] == [False, True]
    assert volta["channel"]["separate_row_bus"] is True
    organisation = ("bank_groups", "banks", "burst_bytes", "burst_cycles")
    assert [volta["channel"][name] for name in organisation] == [4, 4, "32B", "1cycle"]
    assert [turing["channel"][name] for name in organisation] == [4, 4, "32B", "4cycles"]
    timings = ("trcd", "trcd_write", "tras", "trp", "trc", "tcl", "tcwl", "tccd_l", "twtr_l", "twr", "trtp")
    assert [volta["channel"][name].removesuffix("s") for name in timings] == [
        f"{cycles}cycle" for cycles in (12, 12, 29, 12, 40, 12, 2, 2, 3, 11, 4)
    ]
    assert [pascal["channel"][name] for name in ("trcd", "tras", "trc")] == [
        "10cycles",
        "24cycles",
        "34cycles",
    ]


def test_the_bandwidth_of_the_cards_memory(tmp_path: Path) -> None:
    """Peaks of the data sheets: 870 GB/s of a Quadro GV100, 653 of a Titan V, 336 of an RTX 2060, 732 of a P100."""
    for card, peak in ((VOLTA, 870), (TITANV, 653), (RTX2060, 336), (P100, 732)):
        machine = imported(tmp_path, text_of(card)).resolved.machine
        channel = build_gpu(machine).system.components["channel[0]"].spec
        assert machine.gpu is not None
        assert machine.gpu.memory is not None
        assert machine.gpu.memory.channels is not None
        each = channel.burst_bytes / channel.burst_cycles * channel.clock  # type: ignore[attr-defined]
        assert machine.gpu.memory.channels * each / 1e9 == pytest.approx(peak, rel=0.002)


def test_each_number_names_its_option_and_survives_saving(tmp_path: Path) -> None:
    resolved = imported(tmp_path, text_of(TITANV)).resolved
    sources = resolved.sources
    assert sources["gpu.sm_count"] == "card.config: -gpgpu_n_clusters 40 -gpgpu_n_cores_per_cluster 2"
    assert sources["gpu.memory.channel.trcd"] == "card.config: -gpgpu_dram_timing_opt RCD=12"
    others = [source for name, source in sources.items() if name.startswith("gpu.") and " -" not in source]
    assert others
    assert all(
        source == "assumed: no option of GPGPU-Sim states it" or source.endswith("(inherited from v100)")
        for source in others
    )
    (tmp_path / "saved.toml").write_text(to_toml(resolved.machine, sources), encoding="utf-8")
    again = load_machine(tmp_path / "saved.toml")
    assert again.machine == resolved.machine
    assert again.sources["gpu.sm_count"] == sources["gpu.sm_count"]


def test_options_without_a_parameter_are_listed(tmp_path: Path) -> None:
    text = text_of(VOLTA) + "-gpgpu_num_reg_banks 16\n-gpgpu_smem_latncy 3\n-gpgpu_foo a b\n"
    text = text.replace("-gpgpu_smem_latency 20", "").replace("-gpgpu_scheduler lrr", "-gpgpu_scheduler old")
    left = imported(tmp_path, text).left_out
    assert [entry.split(" (")[0] for entry in left] == [
        "-gpgpu_scheduler old",
        "-gpgpu_num_reg_banks 16",
        "-gpgpu_smem_latncy 3",
        "-gpgpu_foo a b",
    ]
    assert left[2].endswith("; did you mean -gpgpu_smem_latency?)")


@pytest.mark.core
def test_the_imported_quadro_runs_vector_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "gpgpusim.config", tmp_path / "quadro.toml"
    source.write_text(text_of(VOLTA) + "-gpgpu_num_reg_banks 16\n", encoding="utf-8")
    assert main(["machines", "import", str(source), "--name", "quadro", "--out", str(target)]) == 0
    assert "not simulated: -gpgpu_num_reg_banks 16" in capsys.readouterr().err
    assert "# -gpgpu_num_reg_banks 16" in target.read_text(encoding="utf-8")
    on = gpu.TimedDevice(str(target))
    assert on.machine.name == "quadro"
    count = 20_000
    a, total = on.array(np.arange(count, dtype=np.float32)), on.zeros(count)
    launch = on.load(VECTOR_ADD)["vector_add"][-(-count // 256), 256](a, a, total, count)
    assert (total.numpy() == 2 * np.arange(count)).all()
    assert launch.cycles > 5000  # its launch latency


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpgpu_n_clusters": "-5"}, "-gpgpu_n_clusters: expected a whole number of at least 1, got '-5'"),
        ({"gpgpu_n_clusters": "9" * 5000}, "-gpgpu_n_clusters: expected a whole number of at least 1"),
        ({"gpgpu_n_mem": "99999"}, "gpu.memory.channels: 99999 is out of range; it must be from 1 to 65536"),
        ({"gpgpu_clock_domains": "1:2:3"}, "-gpgpu_clock_domains: expected four clocks in MHz"),
        ({"gpgpu_clock_domains": "0:1:1:1"}, "-gpgpu_clock_domains: expected clocks above 0"),
        ({"gpgpu_cache:dl2": "none"}, "-gpgpu_cache:dl2: expected sets, bytes of a line and lines of a set"),
        ({"gpgpu_cache:dl2": "S:99999999999:128:4"}, "-gpgpu_cache:dl2: expected sets"),
        ({"gpgpu_cache:dl2": "S:32:100:24"}, ""),
        ({"gpgpu_shader_core_pipeline": "2048:64"}, "expected threads of an SM and a warp of 32"),
        ({"ptx_opcode_latency_int": "4,x"}, "-ptx_opcode_latency_int: expected whole numbers of at least 1"),
        ({"gpgpu_dram_timing_opt": "nbk=16:RCX=3"}, "there is no timing 'RCX'; did you mean 'RC'?"),
        (
            {"gpgpu_dram_timing_opt": "nbk=16:RC=many"},
            "-gpgpu_dram_timing_opt: expected timings such as nbk=16",
        ),
        ({"gpgpu_shmem_size": '"9'}, 'a text in quotes has no closing "'),
        ({"gpgpu_shmem_size": ""}, "-gpgpu_shmem_size has no value"),
        ({"gpgpu_shmem_size": "1\n-gpgpu_shmem_size 2"}, "-gpgpu_shmem_size is stated twice, first in line"),
    ],
)
def test_a_wrong_file_says_where(change: dict[str, str], message: str, tmp_path: Path) -> None:
    text = text_of({**VOLTA, **change})
    if not message:  # a line that no cache can have is found when the machine is built
        machine = imported(tmp_path, text).resolved.machine
        with pytest.raises(InputError, match="line: 100B is no power of two"):
            build_gpu(machine)
        return
    refused = refusal(tmp_path, text)
    assert message in refused
    assert len(refused) < 1000


def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path) -> None:
    assert "line 1: expected an option such as -gpgpu_n_clusters, got 'hello'" in refusal(tmp_path, "hello")
    assert "-gpgpu_n_clusters, -gpgpu_n_mem, -gpgpu_clock_domains, -gpgpu_cache:dl2 not stated" in refusal(
        tmp_path, ""
    )
    (tmp_path / "latin.config").write_bytes(b"-gpgpu_n_mem \xe9")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        import_gpgpusim(tmp_path / "latin.config")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(sorted(VOLTA)),
    st.one_of(
        st.text(max_size=30), st.from_regex(r"[SN]?:?\d{0,12}:\d{0,9}:\d{0,9}[,:LBm\d]{0,20}", fullmatch=True)
    ),
)
def test_any_value_is_a_machine_or_an_input_error(tmp_path: Path, name: str, value: str) -> None:
    with contextlib.suppress(InputError):
        imported(tmp_path, text_of({**VOLTA, name: value}))
