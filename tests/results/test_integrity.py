# SPDX-License-Identifier: Apache-2.0
"""Damage to a run directory or a sweep is reported: it is never read as other content, and never ends the process."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from run_directories import kernel_run, without_checksums

from manyscale import cpu, network
from manyscale.cli.app import main
from manyscale.errors import InputError, RunError
from manyscale.results import RunWriter, load
from manyscale.results.additions import add_file
from manyscale.results.integrity import seal_problem, sealed, unsealed
from manyscale.results.parquet import read_table
from manyscale.studies.projection.timings import PhaseTiming, TimingProfile
from manyscale.studies.sweep import Study, load_sweep
from systems import make_ring

FLIPS = 40  # of each file


def a_system(path: Path) -> None:
    make_ring(stages=2).run(out=path, timeline=True)


def a_job(path: Path) -> None:
    network.run("halo3d", nodes=8, iterations=1, timeline=[0, 1], load="10us", out=path)


def a_program(path: Path) -> None:
    cpu.run(cpu.Program(cpu.sample("heat"), ["1", "8", "1"]), machine="boom", hot_lines=True, out=path)


def a_stopped_run(path: Path) -> None:
    columns = make_ring(stages=2).run().columns

    def stopped() -> None:
        with RunWriter(path, command=["x"], workload={}, seed=0) as writer:
            writer.partial(columns)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()


def a_killed_run(path: Path) -> None:
    a_system(path)
    info = load(path).info | {"status": "running"}
    (path / "run.json").write_bytes(sealed(info))


RUNS: dict[str, Callable[[Path], None]] = {
    "system": a_system,
    "network": a_job,
    "program": a_program,
    "stopped": a_stopped_run,
    "killed": a_killed_run,
}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("runs") / "run"
    RUNS[request.param](path)
    return path


def flipped(path: Path, source: random.Random) -> Iterator[str]:
    """Turns one bit after the other, and turns it back."""
    content = path.read_bytes()
    bits = 8 * len(content)
    ends = {0, 1, 7, 8, bits - 1, bits - 8}
    for bit in sorted(ends | {source.randrange(bits) for _ in range(FLIPS)}):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield f"{path.name}, bit {bit % 8} of byte {bit // 8}"
    path.write_bytes(content)


def everything(path: Path) -> None:
    """Reads all that a run directory holds, as reports and comparisons do."""
    run = load(path)
    for name in run.files:
        run.table(name) if name.endswith(".parquet") else run.content(name)


def test_every_file_is_listed(run):
    found = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert set(load(run).files) == found - {"run.json"}
    everything(run)


def test_every_turned_bit_is_reported(run, tmp_path):
    """No single-bit flip of any file is read as other content, and none ends the process."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    unnoticed, count = [], 0
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        for what in flipped(path, random.Random(path.name)):
            count += 1
            told = ""
            try:
                everything(copy)
            except RunError as error:
                told = str(error)
            if path.name not in told:
                unnoticed.append(f"{what}: {told}")
    assert count > 80
    assert unnoticed == []
    everything(copy)


