# SPDX-License-Identifier: Apache-2.0
"""The file of a trace: what was written can be read from anywhere; damage is reported with its offset."""

import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import trace_samples
import zstandard

from manyscale import cpu
from manyscale.cpu import trace_file
from manyscale.cpu.trace_file import COLUMN_TYPES, TraceReader, TraceWriter
from manyscale.errors import InputError

pytestmark = pytest.mark.core


def small_trace(folder, name="small.trace"):
    """Three threads with blocks of few nodes."""
    streams = [
        trace_samples.loads(250, thread=0),
        trace_samples.loads(120, 8, 1),
        trace_samples.loads(5, 4096, 2),
    ]
    return trace_samples.write(folder / name, streams)


def random_blocks(path, count=400, streams=5):
    """A file of random blocks in random order of streams; what was written."""
    source = random.Random(7)
    writer = TraceWriter(path, {"any": "thing"})
    written, numbers = {}, [0] * streams
    for _ in range(count):
        stream = source.randrange(streams)
        content = source.randbytes(source.randrange(1, 9000)) + b"a" * source.randrange(9000)
        writer.add(stream, numbers[stream], 3, 4, content)
        written[stream, numbers[stream]] = content
        numbers[stream] += 1
    columns = {name: [0] * streams if name.startswith("stream.") else [] for name in COLUMN_TYPES}
    writer.finish({"some": ["facts"]}, columns)
    return written


def test_every_block_comes_back_in_any_order(tmp_path):
    written = random_blocks(tmp_path / "a.trace")
    reader = TraceReader(tmp_path / "a.trace")
    assert reader.header == {"any": "thing"}
    assert reader.facts == {"some": ["facts"]}
    keys = list(written)
    random.Random(1).shuffle(keys)
    for stream, number in keys:
        assert reader.block(stream, number) == written[stream, number]
    assert sum(len(reader.blocks(stream)) for stream in range(5)) == len(written)


def test_reading_one_block_unpacks_one_chunk(tmp_path):
    """From the middle: all other chunks may be damaged."""
    path = tmp_path / "a.trace"
    written = random_blocks(path)
    reader = TraceReader(path)
    row = len(reader.columns["block.chunk"]) // 2
    chunk = int(reader.columns["block.chunk"][row])
    key = int(reader.columns["block.stream"][row]), int(reader.columns["block.number"][row])
    content = bytearray(path.read_bytes())
    offsets = reader.columns["chunk.offset"].tolist()
    assert len(offsets) > 4
    for number, offset in enumerate(offsets):
        if number != chunk:
            content[offset + 40] ^= 0xFF
    path.write_bytes(content)
    damaged = TraceReader(path)
    assert damaged.block(*key) == written[key]
    other = next(key for key in written if damaged.block_offset(*key) != offsets[chunk])
    with pytest.raises(cpu.TraceError, match="check sum") as raised:
        damaged.block(*other)
    assert raised.value.offset == damaged.block_offset(*other)


def test_memory_is_bounded_while_writing_and_reading(tmp_path):
    """The writer holds a chunk, the reader a few: neither grows with the file."""
    path = tmp_path / "long.trace"
    writer = TraceWriter(path, {})
    block = random.Random(3).randbytes(60_000)
    for number in range(500):
        writer.add(0, number, 1, 1, block)
        assert len(writer._pending) < trace_file.CHUNK_BYTES
    writer.finish({}, {name: [0] if name.startswith("stream.") else [] for name in COLUMN_TYPES})
    reader = TraceReader(path)
    for number in range(500):
        assert reader.block(0, number) == block
    assert len(reader._kept) <= trace_file.CHUNKS_KEPT


def test_nodes_come_back(tmp_path):
    path = small_trace(tmp_path)
    with cpu.Trace(path) as trace:
        trace.check()
        assert trace.threads == 3
        assert trace.nodes == 251 + 121 + 6
        second = trace.nodes_of(0, 1)
        expected = trace_samples.nodes(trace_samples.loads(250)[100:200])
        for name, column in expected.items():
            np.testing.assert_array_equal(second[name], column, err_msg=name)


def test_a_recording_that_was_killed_is_seen_as_incomplete(tmp_path):
    path = tmp_path / "killed.trace"
    writer = TraceWriter(path, trace_samples.header())
    for number in range(20):
        writer.add(0, number, 1, 1, random.Random(number).randbytes(30_000))
    writer._file.flush()  # nothing more comes of a process that is killed
    assert not path.exists()
    left = Path(writer._file.temporary_name)
    with pytest.raises(cpu.IncompleteTraceError, match="did not come to its end") as raised:
        cpu.Trace(left)
    assert 0 < raised.value.offset <= left.stat().st_size


def test_cut_off_anywhere(tmp_path):
    content = small_trace(tmp_path).read_bytes()
    path = tmp_path / "cut.trace"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(cpu.TraceError) as raised:
            cpu.Trace(path)
        assert 0 <= raised.value.offset <= length
        assert str(path) in str(raised.value)


