# SPDX-License-Identifier: Apache-2.0
"""The line of progress: how much of the work is done and how long it will take, where that is known."""

import io
import re

import pytest
from rich.console import Console

from manyscale import cpu, gpu, network
from manyscale.cli import progress as display
from manyscale.cli.progress import PartsProgress, SimulationProgress

KERNEL = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin()
{
 .reg .b32 %r<2>; .reg .pred %p;
 mov.u32 %r1, 0;
AGAIN:
 add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 400; @%p bra AGAIN;
 ret;
}
"""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the terminal of a patient host gets, with every update."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(display, "messages", lambda: console)
    monkeypatch.setattr(display, "_REFRESH_SECONDS", 0.0)
    return text


def test_known_work_has_a_share_and_an_estimate(shown: io.StringIO):
    done = 100  # from an earlier launch
    with SimulationProgress("saxpy") as progress:
        progress.measure("CTAs", lambda: done, 80)
        for done in range(100, 180, 20):
            progress(done * 10**6, 10 * done)
            progress._progress.refresh()
    text = shown.getvalue()
    assert "0% of 80 CTAs" in text
    assert "75% of 80 CTAs" in text
    assert "s left" in text
    assert "160ns simulated" in text


def test_unknown_work_has_a_count_and_a_rate(shown: io.StringIO):
    with SimulationProgress("heat") as progress:
        progress.measure("instructions", lambda: 12_345)
        progress._before = 0
        progress(10**9, 5)
        progress._progress.refresh()
    assert "12,345 instructions 1us simulated" in shown.getvalue()
    assert "instructions/s" in shown.getvalue()
    assert "left" not in shown.getvalue()


def test_nothing_is_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch):
    text = io.StringIO()
    monkeypatch.setattr(display, "messages", lambda: Console(file=text))
    with SimulationProgress("heat") as progress:
        progress.measure("instructions", lambda: 1, 2)
        progress(1, 1)
    assert not text.getvalue()


class Counted:
    """Remembers what a simulation says about its work."""

    def measure(self, unit, done, total=None):
        self.unit, self.done, self.total = unit, done, total

    def __call__(self, now, events):
        pass


def test_a_gpu_counts_the_ctas_that_have_ended():
    device = gpu.TimedDevice("v100", allow_newer=True)
    spin = device.load(KERNEL)["spin"]
    for launches in (1, 2):
        spin[30, 32]()
        assert device.queue.commands.ended_ctas == 30 * launches


def test_cores_count_instructions_and_a_replay_knows_how_many_there_are(tmp_path):
    program = cpu.Program(cpu.sample("elastic"), ["matrix", "2", "8"])
    counted = Counted()
    result = cpu.run(program, machine="elasticsimmate", cores=2, progress=counted)
    assert (counted.unit, counted.total) == ("instructions", None)
    assert counted.done() == result.instructions
    cpu.record(program, tmp_path / "trace", machine="elasticsimmate", cores=2)
    result = cpu.replay(tmp_path / "trace", progress=counted)
    assert counted.total == cpu.Trace(tmp_path / "trace").instructions
    assert re.fullmatch(r"\d+", str(counted.total))
    assert counted.done() == pytest.approx(counted.total, rel=0.25)


@pytest.mark.parametrize(
    ("work", "options"),
    [("halo3d", {"iterations": 5}), ("allreduce", {}), ("sweep3d", {})],
)
def test_a_job_counts_the_operations_of_its_ranks(work, options):
    counted = Counted()
    network.run(work, nodes=16, fidelity="train", progress=counted, **options)
    assert counted.unit == "MPI operations"
    assert counted.total > 0
    assert counted.done() == pytest.approx(counted.total, rel=0.05)


def test_operations_that_a_rank_leaves_out_do_not_count():
    @network.vectorised
    def uneven(mpi, rank, size):
        with mpi.loop(10):
            mpi.barrier()
        with mpi.where(rank % 2 == 0), mpi.loop(30):
            mpi.send(rank ^ 1, 8)
        with mpi.where(rank % 2 == 1), mpi.loop(10):
            mpi.waitall([mpi.irecv(rank ^ 1, 8) for _ in range(3)])

    counted = Counted()
    network.run(uneven, nodes=32, fidelity="train", progress=counted)
    assert counted.done() == 32 * 10 + 16 * 30 + 16 * 40
    assert counted.total == pytest.approx(counted.done(), rel=0.1)


def test_parts_of_a_longer_work_count_by_their_size(shown: io.StringIO):
    with SimulationProgress("hpcg") as whole:
        parts = PartsProgress(whole, "ranks", 100)
        for size in (10, 90):
            parts.size(size)
            begun = iter([0, 0, 1, 2, 3])  # the first when it begins
            parts.measure("MPI operations", begun.__next__, 4)
            for number in range(4):
                parts(10**9, number)
                whole._progress.refresh()
    shares = [int(share) for share in re.findall(r"(\d+)% of 100 ranks", shown.getvalue())]
    assert shares == sorted(shares)
    assert {0, 5, 8, 10, 32, 55, 78} <= set(shares)
