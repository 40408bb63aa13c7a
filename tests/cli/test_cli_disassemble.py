# SPDX-License-Identifier: Apache-2.0
"""`manyscale gpu disassemble`: SASS with its schedule, beside the PTX it comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from manyscale.cli.app import app
from manyscale.gpu.assembler import assemble, find_assembler

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(find_assembler() is None, reason="there is no ptxas"),
]

DEMO = Path(__file__).resolve().parents[2] / "examples" / "gpu" / "kernels.ptx"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["gpu", "disassemble", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_instructions_stand_beside_their_ptx() -> None:
    shown = _run(str(DEMO), "--architecture", "sm_70", "--kernel", "saxpy", "--hex")
    assert shown.startswith("kernel saxpy (sm_70; ")
    (addition,) = [line for line in shown.splitlines() if "FADD" in line]
    assert "W-:Y:S08" in addition
    assert "add.rn.f32" in addition


def test_a_cubin_reads_like_the_ptx_it_was_made_from(tmp_path: Path) -> None:
    file = tmp_path / "demo.cubin"
    file.write_bytes(assemble(DEMO.read_bytes(), "demo", "sm_80"))
    (from_cubin,) = json.loads(_run(str(file), "--json"))
    (from_ptx,) = json.loads(_run(str(DEMO), "--architecture", "sm_80", "--json"))
    assert from_cubin["architecture"] == from_ptx["architecture"] == "sm_80"
    for one, other in zip(from_cubin["functions"], from_ptx["functions"], strict=True):
        assert [row["text"] for row in one["instructions"]] == [row["text"] for row in other["instructions"]]
        assert one["registers"] == other["registers"]


def test_mistakes_are_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cubin"
    broken.write_bytes(b"\x7fELF" + bytes(14) + b"\xbe\x00" + bytes(60))
    for arguments, message in (
        ((str(DEMO), "--architecture", "sm_70", "--kernel", "saxpi"), "saxpy"),
        ((str(DEMO), "--architecture", "sm_20"), "sm_20 cannot be read"),
        ((str(broken),), "this is no cubin"),
    ):
        result = CliRunner().invoke(app, ["gpu", "disassemble", *arguments])
        assert result.exit_code != 0
        assert message in str(result.exception)
