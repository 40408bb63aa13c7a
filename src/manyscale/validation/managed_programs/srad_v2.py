# SPDX-License-Identifier: Apache-2.0
"""Removal of speckle from an image: four steps of two kernels over six arrays.

The public version keeps only the image in managed memory; here all six arrays are.
"""

from __future__ import annotations

import numpy as np

from manyscale.validation.managed_programs.session import Session

_TILE = 16
_STEPS = 4
_RATE = np.float32(0.5)
_REGION = 128  # rows and columns in which the speckle is measured


def run(session: Session, size: int) -> None:
    """An image of `size` x `size` points, a multiple of 16."""
    image = np.exp(np.random.default_rng(7).random((size, size), np.float32))
    on_image = session.shared(image)
    differences = [session.blank(image.shape, np.float32) for _ in range(4)]
    flow = session.blank(image.shape, np.float32)
    grid, block = (size // _TILE, size // _TILE), (_TILE, _TILE)
    for _ in range(_STEPS):
        region = image[:_REGION, :_REGION].astype(np.float64)
        variation = np.float32(region.var() / region.mean() ** 2)
        session.launch(
            "coefficients", grid, block, on_image, *differences, flow, size, size, float(variation)
        )
        session.launch("diffuse", grid, block, on_image, *differences, flow, size, size, float(_RATE))

        edged = np.pad(image, 1, mode="edge")
        n, s, w, e = (
            x - image for x in (edged[:-2, 1:-1], edged[2:, 1:-1], edged[1:-1, :-2], edged[1:-1, 2:])
        )
        gradient = (n * n + s * s + w * w + e * e) / (image * image)
        laplacian = (n + s + w + e) / image
        scale = 1 + np.float32(0.25) * laplacian
        local = (np.float32(0.5) * gradient - laplacian * laplacian / 16) / (scale * scale)
        passing = 1 / (1 + (local - variation) / (variation * (1 + variation)))
        passing = np.clip(passing, 0, 1)
        around = np.pad(passing, ((0, 1), (0, 1)), mode="edge")
        below, right = around[1:, :-1], around[:-1, 1:]
        image = image + np.float32(0.25) * _RATE * (passing * n + below * s + passing * w + right * e)
    session.expect("the image", on_image.numpy(), image, 1e-4)
