# SPDX-License-Identifier: Apache-2.0
"""Temperatures of a chip: four launches of two steps each, over three arrays."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session, blocks

_TILE = 16
_STEPS_OF_LAUNCH = 2
_STEPS = 8
_PER_POWER, _PER_NEIGHBOUR, _PER_AMBIENT, _AMBIENT = (np.float32(x) for x in (0.5, 0.1, 0.01, 80))


def run(session: Session, size: int) -> None:
    """A chip of `size` x `size` cells."""
    random = np.random.default_rng(3)
    temperature = (random.random((size, size), np.float32) * 20 + 323).astype(np.float32)
    power = random.random((size, size), np.float32) * np.float32(0.01)
    before, after = session.shared(temperature), session.blank(temperature.shape, np.float32)
    heating = session.shared(power)
    tiles = blocks(size, _TILE - 2 * _STEPS_OF_LAUNCH)
    constants = [float(x) for x in (_PER_POWER, _PER_NEIGHBOUR, _PER_AMBIENT, _AMBIENT)]
    for _ in range(_STEPS // _STEPS_OF_LAUNCH):
        session.launch(
            "heat",
            (tiles, tiles),
            (_TILE, _TILE),
            heating,
            before,
            after,
            size,
            _STEPS_OF_LAUNCH,
            *constants,
        )
        before, after = after, before
    for _ in range(_STEPS):
        edged = np.pad(temperature, 1, mode="edge")
        around = edged[:-2, 1:-1] + edged[2:, 1:-1] + edged[1:-1, :-2] + edged[1:-1, 2:]
        temperature = (
            temperature
            + _PER_POWER * power
            + _PER_NEIGHBOUR * (around - 4 * temperature)
            + _PER_AMBIENT * (_AMBIENT - temperature)
        )
    session.expect("the temperatures", before.numpy(), temperature, 1e-5)
