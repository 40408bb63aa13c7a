# SPDX-License-Identifier: Apache-2.0
"""Out of memory: a command ends with the right result, or with one line that says so and the exit code 6."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale import cpu, host_memory
from manyscale.errors import OutOfMemoryError
from manyscale.results import load
from systems import make_ring

HERE = Path(__file__).parent
PTX = str(Path(__file__).resolve().parents[2] / "examples/gpu/kernels.ptx")
HEAT = str(cpu.sample("heat"))
SAXPY = ("--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "2.5", "--arg", "f32[1024]:ones")
MIB = 2**20
LIMITS = [size * MIB for size in (64, 160, 400, 1000, 1536, 2048, 8192)]  # from too little for numpy
KINDS = (
    "phold",
    "phold_on_threads",
    "memory",
    "packets",
    "flows",
    "functional_kernel",
    "timed_kernel",
    "processor",
    "functional_processor",
    "recording",
    "replay",
)


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    library = tmp_path_factory.mktemp("library") / "failing_new.so"
    command = [
        compiler,
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        str(HERE / "failing_new.cpp"),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("kind", KINDS)
def test_every_allocation_of_the_core_may_fail(kind: str, preloaded: Path) -> None:
    """Some of the allocations of a run fail, one alone or all from it on: MemoryError, and nothing is broken by it."""
    if "libasan" in os.environ.get("LD_PRELOAD", "") or "libtsan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizers have an operator new of their own")
    done = subprocess.run(
        [sys.executable, str(HERE / "out_of_memory_child.py"), kind, "24"],
        env=os.environ | {"LD_PRELOAD": str(preloaded), "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["failed"] >= 12, found
    if kind in ("phold", "phold_on_threads", "memory", "packets", "flows", "processor", "replay"):
        assert found["kept"] >= 6, found


def commands(folder: Path) -> dict[str, list[str]]:
    system = folder / "ring.toml"
    make_ring(hops=200).save(system)
    trace = folder / "heat.trace"
    cpu.record(cpu.Program(HEAT, ["1", "8", "1"]), trace, machine="boom")
    arguments = [*SAXPY, "--arg", "f32[1024]:ones", "--arg", "1024"]
    return {
        "gpu": ["gpu", "run", PTX, *arguments],
        "gpu-timed": ["gpu", "run", PTX, "-m", "v100", "--out", "OUT", *arguments],
        "cpu": ["cpu", "run", HEAT, "-m", "boom", "--out", "OUT", "--", "1", "8", "1"],
        "record": ["cpu", "record", HEAT, "-m", "boom", "--out", "OUT", "--", "1", "8", "1"],
        "replay": ["cpu", "replay", str(trace), "--out", "OUT"],
        "net": ["net", "run", "allreduce", "--nodes", "16", "--out", "OUT"],
        "mem": ["mem", "run", "random", "-m", "memory-small", "--accesses", "200", "--out", "OUT"],
        "system": ["run", str(system), "--out", "OUT"],
    }


@pytest.mark.parametrize("name", ["gpu", "gpu-timed", "cpu", "record", "replay", "net", "mem", "system"])
def test_a_limit_of_address_space_is_kept_or_named(name: str, tmp_path: Path) -> None:
    command = commands(tmp_path)[name]
    outcomes = []
    for limit in LIMITS:
        out = tmp_path / str(limit)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "manyscale.cli.start",
                *(str(out) if one == "OUT" else one for one in command),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda most=limit: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        )
        outcomes.append(done.returncode)
        assert done.returncode in (0, OutOfMemoryError.exit_code), f"{limit}: {done.stderr[-2000:]}"
        if done.returncode:
            assert done.stderr.startswith("Error: not enough memory: "), done.stderr
            assert len(done.stderr.splitlines()) == 1, done.stderr
        if (out / "run.json").is_file():
            run = load(out)
            assert run.status == ("failed" if done.returncode else "done")
            assert run.stats.height > 0 if run.status == "done" else "not enough memory" in run.info["error"]
    assert outcomes[0] == OutOfMemoryError.exit_code, "the smallest limit is enough: nothing was tried"
    assert outcomes[-3:] == [0, 0, 0], "1.5, 2 and 8 GiB are enough"
    # Once enough is enough, more is: a run does not take what others need.
    assert outcomes == sorted(outcomes, reverse=True), outcomes


def test_what_needs_how_much_is_said_before() -> None:
    with pytest.raises(
        OutOfMemoryError, match=r"the table needs about 1,024 TiB, and .* is left on this machine"
    ):
        host_memory.check_room(2**50, "the table")


def test_a_run_ends_before_the_machine_is_out_of_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if the machine had next to nothing left: the run is failed, and has its statistics so far."""
    monkeypatch.setattr(host_memory, "_WATCH_SECONDS", 0.0)
    watched = host_memory.MemoryWatch(None)
    watched(0, 0)
    monkeypatch.setattr(host_memory, "physical_left", lambda: 2**20)
    with pytest.raises(OutOfMemoryError, match=r"the simulation has .*, and 1 MiB is left"):
        watched(0, 0)


def test_an_error_that_hides_a_lack_of_memory_is_seen_through() -> None:
    try:
        try:
            raise MemoryError
        except MemoryError:
            raise NameError("half imported")  # noqa: B904
    except NameError as error:
        found = host_memory.shortage(error)
    assert found is not None
    assert found.exit_code == 6
    assert host_memory.shortage(ValueError("x")) is None
