# SPDX-License-Identifier: Apache-2.0
"""Every example runs as it is, says what it promises, and writes only where it was told to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# The line by which each example shows that it did its work.
KEY_LINES = {
    "engine/deadlock.py": "they wait in a circle: stage[0] -> stage[1] -> stage[2] -> stage[3] -> stage[0]",
    "engine/phold.py": "identical statistics on 1, 2 and 4 threads: yes",
    "engine/python_model.py": "served 1000 tokens, at most 3 at a time",
    "engine/ring.py": "largest deviation: 0.00 %",
    "memory/false_sharing.py": "false sharing makes it 9 times slower",
    "memory/ladder.py": "largest deviation: 0.00 %",
}

# What an example leaves in the folder that it is given.
FILES = {
    "engine/deadlock.py": ["run/run.json", "run/stats.parquet"],
    "engine/phold.py": ["threads-1/run.json", "threads-2/run.json", "threads-4/run.json"],
    "engine/ring.py": ["run.json", "timeline.pftrace"],
}


def run(example: str, here: Path, *arguments: str) -> str:
    """What the example prints when it is run in the folder `here`."""
    environment = {**os.environ, "TMPDIR": str(here / "tmp")}
    (here / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), *arguments],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_key_line():
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    assert found == set(KEY_LINES)


@pytest.mark.parametrize("example", sorted(KEY_LINES))
def test_example_runs_and_leaves_nothing_behind(example: str, tmp_path: Path):
    assert KEY_LINES[example] in run(example, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


@pytest.mark.parametrize("example", sorted(FILES))
def test_example_writes_into_the_folder_it_is_given(example: str, tmp_path: Path):
    run(example, tmp_path, "results")
    for file in FILES[example]:
        assert (tmp_path / "results" / file).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "tmp"]
