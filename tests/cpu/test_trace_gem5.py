# SPDX-License-Identifier: Apache-2.0
"""gem5's elastic traces: read and written as the format says, made of and into our own, and hostile ones refused."""

import contextlib
import gzip
import random

import numpy as np
import pytest
import trace_samples

from manyscale import cpu
from manyscale.cpu import gem5_trace
from manyscale.cpu.gem5_trace import COMPUTE, LOAD, NODE_TYPES, PACKET_TYPES, STORE, Gem5Header
from manyscale.cpu.trace import KINDS
from manyscale.errors import InputError, ManyscaleError

pytestmark = pytest.mark.core

PICOSECONDS = 1000  # ticks of a cycle at 1 GHz
ADDRESS, SIZE, FLAGS, WEIGHT, PC = 3, 4, 5, 9, 10
FIELDS = {ADDRESS: "address", SIZE: "size", FLAGS: "flags", WEIGHT: "weight", PC: "pc"}
FIELDS |= {11: "virtual_address", 12: "address_space"}


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def message(content):
    return varint(len(content)) + content


def node(seq, kind, delay=0, order=(), data=(), **fields):
    """One node as gem5 writes it; an encoder of its own, to check ours against."""
    content = number(1, seq) + number(2, kind)
    numbers = {name: field for field, name in FIELDS.items()}
    given = {numbers[name]: value for name, value in fields.items()}
    for field in (ADDRESS, SIZE, FLAGS):
        content += number(field, given[field]) if field in given else b""
    content += b"".join(number(6, each) for each in order) + number(7, delay)
    content += b"".join(number(8, each) for each in data)
    for field in (WEIGHT, PC, 11, 12):
        content += number(field, given[field]) if field in given else b""
    return message(content)


def load(seq, delay=0, address=0x1000, **more):
    return node(seq, LOAD, delay * PICOSECONDS, address=address, size=8, flags=0, **more)


def store(seq, delay=0, address=0x1000, **more):
    return node(seq, STORE, delay * PICOSECONDS, address=address, size=8, flags=0, **more)


def compute(seq, delay=1, **more):
    return node(seq, COMPUTE, delay * PICOSECONDS, **more)


def packet(tick, address, size=16, flags=256):
    content = number(1, tick) + number(2, 1) + number(3, address) + number(4, size) + number(5, flags)
    return message(content)


def node_file(path, messages, window=100):
    head = message(text(1, b"system.cpu") + number(2, 0) + number(3, 10**12) + number(4, window))
    path.write_bytes(b"gem5" + head + b"".join(messages))
    return path


def fetch_file(path, messages):
    head = message(text(1, b"system.cpu") + number(2, 0) + number(3, 10**12))
    path.write_bytes(b"gem5" + head + b"".join(messages))
    return path


def imported(tmp_path, messages, **more):
    """The nodes of the trace that becomes of these messages, and what was said of it."""
    source = node_file(tmp_path / "data", messages)
    found = gem5_trace.import_gem5([source], tmp_path / "a.trace", force=True, **more)
    with cpu.Trace(found.path) as trace:
        trace.check()
        return trace.nodes_of(0, 0), found


def joined(batches):
    batches = list(batches)
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def test_nodes_are_read(tmp_path):
    path = node_file(
        tmp_path / "data",
        [
            load(3, 2, 0xABCDE, weight=4, pc=0x400),
            compute(5, 1, data=[3]),
            store(2**40, 0, order=[3, 5], data=[5], virtual_address=2**63, address_space=7),
        ],
    )
    file = gem5_trace.NodeFile(path)
    assert file.header == Gem5Header("system.cpu", 10**12, 0, 100)
    found = joined(file.batches())
    assert found["number"].tolist() == [3, 5, 2**40]
    assert found["type"].tolist() == [LOAD, COMPUTE, STORE]
    assert found["address"].tolist() == [0xABCDE, 0, 0x1000]
    assert found["delay"].tolist() == [2000, 1000, 0]
    assert found["weight"].tolist() == [4, 0, 0]
    assert found["pc"].tolist() == [0x400, 0, 0]
    assert found["orders"].tolist() == [0, 0, 2]
    assert found["order"].tolist() == [3, 5]
    assert found["datas"].tolist() == [0, 1, 1]
    assert found["data"].tolist() == [3, 5]
    assert found["virtual_address"].tolist() == [0, 0, 2**63]
    assert found["present"].tolist() == [
        1 << ADDRESS | 1 << SIZE | 1 << FLAGS | 1 << WEIGHT | 1 << PC,
        0,
        1 << ADDRESS | 1 << SIZE | 1 << FLAGS | 1 << 11 | 1 << 12,
    ]


