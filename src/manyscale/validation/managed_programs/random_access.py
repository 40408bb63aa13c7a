# SPDX-License-Identifier: Apache-2.0
"""Reads and writes at random addresses: one launch that touches every page, in no order."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_BLOCK = 256
_EVERY = 100


def run(session: Session, size: int) -> None:
    """Arrays of `size` elements."""
    values = np.random.default_rng(5).random(size, np.float32)
    table = np.arange(size, dtype=np.float32)
    chosen = (values[::_EVERY] * np.float32(size)).astype(np.int32)
    _, unique = np.unique(chosen, return_index=True)
    again = np.setdiff1d(np.arange(chosen.size), unique)
    # Two that chose one entry would race: the later one takes the value of the earlier.
    for index in again:
        values[index * _EVERY] = values[np.flatnonzero(chosen == chosen[index])[0] * _EVERY]
    input_, output = session.shared(values), session.blank(size, np.float32)
    session.launch("scatter", blocks(size, _BLOCK), _BLOCK, input_, output, session.shared(table), size)
    expected = np.zeros(size, np.float32)
    expected[chosen] = table[chosen] * values[::_EVERY]
    session.expect("the output", output.numpy(), expected)
