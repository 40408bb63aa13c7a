# SPDX-License-Identifier: Apache-2.0
"""Jobs end to end: from a skeleton to times of ranks, tables, pictures and run directories."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from manyscale import load, load_machine
from manyscale.errors import DeadlockError, InputError
from manyscale.machine.network import capacity, topology_for
from manyscale.network import MOTIFS, Distribution, JobResult, compile, motif, run, vectorised
from manyscale.network.goal import write_goal
from manyscale.network.goal_export import schedule_of

pytestmark = pytest.mark.core

SMALL = {
    "pingpong": {"iterations": 3},
    "halo2d": {"iterations": 2},
    "halo3d": {"iterations": 2},
    "allreduce": {"iterations": 3},
    "collective": {"iterations": 3},
    "hpcg": {"iterations": 1, "nx": 16, "ny": 16, "nz": 16},
    "snap": {"nx": 20, "chunk": 5, "groups": 2, "iterations": 1},
    "milc": {"iterations": 1},
    "caffe": {"layers": 3},
    "training": {"tensor": 2, "pipeline": 2, "layers": 4, "microbatches": 3, "hidden": 128, "sequence": 64},
}


def accounted(result: JobResult) -> None:
    """Each rank's time is compute, overhead, waiting and transfer, to the femtosecond."""
    times = result._times
    parts = sum(times[name] for name in ("compute", "overhead", "waiting", "transfer"))
    assert np.array_equal(parts, times["end"])


