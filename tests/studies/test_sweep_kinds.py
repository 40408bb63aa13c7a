# SPDX-License-Identifier: Apache-2.0
"""Every kind of run can be swept, and a point gives what the run alone gives."""

import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyscale import cpu, gpu, network
from manyscale.cuda.loader import library_folder
from manyscale.errors import InputError
from manyscale.machine import load_machine
from manyscale.machine.memory import MemoryWorkload, build_memory
from manyscale.studies.sweep import Study
from manyscale.studies.sweep.controller import _task
from manyscale.studies.sweep.worker import Record, run_task
from manyscale.system import System
from systems import make_phold

pytestmark = pytest.mark.core

SAXPY = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.f32 %f1, [a]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
  mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f2, [%rd6]; ld.global.f32 %f3, [%rd7];
  fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%rd7], %f3;
DONE: ret;
}
"""


def run_points(study: Study) -> list[Record]:
    """All points, right here; each must succeed."""
    statistics = [metric.text for metric in study.metrics if metric.is_statistic]
    records = [run_task(_task(study, point, statistics)) for point in study.points()]
    for record in records:
        assert record["status"] == "done", record["error"]
    return records


def test_network_jobs() -> None:
    study = Study(
        {"kind": "network", "work": "allreduce", "param": {"iterations": 3}},
        machine="omnipath",
        axes={"workload.nodes": [2, 4], "network.link.latency": ["100ns", "1us"]},
    )
    found = [record["values"]["simulated_seconds"] for record in run_points(study)]
    alone = [
        network.run("allreduce", nodes=nodes, changes=[f"network.link.latency={latency}"], iterations=3)
        for nodes in (2, 4)
        for latency in ("100ns", "1us")
    ]
    assert found == [result.simulated_seconds for result in alone]
    assert len(set(found)) == 4


def test_machines_are_an_axis_and_statistics_are_metrics(tmp_path: Path) -> None:
    (tmp_path / "copy.toml").write_text('inherits = "memory-small"\n[memory.l1]\nsize = "8KiB"\n')
    study = Study(
        {"kind": "memory", "pattern": "random", "accesses": 300, "footprint": "64KiB"},
        axes={"machine": ["memory-small", "copy.toml"], "memory.cores": [1, 2]},
        folder=tmp_path,
        metrics={"latency": "latency_seconds", "hits": "core[*]:l1.hits", "most": "max(core[*]:l1.hits)"},
    )
    records = run_points(study)
    for record, point in zip(records, study.points(), strict=True):
        machine = load_machine(str(point.request.machine), point.request.changes).machine
        workload = MemoryWorkload(pattern="random", accesses=300, footprint="64KiB")
        result = build_memory(machine, workload).run()
        hits = [result.value(f"core[{core}]", "l1.hits") for core in range(point.coordinates["memory.cores"])]
        assert record["values"]["core[*]:l1.hits"] == sum(hits)
        assert record["values"]["max(core[*]:l1.hits)"] == max(hits)


def test_memory_traces(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("".join(f"R {64 * line:#x} 8\n" for line in range(50)))
    study = Study({"kind": "memory", "traces": ["trace"]}, machine="memory-small", folder=tmp_path)
    assert run_points(study)[0]["values"]["accesses"] == 50


def test_gpu_kernels_with_variables(tmp_path: Path) -> None:
    (tmp_path / "saxpy.ptx").write_text(SAXPY)
    study = Study(
        {
            "kind": "gpu",
            "file": "saxpy.ptx",
            "grid": "{n // 128}",
            "block": 128,
            "arguments": ["2.5", "x=f32[{n}]:random", "y=f32[{n}]:ones", "{n}"],
        },
        machine="v100",
        axes={"let.n": [256, 1024], "gpu.clock": ["1GHz", "1.4GHz"]},
        folder=tmp_path,
    )
    cycles = [record["values"]["total_cycles"] for record in run_points(study)]
    device = gpu.TimedDevice(load_machine("v100", ["gpu.clock=1GHz"]).machine)
    random = np.random.default_rng(0)
    x = device.array(random.random(256).astype(np.float32))
    launch: Any = device.load(tmp_path / "saxpy.ptx")["saxpy"][2, 128](
        2.5, x, device.array(np.ones(256, "f4")), 256
    )
    assert cycles[0] == launch.cycles
    assert cycles[2] > cycles[0]


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Study]:
    """A study of a small RISC-V program, in a folder of its own."""
    program = tmp_path / "heat"
    program.write_bytes(lzma.decompress(cpu.program.sample("heat").read_bytes()))

    def make(**more: Any) -> Study:
        workload = {"kind": "cpu", "program": "heat", "arguments": ["1", "{side}", "1"], "cores": 1} | more
        return Study(workload, machine="broadwell", axes={"let.side": [8, 12]}, folder=tmp_path)

    return make


def test_programs_and_their_traces(small: Callable[..., Study], tmp_path: Path) -> None:
    records = run_points(small())
    alone = cpu.run(cpu.Program(tmp_path / "heat", ["1", "8", "1"]), cores=1, regions=False)
    assert records[0]["values"]["cycles"] == alone.cycles
    assert records[1]["values"]["instructions"] > alone.instructions  # type: ignore[operator]
    cpu.record(cpu.Program(tmp_path / "heat", ["1", "8", "1"]), tmp_path / "heat.trace", cores=1)
    study = Study(
        {"kind": "replay", "trace": "heat.trace"}, axes={"workload.replicate": [1, 2]}, folder=tmp_path
    )
    replayed = run_points(study)
    assert replayed[0]["values"]["cores"] == 1
    assert replayed[1]["values"]["cores"] == 2


def test_a_program_that_fails_is_a_failed_point(tmp_path: Path) -> None:
    study = Study({"kind": "cpu", "program": "absent"}, machine="broadwell", folder=tmp_path)
    record = run_task(_task(study, study.points()[0], []))
    assert record["status"] == "failed"
    assert "absent" in str(record["error"])


def test_machines_that_do_not_pass_their_checks_fail_alone() -> None:
    study = Study(
        {"kind": "network", "work": "allreduce", "nodes": 2},
        axes={"network.link.bandwidth": ["100Gb/s", "100GHz"], "machine": ["omnipath", "omnipat"]},
    )
    records = [run_task(_task(study, point, [])) for point in study.points()]
    assert [record["status"] for record in records] == ["done", "failed", "failed", "failed"]
    assert "did you mean 'omnipath'" in str(records[1]["error"])
    assert "is no unit of a bandwidth" in str(records[2]["error"])


def test_saved_systems(tmp_path: Path) -> None:
    (tmp_path / "phold.toml").write_text(make_phold(components=4, jobs=2).to_toml())
    study = Study(
        {"kind": "system", "file": "phold.toml", "until": "1us"},
        axes={"seed": [1, 2], "node[0].jobs": [2, 5]},
        folder=tmp_path,
    )
    alone = [
        System.load(tmp_path / "phold.toml", seed=seed, changes=[f"node[0].jobs={jobs}"])
        .run(until="1us")
        .events
        for seed in (1, 2)
        for jobs in (2, 5)
    ]
    assert [record["values"]["events"] for record in run_points(study)] == alone
    assert len(set(alone)) == 4


def test_cuda_programs(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the host's part of a CUDA program needs g++")
    fixtures = Path(__file__).resolve().parents[1] / "cuda" / "fixtures"
    runtime = library_folder() / "libcudart.so.13"
    subprocess.run([compiler, fixtures / "driver.cpp", "-o", tmp_path / "driver", runtime], check=True)
    study = Study(
        {
            "kind": "cuda",
            "program": "driver",
            "arguments": [str(fixtures / "vector_add.fatbin"), "{case}"],
            "allow_newer": True,  # its PTX is for sm_75
        },
        machine="v100",
        axes={"let.case": ["vector_add"], "gpu.clock": ["1GHz", "1.4GHz"]},
        folder=tmp_path,
    )
    slow, fast = (record["values"] for record in run_points(study))
    assert slow["launches"] == fast["launches"] >= 1  # type: ignore[operator]
    assert slow["simulated_seconds"] > fast["simulated_seconds"]  # type: ignore[operator]


def test_functions_are_given_what_they_take() -> None:
    def takes(n: int, seed: int, machine: str) -> dict[str, Any]:
        return {"n": n, "seed": {"value": seed, "unit": "s"}, "v100": machine == "v100"}

    pytest.importorskip("cloudpickle", reason="functions without a module need cloudpickle")
    study = Study(takes, machine="v100", axes={"workload.n": [1]}, repetitions=2, seed=7)
    assert [record["values"] for record in run_points(study)] == [
        {"n": 1, "seed": 7, "v100": 1},
        {"n": 1, "seed": 8, "v100": 1},
    ]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("nothing", "write module:function"),
        ("no_such_module:f", "no_such_module cannot be imported"),
        ("math:no_such", "has no function 'no_such'"),
        ("os:getcwd", "returned str"),
    ],
)
def test_wrong_functions_are_explained(function: str, said: str) -> None:
    study = Study({"kind": "python", "function": function})
    record = run_task(_task(study, study.points()[0], []))
    assert record["status"] == "failed"
    assert said in str(record["error"])


def test_wrong_statistics_are_explained() -> None:
    workload = {"kind": "memory", "pattern": "random", "accesses": 10, "footprint": "64KiB"}
    for metric, said in (("core[0]:l1.hit", "did you mean 'l1.hits'"), ("cor[0]:l1.hits", "no component")):
        study = Study(workload, machine="memory-small", metrics=[metric])
        record = run_task(_task(study, study.points()[0], [metric]))
        assert said in str(record["error"])
    with pytest.raises(InputError, match="two metrics are called"):
        Study(workload, metrics=["a", "a"])
