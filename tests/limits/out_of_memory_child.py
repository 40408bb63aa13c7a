# SPDX-License-Identifier: Apache-2.0
"""Runs one kind of simulation again and again, each time with other allocations of the core failing.

Allocations are counted, and fail, within the calls of the core that simulate: that is where memory is used up. (The
conversion of arguments is nanobind's, which ends the process when it gets none.)

Started by test_out_of_memory.py with the library of failing_new.cpp loaded first. Any error but MemoryError ends it,
and so does a clean run afterwards that gives other numbers than the first. Prints how many runs failed, and how many of
those kept statistics.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from manyscale import _core, cpu, gpu, network
from manyscale.machine import load_machine
from manyscale.machine.memory import MemoryWorkload, build_memory
from manyscale.results import load
from manyscale.spec import build
from systems import make_phold

PTX = (Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx").read_text()
HEAT = cpu.Program(cpu.sample("heat"), ["1", "8", "1"])


def phold(out: Path, threads: int = 1) -> Any:
    return make_phold(components=6, jobs=4).run(until="60ns", threads=threads, out=out).columns


def phold_on_threads(out: Path) -> Any:
    return phold(out, threads=3)


def memory(out: Path) -> Any:
    workload = build(MemoryWorkload, {"pattern": "random", "accesses": 60, "footprint": "1MiB"}, "test")
    system = build_memory(load_machine("memory-small").machine, workload)
    return system.run(threads=2, out=out).columns


def packets(out: Path) -> Any:
    return _network(out, "packet", "hpcg", iterations=1, nx=8, ny=8, nz=8)


def flows(out: Path) -> Any:
    return _network(out, "flow", "allreduce")


def _network(out: Path, fidelity: str, work: str, **parameters: Any) -> Any:
    return network.run(
        work, nodes=4, ranks_per_node=2, fidelity=fidelity, threads=2, out=out, **parameters
    ).columns


def functional_kernel(out: Path) -> Any:
    return _saxpy(gpu.Device(threads=2))


def timed_kernel(out: Path) -> Any:
    return _saxpy(gpu.TimedDevice(load_machine("v100", ["gpu.sm_count=4"]).machine, threads=2))


def _saxpy(device: Any) -> Any:
    import numpy as np

    kernel = device.load(PTX)["saxpy"]
    x, y = device.array(np.arange(1024, dtype="f4")), device.array(np.ones(1024, "f4"))
    kernel[4, 256](2.5, x, y, 1024)
    return y.numpy().tolist()


def processor(out: Path) -> Any:
    return cpu.run(HEAT, machine="boom", cores=1, threads=2, out=out).columns


def functional_processor(out: Path) -> Any:
    return cpu.run_functional(HEAT).instructions


def recording(out: Path) -> Any:
    return cpu.record(HEAT, out, machine="boom").instructions


def replay(out: Path) -> Any:
    return cpu.replay(TRACE, cores=1, threads=2, out=out).columns


KINDS: dict[str, Callable[[Path], Any]] = {
    kind.__name__: kind
    for kind in (
        phold,
        phold_on_threads,
        memory,
        packets,
        flows,
        functional_kernel,
        timed_kernel,
        processor,
        functional_processor,
        recording,
        replay,
    )
}


def arm(library: ctypes.CDLL) -> None:
    """Has allocations counted within the calls that simulate."""

    def armed(method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            before = library.count_allocations(1)
            try:
                return method(*arguments, **named)
            finally:
                library.count_allocations(before)

        return call

    library.count_allocations(0)
    for owner, name in (
        (_core.Simulation, "run"),
        (_core.Simulation, "statistics"),
        (_core.CpuFunctionalRun, "run"),
        (_core.GpuDevice, "launch"),
    ):
        setattr(owner, name, armed(getattr(owner, name)))


def points(count: int, wanted: int) -> Iterator[int]:
    """Numbers below `count`: all of the first, then at growing distances."""
    at = 0.0
    growth = 1.0
    while at < count:
        yield int(at)
        at += growth
        if at > wanted / 2:
            growth = max(1.0, (count - wanted / 2) / (wanted / 2))


def main(name: str, wanted: int) -> None:
    library = ctypes.CDLL(None)
    library.fail_none.restype = ctypes.c_int64
    fail_from = library.fail_from
    fail_from.argtypes = [ctypes.c_int64, ctypes.c_int]
    arm(library)
    kind = KINDS[name]
    failed = kept = 0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        expected = kind(out)
        _remove(out)
        fail_from(2**62, 0)
        assert kind(out) == expected
        count = library.fail_none()
        for number in points(count, wanted):
            only_one = number % 3 != 0
            _remove(out)
            print(f"{name}: allocation {number} of {count}, {only_one=}", file=sys.stderr, flush=True)
            fail_from(number, only_one)
            try:
                kind(out)
            except MemoryError:
                failed += 1
            finally:
                library.fail_none()
            if (out / "run.json").is_file():
                run = load(out)
                assert run.status in ("done", "failed"), run.status
                if run.status == "failed":
                    assert "not enough memory" in run.info["error"], run.info["error"]
                    kept += run.has_stats and run.stats.height > 0
        _remove(out)
        assert kind(out) == expected, "a clean run gives other numbers after those that failed"
    print(json.dumps({"allocations": count, "failed": failed, "kept": kept}))


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    TRACE = Path(tempfile.mkdtemp()) / "trace"
    if sys.argv[1] == "replay":
        cpu.record(HEAT, TRACE, machine="boom")
    main(sys.argv[1], int(sys.argv[2]))
    shutil.rmtree(TRACE.parent)
