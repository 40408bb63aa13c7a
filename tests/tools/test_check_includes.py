# SPDX-License-Identifier: Apache-2.0
"""The check of the core's includes finds cycles of folders, and nothing in the tree as it is."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("check_includes", ROOT / "tools/check_includes.py")
check_includes = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check_includes)


@pytest.fixture
def core(tmp_path):
    """Writes the files of a core: path -> the paths it includes."""

    def write(files):
        for path, includes in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f'#include "{target}"\n' for target in includes))
        return tmp_path

    return write


def test_folders_in_one_direction_have_no_cycle(core):
    root = core(
        {
            "cpu/stream/record.hpp": [],
            "cpu/core/core.hpp": ["cpu/stream/record.hpp", "cpu/core/window.hpp"],
            "cpu/core/window.hpp": ["cpu/stream/record.hpp"],
        }
    )
    assert check_includes.cycle_problems(root) == []


def test_a_cycle_through_different_files_of_three_folders_is_named(core):
    root = core(
        {
            "cpu/a/one.hpp": ["cpu/b/one.hpp"],
            "cpu/b/one.hpp": [],
            "cpu/b/two.cpp": ["gpu/c/one.hpp"],
            "gpu/c/one.hpp": [],
            "gpu/c/two.hpp": ["cpu/a/two.hpp"],
            "cpu/a/two.hpp": [],
        }
    )
    (problem,) = check_includes.cycle_problems(root)
    chain = problem.split(": ")[-1].split(" -> ")
    assert len(chain) == 4
    assert chain[0] == chain[-1]
    edges = {("cpu/a", "cpu/b"), ("cpu/b", "gpu/c"), ("gpu/c", "cpu/a")}
    assert set(pairwise(chain)) == edges


def test_files_beside_folders_are_a_folder_of_their_own(core):
    root = core({"mpi/rank.hpp": ["mpi/collectives/ring.hpp"], "mpi/collectives/ring.hpp": ["mpi/rank.hpp"]})
    assert len(check_includes.cycle_problems(root)) == 1


def test_the_core_is_free_of_cycles():
    assert check_includes.cycle_problems(ROOT / "core") == []
