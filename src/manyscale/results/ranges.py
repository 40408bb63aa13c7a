# SPDX-License-Identifier: Apache-2.0
"""What ranges of a program (NVTX; operators of PyTorch) cost on its GPUs, from the tables of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

RANGES_FILE = "ranges.parquet"
DEEPEST = 64  # ranges inside each other


@dataclass
class RangeSum:
    """All ranges of one name."""

    name: str
    instances: set[int] = field(default_factory=set)
    launches: int = 0  # in it, also in ranges inside it
    copies: int = 0
    nanoseconds: float = 0.0  # of these
    own_nanoseconds: float = 0.0  # of those that are in no range inside it
    kernels: dict[str, float] = field(default_factory=dict)  # nanoseconds by name

    @property
    def longest_kernel(self) -> str:
        """The kernel that took most of the time; "" without a launch."""
        return min(self.kernels, key=lambda name: (-self.kernels[name], name), default="")


class Span(NamedTuple):
    """From the begin of the first launch or copy in a range to the end of the last one."""

    depth: int  # how many ranges are around it
    name: str
    begin_ns: float
    end_ns: float


class Ranges:
    """The ranges of a run: by name, and over the time of the GPU."""

    def __init__(
        self, ranges: pl.DataFrame, kernels: pl.DataFrame | None, copies: pl.DataFrame | None
    ) -> None:
        rows = ranges.select("range", "parent", "name").iter_rows()
        self._known: dict[int, tuple[int | None, str]] = {
            number: (parent, name) for number, parent, name in rows
        }
        self._sums: dict[str, RangeSum] = {}
        self._spans: dict[int, Span] = {}
        self.outside = 0.0  # nanoseconds of launches and copies in no range
        for table, name in ((kernels, "kernel"), (copies, "kind")):
            if table is not None and "range" in table.columns:
                for number, what, begin, end in table.select("range", name, "begin_ns", "end_ns").iter_rows():
                    self._add(number, str(what), begin, end, launch=table is kernels)

    def by_name(self) -> list[RangeSum]:
        """A sum for each name, that with most time of its own first."""
        return sorted(
            self._sums.values(), key=lambda each: (-each.own_nanoseconds, -each.launches, each.name)
        )

    def spans(self) -> list[Span]:
        """When the GPU worked for each range, in their order."""
        return [self._spans[number] for number in sorted(self._spans)]

    def path(self, number: int | None) -> tuple[str, ...]:
        """The names of the ranges around a range, the outermost first, and its own."""
        return tuple(name for _, name in reversed(self._chain(number)))

    def _add(self, number: int | None, what: str, begin: float, end: float, *, launch: bool) -> None:
        chain = self._chain(number)
        if not chain:
            self.outside += end - begin
            return
        self._sums.setdefault(chain[0][1], RangeSum(chain[0][1])).own_nanoseconds += end - begin
        seen: set[str] = set()
        for inside, (each, name) in enumerate(chain):
            total = self._sums.setdefault(name, RangeSum(name))
            total.instances.add(each)
            if name not in seen:  # a name inside itself counts once
                seen.add(name)
                total.nanoseconds += end - begin
                total.launches += launch
                total.copies += not launch
                if launch:
                    total.kernels[what] = total.kernels.get(what, 0.0) + end - begin
            known = self._spans.get(each, Span(len(chain) - 1 - inside, name, begin, end))
            self._spans[each] = known._replace(
                begin_ns=min(known.begin_ns, begin), end_ns=max(known.end_ns, end)
            )

    def _chain(self, number: int | None) -> list[tuple[int, str]]:
        """A range and those around it, the innermost first; of a damaged table, as far as it goes."""
        chain: list[tuple[int, str]] = []
        while number is not None and number in self._known and len(chain) < DEEPEST:
            parent, name = self._known[number]
            chain.append((number, name))
            number = parent
        return chain
