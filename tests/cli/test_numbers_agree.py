# SPDX-License-Identifier: Apache-2.0
"""One number, one name, one value: the terminal, --json, run.json, the statistics and the report of a run agree.

For each kind of run. Numbers of the host's clock (wall_…) differ between two runs and are left out.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from manyscale import cpu
from manyscale.cli.app import main
from manyscale.cuda.loader import library_folder
from manyscale.gpu.metrics import DEFINITIONS as METRICS
from manyscale.report.numbers import shown, spoken
from manyscale.results import load
from manyscale.results.definitions import DEFINITIONS, Statistics
from systems import make_phold

ROOT = Path(__file__).resolve().parents[2]
SAXPY = "gpu run k.ptx -k saxpy -g 64 -b 128 --arg 2.5 --arg x=f32[8192]:ones --arg y=f32[8192] --arg 8192"
SMALL = "--set gpu.sm_count=4"
RUNS = {
    "gpu run": f"{SAXPY} --machine v100 {SMALL}",
    "gpu run, managed": f"{SAXPY} --machine gtx1080ti {SMALL} --managed --allow-newer",
    "cuda": "cuda --machine a100 --set gpu.sm_count=4 {opts} -- {driver} {fatbin} vector_add",
    "cpu run": "cpu run heat.xz --machine broadwell --cores 2 {opts} -- 2 24 2",
    "cpu replay": "cpu replay heat.trace",
    "mem run": "mem run stream --machine memory-small --accesses 2000 --footprint 256KiB",
    "system run": "run system.toml --until 100us",
    **{
        f"net run, {topology}, {fidelity}": f"net run allreduce --nodes 8 -p iterations=3 --topology {topology} "
        f"--fidelity {fidelity}"
        for topology in ("fat-tree", "torus", "dragonfly", "switch")
        for fidelity in ("packet", "flow")
    },
    "net run, mesh, train": "net run halo3d --nodes 8 -p iterations=2 --topology mesh --fidelity train",
    "net run, torus, ideal": "net run halo3d --nodes 8 -p iterations=2 --topology torus --fidelity ideal",
}
# Words of outputs that are numbers of a run, and their names. Those of tables of parts (kernels, caches) are not.
PHRASES = {
    "page faults": "page_faults",
    "fault batches": "fault_batches",
    "pages prefetched": "pages_prefetched",
    "messages": "messages",
    "packets": "packets",
    "ranks": "ranks",
    "cycles at": "cycles",
    "warp instructions": "warp_instructions",
    "thread instructions": "thread_instructions",
    "calls": "calls",
}
LABELS = {
    "simulated": "simulated_seconds",
    "events": "events",
    "instructions": "instructions",
    "ranks": "ranks",
    "messages": "messages",
    "page faults": "page_faults",
    "pages prefetched": "pages_prefetched",
    "bytes to device": "bytes_to_device",
    "warp instructions": "warp_instructions",
    "thread instructions": "thread_instructions",
    "exit code": "exit_code",
    "accesses": "accesses",
}
TOPOLOGIES = {"fat-tree": "fat.tree", "torus": "torus", "dragonfly": "dragonfly"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what runs need."""
    path = tmp_path_factory.mktemp("numbers")
    shutil.copy(ROOT / "examples/gpu/kernels.ptx", path / "k.ptx")
    shutil.copy(ROOT / "src/manyscale/cpu/samples/heat.xz", path / "heat.xz")
    make_phold().save(path / "system.toml")
    program = cpu.Program(path / "heat.xz", ["2", "24", "2"])
    cpu.record(program, path / "heat.trace", machine="broadwell", cores=2)
    return path


@dataclass
class Outputs:
    """What a run said, everywhere."""

    terminal: str
    data: dict[str, Any]
    headline: dict[str, dict[str, Any]]
    statistics: Statistics
    report: str


