# SPDX-License-Identifier: Apache-2.0
"""Which simulated launch is which measured one: by number, or by name, grid and order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .values import LaunchValues


@dataclass(frozen=True)
class Pair:
    """A launch, simulated and measured."""

    simulated: LaunchValues
    measured: LaunchValues


@dataclass
class Matched:
    """Launches that were found on both sides, in the order of the program, and how many were not."""

    pairs: list[Pair] = field(default_factory=list)
    only_simulated: int = 0
    only_measured: int = 0


def match(simulated: Sequence[LaunchValues], measured: Sequence[LaunchValues]) -> Matched:
    """Pairs launches.

    Measured launches without names are the n-th of the program (their number, or their index in the file). Others
    are the n-th launch of their kernel with their grid; where the two sides have no grid in common, of their kernel.
    """
    if not all(launch.kernel for launch in measured):
        found = {
            index if launch.number is None else launch.number: launch for index, launch in enumerate(measured)
        }
        pairs = {
            index: Pair(launch, found[index]) for index, launch in enumerate(simulated) if index in found
        }
    else:
        pairs = _by_name(simulated, measured)
    matched = Matched([pairs[index] for index in sorted(pairs)])
    matched.only_simulated = len(simulated) - len(pairs)
    matched.only_measured = len(measured) - len(pairs)
    return matched


def _by_name(simulated: Sequence[LaunchValues], measured: Sequence[LaunchValues]) -> dict[int, Pair]:
    pairs: dict[int, Pair] = {}
    kernels = {launch.base for launch in simulated}
    for kernel in dict.fromkeys(launch.base for launch in measured if launch.base in kernels):
        ours = [(index, launch) for index, launch in enumerate(simulated) if launch.base == kernel]
        theirs = [launch for launch in measured if launch.base == kernel]
        common = {launch.grid for _, launch in ours} & {launch.grid for launch in theirs} - {None}
        queues: dict[Hashable, list[LaunchValues]] = defaultdict(list)
        for launch in theirs:
            queues[launch.grid if common else None].append(launch)
        for index, launch in ours:
            queue = queues[launch.grid if common else None]
            if queue:
                pairs[index] = Pair(launch, queue.pop(0))
    return pairs
