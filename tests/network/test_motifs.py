# SPDX-License-Identifier: Apache-2.0
"""Built-in skeletons: who sends how much to whom, against closed forms, and every send has its receive."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

import pytest
from untimed import Untimed

from manyscale.errors import InputError
from manyscale.network import ANY, MOTIFS, NOBODY, Program, compile, motif
from manyscale.network.program import COLLECTIVES


@dataclass
class Traffic:
    """What all ranks of a program send and receive."""

    sent: Counter = field(default_factory=Counter)  # by source, destination, tag, communicator
    received: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)  # by source
    collectives: list[Counter] = field(default_factory=list)  # of each rank, by kind, bytes, communicator
    any: Counter = field(default_factory=Counter)  # receives from anyone, by destination
    compute: list[int] = field(default_factory=list)  # of each rank, in femtoseconds

    @property
    def messages(self) -> int:
        return sum(self.sent.values())


def traffic(name: str, ranks: int, **parameters) -> Traffic:
    program = compile(motif(name, **parameters).emit, ranks, name=name)
    found = Traffic()
    for rank in range(ranks):
        collectives, compute = Counter(), 0
        for step in program.steps(rank):
            if step.kind == "compute":
                compute += step["time"]
            elif step.kind in COLLECTIVES:
                collectives[step.kind, step["bytes"], step.communicator] += 1
            elif step.kind in ("send", "isend") and step["peer"] != NOBODY:
                found.sent[rank, step["peer"], step["tag"], step.communicator] += 1
                found.bytes[rank] += step["bytes"]
            elif step.kind in ("recv", "irecv") and step["peer"] == ANY:
                found.any[rank] += 1
            elif step.kind in ("recv", "irecv") and step["peer"] != NOBODY:
                found.received[step["peer"], rank, step["tag"], step.communicator] += 1
        found.collectives.append(collectives)
        found.compute.append(compute)
    return found


SMALL = {
    "pingpong": {"iterations": 3},
    "hpcg": {"iterations": 2, "nx": 16, "ny": 16, "nz": 16},
    "snap": {"nx": 20, "chunk": 5, "groups": 2, "iterations": 2},
    "milc": {"iterations": 2},
    "caffe": {"layers": 3},
    "training": {"tensor": 2, "pipeline": 3, "layers": 6, "microbatches": 4},
}


@pytest.mark.parametrize("name", MOTIFS)
@pytest.mark.parametrize("ranks", [6, 24])
def test_every_send_has_its_receive(name: str, ranks: int):
    found = traffic(name, ranks, **SMALL.get(name, {}))
    if found.any:
        arriving = Counter()
        for (_, destination, _, _), count in found.sent.items():
            arriving[destination] += count
        assert found.any == arriving
    else:
        assert found.sent == found.received
    assert all(source != destination for source, destination, *_ in found.sent)


@pytest.mark.parametrize("name", MOTIFS)
def test_collectives_are_called_by_all_ranks_alike(name: str):
    found = traffic(name, 24, **SMALL.get(name, {}))
    calls = [Counter((kind, number) for kind, _, number in who.elements()) for who in found.collectives]
    assert all(own == calls[0] for own in calls)


@pytest.mark.parametrize("ranks", [1, 2, 7])
@pytest.mark.parametrize("name", sorted(set(MOTIFS) - {"pingpong", "random", "training"}))
def test_small_and_odd_numbers_of_ranks_work(name: str, ranks: int):
    found = traffic(name, ranks, **SMALL.get(name, {}))
    if not found.any:
        assert found.sent == found.received


def test_pingpong():
    found = traffic("pingpong", 8, iterations=5, bytes="1KiB")
    assert found.sent == {(0, 7, 0, 0): 5, (7, 0, 0, 0): 5}
    assert found.bytes == {0: 5 * 1024, 7: 5 * 1024}
    assert traffic("pingpong", 9, pairs="halves", iterations=1).messages == 8
    assert traffic("pingpong", 9, pairs="neighbours", iterations=1).messages == 8
    with pytest.raises(InputError, match="at least 2 ranks"):
        traffic("pingpong", 1)


def grid_messages(extents: tuple[int, ...], most: int) -> dict[int, int]:
    """Messages on a grid that is not periodic, by the number of axes along which the neighbours differ."""
    found: dict[int, int] = Counter()
    for offset in itertools.product((-1, 0, 1), repeat=len(extents)):
        distance = sum(map(abs, offset))
        if 0 < distance <= most:
            found[distance] += math.prod(
                extent - abs(step) for extent, step in zip(extents, offset, strict=True)
            )
    return found


@pytest.mark.parametrize("order", ["together", "axes"])
def test_halo3d_with_7_points(order: str):
    found = traffic("halo3d", 24, x=4, y=3, z=2, iterations=5, order=order)
    faces = 2 * (3 * 3 * 2 + 4 * 2 * 2 + 4 * 3 * 1)
    assert found.messages == 5 * faces == 5 * grid_messages((4, 3, 2), 1)[1]
    assert found.bytes.total() == 5 * faces * 32768
    assert all(who == {("allreduce", 8, 0): 5} for who in found.collectives)
    assert found.compute == [5 * 100 * 10**9] * 24


def test_halo3d_with_26_neighbours():
    found = traffic(
        "halo3d", 60, x=5, y=4, z=3, points="26", iterations=2, face="1000B", edge="100B", corner="1B"
    )
    expected = grid_messages((5, 4, 3), 3)
    assert found.messages == 2 * sum(expected.values())
    assert found.bytes.total() == 2 * (1000 * expected[1] + 100 * expected[2] + expected[3])


def test_a_periodic_halo_has_all_neighbours():
    found = traffic("halo3d", 64, periodic=True, points="26", iterations=1)
    assert found.messages == 64 * 26
    assert traffic("halo2d", 16, periodic=True, points="9", iterations=1).messages == 16 * 8
    assert traffic("halo2d", 16, iterations=3).messages == 3 * 2 * (3 * 4 + 4 * 3)


def test_sweep3d():
    found = traffic("sweep3d", 12, x=4, y=3, blocks=10, iterations=2, face_x="100B", face_y="200B")
    across_x, across_y = 3 * 3, 4 * 2
    assert found.messages == 2 * 8 * 10 * (across_x + across_y)
    assert found.bytes.total() == 2 * 8 * 10 * (100 * across_x + 200 * across_y)
    assert found.compute == [2 * 8 * 10 * 20 * 10**9] * 12


def test_snap():
    found = traffic("snap", 16, nx=1000, chunk=100, groups=8, angles=10, iterations=1)
    edges = 2 * 4 * 3
    assert found.messages == 8 * 8 * 10 * edges
    assert found.bytes.total() == found.messages * 100 * 10 * 4 * 8
    assert found.compute == [8 * 8 * 1000 * 10 * 16 * 5 * 10**6] * 16
    assert all(who == {("allreduce", 64, 0): 1} for who in found.collectives)


def test_fft2d_moves_the_matrix_twice_and_takes_n_log_n():
    for ranks in (4, 64):
        found = traffic("fft2d", ranks)
        block = 32768 * 16 // ranks
        assert all(who == {("alltoall", block, 0): 2} for who in found.collectives)
        levels = math.log2(math.sqrt(32768 * ranks))
        assert found.compute[0] == pytest.approx(2 * 32768 * levels * 5 * 10**6, rel=1e-9)


def test_fft3d_moves_its_box_four_times():
    found = traffic("fft3d", 64, points=256)
    for who in found.collectives:
        assert sum(count for (kind, _, _), count in who.items() if kind == "alltoall") == 4
        assert who["barrier", 0, 0] == 2
    # Half of the spectrum and one plane; rounding up to whole pencils adds at most one in each share.
    moved = sum(8 * size * count for who in found.collectives for (kind, size, _), count in who.items())
    assert 4 * 129 * 256 * 256 * 16 <= moved <= 4 * 136 * 256 * 256 * 16
    assert found.compute == [7 * 256 * 256 * 256 // 64 * 10**6] * 64


def test_hpcg_exchanges_eleven_times_an_iteration():
    found = traffic("hpcg", 60, iterations=3, nx=16, ny=16, nz=16)
    kinds = grid_messages((5, 4, 3), 3)
    assert found.messages == 3 * 11 * sum(kinds.values())

    def halo(side: int) -> int:
        return 8 * (kinds[1] * side * side + kinds[2] * side + kinds[3])

    # Level 0: two smoothings, a product of the multigrid and one of the solver; the last level: one smoothing.
    assert found.bytes.total() == 3 * (4 * halo(16) + 3 * halo(8) + 3 * halo(4) + halo(2))
    assert all(who == {("allreduce", 8, 0): 9} for who in found.collectives)
    with pytest.raises(InputError, match="cannot be halved 3 times"):
        traffic("hpcg", 8, nx=20)


def test_milc():
    found = traffic("milc", 81, iterations=2)
    assert found.messages == 2 * 2 * 16 * 81
    assert found.bytes.total() == 2 * 2 * 8 * 81 * (1 + 3) * 108 * 48


def test_caffe_reduces_and_spreads_on_a_tree():
    found = traffic("caffe", 21, layers=4, iterations=3, weights="4MB", compression=0.5, coding="4GB/s")
    assert found.messages == 3 * 4 * 2 * 20
    assert found.bytes.total() == found.messages * 500_000
    assert {(source - 1) // 2 for source, destination, *_ in found.sent if source > destination} == set(
        range(10)
    )
    coding = 3 * 4 * 1_000_000 * 10**15 // 4_000_000_000
    training = 3 * (85 + 170) * 10**12
    root, inner, leaf = found.compute[0], found.compute[1], found.compute[20]
    assert root == training + coding * (2 * 2 + 2)  # two children decoded and added; the step and encoding
    assert inner == training + coding * (2 * 2 + 1 + 1)
    assert leaf == training + coding * (1 + 1)
    assert traffic("caffe", 1).compute == [2 * (85 + 170) * 10**12]


def test_random_traffic():
    found = traffic("random", 30, messages=20)
    assert found.messages == 30 * 20
    permutation = traffic("random", 30, messages=20, traffic="permutation")
    assert set(permutation.any.values()) == {20}


def test_incast():
    found = traffic("incast", 10, iterations=2, bytes="100B", target=3)
    assert found.bytes == {rank: 200 for rank in range(10) if rank != 3}
    assert found.any == {3: 18}
    assert traffic("incast", 10, senders=4).messages == 4
    with pytest.raises(InputError, match="the target is rank 10"):
        traffic("incast", 10, target=10)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_a_training_step(schedule: str):
    tensor, pipeline, data, layers, batches = 2, 3, 4, 6, 5
    found = traffic(
        "training",
        tensor * pipeline * data,
        tensor=tensor,
        pipeline=pipeline,
        layers=layers,
        microbatches=batches,
        hidden=64,
        sequence=32,
        schedule=schedule,
    )
    activations = 32 * 64 * 2
    assert found.messages == 2 * batches * (pipeline - 1) * tensor * data
    assert found.bytes.total() == found.messages * activations
    gradients = 12 * 64 * 64 * (layers // pipeline) // tensor * 2
    for who in found.collectives:
        sizes = Counter()
        for (_, size, _), count in who.items():
            sizes[size] += count
        assert sizes == {activations: 4 * batches * layers // pipeline, gradients: 1}
    with pytest.raises(InputError, match="multiple of tensor x pipeline"):
        traffic("training", 7)


def test_stages_of_a_pipeline_alternate_as_planned():
    program: Program = compile(
        motif("training", tensor=1, pipeline=4, layers=4, microbatches=6).emit, 4, name="training"
    )
    for stage in range(4):
        order = "".join("FB"[step["tag"]] for step in program.steps(stage) if step.kind == "recv")
        filled = 3 - stage
        assert order == "F" * filled + "FB" * (6 - filled) + "B" * filled


def test_unknown_motifs_and_parameters_are_refused():
    with pytest.raises(InputError, match=r"there is no motif named 'halo4d'; did you mean 'halo3d'\?"):
        motif("halo4d")
    with pytest.raises(InputError, match=r"no such parameter; did you mean 'face'"):
        motif("halo3d", faces="1KiB")
    with pytest.raises(InputError, match="out of range"):
        motif("halo3d", iterations=0)


def test_every_motif_has_a_sentence_and_units():
    from manyscale.spec import parameters

    for name, kind in MOTIFS.items():
        assert kind.__doc__, name
        for row in parameters(kind):
            assert len(row.doc) > 2, (name, row.path)


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("name", MOTIFS)
def test_no_motif_waits_for_ever(name: str, synchronous: bool):
    program = compile(motif(name, **SMALL.get(name, {})).emit, 24, name=name)
    run = Untimed(program, synchronous)
    assert run.run() == []
    assert not any(run.messages)
    assert not any(run.receives)


@pytest.mark.parametrize("order", ["axes", "together"])
def test_halos_in_either_order_do_not_wait_for_ever(order: str):
    program = compile(motif("halo3d", order=order, iterations=2, periodic=True).emit, 27)
    assert Untimed(program, synchronous=True).run() == []
