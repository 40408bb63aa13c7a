# SPDX-License-Identifier: Apache-2.0
"""The commands on machines: what they print, what they refuse, and how the shell completes them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app, main
from manyscale.machine import list_presets, load_machine

LISTING = """\
[CPU]
clock: 2660MHz
num_cores: 1
application: vectorAdd

[GPU]
clock: 1200MHz
gpu_cores: 80
"""


def invoke(*arguments):
    return CliRunner().invoke(app, ["machines", *arguments])


def lines_of(text):
    """The lines without the space between their words."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_list_has_a_line_for_each_preset_by_kind():
    lines = invoke().stdout.splitlines()
    assert len(lines) == len(list_presets()) + 5
    heading = {line: number for number, line in enumerate(lines)}
    v100 = next(line for line in lines if line.split()[0] == "v100")
    assert heading["GPUs"] < heading[v100] < heading["Processors"]
    assert "NVIDIA Tesla V100 SXM2" in v100


def test_the_list_as_json():
    listed = {entry["name"]: entry for entry in json.loads(invoke("--json").stdout)}
    assert sorted(listed) == list_presets()
    assert listed["v100-sst"]["from"][0] == "SST-GPU final report"
    assert listed["v100-sst"]["description"].startswith("CPU with an NVIDIA V100")


def test_json_before_a_command_is_refused_rather_than_ignored():
    result = invoke("--json", "show", "v100-sst")
    assert result.exit_code == 2
    assert "write --json after 'show'" in result.stderr


def test_show_gives_each_number_with_unit_and_source_by_section():
    lines = lines_of(invoke("show", "v100-sst").stdout)
    assert lines[0].startswith("v100-sst: CPU with an NVIDIA V100")
    gpu = lines.index("[gpu]")
    assert lines[gpu + 1] == (
        "architecture sm_70 CUDA C++ Programming Guide, compute capabilities: 7.0 for Volta (V100)"
    )
    assert lines[gpu + 2] == "clock 1312MHz SST-GPU final report, Table 2b, Clock"
    assert lines[gpu + 3] == "sm_count 84 SST-GPU final report, Table 2b, SMs"
    assert (
        "capacity 16GiB SST-GPU final report, Table 2b, HBM Capacity" in lines[lines.index("[gpu.memory]") :]
    )
    unified = lines[lines.index("[gpu.uvm]") :]
    assert "batch_latency 12200ns assumed, as machines/gtx1080ti.toml (inherited from v100)" in unified


def test_show_aligns_the_sources():
    lines = [
        line for line in invoke("show", "v100-sst").stdout.splitlines() if "SST-GPU final report, " in line
    ]
    assert len(lines) > 10
    assert len({line.index("SST-GPU final report, ") for line in lines}) == 1


def test_show_with_changes_names_the_command_line_as_source():
    result = invoke("show", "v100", "--set", "gpu.clock=1.5GHz", "--set", "gpu.uvm.page_size=64KiB")
    lines = lines_of(result.stdout)
    assert "clock 1500MHz command line" in lines
    assert "page_size 64KiB command line" in lines


def test_show_as_json_has_numbers_in_base_units():
    shown = json.loads(invoke("show", "v100-sst", "--json").stdout)
    assert shown["name"] == "v100-sst"
    assert shown["parameters"]["gpu.clock"] == {
        "value": 1_312_000_000,
        "unit": "Hz",
        "text": "1312MHz",
        "source": "SST-GPU final report, Table 2b, Clock",
    }