def test_a_bit_turned_anywhere(tmp_path):
    content = small_trace(tmp_path).read_bytes()
    path = tmp_path / "turned.trace"
    source = random.Random(11)
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << source.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(cpu.TraceError) as raised, cpu.Trace(path) as trace:
            trace.check()
        assert 0 <= raised.value.offset <= len(content), at


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "does not begin"),
        (b"\x7fELF" + bytes(100), "does not begin"),
        (trace_file.MAGIC[:5], "ends within its header"),
        (struct.pack("<8sIII", trace_file.MAGIC, 9, 2, 0) + b"{}", "version 9"),
        (struct.pack("<8sIII", trace_file.MAGIC, 1, 1 << 31, 0), "too many"),
    ],
)
def test_foreign_files(tmp_path, content, what):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(cpu.TraceError, match=what):
        cpu.Trace(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        cpu.Trace(tmp_path / "none")


def forged(path, facts=None, header=None, **columns):
    """A whole file whose check sums are right, but not what it says: some columns or facts are others."""
    writer = TraceWriter(path, trace_samples.header() if header is None else header)
    rows = trace_samples.loads(3)
    writer.add(0, 0, len(rows), len(rows), trace_samples.block(trace_samples.nodes(rows)))
    whole = {name: [0] if name.startswith("stream.") else [] for name in COLUMN_TYPES}
    whole["stream.region"] = [2**32 - 1]
    whole["stream.nodes"] = [len(rows)]
    given = {name.replace("__", "."): values for name, values in columns.items()}
    if "blocks" in given:
        writer._blocks = given.pop("blocks")
    if "chunks" in given:
        writer._chunks, writer._pending, writer._close_chunk = given.pop("chunks"), b"x", lambda: None
    writer.finish(trace_samples.facts() if facts is None else facts, whole | given)
    return path


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"stream__region": [7]}, "unknown region"),
        ({"stream__is_task": [1]}, "no thread"),
        ({"stream__dependences": [5]}, "dependences"),
        (
            {"dependence__address": [1], "dependence__kind": [9], "stream__dependences": [1]},
            "kind of dependence",
        ),
        (
            {"team__region": [0], "team__master": [0], "team__process": [0], "team__threads": [1]},
            "unknown region|region",
        ),
        ({"shared__begin": [5], "shared__end": [5]}, "shared range"),
        ({"stream__subject": [0, 1]}, "as many rows"),
        ({"blocks": [(0, 0, 4, 4, 0, 0, 2**31)]}, "longer than its chunk"),
        ({"blocks": [(0, 0, 4, 4, 5, 0, 1)]}, "not there"),
        ({"blocks": [(3, 0, 4, 4, 0, 0, 1)]}, "not there"),
        ({"blocks": [(0, 1, 4, 4, 0, 0, 1)]}, "order"),
        ({"chunks": [(2**40, 5, 5)]}, "where it cannot be"),
        ({"facts": {}}, "nothing usable"),
        ({"facts": {"statistics": "?"}}, "nothing usable"),
        ({"header": {}}, "nothing usable"),
        ({"header": trace_samples.header(cores=10**9)}, "cores"),
        ({"blocks": [(0, 0, 9, 4, 0, 0, 30)]}, "block 0 of stream 0"),
        ({"stream__nodes": [77]}, "miscounts"),
    ],
)
def test_files_that_lie_with_right_check_sums(tmp_path, changes, what):
    path = forged(tmp_path / "forged.trace", **changes)
    with pytest.raises(cpu.TraceError, match=what), cpu.Trace(path) as trace:
        trace.check()


def test_a_chunk_that_would_unpack_to_far_more_is_refused(tmp_path):
    """The size in the frame is not what the index says: nothing of that size is allocated."""
    path = forged(tmp_path / "bomb.trace")
    reader = TraceReader(path)
    offset = int(reader.columns["chunk.offset"][0])
    stored, length = int(reader.columns["chunk.stored"][0]), int(reader.columns["chunk.bytes"][0])
    reader.close()
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 30))[:stored].ljust(stored, b"\0")
    assert zstandard.frame_content_size(bomb) == 1 << 30
    check = zlib.crc32(bomb, zlib.crc32(struct.pack("<II", stored, length)))
    content = bytearray(path.read_bytes())
    content[offset : offset + 16 + stored] = struct.pack("<4sIII", b"CHNK", stored, length, check) + bomb
    path.write_bytes(content)
    with pytest.raises(cpu.TraceError, match="size"), cpu.Trace(path) as trace:
        trace.check()


def test_damaged_blocks_with_right_check_sums(tmp_path):
    """Bytes of blocks may be anything: the error names the block and its chunk, or the nodes are some nodes."""
    source = random.Random(5)
    good = trace_samples.block(trace_samples.nodes(trace_samples.loads(60)))
    refused = 0
    for _ in range(300):
        changed = bytearray(good)
        for _ in range(source.randrange(1, 4)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        del changed[source.randrange(len(changed) // 2, len(changed) + 1) :]
        path = tmp_path / "blocks.trace"
        writer = TraceWriter(path, trace_samples.header(), force=True)
        writer.add(0, 0, 61, 61, bytes(changed))
        columns = {name: [0] if name.startswith("stream.") else [] for name in COLUMN_TYPES}
        writer.finish(trace_samples.facts(), columns | {"stream.region": [2**32 - 1], "stream.nodes": [61]})
        with cpu.Trace(path) as trace:
            try:
                trace.check()
            except cpu.TraceError:
                refused += 1
    assert refused > 100


def test_writing_where_nothing_can_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        TraceWriter(tmp_path / "none" / "a.trace", {})
