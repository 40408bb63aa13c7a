# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges: launches and copies are attributed to what the program says it is doing."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from host_programs import FIXTURES, SUMS, compiled
from typer.testing import CliRunner
from wire_client import container

from manyscale import load
from manyscale.cli.app import app
from manyscale.cuda import HostOptions, NodeOptions, ranges, run
from manyscale.cuda.loader import library_folder
from manyscale.cuda.records import Records
from manyscale.cuda.status import CudaError
from manyscale.report.evidence import Evidence
from manyscale.report.run_page import run_page
from manyscale.report.sections.gpu import launches_chart
from manyscale.results.names import readable
from manyscale.results.ranges import DEEPEST, Ranges

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runtime = str(library_folder() / "libcudart.so.13")
    source = (FIXTURES / "ranges.cpp").read_text()
    folder = tmp_path_factory.mktemp("ranges")
    return compiled(
        folder, source, container((SUMS, 70)), "ranges", "-std=c++20", "-pthread", runtime, "-ldl"
    )


@pytest.fixture(scope="module")
def left(program: Path) -> Path:
    """The run directory of the program, with time."""
    out = program.parent / "run"
    done = run([str(program)], "v100", node=NodeOptions(isa="ptx"), out=out)
    assert done.exit_code == 0
    return out


def paths(directory: Path, table: str) -> list[list[str]]:
    """Of each launch or copy, in their order: the names of the ranges around it, the outermost first."""
    known = {
        number: (parent, name)
        for number, parent, name, _ in pl.read_parquet(directory / "ranges.parquet").iter_rows()
    }
    found = []
    for number in pl.read_parquet(directory / table)["range"].to_list():
        path: list[str] = []
        while number is not None:
            number, name = known[number]
            path.insert(0, name)
        found.append(path)
    return found


def test_each_launch_is_in_the_ranges_of_its_thread(left: Path) -> None:
    step = [["step", "aten::mm"], ["step", "aten::mm"], ["step", "aten::mm", "größer"]]
    assert paths(left, "kernels.parquet") == [
        [],
        *step,
        *step,
        ["inner"],
        ["registered"],
        ["other thread"],
        ["deep"] * DEEPEST,
        [],
    ]
    assert paths(left, "copies.parquet") == [["step"], ["step"]]


def test_the_numbers_and_sizes_of_an_operator_are_kept_beside_its_name(left: Path) -> None:
    table = pl.read_parquet(left / "ranges.parquet").filter(pl.col("name") == "aten::mm")
    assert set(table["text"]) == {"aten::mm, seq = 3, op_id = 7, sizes = [[2, 3]]"}
    assert table.height == 2


def test_times_of_ranges_add_up_to_those_of_launches_and_copies(left: Path) -> None:
    kernels, copies = (pl.read_parquet(left / f"{name}.parquet") for name in ("kernels", "copies"))
    found = Ranges(pl.read_parquet(left / "ranges.parquet"), kernels, copies)
    whole = sum((table["end_ns"] - table["begin_ns"]).sum() for table in (kernels, copies))
    sums = {each.name: each for each in found.by_name()}
    assert sum(each.own_nanoseconds for each in sums.values()) + found.outside == pytest.approx(whole)
    step, inside = sums["step"], [sums["aten::mm"]]
    assert step.nanoseconds == pytest.approx(step.own_nanoseconds + sum(each.nanoseconds for each in inside))
    assert (len(step.instances), step.launches, step.copies) == (2, 6, 2)
    assert sums["deep"].launches == 1  # once, though it is inside itself
    assert sums["aten::mm"].longest_kernel == "twice"


def test_a_span_reaches_from_the_first_to_the_last_in_it(left: Path) -> None:
    kernels = pl.read_parquet(left / "kernels.parquet")
    found = Ranges(pl.read_parquet(left / "ranges.parquet"), kernels, None)
    span = next(each for each in found.spans() if each.name == "aten::mm")
    assert span.depth == 1
    assert (span.begin_ns, span.end_ns) == (kernels["begin_ns"][1], kernels["end_ns"][3])


