# SPDX-License-Identifier: Apache-2.0
"""suld and sust: arrays read and written by coordinates, of which the first counts bytes."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core

WIDTH, HEIGHT, DEPTH = 12, 5, 3


def kernel(geometry: str, kind: str, register: str, mode: str, elements: int, step: int) -> str:
    """Thread (x, y, z) copies element (x, y, z) of one surface to the same element of another one."""
    values = "{" + ", ".join(f"%v{i}" for i in range(elements)) + "}"
    coordinates = {"1d": "{%x}", "2d": "{%x, %y}", "3d": "{%x, %y, %z, %z}"}[geometry]
    moved = {"1d": "{%i}", "2d": "{%i, %y}", "3d": "{%i, %y, %z, %z}"}[geometry]
    vector = "" if elements == 1 else f".v{elements}"
    return f"""
.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 from, .param .u64 to, .param .s32 shift)
{{
    .reg .b64 %from, %to;
    .reg .b32 %x, %y, %z, %i, %shift;
    .reg .{register} %v<4>;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    ld.param.s32 %shift, [shift];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    add.s32 %i, %x, %shift;
    mul.lo.s32 %x, %x, {step};
    mul.lo.s32 %i, %i, {step};
    suld.b.{geometry}{vector}.{kind}.{mode} {values}, [%from, {moved}];
    sust.b.{geometry}{vector}.{kind}.{mode} [%to, {coordinates}], {values};
    ret;
}}"""


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d"])
@pytest.mark.parametrize(
    ("dtype", "channels", "kind", "register"),
    [
        (np.uint32, 1, "b32", "b32"),
        (np.float32, 4, "b32", "b32"),
        (np.uint32, 2, "b64", "b64"),
        (np.uint16, 1, "b16", "b16"),
        (np.uint8, 1, "b8", "b16"),
        (np.uint8, 2, "b8", "b16"),
    ],
)
def test_each_thread_finds_its_element(geometry: str, dtype: type, channels: int, kind: str, register: str):
    device = gpu.Device()
    extents = {"1d": (WIDTH,), "2d": (HEIGHT, WIDTH), "3d": (DEPTH, HEIGHT, WIDTH)}[geometry]
    shape = (*extents, channels) if channels > 1 else extents
    values = np.random.default_rng(5).integers(0, 250, shape).astype(dtype)
    source = device.texture(values, channels=channels)
    array = device.zeros(shape, dtype)
    target = device.texture(array, channels=channels)
    texel = values.itemsize * channels
    elements = texel // (int(kind[1:]) // 8)
    module = device.load(kernel(geometry, kind, register, "trap", elements, texel))
    block = (WIDTH, HEIGHT if geometry != "1d" else 1, DEPTH if geometry == "3d" else 1)
    module["kernel"][1, block](source.handle, target.handle, 0)
    assert np.array_equal(array.numpy(), values)


@pytest.mark.parametrize("shift", [-2, 3])
def test_outside_is_the_nearest_element_zero_or_a_fault(shift: int):
    device = gpu.Device()
    values = np.arange(1, WIDTH + 1, dtype=np.uint32)
    source, array = device.texture(values), device.array(np.full(WIDTH, 99, np.uint32))
    target = device.texture(array)
    index = np.arange(WIDTH) + shift
    inside = (index >= 0) & (index < WIDTH)

    def run(mode: str) -> np.ndarray:
        module = device.load(kernel("1d", "b32", "b32", mode, 1, 4))
        module["kernel"][1, WIDTH](source.handle, target.handle, shift)
        return array.numpy()

    assert np.array_equal(run("clamp"), values[np.clip(index, 0, WIDTH - 1)])
    assert np.array_equal(run("zero"), np.where(inside, values[np.clip(index, 0, WIDTH - 1)], 0))
    with pytest.raises(ManyscaleError, match="out of bounds of a surface"):
        run("trap")


def test_a_byte_within_an_element_is_misaligned():
    device = gpu.Device()
    surface = device.texture(np.zeros(WIDTH, np.uint32))
    module = device.load(kernel("1d", "b32", "b32", "clamp", 1, 2))
    with pytest.raises(ManyscaleError, match="misaligned"):
        module["kernel"][1, 2](surface.handle, surface.handle, 0)


def test_what_is_no_surface_is_named():
    device = gpu.Device()
    surface = device.texture(np.zeros((HEIGHT, WIDTH), np.uint32))
    module = device.load(kernel("1d", "b32", "b32", "trap", 1, 4))
    with pytest.raises(ManyscaleError, match="2-dimensional"):
        module["kernel"][1, 2](surface.handle, surface.handle, 0)
    with pytest.raises(ManyscaleError, match="12345 is not the handle"):
        module["kernel"][1, 2](12345, surface.handle, 0)
