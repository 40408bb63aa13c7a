# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search in a random graph: streams through masks, and jumps to neighbours."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.graphs import levels, random_graph
from manyscale.validation.managed_programs.session import Session, blocks

_BLOCK = 512
_SOURCE = 0


def run(session: Session, size: int) -> None:
    """`size` nodes with six edges in the mean."""
    first, edges = random_graph(size, seed=1)
    nodes = np.stack([first[:-1], np.diff(first)], axis=1)
    mask = np.zeros(size, np.uint8)
    mask[_SOURCE] = 1
    distance = np.full(size, -1, np.int32)
    distance[_SOURCE] = 0

    in_nodes, frontier, following = session.shared(nodes), session.shared(mask), session.shared(0 * mask)
    visited, in_edges, in_distance = session.shared(mask), session.shared(edges), session.shared(distance)
    found = session.own(np.zeros(1, np.uint8))
    grid = blocks(size, _BLOCK)
    while True:
        found.set(np.zeros(1, np.uint8))
        session.launch(
            "expand", grid, _BLOCK, in_nodes, in_edges, frontier, following, visited, in_distance, size
        )
        session.launch("advance", grid, _BLOCK, frontier, following, visited, found, size)
        if not found.numpy()[0]:
            break
    session.expect("the distances", in_distance.numpy(), levels(first, edges, _SOURCE))
