# SPDX-License-Identifier: Apache-2.0
"""Texture objects: arrays that kernels read by coordinates."""

from __future__ import annotations

from manyscale import _core

from .array import DeviceArray


class Texture:
    """A texture of a device, passed to kernels as `cudaTextureObject_t`. It keeps its array alive."""

    def __init__(self, native: _core.GpuDevice, handle: int, array: DeviceArray) -> None:
        self.native = native
        self.handle = handle
        self.array = array

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.native.remove_texture(self.handle)
