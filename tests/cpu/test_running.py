# SPDX-License-Identifier: Apache-2.0
"""Running programs from Python: results, tables that add up, regions, tasks, errors, charts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from manyscale import InputError, ProgramError, cpu
from manyscale.results.stack_chart import stack_chart

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def timed() -> cpu.CpuResult:
    program = cpu.Program(cpu.sample("heat"), ["2", "24", "3"])
    return cpu.run(program, machine="boom", cores=2, hot_lines=True, functions=["main"], konata=(100, 20))


def test_a_result_says_what_the_program_did(timed: cpu.CpuResult) -> None:
    assert timed.stdout.startswith("3 steps on 24 x 24 cells")
    assert (timed.exit_code, timed.stderr, timed.cores) == (0, "", 2)
    assert timed.simulated_seconds == timed.cycles / 1e9
    assert timed.ipc == timed.instructions / timed.cycles
    assert timed.headline["instructions"]["value"] == timed.instructions


def test_causes_add_up_to_cycles_for_cores_and_regions(timed: cpu.CpuResult) -> None:
    for core in range(2):
        cycles = timed.value(f"core[{core}]", "cycles")
        assert timed.cpi_stack.filter(core=core)["cycles"].sum() == cycles
        of_regions = timed.regions.filter(core=core).select(pl.sum_horizontal(timed.causes).sum()).item()
        assert of_regions <= cycles
    assert timed.regions["instructions"].sum() == timed.instructions


def test_hot_lines_hold_every_instruction_and_most_cycles(timed: cpu.CpuResult) -> None:
    assert timed.hot_instructions["instructions"].sum() == timed.instructions
    idle = timed.cpi_stack.filter(cause="idle")["cycles"].sum()
    assert timed.hot_instructions["cycles"].sum() <= timed.cpi_stack["cycles"].sum() - idle
    lines = timed.hot_lines.filter(pl.col("file").str.ends_with("heat.c"))
    assert set(lines["function"]) >= {"main", "step._omp_fn.0", "warm_rows._omp_fn.0"}
    assert timed.hot_lines["cycles"].is_sorted(descending=True)


def test_a_named_function_is_a_region(timed: cpu.CpuResult) -> None:
    assert timed.regions.filter(pl.col("region").str.contains("main"))["visits"].sum() == 1
    with pytest.raises(InputError, match="there is no function 'mian'; did you mean 'main'"):
        cpu.run(cpu.sample(), machine="boom", functions=["mian"])


def test_each_core_has_a_pipeline_log(timed: cpu.CpuResult, tmp_path: Path) -> None:
    paths = timed.write_konata(tmp_path / "pipe.log")
    assert [path.name for path in paths] == ["pipe.0.log", "pipe.1.log"]
    for path in paths:
        assert path.read_text().startswith("Kanata\t0004\n")


def test_caches_count_each_access_once(timed: cpu.CpuResult) -> None:
    assert timed.caches["level"].to_list() == ["l1i", "l1", "shared"]
    for row in timed.caches.iter_rows(named=True):
        assert 0 <= row["misses"] <= row["accesses"]
        assert 0 <= row["hit_rate"] <= 1


def test_without_time_counts_are_those_of_any_machine() -> None:
    program = cpu.Program(cpu.sample("heat"), ["1", "16", "2"])
    done = cpu.run_functional(program, regions=True)
    timed = cpu.run(program, machine="boom")
    assert done.stdout == timed.stdout
    assert done.instructions == timed.instructions
    visits = {row["region"]: row["visits"] for row in done.regions.iter_rows(named=True)}
    assert visits == {row["region"]: row["visits"] for row in timed.regions.iter_rows(named=True)}


def test_an_endless_program_can_be_given_up() -> None:
    program = cpu.Program(cpu.sample("heat"), ["1", "512", "100000"])
    with pytest.raises(ProgramError, match="it was given up after"):
        cpu.run_functional(program, limit=5_000_000)


def test_a_failure_says_where_it_was(tmp_path: Path) -> None:
    program = cpu.Program(cpu.sample("heat"), ["1", "2000", "1"], memory="8MiB")
    for run in (cpu.run_functional, lambda work: cpu.run(work, machine="boom", out=tmp_path / "run")):
        with pytest.raises(ProgramError, match=r"heat\.xz: out of memory: .* in grid\+0x.* \(heat\.c:"):
            run(program)
    assert '"status": "failed"' in (tmp_path / "run" / "run.json").read_text()


def test_bars_of_stacked_parts() -> None:
    svg = stack_chart(
        "title <1>", "cycles", {"one": {"base": 1.0, "dram": 3.0}, "two": {"base": 2.0, "dram": 0.0}}
    )
    assert svg.count("<rect") == 1 + 4 + 2
    assert "title &lt;1&gt;" in svg
    for bars in ({}, {"one": {"base": 0.0}}):
        with pytest.raises(InputError, match="at least one bar"):
            stack_chart("", "", bars)
