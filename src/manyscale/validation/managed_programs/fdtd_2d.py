# SPDX-License-Identifier: Apache-2.0
"""Fields by finite differences in time: streams through three arrays, five times."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_STEPS = 5


def run(session: Session, size: int) -> None:
    """A field of `size` x `size`."""
    row, column = np.arange(size, dtype=np.float32)[:, None], np.arange(size, dtype=np.float32)[None, :]
    ex = np.zeros((size, size + 1), np.float32)
    ex[:, :size] = (row * (column + 1) + 1) / size
    ey = np.zeros((size + 1, size), np.float32)
    ey[:size] = ((row - 1) * (column + 2) + 2) / size
    hz = (((row - 9) * (column + 4) + 3) / size).astype(np.float32)

    source = session.shared(np.arange(_STEPS, dtype=np.float32))
    on_ex, on_ey, on_hz = session.shared(ex), session.shared(ey), session.shared(hz)
    grid, block = (blocks(size, 32), blocks(size, 8)), (32, 8)
    for step in range(_STEPS):
        session.launch("sweep_ey", grid, block, on_ey, on_hz, source, step, size, size)
        session.launch("sweep_ex", grid, block, on_ex, on_hz, size, size)
        session.launch("sweep_hz", grid, block, on_ex, on_ey, on_hz, size, size)
        ey[0] = step
        ey[1:size] -= np.float32(0.5) * (hz[1:] - hz[:-1])
        ex[:, 1:size] -= np.float32(0.5) * (hz[:, 1:] - hz[:, :-1])
        hz -= np.float32(0.7) * (ex[:, 1:] - ex[:, :-1] + ey[1:] - ey[:-1])
    session.expect("the magnetic field", on_hz.numpy(), hz, 1e-5)
