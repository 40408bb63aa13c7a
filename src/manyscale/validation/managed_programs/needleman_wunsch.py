# SPDX-License-Identifier: Apache-2.0
"""Alignment of two sequences along antidiagonals: few threads, each touching pages far from those of the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyscale.validation.managed_programs.session import Session

_TILE = 16
_GAP = 10


def run(session: Session, size: int) -> None:
    """Sequences of `size` letters, a multiple of 16."""
    side = size + 1
    similarity = np.random.default_rng(7).integers(-4, 10, (side, side), dtype=np.int32)
    scores = np.zeros((side, side), np.int32)
    scores[0] = scores[:, 0] = -_GAP * np.arange(side)
    in_similarity, in_scores = session.shared(similarity), session.shared(scores)
    tiles = size // _TILE
    for diagonal in range(2 * tiles - 1):
        first = max(0, diagonal - tiles + 1)
        count = min(diagonal, tiles - 1) - first + 1
        session.launch("align", count, _TILE, in_similarity, in_scores, side, _GAP, diagonal, first)
    session.expect("the scores", in_scores.numpy(), _scores(similarity, scores))


def _scores(similarity: npt.NDArray[np.int32], scores: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The same, one antidiagonal after the other."""
    side = scores.shape[0]
    for diagonal in range(2, 2 * side - 1):
        row = np.arange(max(1, diagonal - side + 1), min(diagonal, side))
        column = diagonal - row
        both = scores[row - 1, column - 1] + similarity[row, column]
        one = np.maximum(scores[row - 1, column], scores[row, column - 1]) - _GAP
        scores[row, column] = np.maximum(both, one)
    return scores