def test_ranges_take_no_time_of_the_host(program: Path, left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyscale.cuda.program.nvtx_variable", lambda folder: _without_server(program))
    again = run([str(program)], "v100", node=NodeOptions(isa="ptx"))
    times = pl.read_parquet(left / "kernels.parquet").select("begin_ns", "end_ns").rows()
    assert [(record.begin / 10**6, record.end / 10**6) for record in again.kernels] == times
    assert again.records.ranges == []


def _without_server(program: Path) -> dict[str, str]:
    """Another tool, which does not tell the runtime anything."""
    library = program.parent / "other.so"
    source = program.parent / "other.cpp"
    tool = Path(__file__).parents[2] / "cudart" / "nvtx" / "ranges.cpp"
    source.write_text(f'#define manyscale_open_ranges another_name\n#include "{tool}"\n')
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return {"NVTX_INJECTION64_PATH": str(library)}


def test_the_page_says_what_ranges_cost(left: Path) -> None:
    assert "Operators and NVTX ranges" in run_page(load(left)).html()
    chart = launches_chart(Evidence(load(left)))
    assert chart is not None
    assert [lane.name for lane in chart.lanes[:2]] == ["ranges, level 1", "ranges, level 2"]


def test_the_terminal_shows_a_table_of_ranges(program: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "manyscale.cli.app",
        "cuda",
        "--functional",
        "--out",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(
        [*command, "--", str(program)], capture_output=True, text=True, check=True, timeout=60
    )
    row = next(line.split() for line in done.stderr.splitlines() if line.startswith(" aten::mm"))
    assert row == ["aten::mm", "2", "6"]


def test_a_trace_for_chrome_has_kernels_copies_and_ranges(left: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = CliRunner().invoke(app, ["export", str(left), "--chrome-trace", str(file)])
    assert done.exit_code == 0, done.output
    events = [each for each in json.loads(file.read_text())["traceEvents"] if each["ph"] == "X"]
    kernels = pl.read_parquet(left / "kernels.parquet")
    found = [each for each in events if each["cat"] == "kernel"]
    assert [each["ts"] * 1e3 for each in found] == pytest.approx(kernels["begin_ns"].to_list())
    assert [each["dur"] * 1e3 for each in found] == pytest.approx(
        (kernels["end_ns"] - kernels["begin_ns"]).to_list()
    )
    assert found[1]["args"]["range"] == "step > aten::mm"
    assert sum(each["cat"] == "copy" for each in events) == 2
    assert sum(each["cat"] == "range" and each["name"] == "step" for each in events) == 2


def test_a_trace_replaces_only_traces_and_when_that_is_asked_for(left: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    command = ["export", str(left), "--chrome-trace", str(file)]
    file.write_text("mine")
    for options in ([], ["--force"]):
        assert CliRunner().invoke(app, [*command, *options]).exit_code != 0
        assert file.read_text() == "mine"
    file.unlink()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CliRunner().invoke(app, command).exit_code != 0
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0


class _Request:
    """As much of a request as the handler reads."""

    def __init__(self, tail: bytes) -> None:
        self.tail, self.session = tail, self
        self.records, self.ranges, self.known_ranges, self.thread = Records(), {}, {}, 1


@pytest.mark.parametrize(
    ("levels", "tail"),
    [(65, b""), (1, b""), (1, struct.pack("<QI", 1, 5) + b"abc"), (1 << 31, b"x" * 100)],
    ids=["too deep", "no level", "a short name", "far too deep"],
)
def test_a_broken_request_is_refused(levels: int, tail: bytes) -> None:
    with pytest.raises(CudaError):
        ranges.enter(_Request(tail), levels)  # type: ignore[arg-type]


def test_ranges_that_are_their_own_parents_end() -> None:
    table = pl.DataFrame({"range": [0, 1], "parent": [1, 0], "name": ["a", "b"]})
    kernels = pl.DataFrame({"range": [0], "kernel": ["k"], "begin_ns": [1.0], "end_ns": [3.0]})
    found = Ranges(table, kernels, None)
    assert {each.name: each.nanoseconds for each in found.by_name()} == {"a": 2.0, "b": 2.0}


_TORCH = """
class emit_nvtx:
    def __init__(self, record_shapes): assert record_shapes
    def __enter__(self): print("ranges on")
    def __exit__(self, *rest): print("ranges off")
"""


def test_operators_of_pytorch_become_ranges_when_it_is_imported(tmp_path: Path) -> None:
    package = tmp_path / "torch" / "autograd"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("name = __spec__.name\n")
    (package / "__init__.py").write_text("")
    (package / "profiler.py").write_text(_TORCH)
    (tmp_path / "sitecustomize.py").write_text('print("own start")\n')
    startup = Path(ranges.__file__).parent / "startup"
    environment = os.environ | {"PYTHONPATH": f"{startup}:{tmp_path}"}
    script = 'import json; print("before"); import torch; print(torch.name); import torch'
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split("\n")[:-1] == ["own start", "before", "ranges on", "torch", "ranges off"]
    assert done.stderr == ""


def test_host_options_say_that_operators_are_ranges() -> None:
    assert not HostOptions().operators


@pytest.mark.parametrize(
    ("mangled", "written"),
    [
        ("_Z3addPfi", "add"),
        ("_ZN2at6native12_GLOBAL__N_13runILi4EEEvPf", "at::native::run<4>"),
        ("_Z5applyI5scaleIfEEvPf", "apply<scale<float>>"),
    ],
)
def test_names_of_kernels_have_no_parameters(mangled: str, written: str) -> None:
    assert readable(mangled).replace("> >", ">>") == written