def command(words: str, driver: tuple[str, str] | None, *options: str) -> list[str]:
    filled = words.format(
        opts=" ".join(options), driver=driver[0] if driver else "", fatbin=driver[1] if driver else ""
    )
    return filled.split() if "{opts}" in words else [*filled.split(), *options]


def run(words: list[str], *, both: bool = True) -> str:
    """The output of a command, both streams or standard output alone."""
    output, unseen = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output if both else unseen):
        code = main(words)
    output.seek(0)
    text = output.read()
    assert code == 0, text
    return text


def outputs(words: str, path: Path, driver: tuple[str, str] | None) -> Outputs:
    first, second = path / "first", path / "second"
    terminal = run(command(words, driver, "--out", str(first)))
    data = json.loads(run(command(words, driver, "--out", str(second), "--json", "--quiet"), both=False))
    found = load(first)
    assert load(second).headline.keys() == found.headline.keys()
    run(["report", str(first)])
    page = (first / "report.html").read_text(encoding="utf-8")
    return Outputs(terminal, data, found.headline, Statistics(found.stats.to_dict(as_series=False)), page)


@pytest.fixture(scope="module", params=RUNS)
def found(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outputs]:
    name = request.param
    driver = None
    if name == "cuda":
        driver = (str(cuda_driver(tmp_path_factory)), str(ROOT / "tests/cuda/fixtures/vector_add.fatbin"))
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else _inside(folder):
        yield outputs(RUNS[name], tmp_path_factory.mktemp("run"), driver)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    import os

    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def cuda_driver(factory: pytest.TempPathFactory) -> Path:
    """The program that loads a fat binary through the driver, without nvcc."""
    import manyscale

    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    runtime = sorted((Path(manyscale.__file__).parent / "cudart").glob("libcudart.so.*")) or sorted(
        library_folder().glob("libcudart.so.*")
    )
    target = factory.mktemp("driver") / "driver"
    subprocess.run([compiler, ROOT / "tests/cuda/fixtures/driver.cpp", "-o", target, runtime[0]], check=True)
    return target


def lasting(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in numbers.items() if not name.startswith("wall_")}


def test_every_number_is_defined(found: Outputs) -> None:
    """By name, with its unit: in the registry, or among the metrics of kernels."""
    metrics = {row[0]: row[1] for row in METRICS}
    for name, entry in found.headline.items():
        units = [DEFINITIONS[name].unit] if name in DEFINITIONS else []
        units += [metrics[name]] if name in metrics else []
        assert any(entry["unit"] == unit or entry["unit"].endswith(f" {unit}") for unit in units), name


def test_json_has_the_headline(found: Outputs) -> None:
    for name, entry in lasting(found.headline).items():
        if name in ("events", "windows", "pending_events") and name not in found.data:
            continue  # of the engine: GPU runs leave them in run.json alone
        assert found.data[name] == entry["value"], name
    clashes = [name for name in found.headline if isinstance(found.data.get(name), list | dict)]
    assert not clashes, "one name for a number and for something else"


def test_the_headline_follows_from_the_statistics(found: Outputs) -> None:
    checked = 0
    for name, entry in lasting(found.headline).items():
        definition = DEFINITIONS.get(name)
        if definition is None or definition.follows is None:
            continue
        value = definition.follows(found.statistics)
        if value is not None:
            assert value == pytest.approx(entry["value"], rel=1e-9), name
            checked += 1
    assert checked or "simulated_seconds" in found.headline


def test_metrics_of_a_kernel_are_those_of_the_statistics(found: Outputs) -> None:
    for kernel in found.data.get("kernels", []):
        for name, metric in kernel.get("metrics", {}).items():
            values = found.statistics.of_kernels(name)
            if metric["value"] is not None:
                assert values == [pytest.approx(metric["value"], rel=1e-12)], name
            if name in kernel:
                assert kernel[name] == metric["value"], name
        if "metrics" in kernel:
            assert 100 * kernel["occupancy"] == pytest.approx(
                kernel["metrics"]["theoretical_occupancy"]["value"]
            )
    if found.data.get("kernels"):
        for name in ("warp_instructions", "thread_instructions"):
            assert sum(kernel[name] for kernel in found.data["kernels"]) == found.headline[name]["value"]


