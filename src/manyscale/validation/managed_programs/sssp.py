# SPDX-License-Identifier: Apache-2.0
"""Shortest paths in a random graph with weights: fifteen rounds that stream and jump."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_BLOCK = 16
_DEGREE = 2
_ROUNDS = 15


def run(session: Session, size: int) -> None:
    """`size` vertices with two edges each."""
    random = np.random.default_rng(11)
    first = np.arange(size, dtype=np.int32) * _DEGREE
    edges = random.integers(0, size, size * _DEGREE, dtype=np.int32)
    weights = (random.integers(0, 1000, size * _DEGREE) / 1000).astype(np.float32)
    on_first, on_edges, on_weights = session.shared(first), session.shared(edges), session.shared(weights)
    distance, found = (session.blank(size, np.float32) for _ in range(2))
    active = session.own(np.zeros(size, np.uint8))
    grid = blocks(size, _BLOCK)
    session.launch("prepare", grid, _BLOCK, active, distance, found, 0, size)
    for _ in range(_ROUNDS):
        session.launch(
            "relax",
            grid,
            _BLOCK,
            on_first,
            on_edges,
            on_weights,
            active,
            distance,
            found,
            size,
            edges.size,
        )
        session.launch("commit", grid, _BLOCK, active, distance, found, size)

    expected = np.full(size, np.finfo(np.float32).max, np.float32)
    expected[0] = 0
    origins = np.repeat(np.arange(size), _DEGREE)
    for _ in range(_ROUNDS):
        known = expected[origins] < np.finfo(np.float32).max
        best = expected.copy()
        np.minimum.at(best, edges[known], expected[origins[known]] + weights[known])
        expected = best
    session.expect("the distances", distance.numpy(), expected)
