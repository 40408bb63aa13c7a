# SPDX-License-Identifier: Apache-2.0
"""Arrays and textures of a device: copies, sizes, freed memory, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import InputError, gpu

pytestmark = pytest.mark.core


@pytest.fixture
def device() -> gpu.Device:
    return gpu.Device()


# Arrays


def test_arrays_go_there_and_back(device):
    for values in (
        np.arange(12.0).reshape(3, 4),
        np.arange(10)[::2],
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        np.zeros((0, 3), np.uint8),
        np.array([[1 + 2j]]),
    ):
        array = device.array(values)
        assert (array.shape, array.dtype, array.nbytes) == (values.shape, values.dtype, values.nbytes)
        np.testing.assert_array_equal(array.numpy(), values)
    assert device.array([1, 2, 3]).numpy().tolist() == [1, 2, 3]
    assert len(device.zeros((3, 2))) == 3
    assert device.zeros(2, np.int8).numpy().tolist() == [0, 0]


def test_an_array_without_dimensions(device):
    assert device.zeros(()).numpy() == 0
    assert device.array(np.float32(5)).shape == ()


def test_values_of_another_shape_do_not_fit(device):
    array = device.zeros(4)
    with pytest.raises(InputError, match=r"an array of shape \(2,\) does not fit into one of shape \(4,\)"):
        array.set([1, 2])
    array.set([1, 2, 3, 4])
    assert array.numpy().tolist() == [1, 2, 3, 4]


def test_memory_that_was_freed_is_not_read(device):
    array = device.zeros(4)
    array.free()
    array.free()
    with pytest.raises(InputError, match="the array's memory was freed"):
        array.numpy()
    with pytest.raises(InputError, match="the array's memory was freed"):
        array.set([1, 2, 3, 4])


def test_memory_comes_back_when_arrays_go(device):
    before = device.native.allocated_bytes
    array = device.zeros(1000)
    assert device.native.allocated_bytes == before + 4000
    del array
    assert device.native.allocated_bytes == before


@pytest.mark.parametrize("shape", [2**60, (2**40, 2**40)])
def test_an_array_larger_than_the_memory(device, shape):
    with pytest.raises(InputError, match=r"an array of \d+ bytes does not fit into the device's memory"):
        device.empty(shape)


@pytest.mark.parametrize("shape", [-1, (2, -3), 1.5, "a", None])
def test_shapes_that_no_array_has(device, shape):
    with pytest.raises(InputError):
        device.empty(shape)


# Textures


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(4), {}, "a texture cannot hold float64; it can hold uint8, "),
        (np.zeros((1, 1, 1, 1), np.float32), {}, "a texture has one, two or three dimensions, not 4"),
        (
            np.zeros((3, 3), np.float32),
            {"channels": 4},
            "with 4 channels the last axis of the array must have as many",
        ),
        (np.zeros((3, 3), np.float32), {"channels": 3}, "channels"),
        (np.zeros(3, np.float32), {"address": "repeat"}, "address"),
        (np.zeros(3, np.float32), {"filter": "cubic"}, "filter"),
        (np.zeros(3, np.float32), {"read": "raw"}, "read"),
    ],
)
def test_textures_that_cannot_be(device, values, options, message):
    with pytest.raises(InputError, match=message):
        device.texture(values, **options)


def test_a_texture_keeps_its_array(device):
    before = device.native.allocated_bytes
    texture = device.texture(np.zeros(100, np.float32))
    assert device.native.allocated_bytes == before + 400
    del texture
    assert device.native.allocated_bytes == before