def plain_text(page: str) -> str:
    """What a page shows, without its scripts and tables of data."""
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", "\n", text))


def test_the_report_shows_the_headline(found: Outputs) -> None:
    text = " ".join(plain_text(found.report).split())
    for name, entry in lasting(found.headline).items():
        words = shown(entry["value"], entry["unit"])
        assert f"{spoken(name)} {words}" in text, name


def test_words_beside_numbers_mean_one_number(found: Outputs) -> None:
    """Wherever "387 page faults" or the like stands, it is the number of that name."""
    for where, text in (("terminal", found.terminal), ("report", plain_text(found.report))):
        # In the terminal sentences go on in the next line; in a page lines are parts of it.
        one_line = " ".join(text.split()) if where == "terminal" else text
        for phrase, name in PHRASES.items():
            if name not in found.headline:
                continue
            for number in re.findall(rf"(?<![\d.,])([\d,]+) {phrase}\b", one_line):
                if where == "terminal" and "messages/s" in one_line and phrase == "messages":
                    continue
                assert int(number.replace(",", "")) == found.headline[name]["value"], (
                    f"{where}: {number} {phrase}"
                )


def test_lines_of_the_terminal_say_the_headline(found: Outputs) -> None:
    """Lines such as "page faults  119 in 12 batches"."""
    for line in found.terminal.splitlines():
        matched = re.match(r"^([a-z][a-z ]*?)\s{2,}([\d.,]+)\s?([a-zA-Z]*)", line)
        if matched is None or matched[1] not in LABELS or LABELS[matched[1]] not in found.headline:
            continue
        entry = found.headline[LABELS[matched[1]]]
        written = float(matched[2].strip(",").replace(",", ""))
        scale = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "fs": 1e-15}
        value = entry["value"] / scale.get(matched[3], 1) if entry["unit"] == "s" else entry["value"]
        digits = len(matched[2].partition(".")[2])
        assert written == pytest.approx(value, abs=0.51 * 10**-digits), line