def test_packed_lists_and_unknown_fields_are_read(tmp_path):
    """As any reader of protocol buffers must: lists in one field, fields of later versions."""
    content = number(1, 9) + number(2, COMPUTE) + number(7, 5) + text(8, varint(1) + varint(300))
    content += text(99, b"later") + varint(50 << 3 | 5) + bytes(4) + varint(51 << 3 | 1) + bytes(8)
    found = joined(gem5_trace.NodeFile(node_file(tmp_path / "data", [message(content)])).batches())
    assert found["data"].tolist() == [1, 300]
    assert found["delay"].tolist() == [5]


def random_columns(types, count, source):
    limits = {"<u8": 2**64 - 1, "<u4": 2**32 - 1, "<u2": 0, "<u1": 0}
    return {
        name: np.array(
            [source.randrange(2 ** source.randrange(1, limits[kind].bit_length())) for _ in range(count)],
            kind,
        )
        if limits[kind]
        else np.zeros(count, kind)
        for name, kind in types.items()
    }


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_nodes_that_are_written_come_back(tmp_path, suffix):
    source = random.Random(3)
    columns = random_columns(NODE_TYPES, 5000, source)
    columns["type"] = np.array([source.randrange(1, 4) for _ in range(5000)], "<u1")
    bits = sum(1 << field for field in FIELDS)
    needed = 1 << ADDRESS | 1 << SIZE
    columns["present"] = np.array([source.randrange(2**16) & bits | needed for _ in range(5000)], "<u2")
    for field, name in FIELDS.items():
        columns[name][columns["present"] >> field & 1 == 0] = 0
    for name, total in (("orders", "order"), ("datas", "data")):
        columns[name] = np.array([source.randrange(4) for _ in range(5000)], "<u4")
        columns[total] = np.array([source.getrandbits(64) for _ in range(int(columns[name].sum()))], "<u8")
    path = tmp_path / f"data{suffix}"
    header = Gem5Header("a.b", 10**12, 1, 512)
    gem5_trace.write_nodes(path, header, [columns])
    file = gem5_trace.NodeFile(path)
    assert file.header == header
    found = joined(file.batches())
    for name in NODE_TYPES:
        np.testing.assert_array_equal(found[name], columns[name], err_msg=name)


def test_fetches_that_are_written_come_back_to_the_byte(tmp_path):
    """What is read and written again is the same file."""
    source = random.Random(4)
    packets = [packet(500 * i, 0xB40 + 16 * source.randrange(1000)) for i in range(20_000)]
    path = fetch_file(tmp_path / "inst", packets)
    file = gem5_trace.FetchFile(path)
    found = joined(file.batches())
    assert set(found) == set(PACKET_TYPES)
    assert found["tick"].tolist() == [500 * i for i in range(20_000)]
    assert set(found["flags"].tolist()) == {256}
    gem5_trace.write_fetches(tmp_path / "again.gz", file.header, file.batches())
    assert gzip.decompress((tmp_path / "again.gz").read_bytes()) == path.read_bytes()


def test_dependences_become_producers(tmp_path):
    nodes, found = imported(
        tmp_path,
        [
            load(10, 3, 0x1234),
            compute(11, 4, data=[10]),
            load(14, 2, 0x2000, weight=2, data=[11, 10]),
            store(15, 1, 0x3000, order=[14], data=[11]),
        ],
    )
    kinds = [KINDS[kind] for kind in nodes["kind"]]
    assert kinds == ["load", "integer", "load", "store", "system"]
    process = 1 << 40
    assert nodes["address"][:4].tolist() == [process + 0x1234, 0, process + 0x2000, process + 0x3000]
    assert nodes["delays"].tolist()[0] == [3, 0, 0]  # after dispatch
    assert (nodes["producers"][1].tolist(), nodes["delays"][1].tolist()) == ([1, 0, 0], [3, 0, 0])
    assert (nodes["producers"][2].tolist(), nodes["delays"][2].tolist()) == ([1, 2, 0], [2, 2, 0])
    assert (nodes["producers"][3].tolist(), nodes["delays"][3].tolist()) == ([1, 2, 0], [1, 1, 0])
    assert nodes["weight"].tolist() == [0, 0, 2, 0, 0]
    assert found.instructions == 6
    assert (found.dropped_producers, found.clipped_delays) == (0, 0)


def test_order_after_a_load_counts_from_when_it_was_sent(tmp_path):
    """gem5 lets other nodes than stores go on when the load is sent: that is after its own producers."""
    nodes, _ = imported(
        tmp_path,
        [
            compute(1, 5),
            load(2, 3, data=[1]),
            load(3, 4, order=[2]),
            store(4, 6, order=[2]),
            compute(5, 9, order=[3]),
        ],
    )
    assert (nodes["producers"][2].tolist(), nodes["delays"][2].tolist()) == ([2, 0, 0], [7, 0, 0])
    assert (nodes["producers"][3].tolist(), nodes["delays"][3].tolist()) == ([2, 0, 0], [6, 0, 0])
    assert (nodes["producers"][4].tolist(), nodes["delays"][4].tolist()) == ([4, 0, 0], [15, 0, 0])


