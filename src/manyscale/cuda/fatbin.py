# SPDX-License-Identifier: Apache-2.0
"""Fat binaries: the containers in which nvcc keeps the PTX and the SASS of a program."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from manyscale import _core
from manyscale.errors import InputError
from manyscale.gpu.targets import fits

MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of the header, bytes of all entries
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _MACHINE_CODE = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000
_SPECIFIC = 0x100000  # code for sm_90a, not sm_90
_SMALLEST_ENTRY = 64
MOST_BYTES = 1 << 28
"""Limit of the unpacked size of an image; larger ones are refused."""
_MOST_ENTRIES = 4096


@dataclass(frozen=True)
class Image:
    """PTX or a cubin for one architecture, as stored in a container."""

    is_ptx: bool
    architecture: int  # 75 for sm_75 and compute_75; see `target` for sm_90a
    version: tuple[int, int]  # of the PTX language
    flags: int
    packed: bytes
    unpacked_bytes: int

    @property
    def is_specific(self) -> bool:
        """Whether it is for exactly one GPU, such as sm_90a."""
        return bool(self.flags & _SPECIFIC)

    @property
    def target(self) -> str:
        """What it was made for, such as "sm_75" or "sm_90a"."""
        return f"sm_{self.architecture}{'a' if self.is_specific else ''}"

    def unpacked(self) -> bytes:
        """The text of PTX, or the cubin."""
        if self.flags & _ZSTD:
            return _zstd(self.packed, self.unpacked_bytes)
        if self.flags & _LZ4:
            return lz4_block(self.packed, self.unpacked_bytes)
        return self.packed

    def ptx(self) -> bytes:
        """The text of PTX, without trailing zeros."""
        return self.unpacked().rstrip(b"\0")


def images(data: bytes, where: str = "the fat binary") -> list[Image]:
    """The images of one container; an error if it is none."""
    found, _ = container_at(data, 0, where)
    return found


def containers(data: bytes, where: str) -> list[list[Image]]:
    """The images of a section with several containers, by container."""
    found: list[list[Image]] = []
    at = 0
    while at + _HEADER.size <= len(data):
        if not any(data[at : at + 4]):  # alignment between containers
            at += 4
            continue
        more, at = container_at(data, at, where)
        found.append(more)
    return found


def container_at(data: bytes, at: int, where: str) -> tuple[list[Image], int]:
    """The images of the container at an offset, and the offset of its end."""
    if len(data) - at < _HEADER.size:
        raise InputError(f"{where}: this is no fat binary: it has {len(data) - at} bytes")
    magic, version, header, size = _HEADER.unpack_from(data, at)
    if magic != MAGIC:
        raise InputError(
            f"{where}: this is no fat binary: it begins with {magic:#010x} instead of {MAGIC:#010x}"
        )
    if version != 1 or header < _HEADER.size or at + header > len(data):
        raise InputError(f"{where}: this fat binary is of version {version}, and only version 1 is known")
    begin, end = at + header, at + header + size
    if end > len(data):
        raise InputError(f"{where}: the fat binary is cut off: it should have {size} bytes of entries")
    return list(_entries(data, begin, end, where)), end


def _entries(data: bytes, at: int, end: int, where: str) -> Iterator[Image]:
    count = 0
    while at < end:
        count += 1
        if end - at < _SMALLEST_ENTRY or count > _MOST_ENTRIES:
            raise InputError(f"{where}: the entries of the fat binary do not fit into it")
        kind, _, header, size, compressed, _, minor, major, architecture, _, _, flags, _, unpacked = (
            _ENTRY.unpack_from(data, at)
        )
        if header < _SMALLEST_ENTRY or header + size > end - at or compressed > size:
            raise InputError(f"{where}: entry {count} of the fat binary has impossible sizes")
        if flags & (_LZ4 | _ZSTD):
            packed = data[at + header : at + header + (compressed or size)]
        else:
            packed, unpacked = data[at + header : at + header + size], size
        if unpacked > MOST_BYTES:
            raise InputError(f"{where}: entry {count} of the fat binary claims {unpacked} bytes, too many")
        if kind in (_PTX, _MACHINE_CODE):
            yield Image(kind == _PTX, architecture, (major, minor), flags, packed, unpacked)
        at += header + size


def _zstd(data: bytes, size: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            text = reader.read(size + 1)  # a hostile frame could unpack to more than its header states
    except zstandard.ZstdError as error:
        raise InputError(f"an image of the fat binary cannot be unpacked: {error}") from None
    if len(text) != size:
        raise InputError(f"an image of the fat binary has {len(text)} bytes instead of {size}")
    return bytes(text)


def lz4_block(data: bytes, size: int) -> bytes:
    """Unpacks a block of LZ4."""
    try:
        return _core.unpack_lz4(bytes(data), size)
    except _core.Lz4Error as error:
        raise InputError(f"an image of the fat binary cannot be unpacked: {error}") from None


def best_cubin(found: Sequence[Image], capability: int) -> Image | None:
    """The cubin that a GPU of this compute capability (75 for 7.5) can run; None if there is none.

    It is for the same generation, and not for a newer GPU.
    """
    fitting = [image for image in found if not image.is_ptx and fits("SASS", image.target, capability)]
    return max(fitting, key=_preference, default=None)


def best_ptx(found: Sequence[Image], capability: int, allow_newer: bool = False) -> Image | None:
    """The PTX that a GPU of this compute capability (70 for 7.0) runs best; None if there is none.

    That is the newest it supports. If all are for newer GPUs, it is the oldest, if that is allowed.
    """
    texts = [image for image in found if image.is_ptx]
    fitting = [image for image in texts if fits("PTX", image.target, capability)]
    if fitting or not allow_newer:
        return max(fitting, key=_preference, default=None)
    return min(texts, key=_preference, default=None)


def _preference(image: Image) -> tuple[int, bool]:
    return image.architecture, image.is_specific