def test_no_other_topology_is_spoken_of(found: Outputs, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["found"]
    if not name.startswith("net run"):
        return
    text = plain_text(found.report).lower()
    for topology, words in TOPOLOGIES.items():
        if topology not in name:
            assert not re.search(words, re.sub(r"topology\.kind.*", "", text)), topology


def test_a_replay_counts_misses_as_the_run_does(folder: Path, tmp_path: Path) -> None:
    """Misses are counted alike; shares of accesses that a trace leaves out are not shown."""
    program = cpu.Program(folder / "heat.xz", ["2", "24", "2"])
    executed = cpu.run(program, machine="broadwell", cores=2)
    replayed = cpu.replay(folder / "heat.trace")
    levels = {name: dict(zip(r.caches["level"], r.caches.iter_rows(named=True), strict=True)) for name, r in
              (("run", executed), ("replay", replayed))}  # fmt: skip
    assert levels["run"]["l1"]["hit_rate"] + levels["run"]["l1"]["miss_rate"] <= 1
    assert levels["replay"]["l1"]["hit_rate"] is levels["replay"]["l1"]["miss_rate"] is None
    assert levels["replay"]["l1"]["misses"] == pytest.approx(levels["run"]["l1"]["misses"], rel=0.3)
    for name, table in levels.items():
        for row in table.values():
            instructions = (executed if name == "run" else replayed).instructions
            assert row["mpki"] == pytest.approx(1000 * row["misses"] / instructions)
            if row["miss_rate"] is not None:
                assert row["miss_rate"] * row["accesses"] == pytest.approx(row["misses"]), name


def test_the_isa_is_said(folder: Path) -> None:
    """What instructions of warps are stands beside their number."""
    with _inside(folder):
        for isa in ("ptx", "sass"):
            words = [*SAXPY.split(), "--machine", "v100", *SMALL.split(), "--isa", isa]
            text = run(words)
            data = json.loads(run([*words, "--json"], both=False))
            assert re.search(rf"warp instructions\s+[\d,]+ \({isa.upper()}\)", text)
            assert (data["isa"], data["code"]["isa"]) == (isa, isa)


def test_a_recording_says_the_same_in_words_and_in_json(folder: Path, tmp_path: Path) -> None:
    words = ["cpu", "record", "heat.xz", "--machine", "broadwell", "--cores", "2"]
    with _inside(folder):
        text = run([*words, "--out", str(tmp_path / "a.trace"), "--", "2", "24", "2"])
        data = json.loads(
            run([*words, "--out", str(tmp_path / "b.trace"), "--json", "--", "2", "24", "2"], both=False)
        )
        facts = json.loads(run(["cpu", "trace", str(tmp_path / "a.trace"), "--json"], both=False))
    one_line = " ".join(text.split())
    for name in ("instructions", "threads", "tasks", "nodes"):
        assert f"{data[name]:,} {name}" in one_line, name
        assert facts[name] == data[name], name
    assert facts["bytes"] == (tmp_path / "a.trace").stat().st_size


def test_a_study_says_the_same_in_its_table_its_file_and_in_json(folder: Path, tmp_path: Path) -> None:
    import csv

    words = ["cpu", "scale", str(folder / "heat.trace"), "--weak", "2,4"]
    text = run([*words, "--out", str(tmp_path / "study")])
    data = json.loads(run([*words, "--json"], both=False))["replays"]
    with (tmp_path / "study" / "study.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, entry in zip(rows, data, strict=True):
        for name, value in entry.items():
            if isinstance(value, float | int) and not name.startswith("wall_"):
                assert float(row[name]) == pytest.approx(value), name
        assert f"{1e6 * entry['time']:,.1f}" in text
        assert f"{entry['speedup']:.2f}" in text
        assert f"{entry['l1_mpki']:.2f}" in text


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for this machine")
def test_a_projection_says_the_same_in_words_in_its_files_and_in_json(tmp_path: Path) -> None:
    import mpi_fixture

    from manyscale.cpu.building import build
    from manyscale.studies.projection.pages import seconds_text

    native, out = tmp_path / "programs", ["--out", str(tmp_path / "job")]
    build(sorted(mpi_fixture.FOLDER.glob("*.c")), native, mpi=True, host=True, options=["-fopenmp"])
    program = str(mpi_fixture.FOLDER / "fixtures" / "programs.xz")
    job = ["--native", str(native), "--nodes", "2", "--no-alone", *out]
    phases = run(["project", "node", program, *job, "--json", "--", "heat", "32", "20"], both=False)
    text = run(["project", "node", program, *job, "--force", "--", "heat", "32", "20"])
    longest = json.loads(phases)["phases"][0]
    assert f"{longest['samples']:,}" in text
    assert seconds_text(longest["mean_seconds"]) in text
    words = ["project", "predict", "--nodes", "2,4", "--repetitions", "2", "--variant", "ext-var", *out]
    data = json.loads(run([*words, "--json"], both=False))
    text = run([*words, "--force"])
    stored = json.loads((tmp_path / "job" / "predict.json").read_text())
    assert stored["predictions"] == data["predictions"]
    page = " ".join(plain_text((tmp_path / "job" / "report.html").read_text(encoding="utf-8")).split())
    for entry in data["predictions"]:
        assert seconds_text(entry["seconds"]) in text
        for share in entry["shares"].values():
            assert f"{share:.1%}" in text
    assert f"4 nodes take {seconds_text(data['predictions'][-1]['seconds'])}" in page
    for entry in data["improvements"]:
        assert f"{entry['gain']:+7.2%} of the time saved by: {entry['name']}" in text
