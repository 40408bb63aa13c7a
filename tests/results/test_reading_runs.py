# SPDX-License-Identifier: Apache-2.0
"""Runs that are read: what is damaged or wrong is named, and statistics come back as they were written."""

from __future__ import annotations

import json

import pytest
from run_directories import without_checksums

from manyscale.errors import InputError, RunError
from manyscale.results import load
from small_run import columns, finished, writer


def broken(path, **changes):
    run = finished(path)
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, **changes}))
    return run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"schema_version": 99},
            "run.json has schema version 99, .* reads up to 2: a newer Manyscale wrote it",
        ),
        ({"schema_version": None}, "run.json is not the description of a run: it has no schema_version"),
        ({"seed": "three"}, "run.json is broken: 'seed' is missing or of a wrong type"),
        ({"status": "dreaming"}, "run.json is broken: its status is 'dreaming'"),
        ({"headline": {"ipc": 3}}, "run.json is broken: headline number 'ipc' has no value or no unit"),
    ],
)
def test_a_wrong_run_json_says_what_is_wrong(tmp_path, changes, message):
    broken(tmp_path, **changes)
    with pytest.raises(RunError, match=message):
        load(tmp_path)


def test_a_broken_run_json_says_where(tmp_path):
    finished(tmp_path)
    (tmp_path / "run.json").write_text('{\n"status": oops')
    with pytest.raises(RunError, match=r"run.json is broken at line 2"):
        load(tmp_path)
    (tmp_path / "run.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=r"cannot read .*run.json"):
        load(tmp_path)


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunError, match=r"is not a run: it has no run.json"):
        load(tmp_path)
    with pytest.raises(RunError, match=r"nowhere is not a run: there is no such directory"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"file is not a run: it is a file; give the directory"):
        load(tmp_path / "file")


@pytest.mark.parametrize("kept", [0, 10, 400])
def test_truncated_statistics_are_noticed(tmp_path, kept):
    run = finished(tmp_path)
    path = tmp_path / "stats.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(
        RunError, match=rf"stats.parquet is truncated: it has {kept} of .* run the simulation again"
    ):
        _ = run.stats
    without_checksums(tmp_path)
    with pytest.raises(RunError, match=r"stats.parquet is damaged or truncated: .*run the simulation again"):
        _ = load(tmp_path).stats


def test_another_table_is_not_taken_for_statistics(tmp_path):
    run = finished(tmp_path)
    run.stats.drop("unit").write_parquet(tmp_path / "stats.parquet")
    without_checksums(tmp_path)
    with pytest.raises(
        RunError, match=r"not a table of statistics: its columns are component, statistic, kind, desc"
    ):
        _ = load(tmp_path).stats


@pytest.mark.parametrize("name", ["component", "value"])
def test_statistics_without_a_name_or_a_value_are_refused(tmp_path, name):
    table = finished(tmp_path).stats
    table.with_columns(table[name].shift(1)).write_parquet(tmp_path / "stats.parquet")
    without_checksums(tmp_path)
    with pytest.raises(RunError, match=f"not a table of statistics: some rows have no {name}"):
        _ = load(tmp_path).stats


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (("gpus", "warps", "run"), "no component 'gpus' .*did you mean 'gpu'"),
        (("gpu", "wraps", "run"), "no statistic 'wraps' .*did you mean 'warps'"),
        (("gpu", "warps", "kernel 1"), "no scope 'kernel 1' .*known: run"),
    ],
)
def test_a_wrong_statistic_names_the_nearest(tmp_path, wanted, message):
    with pytest.raises(InputError, match=message):
        finished(tmp_path).value(*wanted)


def test_a_statistic_with_keys_has_no_single_value(tmp_path):
    with writer(tmp_path) as run:
        run.write_stats({**columns(), "kind": ["series"], "key": [0.5]})
        run.finish({})
    with pytest.raises(InputError, match=r"'warps' of 'gpu' in scope 'run' has no single value but keys"):
        load(tmp_path).value("gpu", "warps")


def test_a_statistic_given_twice_has_no_single_value(tmp_path):
    with writer(tmp_path) as run:
        run.write_stats({name: values * 2 for name, values in columns().items()})
        run.finish({})
    with pytest.raises(InputError, match=r"has 2 values"):
        load(tmp_path).value("gpu", "warps")


def test_a_large_counter_comes_back_exactly(tmp_path):
    with writer(tmp_path) as run:
        run.write_stats(columns(2**62 + 1))
        run.finish({})
    assert load(tmp_path).value("gpu", "warps") == 2**62 + 1


def test_statistics_go_to_csv_and_pandas(tmp_path):
    run = finished(tmp_path / "run")
    run.to_csv(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "component,statistic,kind,unit,description,scope,key,value,count"
    assert lines[1] == "gpu,warps,counter,warps,warps that ran,run,,7.0,7"
    with pytest.raises(InputError, match=r"cannot write .*nowhere/out.csv: there is no folder .*nowhere"):
        run.to_csv(tmp_path / "nowhere/out.csv")
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert run.to_pandas()["value"].to_list() == [7.0]


def test_missing_pandas_says_what_to_install(tmp_path, monkeypatch):
    def missing(table):
        raise ModuleNotFoundError("pandas is required")

    run = finished(tmp_path)
    monkeypatch.setattr(type(run.stats), "to_pandas", missing)
    with pytest.raises(RunError, match=r"pip install 'manyscale\[pandas\]'"):
        run.to_pandas()


def test_a_run_shows_itself(tmp_path):
    run = finished(tmp_path / "run<b>")
    assert repr(run) == f"Run('{tmp_path}/run<b>', done, cycles=1,200 cycles, simulated_seconds=1.5e-06 s)"
    assert "run&lt;b&gt;: done" in run._repr_html_()
    assert "<td>1,200 cycles</td>" in run._repr_html_()