def test_what_nodes_cannot_say_is_counted(tmp_path):
    nodes, found = imported(
        tmp_path,
        [
            *(compute(i) for i in range(1, 6)),
            compute(6, 1, data=[1, 2, 3, 4, 5]),
            load(7, 300, data=[6]),
            node(8, LOAD, 2000, address=5, size=4, flags=0x800),
            compute(9, 1, data=[777]),
            compute(10, 1, weight=600),
        ],
    )
    assert nodes["producers"][5].tolist() == [1, 2, 3]
    assert found.dropped_producers == 2
    assert nodes["delays"][6].tolist() == [255, 0, 0]
    assert found.clipped_delays == 1
    assert KINDS[nodes["kind"][7]] == "integer"  # strictly ordered: gem5 does not send it either
    assert nodes["producers"][8].tolist() == [0, 0, 0]
    assert nodes["weight"][9:12].tolist() == [255, 255, 88]
    assert found.instructions == 10 + 600


def test_fetches_say_where_instructions_lie(tmp_path):
    """Ten requests for twenty instructions: each brings two; those that gem5 left out lie there, too."""
    fetch = fetch_file(tmp_path / "inst", [packet(1000 * i, 0x100 * i) for i in range(10)])
    source = [compute(2 * i + 2, weight=1) for i in range(10)]
    nodes, found = imported(tmp_path, source, fetch=[fetch])
    lines = [(pc - (1 << 40)) >> 8 for pc in nodes["pc"].tolist()][:-1]
    assert lines == list(range(10))
    assert found.skipped_fetches == 0
    assert found.instructions == 20
    nodes, found = imported(tmp_path, [compute(20, weight=19)], fetch=[fetch])
    lines = [(pc - (1 << 40)) >> 8 for pc in nodes["pc"].tolist()][:-1]
    assert lines == list(range(10))
    assert found.instructions == 20


def test_a_chain_takes_its_delays(tmp_path):
    """2000 ALU instructions, each 7 cycles after the one before: 14,000 cycles, and a few to begin and to end."""
    chain = [compute(1, 7), *(compute(i, 7, data=[i - 1]) for i in range(2, 2001))]
    _, found = imported(tmp_path, chain)
    result = cpu.replay(found.path, machine="elasticsimmate")
    assert 14_000 <= result.cycles <= 14_000 + 500
    assert result.instructions == 2001


def test_several_cores_become_threads(tmp_path):
    files = [
        node_file(
            tmp_path / f"data{core}", [load(i, 1, 0x1000 * core + 64 * i) for i in range(1, 100 * core + 2)]
        )
        for core in range(3)
    ]
    found = gem5_trace.import_gem5(files, tmp_path / "a.trace")
    assert found.threads == 3
    result = cpu.replay(found.path, machine="elasticsimmate", changes=["cpu.cores=4"])
    assert result.instructions == 1 + 101 + 201 + 3


def test_a_trace_of_ours_survives_the_way_there_and_back(tmp_path):
    """Loads, stores, addresses, producers and weights are the same; so is the time, closely."""
    rows = []
    source = random.Random(9)
    for i in range(3000):
        kind = source.choice(["load", "store", "integer", "integer"])
        row = {"kind": kind, "pc": trace_samples.CODE + 4 * (i % 50), "weight": source.randrange(3)}
        if kind == "integer":
            row["producers"] = (min(i, source.randrange(1, 6)), 0, 0)
        else:
            row |= {"address": trace_samples.DATA + 8 * source.randrange(3000), "size": 8}
            row["producers"] = (
                (0, min(i, source.randrange(1, 20)), 0) if kind == "load" else (min(i, 2), 0, 0)
            )
        rows.append(row)
    path = trace_samples.write(
        tmp_path / "ours.trace", [[*rows, trace_samples.thread_end()]], block_nodes=1000
    )
    ((data, fetch),) = gem5_trace.export_gem5(path, tmp_path / "gem5")
    found = joined(gem5_trace.NodeFile(data).batches())
    assert len(found["number"]) == 3000
    assert found["number"][-1] == 3000 + sum(row["weight"] for row in rows)
    back = gem5_trace.import_gem5([data], tmp_path / "back.trace")
    with cpu.Trace(back.path) as trace:
        nodes = trace.nodes_of(0, 0)
    assert [KINDS[kind] for kind in nodes["kind"][:-1]] == [row["kind"] for row in rows]
    assert nodes["address"][:-1].tolist() == [row.get("address", 0) for row in rows]
    assert nodes["weight"][:-1].tolist() == [row["weight"] for row in rows]
    assert nodes["pc"][:-1].tolist() == [row["pc"] for row in rows]
    for kept, row in zip(nodes["producers"].tolist(), rows, strict=False):
        assert {each for each in row["producers"] if each} <= set(kept)
    lines = joined(gem5_trace.FetchFile(fetch).batches())["address"]
    assert set(lines.tolist()) == {row["pc"] - (1 << 40) & ~63 for row in rows}
    first, second = (cpu.replay(each, machine="elasticsimmate") for each in (path, back.path))
    assert first.instructions == second.instructions
    assert second.cycles == pytest.approx(first.cycles, rel=0.25)  # stores there come after all before them


