# SPDX-License-Identifier: Apache-2.0
"""`manyscale validate`: a table with the errors below it, JSON, and names that are not known."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from manyscale import validation
from manyscale.cli.app import app, main
from manyscale.cli.validate import BEGIN, END
from manyscale.validation import Row

pytestmark = pytest.mark.core

ROWS = [Row("fast", 99.0, 100, "cycles", "a paper"), Row("slow", 5300, 5000, "cycles", "a report")]


@pytest.fixture
def quick(monkeypatch) -> list[str]:
    asked = []
    monkeypatch.setattr(
        validation, "VALIDATIONS", {"quick": lambda machine=None: asked.append(machine) or ROWS}
    )
    return asked


def test_json_of_the_programs():
    result = CliRunner().invoke(app, ["validate", "--only", "gpu-apps", "--json"])
    data = json.loads(result.stdout)
    assert list(data) == ["rows", "mean_error_percent", "max_error_percent", "tables"]
    assert len(data["rows"]) == 2
    for row in data["rows"]:
        assert list(row) == [
            "validation",
            "name",
            "simulated",
            "reference",
            "unit",
            "error_percent",
            "use",
            "source",
        ]
    (test,) = (abs(row["error_percent"]) for row in data["rows"] if row["use"] == "test")
    assert data["mean_error_percent"] == data["max_error_percent"] == pytest.approx(test)
    assert set(data["tables"]["gpu-apps"]) >= {"test", "calibrated"}


def test_a_table_and_the_errors_below_it(quick):
    result = CliRunner().invoke(app, ["validate", "--machine", "other"])
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert quick == ["other"]
    assert "│ fast │ 99 │ 100 │ cycles │ -1.0 │ test │ a paper │" in lines
    assert "│ slow │ 5,300 │ 5,000 │ cycles │ +6.0 │ test │ a report │" in lines
    assert lines[-1] == "absolute error of 2 test rows mean 3.5%, max 6.0%"


def test_tables_go_between_the_marks_of_a_page_and_those_of_others_stay(quick, tmp_path):
    page = tmp_path / "validation.md"
    page.write_text(
        f"# Words\n\n{BEGIN}\n\n### cpu: old\n\n| kept |\n\n### quick: old\n\n| gone |\n{END}\n\n# After\n"
    )
    assert main(["validate", "--markdown", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("# Words")
    assert text.endswith("# After\n")
    assert "| kept |" in text
    assert "| gone |" not in text
    assert "| slow | 5,300 | 5,000 | cycles | +6.0 | test | a report |" in text
    assert "2 rows; absolute error of 2 test rows mean 3.5%, max 6.0%" in text
    assert main(["validate", "--markdown", str(page)]) == 0
    assert page.read_text() == text


def test_both_forms_of_kernels_are_beside_each_other_on_a_page(monkeypatch, tmp_path):
    nearer = [Row("fast", 100.0, 100, "cycles", "a paper"), Row("slow", 4900, 5000, "cycles", "a report")]
    forms = {"ptx": ROWS, "sass": nearer}
    quick = {"quick": lambda isa: forms[isa]}
    monkeypatch.setattr(validation, "FORMS", quick)
    monkeypatch.setattr(validation, "VALIDATIONS", quick)
    page = tmp_path / "validation.md"
    page.write_text(f"{BEGIN}\n\n### quick: old\n\n| gone |\n{END}\n")
    result = CliRunner().invoke(app, ["validate", "--isa", "both", "--markdown", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "gone" not in text
    assert "| slow | 5,000 | cycles | 5,300 | +6.0 | 4,900 | -2.0 | test | a report |" in text
    assert "as PTX: absolute error of 2 test rows mean 3.5%, max 6.0%" in text
    assert "as SASS: absolute error of 2 test rows mean 1.0%, max 2.0%" in text


def test_a_page_without_marks_is_not_written_over(quick, tmp_path, capsys):
    page = tmp_path / "notes.md"
    page.write_text("mine")
    assert main(["validate", "--markdown", str(page)]) == 2
    assert page.read_text() == "mine"
    assert not quick  # found out before the work
    assert "lacks the lines" in capsys.readouterr().err


def test_correlations_are_those_of_rows_of_one_unit():
    rows = [Row(f"r{x}", 2.0 * x + 1, float(x), "cycles", "") for x in range(1, 6)]
    rows += [Row("a", 1.0, 3.0, "us", ""), Row("b", 2.0, 2.0, "us", ""), Row("c", 3.0, 1.0, "us", "")]
    rows += [Row("alone", 1.0, 1.0, "B", ""), *[Row("flat", 1.0, 1.0, "%", "")] * 4]
    assert validation.correlations(rows) == pytest.approx({"cycles": 1.0, "us": -1.0})


def test_an_unknown_name_lists_the_known_ones(capsys):
    assert main(["validate", "--only", "gpu-macro"]) == 2
    error = capsys.readouterr().err
    assert "gpu-macro" in error
    assert "known: gpu-micro, gpu-apps, gpu-clocks, gpu-programs, gpu-mix, cpu, elastic, network" in error


def test_the_headline_is_that_of_the_test_rows(monkeypatch):
    rows = [
        *ROWS,
        Row("fitted", 100.0, 100, "cycles", "", "calibrated"),
        Row("else", 900.0, 100, "cycles", "", "other code"),
    ]
    monkeypatch.setattr(validation, "VALIDATIONS", {"quick": lambda: rows})
    data = json.loads(CliRunner().invoke(app, ["validate", "--json"]).stdout)
    assert data["mean_error_percent"] == pytest.approx(3.5)
    assert data["tables"]["quick"]["mean_error_percent"] == pytest.approx(3.5)
    assert data["tables"]["quick"]["calibrated"]["mean_error_percent"] == 0
    text = CliRunner().invoke(app, ["validate"]).stdout
    assert "of 2 test rows mean 3.5%, max 6.0%; of 1 calibrated rows mean 0.0%" in text
    assert "of 1 other code rows" in text


def test_programs_of_the_user_are_asked_for(capsys, tmp_path):
    assert main(["validate", "--only", "gpu-programs"]) == 2
    assert "--programs DIR" in capsys.readouterr().err
    assert main(["validate", "--only", "gpu-mix", "--programs", str(tmp_path)]) == 2
    assert "has no folder bin" in capsys.readouterr().err
    (tmp_path / "bin").mkdir()
    assert main(["validate", "--only", "gpu-programs", "--programs", str(tmp_path)]) == 2
    assert "none of the programs backprop, nn" in capsys.readouterr().err
