# SPDX-License-Identifier: Apache-2.0
"""A scaled sum of two vectors: streams through three arrays once."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_BLOCK = 256


def run(session: Session, size: int) -> None:
    """Vectors of `size` elements."""
    x = np.arange(size, dtype=np.float32)
    y = np.full(size, 2, np.float32)
    z = session.shared(np.zeros(size, np.float32))
    session.launch("triad", blocks(size, _BLOCK), _BLOCK, session.shared(x), session.shared(y), z, 3.0, size)
    session.expect("the sum", z.numpy(), 3 * x + y)
