# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks: as few as needed, with a reason; nodes that cover them; counts of ranks."""

import json
import shutil
import sys

import mpi_fixture
import numpy as np
import pytest

from manyscale.errors import InputError
from manyscale.studies.projection import profiling
from manyscale.studies.projection.profile_file import load_profile, save_profile
from manyscale.studies.projection.rank_clusters import RankClusters, cluster_ranks

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'manyscale[projection]'")


def counters(**values):
    return {name: np.asarray(column, float) for name, column in values.items()}


def test_equal_ranks_are_one_group():
    random = np.random.default_rng(1)
    found = cluster_ranks(counters(instructions=1e6 * (1 + 0.01 * random.random(16)), loads=np.full(16, 3e5)))
    assert found.labels == [0] * 16
    assert found.nodes(4) == [0]
    assert found.why.startswith("1 group")


def test_a_root_that_does_more():
    """As in the training of a network: rank 0 computes new weights, all others are alike."""
    found = cluster_ranks(counters(instructions=[12e6] + [10e6] * 15, branches=[1.3e6] + [1e6] * 15))
    assert found.labels == [0] + [1] * 15
    assert found.nodes(4) == [0]
    assert found.nodes(1) == [0, 1]
    assert "with 1 group it would be" in found.why


def test_edges_and_inner_ranks():
    """A line of ranks whose ends have one neighbour: two groups, on two nodes if one holds a single rank."""
    found = cluster_ranks(counters(instructions=[8e6, *[10e6] * 6, 8e6]))
    assert found.labels == [0, 1, 1, 1, 1, 1, 1, 0]
    assert found.members(0) == [0, 7]


def test_ranks_that_are_all_different():
    """No eight groups keep ranks together that double from one to the next; the best are taken and it is said."""
    found = cluster_ranks(counters(instructions=2.0 ** np.arange(20)))
    assert found.count <= 8
    assert "even 8 groups" in found.why


def test_one_rank():
    assert cluster_ranks(counters(instructions=[5])).labels == [0]


def test_nodes_cover_all_groups():
    found = RankClusters([0, 0, 1, 1, 0, 2], [], "")
    assert found.nodes(2) == [1, 2]


@pytest.mark.parametrize(
    "values", [{}, {"a": [1, 2], "b": [1]}, {"a": [1, -1]}, {"a": [1, float("nan")]}, {"a": []}]
)
def test_bad_counters_are_refused(values):
    with pytest.raises(InputError):
        cluster_ranks(values)


@pytest.mark.core
def test_counts_without_a_native_run(tmp_path):
    """Two ranks with half of the plate each do the same work, MPI left out; rank 0 prints besides."""
    found = profiling.profile_functional(mpi_fixture.program("heat", "64", "10"), 2)
    done = found.counters["instructions"]
    assert len(done) == 2
    assert done[0] == pytest.approx(done[1], rel=0.1)
    assert 0 < found.counters["branches"][1] < found.counters["loads"][1] < done[1]
    save_profile(found, tmp_path)
    again = load_profile(tmp_path)
    assert again.counters == found.counters
    assert again.clusters.labels == found.clusters.labels


@pytest.fixture
def pretended_perf(tmp_path, monkeypatch):
    """A command `perf` that counts what the test wants: the rank tells how many instructions."""
    script = tmp_path / "bin" / "perf"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        'rank="${PMI_RANK:-${MANYSCALE_MPI_RANK:-0}}"\n'
        "shift\n"
        "out=/dev/stderr\n"
        'while [ "$1" != -- ] && [ "$1" != true ]; do\n'
        '  if [ "$1" = -o ]; then out="$2"; fi\n'
        "  shift\n"
        "done\n"
        'if [ "$1" = -- ]; then shift; fi\n'
        'echo "$((1000000 + rank * 500000));;instructions:u;0;100.00;;" > "$out"\n'
        'echo "$((2000000 + rank * 1000000));;cycles:u;0;100.00;;" >> "$out"\n'
        'echo "<not supported>;;branches:u;0;100.00;;" >> "$out"\n'
        'if [ "$out" = /dev/stderr ]; then echo "1000;;instructions:u;0;100.00;;" >&2; fi\n'
        'exec "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{__import__('os').environ['PATH']}")
    return script


def test_counts_of_perf(pretended_perf):
    """Two ranks started here: instructions and IPC of each, no branches where the machine has none."""
    found = profiling.profile_native(shutil.which("true"), 2)
    assert found.counters == {"instructions": [1e6, 1.5e6], "IPC": [0.5, 0.5]}
    assert found.clusters.labels == [0, 1]


def test_counts_of_perf_under_a_launcher(pretended_perf, tmp_path):
    launcher = tmp_path / "mpirun"
    launcher.write_text('#!/bin/sh\nfor rank in 0 1; do PMI_RANK=$rank "$@" || exit 1; done\n')
    launcher.chmod(0o755)
    found = profiling.profile_native(shutil.which("true"), 2, launcher=str(launcher))
    assert found.counters["instructions"] == [1e6, 1.5e6]
    with pytest.raises(InputError, match="no counts of rank 2"):
        profiling.profile_native(shutil.which("true"), 3, launcher=str(launcher))
    with pytest.raises(InputError, match="ended with code 1"):
        profiling.profile_native(shutil.which("false"), 2, launcher=str(launcher))


def test_without_perf_it_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert profiling.perf_problem() == "the command perf is not installed"
    with pytest.raises(InputError, match="perf cannot count"):
        profiling.profile_native(sys.executable, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(kind="other"),
        lambda document: document.update(schema=2),
        lambda document: document.pop("labels"),
        lambda document: document.update(labels=[0, 2]),
        lambda document: document.update(nodes=[5]),
        lambda document: document.update(counters={"a": [1.0]}),
        lambda document: document.update(attempts=[7]),
        lambda document: document.update(ranks_per_node=0),
    ],
)
def test_a_broken_file_is_refused(change, tmp_path):
    save_profile(profiling.profile_given([0, 1], 1), tmp_path)
    path = tmp_path / "profile.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"profile\.json"):
        load_profile(tmp_path)
