# SPDX-License-Identifier: Apache-2.0
"""The cheapest way down a wall: streams through it once."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_BLOCK = 256
_ROWS = 200
_ROWS_OF_LAUNCH = 10


def run(session: Session, size: int) -> None:
    """A wall of 200 rows and `size` columns."""
    wall = np.random.default_rng(9).integers(0, 10, (_ROWS, size), dtype=np.int32)
    in_wall = session.shared(wall[1:])
    before, after = session.shared(wall[0]), session.blank(size, np.int32)
    for row in range(0, _ROWS - 1, _ROWS_OF_LAUNCH):
        rows = min(_ROWS_OF_LAUNCH, _ROWS - 1 - row)
        session.launch(
            "descend", blocks(size, _BLOCK - 2 * rows), _BLOCK, in_wall, before, after, size, row, rows
        )
        before, after = after, before
    cost = wall[0]
    for row in wall[1:]:
        edged = np.pad(cost, 1, mode="edge")
        cost = row + np.minimum(np.minimum(edged[:-2], edged[2:]), cost)
    session.expect("the costs", before.numpy(), cost)