@pytest.mark.parametrize("size", [0, 8, 2048, 2049, 20_000])
def test_a_pingpong_takes_what_its_parts_take(size: int):
    """Half a round trip: overheads, two links, a switch, and all bytes at the bandwidth.

    Of several packets only the last one's way over the second link adds to the time of the first link.
    """
    result = run("pingpong", nodes=2, topology="switch", fidelity="packet", bytes=f"{size}B", iterations=4)
    packets = max(-(-size // 2048), 1)
    wire = (size + 32 * packets) / 12.5e9
    half = 2 * 150e-9 + 2 * 90e-9 + 100e-9 + wire
    assert result.simulated_seconds == pytest.approx(8 * half, rel=0.12 if packets > 1 else 1e-9)
    accounted(result)


@pytest.mark.parametrize("name", MOTIFS)
def test_every_motif_runs(name: str):
    result = run(name, nodes=8, ranks_per_node=2, fidelity="train", **SMALL.get(name, {}))
    assert result.outcome == "finished"
    assert result.simulated_seconds > 0
    assert result.messages > 0
    accounted(result)


def test_messages_and_bytes_are_those_of_the_program():
    result = run("halo3d", nodes=24, x=4, y=3, z=2, iterations=5, allreduce="0B", fidelity="packet")
    faces = 2 * (3 * 3 * 2 + 4 * 2 * 2 + 4 * 3 * 1)
    assert result.messages == 5 * faces
    assert result.totals["bytes"] == 5 * faces * 32768
    assert int(result.latency["messages"].sum()) == 5 * faces
    assert result.packets >= 5 * faces * 16


@pytest.mark.parametrize("fidelity", ["packet", "train", "flow"])
def test_results_do_not_depend_on_threads(fidelity: str):
    results = [
        run("halo3d", nodes=48, fidelity=fidelity, iterations=3, variation=0.2, threads=threads, seed=5)
        for threads in (1, 2, 4)
    ]
    for other in results[1:]:
        assert other.ranks.equals(results[0].ranks)
        assert other.links.equals(results[0].links)
        assert other.latency.equals(results[0].latency)


def test_the_seed_changes_what_is_drawn():
    times = {
        run("allreduce", nodes=4, compute="10us", variation=0.3, seed=seed).simulated_seconds
        for seed in (1, 2, 1)
    }
    assert len(times) == 2


def test_scaled_draws_pairs_of_amounts_and_overlap():
    amounts = np.full((4, 4), 1000)

    @vectorised
    def skeleton(mpi, rank, size):
        mpi.compute(Distribution.of(["10us"]), scale=1 + rank)
        request = mpi.icollective("allreduce", 8)
        mpi.compute("100us")
        mpi.wait(request)
        mpi.alltoallv(amounts)

    result = run(skeleton, nodes=4)
    assert (result.ranks["compute"] * 1e6).round(6).to_list() == [110, 120, 130, 140]
    assert result.simulated_seconds < 160e-6


def test_variation_makes_the_slowest_decide():
    constant, variable = (
        run("allreduce", nodes=64, compute="100us", variation=variation, iterations=20).simulated_seconds
        for variation in (0.0, 0.1)
    )
    # The expected maximum of 64 normal values is 2.4 standard deviations above the mean.
    assert variable / constant == pytest.approx(1 + 0.1 * 2.4, rel=0.08)


def test_ranks_of_a_node_do_not_use_the_network():
    near = run("pingpong", nodes=2, ranks_per_node=2, pairs="neighbours", iterations=3)
    far = run("pingpong", nodes=2, ranks_per_node=2, pairs="neighbours", iterations=3, mapping="cyclic")
    assert near.packets == 0
    assert far.packets > 0
    assert near.messages == far.messages
    assert near.simulated_seconds < far.simulated_seconds


def test_a_skeleton_of_ones_own_and_a_mapping_from_a_file(tmp_path: Path):
    def shift(mpi, rank, size):
        request = mpi.irecv((rank - 1) % size, 100, tag=0)
        mpi.send((rank + 1) % size, 100, tag=0)
        mpi.wait(request)

    (tmp_path / "map").write_text("1\n0\n1\n0\n")
    result = run(shift, nodes=2, ranks_per_node=2, mapping=str(tmp_path / "map"))
    assert result.ranks["node"].to_list() == [1, 0, 1, 0]
    assert result.messages == 4


def test_a_run_leaves_a_directory_that_explains_itself(tmp_path: Path):
    out = tmp_path / "run"
    result = run("halo3d", nodes=27, iterations=3, out=out, timeline=[0, 13], load="10us", fidelity="packet")
    found = load(out)
    assert found.status == "done"
    assert found.headline["messages"]["value"] == result.messages
    assert found.value("job", "packets") == result.packets
    assert found.value("ranks", "end.max") == round(result.simulated_seconds * 1e15)
    names = {path.name for path in out.iterdir()}
    assert {"ranks.parquet", "links.parquet", "load.parquet", "latency.parquet", "network.svg"} <= names
    assert {"critical_path.parquet", "timeline.pftrace", "machine.toml"} <= names
    again = run("halo3d", machine=out / "machine.toml", nodes=27, iterations=3, fidelity="packet")
    assert again.ranks.equals(result.ranks)


def test_the_load_of_links_over_time_is_all_they_carried():
    result = run("halo3d", nodes=27, iterations=3, load="20us", fidelity="packet")
    carried = result.load.group_by("row").sum().sort("row")
    total = result.links["bytes"].to_numpy()
    assert carried["bytes"].sum() == pytest.approx(total.sum(), rel=1e-6)


def test_a_picture_has_all_switches_that_were_used():
    result = run("halo3d", nodes=27, iterations=2)
    root = ElementTree.fromstring(result.picture())
    space = "{http://www.w3.org/2000/svg}"
    used = result.links.filter(result.links["bytes"] > 0)
    between = used.filter(~used["from_node"] & ~used["to_node"])
    switches = {*between["from"], *between["to"]}
    assert len(root.findall(f"{space}circle")) == len(switches)
    pairs = {frozenset(pair) for pair in zip(between["from"], between["to"], strict=True)}
    assert len(root.findall(f"{space}line")) == len(pairs)
    for kind, count in (("torus", 12), ("mesh", 12), ("switch", 1)):
        text = run("allreduce", nodes=12, topology=kind, iterations=1).picture()
        assert text.count("<circle") == count
    assert "<circle" in run("allreduce", nodes=12, topology="dragonfly", iterations=1).picture()


def test_the_critical_path_ends_with_the_job_and_has_no_gaps():
    result = run("sweep3d", nodes=16, blocks=3)
    path = result.critical_path
    assert path["end"][-1] == pytest.approx(result.simulated_seconds)
    assert path["begin"][0] == 0
    begins, ends = path["begin"].to_numpy(), path["end"].to_numpy()
    assert np.allclose(begins[1:], ends[:-1])
    assert {"run", "message"} >= set(path["kind"])


def test_a_timeline_opens_in_perfetto(tmp_path: Path):
    run("halo3d", nodes=8, iterations=2, out=tmp_path / "run", timeline=[0, 7])
    data = (tmp_path / "run" / "timeline.pftrace").read_bytes()
    for text in (b"rank 0", b"rank 7", b"isend 32KiB", b"allreduce 8B"):
        assert text in data
    assert b"rank 3" not in data


def test_a_deadlock_says_who_waits_for_whom(tmp_path: Path):
    @vectorised
    def stuck(mpi, rank, size):
        mpi.recv((rank + 1) % size, 8, tag=7)
        mpi.send((rank - 1) % size, 8, tag=7)

    with pytest.raises(DeadlockError) as error:
        run(stuck, nodes=3, out=tmp_path / "run")
    assert "rank 0 in receive (operation 0) for a message from rank 1 with tag 7" in str(error.value)
    found = load(tmp_path / "run")
    assert found.status == "failed"
    assert found.info["partial"]
    assert found.value("job", "messages") == 0


def test_a_goal_file_runs_as_the_program_it_came_from(tmp_path: Path):
    program = compile(motif("halo3d", iterations=3, allreduce="0B").emit, 12)
    write_goal(schedule_of(program), tmp_path / "halo.goal")
    direct = run(program, fidelity="packet")
    recorded = run(tmp_path / "halo.goal", fidelity="packet")
    assert recorded.messages == direct.messages
    assert recorded.simulated_seconds == pytest.approx(direct.simulated_seconds, rel=0.01)
    assert run(str(tmp_path / "halo.goal")).messages == direct.messages


def test_any_graph_and_faults(tmp_path: Path):
    graph = tmp_path / "ring.graph"
    graph.write_text(
        "switches 4\nlink 0 1\nlink 1 2\nlink 2 3\nlink 3 0\nnodes 0\nnodes 1\nnodes 2\nnodes 3\n"
    )
    base = [f'network.graph="{graph}"']

    def time(*changes: str) -> float:
        # Ranks 0 and 3, which are neighbours on the ring.
        return run(
            "pingpong", nodes=4, topology="graph", changes=[*base, *changes], iterations=2, bytes="64KiB"
        ).simulated_seconds

    whole = time()
    assert time("network.faults=[{a=0, b=3}]") > whole + 4 * 2 * 100e-9  # the other way round
    assert time("network.faults=[{a=0, b=3, speed=0.5}]") > 1.7 * whole
    with pytest.raises(InputError, match=r"needs network\.graph"):
        run("pingpong", nodes=4, topology="graph")


def test_topologies_that_fit():
    for kind in ("fat-tree", "torus", "mesh", "dragonfly"):
        for nodes in (1, 2, 30, 500, 5000):
            changes = [
                f'network.topology.{name}="{value}"'
                if isinstance(value, str)
                else f"network.topology.{name}={value}"
                for name, value in topology_for(kind, nodes).items()
            ]
            network = load_machine("omnipath", changes).machine.network
            room = capacity(network)
            assert room >= nodes, (kind, nodes, changes)
            assert room <= max(6 * nodes, 600), (kind, nodes, changes)


def test_wrong_jobs_are_refused_in_words():
    for arguments, message in [
        ({"topology": "ring"}, "there is no topology 'ring'"),
        ({"fidelity": "exact"}, "exact"),
        ({"machine": "v100"}, "v100 has no network section"),
        ({"changes": ["network.link.bandwith=1GB/s"]}, "did you mean 'network.link.bandwidth'"),
        ({"changes": ["network.topology.shape=hello"]}, "hello"),
        ({"mapping": "blok"}, "is no mapping"),
        ({"ranks": 9}, "9 ranks do not fit on 4 nodes"),
        ({"timeline": [4]}, "there is no rank 4"),
        ({"threads": 0}, "give at least 1"),
        ({"algorithm": "magic"}, "there is no algorithm 'magic' of allreduce"),
        ({"iterationz": 3}, "did you mean 'iterations'"),
    ]:
        with pytest.raises(InputError, match=message):
            run("allreduce", **{"nodes": 4, **arguments})