def test_show_of_a_file_names_the_file_as_source(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('inherits = "v100"\n[gpu]\nclock = "1GHz"\n')
    lines = lines_of(invoke("show", str(file)).stdout)
    assert lines[0].startswith("mine")
    assert "clock 1GHz mine.toml" in lines
    assert any(line.endswith("(inherited from v100)") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v10"], "there is no machine named 'v10'; did you mean 'v100'?"),
        (
            ["v100", "--set", "gpu.clok=1GHz"],
            "gpu.clok: there is no such parameter; did you mean 'gpu.clock'",
        ),
        (["v100", "--set", "gpu.clock=1.5GB"], "'GB' is no unit of a frequency"),
        (["v100", "--set", "gpu.clock=1500"], "has no unit; a frequency takes Hz"),
        (["v100", "--set", "gpu.sm_count=0"], "gpu.sm_count: 0 is out of range; it must be at least 1"),
        (["v100", "--set", "gpu.clock"], "expected path=value, such as gpu.clock=1.5GHz"),
        (["nowhere.toml"], "there is no file 'nowhere.toml'"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(capsys, arguments, message):
    assert main(["machines", "show", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert message in captured.err


def test_parameters_lists_path_unit_range_default_and_doc():
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in invoke("parameters").stdout.splitlines()
    ]
    assert ["gpu.clock", "Hz", "at least 1Hz", "not stated", "core clock of the SMs"] in rows
    listed = {row["path"]: row for row in json.loads(invoke("parameters", "--json").stdout)}
    assert listed["gpu.sm_count"] == {
        "path": "gpu.sm_count",
        "type": "count",
        "unit": "1",
        "default": "not stated",
        "range": "at least 1",
        "doc": "number of SMs",
    }


def test_import_writes_a_machine_that_loads_the_same(tmp_path):
    source, target = tmp_path / "listing.ini", tmp_path / "mine.toml"
    source.write_text(LISTING)
    result = invoke("import", str(source), "--out", str(target))
    assert result.exit_code == 0, result.output
    assert f"Wrote 4 parameters to {target}" in result.stderr
    assert "application = vectorAdd" in result.stderr
    assert "listing.ini, line 2" in target.read_text()
    assert load_machine(target).machine == load_machine(source).machine


def test_import_does_not_overwrite(tmp_path, capsys):
    source, target = tmp_path / "listing.ini", tmp_path / "mine.toml"
    source.write_text(LISTING)
    target.write_text("precious")
    assert main(["machines", "import", str(source), "--out", str(target)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert target.read_text() == "precious"


def test_import_of_a_file_named_like_a_preset_reads_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("v100").write_text(LISTING)
    assert invoke("import", "v100", "--out", "mine.toml", "--quiet").stderr == ""
    assert load_machine("mine.toml").machine.gpu.sm_count == 80


def test_import_says_what_is_wrong_and_writes_nothing(tmp_path, capsys):
    source, target = tmp_path / "listing.ini", tmp_path / "mine.toml"
    source.write_text("[GPU]\nclok: 1200MHz\n")
    assert main(["machines", "import", str(source), "--out", str(target)]) == 2
    assert "line 2: unknown key 'clok' in [GPU]; did you mean 'clock'?" in capsys.readouterr().err
    assert not target.exists()


def in_bash(script):
    # Typer asks which shell is the parent, so there must be one that stays for the answer.
    return subprocess.run(["bash", "-c", f"{script}\n:"], capture_output=True, text=True, check=True).stdout


def test_bash_completes_commands_presets_and_models():
    command = shlex.quote(str(Path(sys.executable).with_name("manyscale")))
    script = in_bash(f"{command} --show-completion bash")
    assert "complete -o default -F _manyscale_completion manyscale" in script

    def completed(*words):
        return in_bash(
            f"{script}\nCOMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}\n"
            f'_manyscale_completion {command}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
        ).split()

    assert completed("manyscale", "mach") == ["machines"]
    assert completed("manyscale", "machines", "show", "v") == ["v100", "v100-pcie", "v100-sst"]
    assert completed("manyscale", "models", "show", "synthetic.r") == ["synthetic.relay"]
    assert completed("manyscale", "mem", "run", "random", "--machine", "memory-s") == ["memory-small"]
    assert completed("manyscale", "net", "run", "halo3d", "--set", "network.link.b") == [
        "network.link.bandwidth="
    ]
