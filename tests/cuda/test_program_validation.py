# SPDX-License-Identifier: Apache-2.0
"""`manyscale validate --programs`: the measurements in the package, and programs of a folder that are run with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from host_programs import sums_program

from manyscale.studies.correlation import read_measurements
from manyscale.validation import gpu_programs, sst_gpu_programs
from manyscale.validation.gpu_programs import MEASURED, PROGRAMS, SuiteProgram

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program under the name of one of the suites."""
    made = tmp_path_factory.mktemp("programs")
    (made / "bin").mkdir()
    (made / "data").mkdir()
    shutil.copy(sums_program(tmp_path_factory.mktemp("sums")), made / "bin" / "backprop")
    return made


def test_every_program_has_measurements_of_its_first_launches() -> None:
    for program in PROGRAMS:
        found = read_measurements(MEASURED, program.name).launches
        assert [launch.number for launch in found] == list(range(len(found)))
        assert all({"cycles", "seconds", "warp_instructions"} <= set(launch.values) for launch in found)
    assert {program.use for program in PROGRAMS} == {"calibrated", "test"}


def test_a_program_of_the_folder_is_run_and_compared(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = tmp_path / "measured.csv"
    measured.write_text("program,launch,cycles,warp_instructions\nbackprop,0,5000,6656\nbackprop,1,10,5\n")
    monkeypatch.setattr(gpu_programs, "MEASURED", measured)
    monkeypatch.setattr(gpu_programs, "PROGRAMS", (SuiteProgram("backprop", "calibrated", "1"), PROGRAMS[1]))
    missing: list[str] = []
    rows = gpu_programs.rows("v100-sst", "ptx", folder, missing.append)
    by_name = {row.name: row for row in rows}
    assert set(by_name) == {"backprop: add", "backprop: twice"}
    assert by_name["backprop: add"].reference == 5000
    assert by_name["backprop: add"].simulated > 2000
    assert by_name["backprop: twice"].use == "other code"  # it was measured with five instructions
    assert [text.split(": ")[1] for text in missing] == ["its rows are left out"]


def test_instruction_classes_are_shares_of_all_threads(tmp_path: Path) -> None:
    texts = ["FADD", "@P0 IADD3.X", "LDG.E.64.SYS", "BRA", "SHFL.IDX", "DFMA"]
    pl.DataFrame(
        {
            "scope": ["_Z4heatPf"] * 6 + ["other"],
            "text": [*texts, "FADD"],
            "executed": [10] * 7,
            "threads": [320, 160, 320, 320, 320, 320, 320],
        }
    ).write_parquet(tmp_path / "operations.parquet")
    mix = sst_gpu_programs.instruction_mix(tmp_path, "heat")
    whole = 100 / 6
    assert mix == pytest.approx(
        {
            **dict.fromkeys(("FP32", "L/S", "CTRL", "MISC", "FP64"), whole),
            "INT": whole / 2,
            "INACTIVE": whole / 2,
        }
    )


def test_data_of_the_package_is_small_and_whole() -> None:
    lines = MEASURED.read_text().splitlines()
    assert len(lines) < 200
    assert json.dumps(lines[0].split(",")[:3]) == '["program", "launch", "cycles"]'
