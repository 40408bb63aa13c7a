# SPDX-License-Identifier: Apache-2.0
"""The tool that compares all statistics before and after a change."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_statistics", ROOT / "tools/same_statistics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_choices_stand_for_a_run_each(tool: ModuleType) -> None:
    assert list(tool.expand(["net {a|b} -p {1|2}", "mem"])) == [
        "net a -p 1",
        "net a -p 2",
        "net b -p 1",
        "net b -p 2",
        "mem",
    ]


def test_every_difference_is_found(tool: ModuleType) -> None:
    before = {"a | hits | ": 1, "a | misses | ": 2, "a | gone | ": 3}
    after = {"a | hits | ": 1, "a | misses | ": 2.0000001, "a | new | ": 4}
    found = "\n".join(tool.differing(before, after))
    assert "misses | : 2 is now 2.0000001" in found
    assert "gone | : 3 is now missing" in found
    assert "new | : new, 4" in found
    assert "hits" not in found
    assert tool.differing(before, dict(before)) == []


def test_renamed_statistics_keep_their_values(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "statistic_renames.toml").write_text('renames = [{old = "far_faults", new = "page_faults"}]')
    monkeypatch.setattr(tool, "HERE", tmp_path)
    assert tool.differing({"gmmu | far_faults | ": 7}, {"gmmu | page_faults | ": 7}) == []
    assert tool.differing({"gmmu | far_faults | ": 7}, {"gmmu | page_faults | ": 8}) == [
        "gmmu | page_faults | : 7 is now 8"
    ]


def test_a_run_is_recorded_and_compared(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """One run twice is identical to the bit; with another seed in the record it is not."""
    folder = tmp_path / "record"
    (folder / "inputs").mkdir(parents=True)
    run = "mem run random --machine memory-small --accesses 200 --footprint 64KiB"
    (folder / "runs.toml").write_text(f'[runs]\nmem = ["{run}"]\n')
    monkeypatch.setattr(tool, "prepare", lambda folder: None)
    for action, code in (("record", 0), ("compare", 0)):
        monkeypatch.setattr(sys, "argv", ["same_statistics.py", action, str(folder)])
        assert tool.main() == code
    assert "identical" in capsys.readouterr().out
    (stored,) = (folder / "results").rglob("*.json")
    stored.write_text(stored.read_text().replace('"json.simulated_seconds": ', '"json.simulated_seconds": 1'))
    assert tool.main() == 1
    assert "json.simulated_seconds" in capsys.readouterr().out
