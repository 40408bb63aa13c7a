# SPDX-License-Identifier: Apache-2.0
"""A region of interest: what is counted in it agrees with what the regions of a whole run say."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from manyscale import InputError, cpu
from manyscale.cli.app import app

pytestmark = pytest.mark.core

NEAR = 64  # instructions that a core may be past a mark when the run pauses: some cycles of its width


def heat(threads: int = 1) -> cpu.Program:
    return cpu.Program(cpu.sample("heat"), [str(threads), "64", "4"])


def inclusive(result: cpu.CpuResult, region: str) -> tuple[int, int]:
    """Visits and instructions of a region with all within it."""
    rows = result.regions.filter(region=region)
    return int(rows["visits"].sum()), int(rows["inclusive_instructions"].sum())


@pytest.mark.parametrize("region", ["iteration", "grid", "main"])
def test_only_the_regions_instructions_are_counted(region: str) -> None:
    functions = [] if region == "iteration" else [region]
    whole = cpu.run(heat(), machine="broadwell", functions=functions)
    visits, instructions = inclusive(whole, region)
    result = cpu.run(heat(), machine="broadwell", roi=region)
    assert result.instructions == pytest.approx(instructions, abs=NEAR * 2 * visits)
    assert result.cycles < whole.cycles
    assert sum(result.shares.values()) == pytest.approx(1)


def test_misses_before_the_region_are_not_counted() -> None:
    """The grids are filled before the iterations, which find them in the caches."""
    whole = cpu.run(heat(), machine="broadwell")
    result = cpu.run(heat(), machine="broadwell", roi="iteration")
    came = [each.value("core[0]", "l2.bytes_in") for each in (whole, result)]
    assert came[0] - came[1] > 2 * 64 * 64 * 8  # two grids of doubles
    assert result.value("core[0]", "cycles") == sum(
        result.value("core[0]", f"cpi.{cause}") for cause in result.causes
    )


def test_a_region_on_several_cores_is_the_same_on_any_number_of_threads() -> None:
    one, two = (
        cpu.run(heat(4), machine="broadwell", cores=4, roi="iteration", threads=threads) for threads in (1, 2)
    )
    assert two.threads == 2
    assert one.columns == two.columns
    # Other threads work for the region, too, so it has more than the thread that marked it.
    assert one.instructions > inclusive(cpu.run(heat(4), machine="broadwell", cores=4), "iteration")[1]


def test_a_region_that_never_comes_is_said() -> None:
    with pytest.raises(InputError, match="never came to the region 'assembly'"):
        cpu.run(heat(), machine="broadwell", roi="assembly")


def test_the_command_counts_a_region_only(tmp_path: Path) -> None:
    def run(*options: str) -> Any:
        command = [
            "cpu",
            "run",
            str(cpu.sample("heat")),
            "--roi",
            "iteration",
            *options,
            "--",
            "1",
            "64",
            "4",
        ]
        return CliRunner().invoke(app, command)

    done = run("--json", "--out", str(tmp_path / "run"))
    assert done.exit_code == 0
    assert json.loads(done.stdout)["cycles"] == cpu.run(heat(), machine="broadwell", roi="iteration").cycles
    assert isinstance(run("--functional").exception, InputError | SystemExit)
