# SPDX-License-Identifier: Apache-2.0
"""Random graphs as lists of edges, and searches in them with numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]


def random_graph(nodes: int, seed: int) -> tuple[Integers, Integers]:
    """Where the edges of each node begin (one more entry than nodes), and where edges lead; each goes both ways.

    As Rodinia's generator does it: one node after the other draws two to four others, so that a node has six edges in
    the mean, in the order in which they were drawn.
    """
    random = np.random.default_rng(seed)
    drawing = np.repeat(np.arange(nodes, dtype=np.int32), random.integers(2, 5, nodes))
    drawn = random.integers(0, nodes, drawing.size, dtype=np.int32)
    origins, targets = np.stack([drawing, drawn], axis=1).ravel(), np.stack([drawn, drawing], axis=1).ravel()
    order = np.argsort(origins, kind="stable")
    first = np.searchsorted(origins[order], np.arange(nodes + 1)).astype(np.int32)
    return first, targets[order]


def levels(first: Integers, edges: Integers, source: int) -> Integers:
    """The number of edges on the shortest way to each node; -1 if there is none."""
    origins = np.repeat(np.arange(first.size - 1, dtype=np.int32), np.diff(first))
    distance = np.full(first.size - 1, -1, np.int32)
    distance[source] = 0
    level = 0
    while True:
        reached = edges[distance[origins] == level]
        found = reached[distance[reached] < 0]
        if not found.size:
            return distance
        level += 1
        distance[found] = level
