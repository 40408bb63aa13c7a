# SPDX-License-Identifier: Apache-2.0
"""Links over time: load and queues of an incast against their closed forms, bounded intervals, pictures."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from manyscale import InputError
from manyscale.network import JobResult, run

pytestmark = pytest.mark.core

SENDERS = 8
BUFFER = 16 * 1024  # a whole number of packets
PACKET = 1024
BYTES_PER_NS = 10.0
LINK, SWITCH = 100.0, 50.0  # latencies in nanoseconds
CHANGES = [
    "network.link.latency=100ns",
    "network.link.bandwidth=10GB/s",
    "network.switch.latency=50ns",
    f"network.switch.buffer={BUFFER}B",
    "network.packet.payload=1000B",
    "network.packet.header=24B",
    "network.mpi.eager_limit=1GiB",
    "network.mpi.send_overhead=0ns",
    "network.mpi.receive_overhead=0ns",
]
NANOSECOND = 1e-9


def incast(load: str, bytes_each: int = 40_000, fidelity: str = "packet") -> JobResult:
    """Eight nodes send to a ninth through one switch."""
    return run(
        "incast",
        nodes=SENDERS + 1,
        topology="switch",
        fidelity=fidelity,
        changes=CHANGES,
        bytes=f"{bytes_each}B",
        load=load,
    )


def of_receiver(result: JobResult) -> tuple[list[float], list[float], float]:
    """Load and queue of the link to the receiver in each interval, and its length in nanoseconds."""
    row = next(row for row, to in enumerate(result.links["to_node"]) if to and result.links["bytes"][row])
    own = result.load.filter(row=row).sort("begin")
    return own["load"].to_list(), own["queue"].to_list(), own["seconds"][0] / NANOSECOND


def test_a_saturated_link_is_loaded_fully_from_the_first_packet_to_the_last():
    load, _, length = of_receiver(incast("400ns"))
    idle = LINK + SWITCH  # until the first head can leave
    assert load[0] == pytest.approx((length - idle) / length, abs=1e-3)
    assert load[1:-1] == pytest.approx([1.0] * (len(load) - 2), abs=1e-3)
    packets = SENDERS * 40
    assert sum(load) * length == pytest.approx(packets * PACKET / BYTES_PER_NS, rel=1e-3)


def test_a_queue_grows_linearly_until_the_buffers_are_full():
    """Seven eighths of what comes must wait: (n - 1) C t. Once all n buffers B are full, the bytes in them are those
    that wait and those on their way: C 2 (link + switch) for packets to the switch and room back, and one leaving."""
    _, queue, length = of_receiver(incast("100ns"))
    assert length == pytest.approx(400)  # doubled twice to cover 33 us
    began = LINK + SWITCH
    full = began + BUFFER / BYTES_PER_NS
    # A packet counts as a whole while it waits, so half of one more for each sender, and half less as one leaves.
    whole = (SENDERS - 1) * PACKET / 2
    for interval in range(1, int(full / length)):
        middle = (interval + 0.5) * length
        assert queue[interval] == pytest.approx(
            (SENDERS - 1) * BYTES_PER_NS * (middle - began) + whole, rel=0.02
        )
    on_the_way = BYTES_PER_NS * 2 * (LINK + SWITCH) + PACKET
    steady = queue[int(full / length) + 2 : 40]
    assert len(steady) > 30
    assert steady == pytest.approx([SENDERS * BUFFER - on_the_way] * len(steady), rel=1e-3)


@pytest.mark.parametrize("fidelity", ["packet", "train", "flow"])
@pytest.mark.parametrize(("motif", "size"), [("alltoall", "64KiB"), ("alltoall", "512B"), ("incast", "700B")])
def test_no_link_carries_more_than_its_bandwidth(motif, size, fidelity):
    """A message counts in all the intervals that it occupies, also where its rate changes meanwhile. Links whose
    capacity flows share are shared out to half a percent."""
    result = run(
        motif, nodes=64, topology="fat-tree", fidelity=fidelity, changes=CHANGES, bytes=size, load="200ns"
    )
    assert 0.3 < result.load["load"].max() < 1.006
    assert result.load["bytes"].sum() == pytest.approx(result.links["bytes"].sum(), rel=1e-4)


def test_intervals_double_and_lose_nothing():
    fine, coarse = incast("100ns", 400_000), incast("100us", 400_000)
    for result in (fine, coarse):
        assert result.load["bytes"].sum() == pytest.approx(result.links["bytes"].sum(), rel=1e-4)
        intervals = result.load["begin"] / result.load["seconds"]
        assert intervals.max() < 128
    waited = [(result.load["queue"] * result.load["seconds"]).sum() for result in (fine, coarse)]
    assert waited[0] == pytest.approx(waited[1], rel=1e-4)
    mean_packet = fine.links["queueing"].sum() * PACKET  # all packets are full
    assert waited[0] == pytest.approx(mean_packet, rel=1e-4)


def test_the_same_on_two_threads_and_nothing_without_asking():
    options = {"nodes": 32, "topology": "dragonfly", "fidelity": "packet", "bytes": "16KiB"}
    tables = [run("alltoall", threads=threads, load="1us", **options).load for threads in (1, 2)]
    assert tables[0].equals(tables[1])
    assert tables[0]["queue"].max() > 0
    silent = run("alltoall", nodes=4, bytes="1KiB")
    assert silent.load.is_empty()
    with pytest.raises(InputError, match="no load was recorded"):
        silent.load_picture()


def test_the_run_directory_shows_links_over_time(tmp_path: Path):
    run("incast", nodes=9, bytes="64KiB", load="1us", out=tmp_path / "run", fidelity="packet")
    drawn = ElementTree.fromstring((tmp_path / "run" / "load.svg").read_text(encoding="utf-8"))
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert sum(" to node 0" in text for text in texts) == 2  # once for its load, once for its queue
    assert any("what waits for the link" in text for text in texts)
    assert (tmp_path / "run" / "load.parquet").exists()
