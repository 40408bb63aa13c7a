# SPDX-License-Identifier: Apache-2.0
"""Faults and findings as JUnit XML and SARIF, with lines of source."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from manyscale.cli.app import main
from manyscale.cli.findings import source_line

pytestmark = pytest.mark.core

WILD = """
.version 7.0
.target sm_70
.address_size 64
.file 1 "wild.cu"
.visible .entry wild(.param .u64 at)
{
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [at];
  .loc 1 7 3
  st.global.u32 [%d1], 1;
  ret;
}
"""
UNKNOWN = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry new()
{
  wgmma.fence.sync.aligned;
  ret;
}
"""


def test_a_fault_has_its_line_of_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wild.ptx").write_text(WILD)
    assert main(["gpu", "run", "wild.ptx", "--arg", "64", "--junit", "a.xml", "--sarif", "a.sarif"]) == 5
    case = ElementTree.parse("a.xml").getroot()[0]
    assert (case.get("name"), case.get("file"), case.get("line")) == ("wild", "wild.cu", "7")
    assert "0x40" in case[0].text
    (result,) = json.loads(Path("a.sarif").read_text())["runs"][0]["results"]
    at = result["locations"][0]["physicalLocation"]
    assert (at["artifactLocation"]["uri"], at["region"]["startLine"]) == ("wild.cu", 7)
    assert result["level"] == "error"


def test_what_is_right_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wild.ptx").write_text(WILD)
    assert (
        main(["gpu", "run", "wild.ptx", "--arg", "i32[1]", "--junit", "a.xml", "--sarif", "a.sarif", "-q"])
        == 0
    )
    suite = ElementTree.parse("a.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert json.loads(Path("a.sarif").read_text())["runs"][0]["results"] == []


def test_a_check_lists_what_is_not_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("new.ptx").write_text(UNKNOWN)
    Path("wild.ptx").write_text(WILD)
    assert main(["check", "new.ptx", "wild.ptx", "--junit", "a.xml", "--sarif", "a.sarif"]) == 1
    suite = ElementTree.parse("a.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (result,) = json.loads(Path("a.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "unsupported-instruction"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7


def test_lines_of_source_are_read_from_texts() -> None:
    assert source_line("dir/a.cu:12") == ("dir/a.cu", 12)
    assert source_line("a.ptx, line 3") == ("a.ptx", 3)
    assert source_line("") == ("", 0)


def test_only_a_file_of_its_kind_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wild.ptx").write_text(WILD)
    Path("notes.xml").write_text("precious")
    for _ in range(2):
        assert main(["check", "wild.ptx", "--junit", "a.xml"]) == 0
    assert main(["check", "wild.ptx", "--junit", "notes.xml"]) != 0
    assert Path("notes.xml").read_text() == "precious"
