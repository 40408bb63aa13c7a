# SPDX-License-Identifier: Apache-2.0
"""Every example runs as it is, says what it promises, and writes only where it was told to."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sanitizers import SANITIZED

pytestmark = pytest.mark.core

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# The line by which each example shows that it did its work.
KEY_LINES = {
    "cpu/own_predictor.py": "one bit for each branch is better than none: yes",
    "cpu/scaling.py": "efficiency on 16 threads: below one half",
    "elastic/cache_sizes.py": "the replays order the sizes as the detailed runs do: yes",
    "elastic/dibona.py": "the pipeline gains more than the small product, replayed and in detail: yes",
    "elastic/matrix_sizes.py": "no product is off by more than 8%: yes",
    "elastic/strong_scaling.py": "ferret, fifo: faster on every doubling of cores: yes",
    "elastic/weak_scaling.py": "copies with data of their own miss more in L2 than copies on the same data: yes",
    "engine/deadlock.py": "they wait in a circle: stage[0] -> stage[1] -> stage[2] -> stage[3] -> stage[0]",
    "engine/phold.py": "identical statistics on 1, 2 and 4 threads: yes",
    "engine/python_model.py": "served 1000 tokens, at most 3 at a time",
    "engine/ring.py": "largest deviation: 0.00 %",
    "gpu/clock_study.py": "the SMs decide, not the memory: yes",
    "gpu/errors.py": "at <ptx>:20 (iota.cu:3): st.global.u32",
    "gpu/profile.py": "sectors per request: 18 of the simple kernel, 4 of the tiled one",
    "gpu/races.py": "race in shared memory",
    "gpu/run_cuda.py": "the sum is exact: yes",
    "gpu/run_numba.py": "it is exact: yes",
    "gpu/run_ptx.py": "elements that differ from numpy's: 0 of 10000",
    "gpu/run_triton.py": "it agrees with numpy: yes",
    "gpu/streams.py": "3 streams: the values are exact: yes",
    "memory/false_sharing.py": "false sharing makes it 9 times slower",
    "memory/ladder.py": "largest deviation: 0.00 %",
    "memory/own_prefetcher.py": "after_miss is faster than none: yes",
    "memory/own_replacement.py": "mru hits most often: yes",
    "network/own_skeleton.py": "deviation: 0.00 %",
    "network/study.py": "fastest on 256 nodes: fat tree",
    "projection/figures.py": "with variability and external ranks it is nearer to the truth: yes",
    "projection/gpu_training.py": "the gradients are those of numpy: yes",
    "sweeps/logarithm.py": "largest deviation from log2(nodes) steps: 0.00%",
    "uvm/first_touch.py": "pages that were sent ahead cost the kernel next to nothing: yes",
    "uvm/own_eviction.py": "every policy evicts: yes",
    "uvm/own_prefetcher.py": "my_two_chunks is faster than none: yes",
    "uvm/oversubscription.py": "suffers the most: random_access, the least: stream_triad",
    "uvm/prefetchers.py": "forgetting single pages hits at least as often in every program: yes",
}


def has(package: str) -> bool:
    """Whether a package is there; those within others are asked for by their folders, without importing them."""
    outer, *inner = package.split("/")
    found = importlib.util.find_spec(outer)
    folders = (found.submodule_search_locations or []) if found else []
    return any(Path(folder).joinpath(*inner).is_dir() for folder in folders)


# What else an example needs: whether it is there, and what the example says if it is not.
NEEDS = {
    "gpu/run_cuda.py": (
        bool(shutil.which("nvcc")) or has("nvidia/cuda_nvrtc") or has("nvidia/cu13"),
        "Nothing was run. reduction.cu: this is CUDA C++; pip install 'manyscale[cuda]'",
    ),
    "gpu/run_numba.py": (has("numba_cuda"), "Nothing was run. This example needs Numba: pip install"),
    "gpu/run_triton.py": (has("triton"), "Nothing was run. This example needs Triton: pip install triton"),
}

# What an example leaves in the folder that it is given.
FILES = {
    "cpu/scaling.py": ["scaling.svg"],
    "elastic/dibona.py": ["dibona_speedup.svg"],
    "elastic/matrix_sizes.py": ["matrix_error.svg", "matrix_speed.svg", "matrix_sizes.csv"],
    "elastic/strong_scaling.py": [
        "strong_speedup.svg",
        "strong_time.svg",
        "strong_simulation.svg",
        "strong_scaling.csv",
    ],
    "elastic/weak_scaling.py": [
        "weak_time.svg",
        "weak_misses.svg",
        "weak_efficiency.svg",
        "weak_simulation.svg",
        "weak_scaling.csv",
    ],
    "engine/deadlock.py": ["run/run.json", "run/stats.parquet"],
    "engine/phold.py": ["threads-1/run.json", "threads-2/run.json", "threads-4/run.json"],
    "engine/ring.py": ["run.json", "timeline.pftrace"],
    "network/study.py": ["bandwidth.svg", "latency.svg", "topologies.svg", "scaling.svg"],
    "projection/figures.py": [
        "figure_4_5_hpcg.svg",
        "figure_6_milc.svg",
        "figure_7_snap.svg",
        "figure_12.svg",
    ],
    "projection/gpu_training.py": ["gpu_training.svg"],
    "uvm/oversubscription.py": ["slowdowns.svg", "pages.svg", "transfers.svg", "pages.parquet"],
    "uvm/prefetchers.py": ["prefetchers.svg", "shootdowns.svg"],
}


def run(example: str, here: Path, *arguments: str, **variables: str) -> str:
    """What the example prints when it is run in the folder `here`."""
    environment = {**os.environ, "TMPDIR": str(here / "tmp"), **variables}
    (here / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), *arguments],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600 if SANITIZED else 120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_key_line():
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*/*.py")}
    assert found == set(KEY_LINES)


@pytest.mark.parametrize("example", sorted(KEY_LINES))
def test_example_runs_and_leaves_nothing_behind(example: str, tmp_path: Path):
    is_there, otherwise = NEEDS.get(example, (True, ""))
    assert (KEY_LINES[example] if is_there else otherwise) in run(example, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


@pytest.mark.parametrize("example", sorted(NEEDS))
def test_example_says_what_to_install(example: str, tmp_path: Path):
    """Without a path to compilers, and with packages that cannot be imported."""
    hidden = tmp_path / "hidden"
    for package in ("nvidia", "numba", "triton"):
        (hidden / package).mkdir(parents=True)
        (hidden / package / "__init__.py").write_text("raise ImportError\n" if package != "nvidia" else "")
    assert NEEDS[example][1] in run(example, tmp_path, PATH="", PYTHONPATH=str(hidden))


@pytest.mark.parametrize("example", sorted(FILES))
def test_example_writes_into_the_folder_it_is_given(example: str, tmp_path: Path):
    run(example, tmp_path, "results")
    for file in FILES[example]:
        assert (tmp_path / "results" / file).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "tmp"]
