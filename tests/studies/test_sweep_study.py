# SPDX-License-Identifier: Apache-2.0
"""Studies: axes, ranges, points and their keys, files, and what is said of broken ones."""

from pathlib import Path
from typing import Any

import pytest

from manyscale.errors import InputError
from manyscale.studies.sweep import Study
from manyscale.studies.sweep.axes import make_axis
from manyscale.studies.sweep.quantities import canonical, measure
from manyscale.studies.sweep.template import filled

NETWORK = {"kind": "network", "work": "allreduce", "nodes": 4}


def values(given: Any) -> list[Any]:
    return list(make_axis("x", given, "x").values)


def test_ranges_go_from_end_to_end() -> None:
    assert values({"from": 1, "to": 64, "factor": 2}) == [1, 2, 4, 8, 16, 32, 64]
    assert values({"from": 64, "to": 1, "factor": 0.25}) == [64, 16, 4, 1]
    assert values({"from": 1, "to": 10, "step": 4}) == [1, 5, 9]
    assert values({"from": 0.1, "to": 0.3, "step": 0.1}) == [0.1, 0.2, 0.3]  # exactly
    assert values({"from": 3, "to": 1, "step": -1}) == [3, 2, 1]
    assert values({"from": 0, "to": 1, "count": 5}) == [0, 0.25, 0.5, 0.75, 1]
    assert values({"from": "1KiB", "to": "1MiB", "factor": 32}) == ["1KiB", "32KiB", "1MiB"]
    assert values({"from": "25Gb/s", "to": "100Gb/s", "step": "25Gb/s"}) == [
        "3125MB/s",
        "6250MB/s",
        "9375MB/s",
        "12500MB/s",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "without values"),
        ("abc", "expected a list of values or a range"),
        ({"from": 1, "to": 4}, "a range is written as"),
        ({"from": 1, "to": 4, "step": 1, "count": 3}, "a range is written as"),
        ({"from": 1, "to": 4, "steps": 1}, "did you mean 'step'"),
        ({"from": 1, "to": "4KiB", "factor": 2}, "same kind of unit"),
        ({"from": "1ns", "to": "4KiB", "factor": 2}, "same kind of unit"),
        ({"from": "1KiB", "to": "4KiB", "step": 1}, "step needs the kind of unit"),
        ({"from": 1, "to": 4, "step": 0}, "do not lead"),
        ({"from": 1, "to": 4, "step": -1}, "do not lead"),
        ({"from": 1, "to": 4, "factor": 1}, "does not lead"),
        ({"from": 0, "to": 4, "factor": 2}, "does not lead"),
        ({"from": 4, "to": 1, "factor": 2}, "ends below"),
        ({"from": 1, "to": 1e15, "step": 1}, "too long"),
        ({"from": 1, "to": 1e300, "factor": 1.0000001}, "too long"),
        ({"from": 0, "to": 1, "count": 10**9}, "count is a whole number"),
        ([float("nan")], "not a finite number"),
        ([{"a": 1}], "a value is a number"),
    ],
)
def test_broken_axes_are_explained(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_axis("x", given, "x")


def test_units_tell_the_dimension() -> None:
    assert canonical("1KiB") == canonical("1024B") == "1024B"
    assert canonical("100Gb/s") == canonical("12.5GB/s")
    assert canonical(["1us", {"a": 2.0}]) == ["1000000000fs", {"a": 2}]
    assert measure("allreduce") is None
    assert measure("4") is None
    assert measure("1e400KiB") is None


def test_axes_are_crossed_and_zipped() -> None:
    study = Study(
        NETWORK,
        axes={"network.link.bandwidth": ["25Gb/s", "100Gb/s"]},
        zipped=[{"workload.nodes": [4, 8], "workload.ranks_per_node": [2, 1]}],
        repetitions=2,
    )
    points = study.points()
    assert len(points) == 8
    rows = [(*point.coordinates.values(), point.repetition) for point in points]
    assert rows[:4] == [("25Gb/s", 4, 2, 0), ("25Gb/s", 4, 2, 1), ("25Gb/s", 8, 1, 0), ("25Gb/s", 8, 1, 1)]
    assert points[2].request.workload["nodes"] == 8
    assert points[2].request.changes == ["network.link.bandwidth=25Gb/s"]
    assert [point.request.seed for point in points] == [0, 1] * 4


def test_keys_follow_what_decides_the_result(tmp_path: Path) -> None:
    def key(**more: Any) -> str:
        given: dict[str, Any] = {"workload": NETWORK, "machine": "omnipath"} | more
        return Study(given.pop("workload"), **given).points()[0].key

    assert key() == key()
    assert key(name="other", metrics=["messages"]) == key()  # neither decides anything
    assert key(seed=1) != key()
    assert key(machine="omnipath-torus") != key()
    assert key(changes={"network.link.latency": "1us"}) == key(changes={"network.link.latency": "1000ns"})
    assert key(changes={"network.link.latency": "1us"}) != key(changes={"network.link.latency": "2us"})
    # A copy of a machine under another name is the same machine; a file that changes is another one.
    trace = tmp_path / "a.goal"
    trace.write_text("num_ranks 1\n")
    first = key(workload={"kind": "network", "work": str(trace)})
    trace.write_text("num_ranks 2\n")
    assert key(workload={"kind": "network", "work": str(trace)}) != first


def test_variables_are_put_into_texts() -> None:
    assert filled(["x=f32[{n}]", "{n // 256}", "{-n + 2*3}", {"a": "{n}"}, 7], {"n": 1024}) == [
        "x=f32[1024]",
        4,
        -1018,
        {"a": 1024},
        7,
    ]
    assert filled("{n}", {}) == "{n}"
    for text in (
        "{m}",
        "{n.real}",
        "{__import__('os')}",
        "{n / 0}",
        "{n" + "*n" * 99 + "}",
        "{n ** n}",
        "{}",
    ):
        with pytest.raises(InputError):
            filled(text, {"n": 1024})


def write(path: Path, text: str) -> Path:
    file = path / "study.toml"
    file.write_text(text)
    return file


GOOD = """
name = "good"
machine = "omnipath"
repetitions = 2
timeout = "2min"
[workload]
kind = "network"
work = "allreduce"
param = {repeats = 3}
[set]
"network.link.latency" = "100ns"
[axes]
"workload.nodes" = [2, 4]
[[zip]]
"workload.ranks_per_node" = [1, 2]
seed = [5, 6]
[metrics]
time = "simulated_seconds"
"""


def test_a_study_survives_being_written(tmp_path: Path) -> None:
    study = Study.load(write(tmp_path, GOOD))
    assert study.timeout == 120
    assert [metric.name for metric in study.metrics] == ["time"]
    assert study.source is not None
    again = Study.load(write(tmp_path, study.source))
    assert [point.key for point in again.points()] == [point.key for point in study.points()]
    assert again.metrics == study.metrics
    changed = Study.load(write(tmp_path, GOOD), ["network.link.latency=7ns"])
    assert changed.points()[0].request.changes == ["network.link.latency=7ns"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no workload"),
        ("name = \n[workload]", "line 1"),
        ("\x00", "study.toml"),
        ('workload = "x"', "expected a table"),
        ("[workload]", "say its kind"),
        ('[workload]\nkind = "netwrok"', "did you mean 'network'"),
        ('[workload]\nkind = "network"', "work is required"),
        ('[workload]\nkind = "network"\nwork = "allreduce"\nnode = 4', "did you mean 'nodes'"),
        ('[workload]\nkind = "network"\nwork = "allreduce"\nnodes = "many"', "expected a whole number"),
        ('[workload]\nkind = "network"\nwork = ["a"]', "expected text"),
        (GOOD + "[axs]\na=1", "a study has no 'axs'; did you mean 'axes'"),
        (GOOD.replace("[2, 4]", "4"), "expected a list of values or a range"),
        (GOOD.replace("workload.nodes", "workload.nods"), "did you mean 'nodes'"),
        (GOOD.replace("workload.nodes", "network.link.bandwith"), "did you mean 'network.link.bandwidth'"),
        (GOOD.replace("workload.nodes", "workload.nodes.x"), "has no parts"),
        (GOOD.replace("workload.nodes", "seed"), "it is there twice"),
        (GOOD.replace("network.link.latency", "network.link.latenzy"), "network.link.latency"),
        (GOOD.replace("[5, 6]", "[5]"), "equally many values"),
        (GOOD.replace("[5, 6]", '["a", "b"]'), "expected a whole number"),
        (GOOD.replace("repetitions = 2", "repetitions = 0"), "repetitions: expected a whole number"),
        (GOOD.replace("repetitions = 2", "repetitions = true"), "repetitions: expected a whole number"),
        (GOOD.replace("2min", "2 weeks"), "expected a time of the host"),
        (GOOD.replace('"simulated_seconds"', "3"), "a metric is the name of a number"),
        (GOOD.replace('"simulated_seconds"', '"core[0]:"'), "is no statistic"),
        (GOOD.replace('name = "good"', 'name = "../up"'), "expected letters"),
        (GOOD.replace('"omnipath"', "7"), "expected a preset's name or a file"),
        (GOOD.replace("[2, 4]", "[1, 2, 3, 4, 5, 6]").replace("= 2", "= 100000", 1), "points are too many"),
        ('[workload]\nkind = "python"\nfunction = "sent:abc"', "write module:function"),
        (GOOD + "x = " + "[" * 5000 + "]" * 5000, "study.toml"),
    ],
)
def test_broken_studies_are_explained(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"study\.toml") as error:
        Study.load(write(tmp_path, text))
    assert said in str(error.value)


def test_files_that_are_no_study_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        Study.load(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="is a folder"):
        Study.load(tmp_path)
    file = tmp_path / "large.toml"
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1MiB"):
        Study.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        Study.load(file)
