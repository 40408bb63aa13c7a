# SPDX-License-Identifier: Apache-2.0
"""The commands on the core's models."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from manyscale.cli.app import app, main
from manyscale.system import models


def invoke(*arguments):
    return CliRunner().invoke(app, ["models", *arguments])


def cells(text):
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]


def test_the_list_has_each_model_with_its_sentence():
    result = invoke()
    assert result.exit_code == 0, result.output
    rows = cells(result.stdout)
    for name in models():
        assert name in [row[0] for row in rows if row]
    assert ["synthetic.relay", "Passes tokens on at its clock, as credits allow."] in rows
    assert {entry["name"]: entry["doc"] for entry in json.loads(invoke("--json").stdout)} == {
        name: info.doc for name, info in models().items()
    }


def test_show_gives_parameters_ports_and_statistics():
    result = invoke("show", "synthetic.relay")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("synthetic.relay: Passes tokens on at its clock")
    rows = cells(result.stdout)
    assert ["clock", "Hz", "from 1Hz to 1THz", "1GHz", "one token is passed on per cycle"] in rows
    assert ["input", "token", "consumer", "optional", "where tokens come from"] in rows
    assert ["age", "histogram", "fs", "age of retired tokens"] in rows


def test_show_as_json():
    shown = json.loads(invoke("show", "synthetic.relay", "--json").stdout)
    assert set(shown) == {"name", "doc", "parameters", "ports", "statistics"}
    assert shown["parameters"][0] == {
        "path": "clock",
        "type": "frequency",
        "unit": "Hz",
        "default": "1GHz",
        "range": "from 1Hz to 1THz",
        "doc": "one token is passed on per cycle",
    }
    assert [port["role"] for port in shown["ports"]] == ["consumer", "producer"]
    assert shown["statistics"][0]["kind"] == "counter"


def test_every_model_can_be_shown():
    for name in models():
        assert invoke("show", name).exit_code == 0


def test_an_unknown_model_names_the_nearest(capsys):
    assert main(["models", "show", "synthetic.relai"]) == 2
    assert capsys.readouterr().err == (
        "Error: there is no model named 'synthetic.relai'; did you mean 'synthetic.relay'?\n"
    )


def test_plugins_are_listed_by_kind():
    result = invoke("plugins")
    assert result.exit_code == 0, result.output
    assert ["branch predictor", "bimodal", "Two-bit counters by address."] in cells(result.stdout)
    assert json.loads(invoke("plugins", "--json").stdout)["branch predictor"]["bimodal"]
