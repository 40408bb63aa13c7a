# SPDX-License-Identifier: Apache-2.0
"""One training step of a neural network: streams through its weights, twice."""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session

_UNITS = 16
_RATE = _MOMENTUM = np.float32(0.3)


def run(session: Session, size: int) -> None:
    """`size` inputs, a multiple of 16."""
    random = np.random.default_rng(7)
    inputs = random.random(size + 1, np.float32)
    inputs[0] = 1
    weights = random.random((size + 1, _UNITS + 1), np.float32)
    moves = np.zeros_like(weights)
    in_inputs, first_weights = session.shared(inputs), session.shared(weights, counted=False)
    second_weights, in_moves = session.shared(weights), session.shared(moves)
    sums = session.blank((size // _UNITS, _UNITS), np.float32, counted=False)
    in_errors = session.shared(np.zeros(_UNITS + 1, np.float32))
    grid, block = (1, size // _UNITS), (_UNITS, _UNITS)

    session.launch("forward", grid, block, in_inputs, first_weights, sums)
    products = (weights[1:, 1:] * inputs[1:, None]).reshape(-1, _UNITS, _UNITS)
    expected = products.astype(np.float64).sum(axis=1)
    session.expect("the sums of the hidden layer", sums.numpy(), expected, 1e-5)

    hidden = 1 / (1 + np.exp(-(expected.sum(axis=0) + weights[0, 1:]) / size))
    errors = np.concatenate([[0], hidden * (1 - hidden)]).astype(np.float32)
    in_errors.set(errors)
    session.launch("adjust", grid, block, in_errors, in_inputs, second_weights, in_moves)
    move = _RATE * errors[None, 1:] * inputs[:, None]
    session.expect("the moves of weights", in_moves.numpy()[:, 1:], move, 1e-5)
    session.expect("the weights", second_weights.numpy()[:, 1:], weights[:, 1:] + move, 1e-5)
