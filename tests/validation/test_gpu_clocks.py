# SPDX-License-Identifier: Apache-2.0
"""The hydrodynamics code of the clock study does what physics says, and its speed follows the clocks as it should."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale.errors import ManyscaleError
from manyscale.gpu import TimedDevice
from manyscale.validation import gpu_clocks

pytestmark = pytest.mark.core

EDGE = 4


@pytest.fixture(scope="module")
def stepped() -> gpu_clocks.Blast:
    """A small cube after its first step, in which the pressure was the same everywhere."""
    blast = gpu_clocks.Blast(TimedDevice("v100"), EDGE)
    blast.step()
    return blast


def test_forces_of_a_uniform_pressure_show_only_on_the_surface(stepped):
    inside = np.zeros((EDGE + 1,) * 3, bool)
    inside[1:-1, 1:-1, 1:-1] = True
    for axis, acceleration in enumerate(stepped.forces):
        values = acceleration.numpy() * stepped.node_masses.numpy()
        assert np.abs(values[inside.ravel()]).max() < 1e-15
        # The face at zero is held; on the one across the pressure of 0.001 acts over an area of 1.
        assert values.sum() == pytest.approx(1e-3, rel=1e-12), "xyz"[axis]


def test_volumes_of_cells_fill_what_the_surface_encloses(stepped):
    x, y, z = (axis.numpy().reshape((EDGE + 1,) * 3) for axis in stepped.positions)
    points = np.stack([x, y, z], axis=-1)
    enclosed = 0.0
    # The flux of a third of the position through each quadrilateral of the surface, from two triangles both ways.
    for axis in range(3):
        for side, outward in ((0, -1.0), (-1, 1.0)):
            face = np.take(points, side, axis=axis)
            a, b, c, d = face[:-1, :-1], face[:-1, 1:], face[1:, 1:], face[1:, :-1]
            flux = sum(
                (np.cross(q - p, r - p) / 2 * (p + q + r) / 3).sum()
                for p, q, r in ((a, b, c), (a, c, d), (a, b, d), (b, c, d))
            )
            # What is left of the array's axes (z, y, x) is a right-handed pair about z and x: (x, y) and (y, z) turned.
            enclosed += outward * flux / 2 / 3 * (-1 if axis == 1 else 1)
    assert stepped.volumes.numpy().sum() == pytest.approx(enclosed, rel=1e-9)


def test_the_blast_spreads_from_its_corner(stepped):
    stepped.step()
    speed = np.sqrt(sum(axis.numpy() ** 2 for axis in stepped.velocities))
    corner = np.zeros((EDGE + 1,) * 3, bool)
    corner[:2, :2, :2] = True
    assert speed[corner.ravel()].max() > 100 * speed[~corner.ravel()].max()
    assert stepped.energies.numpy()[0] < 10
    assert all(axis.numpy().min() >= 0 for axis in stepped.positions)


def test_forces_that_do_not_cancel_are_an_error(monkeypatch):
    monkeypatch.setattr(gpu_clocks, "_CONSERVED", -1.0)
    with pytest.raises(ManyscaleError, match="do not cancel"):
        gpu_clocks.Blast(TimedDevice("v100"), 2).step()


def test_a_cell_inside_out_is_an_error():
    blast = gpu_clocks.Blast(TimedDevice("v100"), 2)
    blast.positions[0].set(1 - blast.positions[0].numpy())
    with pytest.raises(ManyscaleError, match="inside out"):
        blast.step()


def test_faster_sms_help_and_faster_memory_hardly():
    slow, usual, fast = (gpu_clocks.step_seconds("v100", clock, 877, 6) for clock in gpu_clocks.SM_CLOCKS)
    fast_memory = gpu_clocks.step_seconds("v100", 500, 1600, 6)
    assert 2 < slow / usual < 1312 / 500
    assert 1.2 < usual / fast < 1800 / 1312
    assert 0.99 < slow / fast_memory < 1.05
