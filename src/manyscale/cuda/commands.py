# SPDX-License-Identifier: Apache-2.0
"""Copies as a program submits them, in rows and slices, and the records of launches and copies that have ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .ranges import Range

CopyKind = Literal["to_device", "to_host", "within", "fill"]


class Rows(NamedTuple):
    """The layout of a copy: rows of a slice, and slices, with pitches on both sides.

    `pitch` and `slice_pitch` are those at the address on the device, `other_…` those at the other side.
    """

    width: int
    height: int
    depth: int
    pitch: int
    slice_pitch: int
    other_pitch: int
    other_slice_pitch: int

    @property
    def bytes(self) -> int:
        return self.width * self.height * self.depth

    def extent(self) -> int:
        """Bytes from the first to the last, at the address."""
        return (self.depth - 1) * self.slice_pitch + (self.height - 1) * self.pitch + self.width

    def other_extent(self) -> int:
        """Bytes from the first to the last, at the other side."""
        return (self.depth - 1) * self.other_slice_pitch + (self.height - 1) * self.other_pitch + self.width


@dataclass(frozen=True)
class CopyJob:
    """A copy or a fill. `address` is on the device; `other` the source within it, or pinned memory of the host.

    Without `other`, what comes from the host is `data`, row after row; of a fill, `data` is the pattern.
    """

    kind: CopyKind
    address: int
    rows: Rows
    other: int = 0
    data: bytes | memoryview = b""


@dataclass(slots=True)
class LaunchRecord:
    """A kernel that has ended, as the run directory keeps it. Times are femtoseconds."""

    name: str
    device: int
    stream: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    isa: str = "ptx"  # what it ran as
    begin: int = 0
    end: int = 0
    cycles: int = 0
    warp_instructions: int = 0
    thread_instructions: int = 0
    issued_instructions: int = 0
    registers: int = 0
    occupancy: float = 0.0
    achieved_occupancy: float | None = None  # of an SM with a CTA, in the mean
    l1_hit_rate: float | None = None  # of sectors of loads; None: there were none
    l2_hit_rate: float | None = None  # of bytes, those written too; the rest came from memory
    l2_bytes: int = 0
    dram_bytes: int = 0
    wall_seconds: float = 0.0
    range: Range | None = None  # of NVTX, in which it was queued


@dataclass(slots=True)
class CopyRecord:
    """A copy or fill that has ended."""

    kind: CopyKind
    device: int
    stream: int
    bytes: int
    pageable: bool
    begin: int = 0
    end: int = 0
    l2_bytes: int = 0
    dram_bytes: int = 0
    range: Range | None = None  # of NVTX, in which it was queued
