# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges around launches and copies: what a program says it is doing while it uses a GPU.

A range is kept when a launch or a copy is queued in it. PyTorch's operators are ranges under
`torch.autograd.profiler.emit_nvtx`, which `manyscale cuda --operators` switches on.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyscale.results.ranges import DEEPEST

from .session import Request, answers
from .status import CudaError, Status
from .wire import Call

if TYPE_CHECKING:
    import polars as pl

    from .session import Session

_LEVEL = struct.Struct("<QI")
_DETAILS = re.compile(r", (seq = |op_id = |sizes = |input_op_ids = ).*", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """A range that the program has pushed, inside another one or alone."""

    number: int  # in the order of their first launch or copy, from 0
    parent: Range | None
    text: str

    @property
    def name(self) -> str:
        """Without what PyTorch adds to the name of an operator: numbers and sizes."""
        return _DETAILS.sub("", self.text)


@answers(Call.RANGES)
def enter(request: Request, levels: int) -> bytes:
    """The thread is in these ranges from now on."""
    if levels > DEEPEST:
        raise CudaError(Status.INVALID_VALUE, f"{levels} NVTX ranges inside each other")
    session, tail, at = request.session, request.tail, 0
    found: Range | None = None
    for _ in range(levels):
        if at + _LEVEL.size > len(tail):
            raise CudaError(Status.INVALID_VALUE, f"a request of RANGES ends within {levels} levels")
        instance, size = _LEVEL.unpack_from(tail, at)
        at += _LEVEL.size + size
        if at > len(tail):
            raise CudaError(Status.INVALID_VALUE, "the name of an NVTX range goes beyond its request")
        found = _known(session, instance, found, tail[at - size : at])
    if found is None:
        session.ranges.pop(session.thread, None)
    else:
        session.ranges[session.thread] = found
    return b""


def _known(session: Session, instance: int, parent: Range | None, text: bytes) -> Range:
    known = session.known_ranges.get(instance)
    if known is None:
        ranges = session.records.ranges
        known = Range(len(ranges), parent, text.decode(errors="replace"))
        session.known_ranges[instance] = known
        ranges.append(known)
    return known


def frame(ranges: Iterable[Range]) -> pl.DataFrame:
    """A row for each range."""
    import polars as pl

    rows = list(ranges)
    columns: dict[str, list[Any]] = {
        "range": [each.number for each in rows],
        "parent": [each.parent.number if each.parent else None for each in rows],
        "name": [each.name for each in rows],
        "text": [each.text for each in rows],
    }
    schema: dict[str, Any] = {"range": pl.Int64, "parent": pl.Int64, "name": pl.String, "text": pl.String}
    return pl.DataFrame(columns, schema=schema)