def test_unknown_latencies_are_refused(tmp_path):
    path = trace_samples.write(tmp_path / "a.trace", [trace_samples.loads(5)])
    with pytest.raises(InputError, match="kind of instruction"):
        gem5_trace.export_gem5(path, tmp_path, latencies={"multipy": 3})


SMALL = [load(1, 2), compute(2, 1, data=[1], weight=3), store(3, 1, order=[1], data=[2], pc=0x4000)]


def test_cut_off_anywhere(tmp_path):
    whole = node_file(tmp_path / "data", SMALL).read_bytes()
    boundaries = set()
    at = 4
    while at < len(whole):
        at += 1 + whole[at]
        boundaries.add(at)
    for length in range(len(whole)):
        path = tmp_path / "cut"
        path.write_bytes(whole[:length])
        if length in boundaries:  # a whole number of messages is a shorter trace
            gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)
            continue
        with pytest.raises(cpu.TraceError) as raised:
            gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)
        assert raised.value.offset <= length
        assert (
            not (tmp_path / "a.trace").exists()
            or length in boundaries
            or (tmp_path / "a.trace").unlink() is None
        )


def test_packed_files_cut_off_anywhere(tmp_path):
    whole = gzip.compress(node_file(tmp_path / "data", SMALL).read_bytes())
    for length in range(len(whole)):
        path = tmp_path / "cut.gz"
        path.write_bytes(whole[:length])
        with pytest.raises(cpu.TraceError):
            gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)


def test_bits_turned_anywhere(tmp_path):
    """A result or an error for people: some bits only change a number."""
    data = node_file(tmp_path / "data", SMALL).read_bytes()
    fetch = fetch_file(tmp_path / "inst", [packet(1000 * i, 0x100 * i) for i in range(4)]).read_bytes()
    path, other = tmp_path / "turned", tmp_path / "other"
    refused = 0
    for content, keep, turned in ((data, fetch, "data"), (fetch, data, "fetch")):
        other.write_bytes(keep)
        for at in range(len(content)):
            for bit in (at % 8, (at + 3) % 8):
                damaged = bytearray(content)
                damaged[at] ^= 1 << bit
                path.write_bytes(damaged)
                files = ([path], [other]) if turned == "data" else ([other], [path])
                try:
                    gem5_trace.import_gem5(files[0], tmp_path / "a.trace", fetch=files[1], force=True)
                except ManyscaleError:
                    refused += 1
    assert refused > 50


def test_random_bytes(tmp_path):
    source = random.Random(6)
    path = tmp_path / "random"
    for _ in range(300):
        path.write_bytes(b"gem5" * source.randrange(2) + source.randbytes(source.randrange(200)))
        with contextlib.suppress(ManyscaleError):
            gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"gem5" + varint(2**40), "is said to have"),
        (b"gem5" + b"\xff" * 11, "64 bits"),
        (b"gem5", "before its header"),
        (b"ge", "before the word"),
        (b"gem5" + message(text(1, b"x") + number(3, 10**12)), "lacks its field 4"),
        (b"gem5" + message(text(1, b"x") + number(3, 0) + number(4, 1)), "no ticks"),
    ],
)
def test_hostile_files_are_reported_with_the_offset(tmp_path, content, what):
    path = tmp_path / "hostile"
    path.write_bytes(content)
    with pytest.raises(cpu.TraceError, match=what):
        gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (node(1, 4), "type 4"),
        (message(number(1, 1) + number(2, LOAD) + number(7, 0)), "lacks its field 3"),
        (message(number(1, 1) + number(2, COMPUTE)), "lacks its field 7"),
        (message(text(8, b"\xff")), "longer than its list"),
        (message(varint(0)), "field 0"),
        (message(varint(1 << 3 | 3)), "of a type"),
        (compute(1, weight=2**31), "stands for"),
    ],
)
def test_hostile_nodes_are_named(tmp_path, content, what):
    path = node_file(tmp_path / "data", [content])
    with pytest.raises(InputError, match=what):
        gem5_trace.import_gem5([path], tmp_path / "a.trace", force=True)
