# SPDX-License-Identifier: Apache-2.0
"""Damage to binary files behind their lengths, tables, packing and checksums, which are made right again.

What is damaged at random mostly fails the first check. These take a file apart, damage one part of it, and put it
together as its writer would.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable

import numpy as np
import zstandard

from fuzz import mutations
from manyscale.cpu import trace_file
from manyscale.cuda import fatbin

INTEGERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 4095, 4096)
BITS = (7, 8, 15, 16, 24, 31, 32, 40, 47, 48, 63, 64)


def integer(source: random.Random, old: int, related: tuple[int, ...] = ()) -> int:
    """A number that readers may not expect where `old` stands; `related` are sizes and counts of the file."""
    what = source.randrange(5)
    if what == 0:
        return source.choice(INTEGERS)
    if what == 1:
        return (1 << source.choice(BITS)) - source.choice((0, 1, 1, 2, 8))
    if what == 2:
        return old + source.choice((-16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 4096))
    if what == 3 and related:
        return source.choice(related) + source.choice((-8, -1, 0, 0, 1, 8))
    return -source.choice(INTEGERS)


def put_integer(content: bytearray, at: int, size: int, source: random.Random) -> None:
    """Another little-endian number at an offset."""
    old = int.from_bytes(content[at : at + size], "little")
    new = integer(source, old, (len(content), len(content) - at))
    content[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")


def of_fields(content: bytes, source: random.Random) -> bytes:
    """Aligned numbers that become others; the length stays."""
    changed = bytearray(content)
    for _ in range(source.randint(1, 3)):
        size = source.choice((1, 1, 2, 4, 8))
        if len(changed) >= size:
            put_integer(changed, source.randrange(len(changed) // size) * size, size, source)
    return bytes(changed)


def of_content(content: bytes, source: random.Random) -> bytes:
    """Fields, or any bytes."""
    return (of_fields if source.random() < 0.6 else mutations.of_bytes)(content, source)


# ELF files: RISC-V programs and cubins

_HEADER = (
    (16, 2),
    (18, 2),
    (20, 4),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
)
_PROGRAM = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8))
_SECTION = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8))


def of_elf(content: bytes, source: random.Random) -> bytes:
    """A field of a header, or the contents of a section: small sections are damaged as often as large ones."""
    if source.random() < 0.1:
        return mutations.of_bytes(content, source)
    changed = bytearray(content)
    sections = _table(content, 40, 58, 60)
    programs = _table(content, 32, 54, 56)
    for _ in range(source.randint(1, 2)):
        what = source.random()
        if what < 0.1:
            put_integer(changed, *source.choice(_HEADER), source)
        elif what < 0.25 and programs:
            at, size = source.choice(_PROGRAM)
            put_integer(changed, source.choice(programs) + at, size, source)
        elif what < 0.5 and sections:
            at, size = source.choice(_SECTION)
            put_integer(changed, source.choice(sections) + at, size, source)
        else:
            _damage_part(changed, sections, programs, source)
    return bytes(changed)


def _table(content: bytes, offset_at: int, size_at: int, count_at: int) -> list[int]:
    (begin,) = struct.unpack_from("<Q", content, offset_at)
    (size,), (count,) = (
        struct.unpack_from("<H", content, size_at),
        struct.unpack_from("<H", content, count_at),
    )
    return [at for at in range(begin, begin + size * count, size or 1) if at + 64 <= len(content)]


def _damage_part(content: bytearray, sections: list[int], programs: list[int], source: random.Random) -> None:
    # Where a section and a segment say that their contents begin, and how long they are.
    fields = [(at + 24, at + 32) for at in sections] + [(at + 8, at + 32) for at in programs]
    parts = [
        (struct.unpack_from("<Q", content, begin)[0], struct.unpack_from("<Q", content, size)[0])
        for begin, size in fields
    ]
    parts = [(begin, size) for begin, size in parts if size > 0 and begin + size <= len(content)]
    begin, size = source.choice(parts) if parts else (0, len(content))
    damaged = of_content(bytes(content[begin : begin + size]), source)[:size]
    content[begin : begin + len(damaged)] = damaged


# gem5's traces: messages behind their lengths


def of_messages(content: bytes, source: random.Random) -> bytes:
    """Messages that are missing, doubled, exchanged or damaged, behind right lengths."""
    if source.random() < 0.15:
        return mutations.of_bytes(content, source)
    magic, messages = content[:4], _messages(content)
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(messages))
        what = source.randrange(5)
        if what == 0 and len(messages) > 1:
            del messages[at]
        elif what == 1:
            messages.insert(at, source.choice(messages))
        elif what == 2:
            other = source.randrange(len(messages))
            messages[at], messages[other] = messages[other], messages[at]
        else:
            messages[at] = (_of_varints if what == 3 else of_content)(messages[at], source)
    return magic + b"".join(_varint(len(message)) + message for message in messages)


def _messages(content: bytes) -> list[bytes]:
    found, at = [], 4
    while at < len(content):
        length, at = _read_varint(content, at)
        found.append(content[at : at + length])
        at += length
    return found


def _of_varints(message: bytes, source: random.Random) -> bytes:
    """A message with another number in one of its fields; field and wire type stay."""
    at, fields = 0, []
    while at < len(message):
        begin = at
        key, at = _read_varint(message, at)
        value, after = _read_varint(message, at)
        at = after + (value if key & 7 == 2 else 0)
        if key & 7 not in (0, 2):
            return of_content(message, source)
        fields.append([begin, key, value, message[after:at]])
    chosen = source.choice(fields)
    if chosen[1] & 7 == 0:
        chosen[2] = integer(source, chosen[2], (len(message),)) % (1 << 64)
    else:
        chosen[3] = of_content(chosen[3], source)
        chosen[2] = len(chosen[3])
    return b"".join(_varint(key) + _varint(value) + rest for _, key, value, rest in fields)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


# Recorded traces


def of_trace(content: bytes, source: random.Random) -> bytes:
    """The header, a block or the index of a trace, unpacked and packed again with right checksums."""
    if source.random() < 0.1:
        return mutations.of_bytes(content, source)
    _, version, length, _ = trace_file._HEADER.unpack_from(content)
    at = trace_file._HEADER.size + length
    header = content[trace_file._HEADER.size : at]
    chunks = []
    unpacker = zstandard.ZstdDecompressor()
    while content[at : at + 4] == b"CHNK":
        _, stored, size, _ = trace_file._CHUNK.unpack_from(content, at)
        at += trace_file._CHUNK.size
        chunks.append(unpacker.decompress(content[at : at + stored], max_output_size=size))
        at += stored
    _, stored, size, _ = trace_file._INDEX.unpack_from(content, at)
    at += trace_file._INDEX.size
    packed = content[at : at + stored]
    index = packed if stored == size else unpacker.decompress(packed, max_output_size=size)
    what = source.random()
    if what < 0.1:
        header = mutations.of_json(header, source)
    elif what < 0.6 and chunks:
        number = source.randrange(len(chunks))
        chunks[number] = of_content(chunks[number], source)[: len(chunks[number])].ljust(
            len(chunks[number]), b"\0"
        )
    else:
        index = _damaged_index(index, source)
    return _packed_trace(version, header, chunks, index)


def _damaged_index(index: bytes, source: random.Random) -> bytes:
    (length,) = struct.unpack_from("<I", index)
    document, columns = json.loads(index[4 : 4 + length]), index[4 + length :]
    if source.random() < 0.3:
        document["facts"] = json.loads(mutations.of_json(json.dumps(document["facts"]).encode(), source))
    else:
        changed, at = bytearray(columns), 0
        rows = []
        for name, kind in trace_file.COLUMN_TYPES.items():
            size, count = np.dtype(kind).itemsize, document["columns"][name]
            if count and not name.startswith("chunk."):
                rows.append((at, size, count))
            at += size * count
        for _ in range(source.randint(1, 2)):
            at, size, count = source.choice(rows)
            put_integer(changed, at + size * source.randrange(count), size, source)
        columns = bytes(changed)
    text = json.dumps(document).encode()
    return struct.pack("<I", len(text)) + text + columns


def _packed_trace(version: int, header: bytes, chunks: list[bytes], index: bytes) -> bytes:
    check = zlib.crc32(header, zlib.crc32(struct.pack("<II", version, len(header))))
    out = trace_file._HEADER.pack(trace_file.MAGIC, version, len(header), check) + header
    packer = zstandard.ZstdCompressor(level=1, write_content_size=True)
    table = []
    for chunk in chunks:
        packed = packer.compress(chunk)
        sizes = (len(packed), len(chunk))
        table.append((len(out), *sizes))
        check = zlib.crc32(packed, zlib.crc32(struct.pack("<II", *sizes)))
        out += trace_file._CHUNK.pack(b"CHNK", *sizes, check) + packed
    (length,) = struct.unpack_from("<I", index)
    columns = bytearray(index)
    count = len(chunks)
    for row, (offset, stored, size) in enumerate(table):  # the first three columns
        struct.pack_into("<Q", columns, 4 + length + 8 * row, offset)
        struct.pack_into("<I", columns, 4 + length + 8 * count + 4 * row, stored)
        struct.pack_into("<I", columns, 4 + length + 12 * count + 4 * row, size)
    packed = packer.compress(bytes(columns))
    if len(columns) > 200 * len(packed):
        packed = bytes(columns)
    check = zlib.crc32(packed, zlib.crc32(struct.pack("<QQ", len(packed), len(columns))))
    end = len(out)
    out += trace_file._INDEX.pack(b"INDX", len(packed), len(columns), check) + packed
    return out + trace_file._END.pack(end, zlib.crc32(struct.pack("<Q", end)), trace_file.END_MAGIC)


# Fat binaries


def of_fatbin(content: bytes, source: random.Random) -> bytes:
    """The headers of a fat binary, or one of its images: as it is packed, or unpacked and put back in another way."""
    if source.random() < 0.3:
        return of_content(content, source)
    images = fatbin.images(content)
    chosen = source.randrange(len(images))
    entries = [_entry(image, image.packed, image.flags, image.unpacked_bytes) for image in images]
    image = images[chosen]
    packings = fatbin._LZ4 | fatbin._ZSTD
    if image.flags & packings and source.random() < 0.5:
        entries[chosen] = _entry(image, of_content(image.packed, source), image.flags, image.unpacked_bytes)
    else:
        damage: Callable[..., bytes] = mutations.of_lines if image.is_ptx else of_elf
        data = damage(image.unpacked(), source)
        if source.random() < 0.5:
            entries[chosen] = _entry(image, data, image.flags & ~packings, 0)
        else:
            packed = zstandard.ZstdCompressor(level=1).compress(data)
            entries[chosen] = _entry(image, packed, image.flags & ~packings | fatbin._ZSTD, len(data))
    body = b"".join(entries)
    return fatbin._HEADER.pack(fatbin.MAGIC, 1, fatbin._HEADER.size, len(body)) + body


def _entry(image: fatbin.Image, stored: bytes, flags: int, unpacked: int) -> bytes:
    is_packed = bool(flags & (fatbin._LZ4 | fatbin._ZSTD))
    padded = stored.ljust(-(-len(stored) // 8) * 8, b"\0")
    major, minor = image.version
    header = fatbin._ENTRY.pack(
        1 if image.is_ptx else 2, 0x101, fatbin._ENTRY.size, len(padded), len(stored) if is_packed else 0, 0,
        minor, major, image.architecture, 0, 0, flags, 0, unpacked if is_packed else 0,
    )  # fmt: skip
    return header + padded


# Journals of runs, logs of sweeps


def of_checked_lines(content: bytes, source: random.Random) -> bytes:
    """The documents of lines that begin with a checksum, mostly with the right one."""
    if source.random() < 0.2:
        return mutations.of_lines(content, source)
    lines = content.split(b"\n")[:-1]
    at = source.randrange(len(lines))
    text = mutations.of_json(lines[at].partition(b" ")[2], source).replace(b"\n", b" ")
    lines[at] = b"%08x %s" % (zlib.crc32(text), text)
    return b"\n".join(lines) + b"\n"
