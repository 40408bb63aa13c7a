# SPDX-License-Identifier: Apache-2.0
"""Branch predictors as plug-ins: found by name, added from Python, and added from outside the tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from manyscale import _core, cpu
from manyscale.errors import InputError, ManyscaleError

pytestmark = pytest.mark.core

CHECKOUT = Path(__file__).resolve().parents[2]
KIND = "branch predictor"
PROGRAM = ("heat", ["1", "8", "1"])
# A predictor of a user: not a file of the core, and nothing of the core names it.
SOURCE = """
#include "cpu/core/direction_predictor.hpp"
#include "cpu/core/saturating_counters.hpp"

namespace {

using namespace manyscale::cpu;

class OutsideBimodal final : public DirectionPlugin<OutsideBimodal> {
 public:
  explicit OutsideBimodal(const BranchSpec& spec) : counters_(spec.base_entries) {}
  bool predict_and_train(std::uint64_t pc, bool taken, const BranchHistory&) {
    return counters_.predict_and_train(static_cast<std::uint32_t>(pc >> 1), taken);
  }

 private:
  SaturatingCounters counters_;
};

const manyscale::Registered<OutsideBimodal> registered{"outside_bimodal", "Two-bit counters, from outside."};

}  // namespace
"""


class NotTaken:
    """No branch is taken."""

    def predict(self, pc: int) -> bool:
        """Never."""
        return False

    def update(self, pc: int, taken: bool) -> None:
        """Learns nothing."""


class Failing(NotTaken):
    """Cannot tell."""

    def predict(self, pc: int) -> bool:
        """Gives up."""
        raise RuntimeError("no idea")


def counts(kind: str) -> tuple[int, float]:
    """Cycles and mispredictions of a small run."""
    program = cpu.Program(cpu.sample(PROGRAM[0]), PROGRAM[1])
    result = cpu.run(program, machine="boom", changes=[f'cpu.core.branch.kind="{kind}"'])
    return result.cycles, result.value("core[0]", "mispredicts")


def test_predictors_of_the_core_are_registered_with_a_sentence() -> None:
    found = cpu.predictors()
    assert {"tage", "gshare", "bimodal", "perfect", "static_not_taken", "recorded"} <= set(found)
    assert all(doc.endswith(".") for doc in found.values())


def test_every_file_of_the_folder_is_registered_under_its_name() -> None:
    files = {path.stem for path in (CHECKOUT / "core/cpu/core/predictors").glob("*.cpp")}
    assert files == set(cpu.predictors())


def test_an_unknown_predictor_is_refused_with_the_known_names() -> None:
    with pytest.raises(ManyscaleError, match=r"there is no branch predictor 'oracle'.*gshare.*tage"):
        counts("oracle")


def test_a_predictor_in_python_decides_as_one_in_the_core() -> None:
    with cpu.registered_predictor("python_not_taken", NotTaken):
        assert cpu.predictors()["python_not_taken"] == "No branch is taken."
        assert counts("python_not_taken") == counts("static_not_taken")
    assert "python_not_taken" not in cpu.predictors()


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(InputError, match="there is already a branch predictor 'tage'"):
        cpu.register_predictor("tage", NotTaken)


def test_what_a_predictor_in_python_raises_ends_the_run() -> None:
    with cpu.registered_predictor("failing", Failing), pytest.raises(Exception, match="no idea"):
        counts("failing")


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler")
def test_a_predictor_from_outside_the_tree_is_found_by_name(tmp_path: Path) -> None:
    source, library = tmp_path / "outside.cpp", tmp_path / "outside.so"
    source.write_text(SOURCE)
    core = CHECKOUT / "core"
    export = core / "engine" / "plugin_export.hpp"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{core}", "-include", str(export)]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    _core.load_plugin_library(str(library))
    try:
        assert cpu.predictors()["outside_bimodal"] == "Two-bit counters, from outside."
        assert counts("outside_bimodal") == counts("bimodal")
    finally:
        _core.remove_plugin(KIND, "outside_bimodal")