@pytest.mark.parametrize(
    "command", [["show"], ["report"], ["compare", "other"], ["export", "--csv", "out.csv"]]
)
def test_commands_name_the_damaged_file(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a_system(tmp_path / "other")
    changes = {
        "was changed: it has another checksum": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        "was changed: it has ": lambda path: path.write_bytes(path.read_bytes() + b"?"),
        "is truncated: it has ": lambda path: path.write_bytes(path.read_bytes()[:-1]),
        "is missing": lambda path: path.unlink(),
    }
    for message, change in changes.items():
        for name in ("stats.parquet", "machine.toml", "timeline.pftrace"):
            a_system(tmp_path / "run")
            change(tmp_path / "run" / name)
            capsys.readouterr()
            assert main([command[0], "run", *command[1:]]) == 4
            told = capsys.readouterr()
            assert f"{name} {message}" in " ".join(told.err.split())
            assert "run the simulation again" in " ".join(told.err.split())
            assert told.out == ""
            shutil.rmtree(tmp_path / "run")
    assert not Path("out.csv").exists()


def test_what_is_whole_can_be_read_beside_what_is_damaged(tmp_path):
    a_system(tmp_path)
    (tmp_path / "timeline.pftrace").unlink()
    with pytest.raises(RunError, match=r"timeline\.pftrace is missing"):
        load(tmp_path)
    run = load(tmp_path, check=False)
    assert run.stats.height
    with pytest.raises(RunError, match=r"timeline\.pftrace is missing"):
        run.file("timeline.pftrace")


def test_an_older_run_still_loads_with_a_note(tmp_path, monkeypatch, capsys):
    kernel_run(tmp_path / "run")
    without_checksums(tmp_path / "run")
    assert "without checksums" in str(load(tmp_path / "run").note)
    for command in (["show"], ["report"], ["compare", str(tmp_path / "run")]):
        assert main([command[0], str(tmp_path / "run"), *command[1:]]) == 0
        assert "without checksums" in capsys.readouterr().err
    assert load(tmp_path / "run").info["schema_version"] == 1


def test_damaged_tables_of_older_runs_are_errors_and_do_not_end_the_process(tmp_path):
    """Every length that a table states may be wrong; polars would end the process that it cannot allocate for."""
    path = tmp_path / "table.parquet"
    pl.DataFrame({"a": list(range(100)), "b": [str(number) for number in range(100)]}).write_parquet(path)
    content = path.read_bytes()
    read_table(path)
    source = random.Random(3)
    for at in source.sample(range(len(content) * 8), 6):
        damaged = bytearray(content)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with contextlib.suppress(RunError):
            read_table(path)


def test_a_table_that_polars_cannot_survive_is_an_error(tmp_path):
    """The first turned bit that ends a process which only reads the table, wherever this version of polars has one."""
    path = tmp_path / "table.parquet"
    pl.DataFrame({"a": list(range(100)), "b": [str(number) for number in range(100)]}).write_parquet(path)
    content = path.read_bytes()
    hunt = """
import io, polars, sys
content = sys.stdin.buffer.read()
for bit in range(8 * len(content)):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    print(bit, flush=True)
    try:
        polars.read_parquet(io.BytesIO(bytes(damaged)))
    except BaseException:
        pass
"""
    ended = subprocess.run([sys.executable, "-c", hunt], input=content, capture_output=True, check=False)
    if ended.returncode == 0:
        pytest.skip("this version of polars survives every turned bit")
    bit = int(ended.stdout.split()[-1])
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    with pytest.raises(RunError, match="is damaged or truncated"):
        read_table(path)


def test_a_report_is_listed_and_two_at_once_do_not_lose_each_other(tmp_path):
    a_system(tmp_path)
    threads = [
        threading.Thread(target=add_file, args=(tmp_path, f"{number}.txt", lambda file: file.write(b"x")))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"{number}.txt" for number in range(8)} <= set(load(tmp_path).files)
    add_file(tmp_path, "3.txt", lambda file: file.write(b"other"))
    assert load(tmp_path).content("3.txt") == b"other"


def test_an_addition_that_fails_leaves_the_run_as_it_was(tmp_path):
    a_system(tmp_path)
    add_file(tmp_path, "page.txt", lambda file: file.write(b"first"))

    def fail(file: Any) -> None:
        file.write(b"second")
        raise OSError(28, "No space left on device")

    for name in ("page.txt", "new.txt"):
        with pytest.raises(RunError, match=f"cannot write .*{name}: No space left"):
            add_file(tmp_path, name, fail)
    run = load(tmp_path)
    assert run.content("page.txt") == b"first"
    assert not run.has("new.txt")


STUDY = """
name = "small"
machine = "omnipath"
[workload]
kind = "network"
work = "allreduce"
param = {iterations = 1}
[axes]
"workload.nodes" = [2, 4]
"""


def test_every_turned_bit_of_a_sweep_is_reported_and_the_sweep_goes_on(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    study, out = Study.load(tmp_path / "study.toml"), tmp_path / "sweep"
    study.run(out, workers=1)
    whole = load_sweep(out).table
    for path in sorted(path for path in out.iterdir() if path.name != ".lock"):
        for what in flipped(path, random.Random(path.name)):
            with pytest.raises(RunError, match=path.name):
                pytest.fail(f"{what} is read as {load_sweep(out)}")
    log = out / "results.log"
    log.write_bytes(log.read_bytes().replace(b'"done"', b'"dome"', 1))
    again = study.run(out, workers=1)
    assert again.table.drop("wall_seconds", strict=False).equals(whole.drop("wall_seconds", strict=False))


def test_every_turned_bit_of_a_timing_profile_is_reported(tmp_path):
    path = tmp_path / "profile.json"
    TimingProfile([PhaseTiming.of("smoother", [[1e-3, 2e-3]])]).save(path)
    for what in flipped(path, random.Random(4)):
        with pytest.raises(InputError, match=r"profile\.json"):
            pytest.fail(f"{what} is read as {TimingProfile.load(path)}")
    document = json.loads(path.read_text())
    del document["checksum"]
    path.write_text(json.dumps(document | {"schema": 1}))
    assert len(TimingProfile.load(path)) == 1  # of an older Manyscale


def test_a_seal_breaks_with_any_change():
    content = sealed({"schema": 2, "text": "käse", "number": 1e-05})
    assert seal_problem(content) is None
    assert unsealed(content, 2)["text"] == "käse"
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert seal_problem(bytes(damaged)) is not None
