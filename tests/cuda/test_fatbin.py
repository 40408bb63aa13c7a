# SPDX-License-Identifier: Apache-2.0
"""Fat binaries: what is found in them, which PTX is chosen, and that broken ones give errors, not crashes."""

from __future__ import annotations

import random
import struct

import pytest
import zstandard
from wire_client import container

from manyscale.cuda.fatbin import Image, best_ptx, containers, images, lz4_block
from manyscale.errors import InputError

TEXT = b".version 7.0\n.target sm_70\n" + b"// the same words again and again\n" * 20
ZSTD, LZ4 = 0x8000, 0x2000


def entry(
    payload: bytes, *, kind: int = 1, architecture: int = 75, flags: int = 0x11, unpacked: int = 0
) -> bytes:
    """An entry as CUDA 11 to 13 write it: 64 bytes of header, then the payload, padded to 8 bytes."""
    padded = payload + b"\0" * (-len(payload) % 8)
    compressed = len(payload) if flags & (ZSTD | LZ4) else 0
    fields = (kind, 0x101, 64, len(padded), compressed, 0, 0, 9, architecture, 0, 0, flags, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + padded


def wrapped(*entries: bytes) -> bytes:
    data = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(data)) + data


def lz4(data: bytes) -> bytes:
    """A block of LZ4 with one run of literals, a long copy of it, and the last bytes as literals."""
    unit = data[:34]
    copies = len(data) - len(unit) - 5

    def length(value: int) -> bytes:
        rest = value - 15
        return b"" if rest < 0 else b"\xff" * (rest // 255) + bytes([rest % 255])

    token = min(len(unit), 15) << 4 | min(copies - 4, 15)
    block = bytes([token]) + length(len(unit)) + unit + struct.pack("<H", len(unit)) + length(copies - 4)
    return block + bytes([5 << 4]) + data[-5:]


def test_plain_ptx_is_found_without_its_padding() -> None:
    (found,) = images(wrapped(entry(TEXT)))
    assert found.is_ptx
    assert found.architecture == 75
    assert found.version == (9, 0)
    assert found.ptx() == TEXT


def test_ptx_packed_by_zstd_is_unpacked() -> None:
    packed = zstandard.ZstdCompressor().compress(TEXT)
    (found,) = images(wrapped(entry(packed, flags=0x11 | ZSTD, unpacked=len(TEXT))))
    assert found.ptx() == TEXT


def test_ptx_packed_by_lz4_is_unpacked() -> None:
    text = (b"abcdefghijklmnopqrstuvwxyz01234567" * 40)[:1300]
    (found,) = images(wrapped(entry(lz4(text), flags=0x11 | LZ4, unpacked=len(text))))
    assert found.ptx() == text


def test_a_copy_that_overlaps_itself_repeats() -> None:
    assert lz4_block(bytes([1 << 4 | 15]) + b"a" + struct.pack("<H", 1) + bytes([6]), 26) == b"a" * 26


def test_a_section_has_several_containers_with_gaps() -> None:
    section = (
        wrapped(entry(TEXT, architecture=70)) + b"\0" * 12 + wrapped() + wrapped(entry(TEXT, architecture=80))
    )
    found = containers(section, "x")
    assert [[image.architecture for image in part] for part in found] == [[70], [], [80]]


@pytest.mark.parametrize(
    ("architectures", "capability", "chosen"),
    [((60, 70, 80), 70, 70), ((60, 70, 80), 75, 70), ((75, 90), 70, None), ((90, 75), 100, 90)],
)
def test_the_newest_ptx_that_the_gpu_knows_is_chosen(
    architectures: tuple[int, ...], capability: int, chosen: int | None
) -> None:
    found = images(container(*((TEXT, architecture) for architecture in architectures)))
    best = best_ptx(found, capability)
    assert (None if best is None else best.architecture) == chosen


def test_where_newer_ptx_is_allowed_the_oldest_of_it_is_chosen() -> None:
    best = best_ptx(images(container((TEXT, 90), (TEXT, 75))), 70, allow_newer=True)
    assert best is not None
    assert best.architecture == 75


def test_code_for_exactly_one_gpu_is_distinguished_from_other_code() -> None:
    (specific,) = images(wrapped(entry(TEXT, architecture=90, flags=0x100011)))
    assert specific.target == "sm_90a"
    assert best_ptx([specific], 90) is specific
    assert best_ptx([specific], 100) is None


def test_sass_is_never_chosen() -> None:
    assert best_ptx(images(container((b"\x7fELF", 70), kind=2)), 70) is None


def test_what_unpacks_to_more_than_its_header_states_is_refused() -> None:
    packed = zstandard.ZstdCompressor().compress(b"x" * 10_000_000)
    found = Image(True, 70, (7, 0), ZSTD, packed, 100)
    with pytest.raises(InputError, match="101 bytes instead of 100"):
        found.unpacked()


def test_an_entry_that_claims_too_much_is_refused() -> None:
    with pytest.raises(InputError, match="too many"):
        images(wrapped(entry(b"abc", flags=0x11 | ZSTD, unpacked=1 << 60)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no fat binary"),
        (b"\x7fELF" + bytes(60), "begins with"),
        (struct.pack("<IHHQ", 0xBA55ED50, 7, 16, 0), "version 7"),
        (struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1000), "cut off"),
        (wrapped(b"\1" * 40), "do not fit"),
        (wrapped(entry(b"abc")[:12] + b"\xff" * 8 + entry(b"abc")[20:]), "impossible sizes"),
    ],
)
def test_broken_containers_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        images(data)


def test_random_damage_gives_errors_only() -> None:
    packed = zstandard.ZstdCompressor().compress(TEXT)
    text = (b"abcdefghijklmnopqrstuvwxyz01234567" * 40)[:1300]
    good = wrapped(
        entry(packed, flags=0x11 | ZSTD, unpacked=len(TEXT)),
        entry(lz4(text), flags=0x11 | LZ4, unpacked=len(text)),
        entry(TEXT),
    )
    chance = random.Random(7)
    for _ in range(3000):
        damaged = bytearray(good[: chance.choice((len(good), chance.randrange(len(good))))])
        for _ in range(chance.randrange(4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            for image in images(bytes(damaged)):
                image.unpacked()
        except InputError:
            pass
