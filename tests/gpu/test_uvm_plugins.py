# SPDX-License-Identifier: Apache-2.0
"""A UVM prefetcher and an eviction policy from outside the tree: in C++ and in Python, with the same statistics."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyscale import plugins
from manyscale.errors import ManyscaleError
from manyscale.gpu import TimedDevice

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "uvm"

SCRIPT = """
import contextlib, io, json, runpy, sys
example, in_cpp, in_python, other = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()):
    run = runpy.run_path(example)["run"]
print(json.dumps([run(in_cpp), run(in_python), run(other)]))
"""


@pytest.mark.parametrize(
    ("source", "example", "in_cpp", "in_python", "other"),
    [
        ("two_chunks.cpp", "own_prefetcher.py", "two_chunks", "my_two_chunks", "sequential_local"),
        ("fifo_block.cpp", "own_eviction.py", "fifo_block", "my_fifo_block", "lru_page"),
    ],
)
def test_policies_from_outside_give_the_same_statistics(source, example, in_cpp, in_python, other, tmp_path):
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("there is no C++ compiler")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(EXAMPLES / example), in_cpp, in_python, other],
        env={
            **os.environ,
            plugins.VARIABLE: str(EXAMPLES / source),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, different = json.loads(done.stdout)
    assert first == second
    assert first != different


def test_the_policies_of_the_tree_are_listed():
    assert {"none", "random", "sequential_local", "locality_aware", "tree"} <= set(
        plugins.plugins("UVM prefetcher")
    )
    assert {"lru_page", "lru_block", "random", "sequential_local", "tree", "lfu"} <= set(
        plugins.plugins("eviction policy")
    )


@pytest.mark.parametrize("kind", ["UVM prefetcher", "eviction policy"])
def test_an_unknown_policy_is_an_error_with_all_names(kind):
    key = {"UVM prefetcher": "prefetcher", "eviction policy": "eviction"}[kind]
    with pytest.raises(ManyscaleError) as error:
        TimedDevice("gtx1080ti", changes=[f"gpu.uvm.{key}=nothing"])
    for name in plugins.plugins(kind):
        assert name in str(error.value)
