# SPDX-License-Identifier: Apache-2.0
"""Handlers of calls on textures and surfaces."""

from __future__ import annotations

import struct

from manyscale import _core

from .session import Request, answers
from .status import CudaError, Status
from .wire import Call

_LINEAR, _PITCHED = 0, 1  # kinds of memory behind a texture; else an array
_SIGNED, _UNSIGNED, _FLOAT = 0, 1, 2  # of cudaChannelFormatKind
_MODES = ("wrap", "clamp", "mirror", "border")  # of cudaTextureAddressMode
_FILTERS = ("point", "linear")
_FORMATS = {
    (_UNSIGNED, 8): "u8",
    (_UNSIGNED, 16): "u16",
    (_UNSIGNED, 32): "u32",
    (_SIGNED, 8): "s8",
    (_SIGNED, 16): "s16",
    (_SIGNED, 32): "s32",
    (_FLOAT, 16): "f16",
    (_FLOAT, 32): "f32",
}


@answers(Call.TEXTURE_CREATE)
def create(
    request: Request,
    kind: int,
    address: int,
    pitch: int,
    width: int,
    height: int,
    depth: int,
    dimensions: int,
    layered: int,
    cube: int,
    surface: int,
    form: int,
    bits_x: int,
    bits_y: int,
    bits_z: int,
    bits_w: int,
    mode_x: int,
    mode_y: int,
    mode_z: int,
    filtering: int,
    read: int,
    srgb: int,
    normalized: int,
    mipmap_bias: float,
    *border: float,
) -> bytes:
    """Makes a texture or a surface; kernels get its handle."""
    bits = [each for each in (bits_x, bits_y, bits_z, bits_w) if each]
    name = _FORMATS.get((form, bits[0])) if bits else None
    if name is None or len(bits) not in (1, 2, 4) or len(set(bits)) != 1:
        raise CudaError(
            Status.NOT_SUPPORTED,
            f"textures of {'/'.join(map(str, bits)) or 'no'} bits of kind {form} are not supported; they can have 1, 2 "
            "or 4 channels of 8, 16 or 32 bits",
        )
    if any(border) and _MODES.index("border") in (mode_x, mode_y, mode_z):
        request.session.notify_once("the border colour of a texture is taken as zero")
    if srgb:
        request.session.notify_once("textures are read without conversion from sRGB")
    texture = _core.GpuTexture()
    texel = len(bits) * bits[0] // 8
    extent = [max(int(each), 1) for each in (width, height, depth)]
    if max(extent) >= 2**31:
        raise CudaError(
            Status.INVALID_VALUE, f"a texture of {width} x {height} x {depth} texels is too large"
        )
    row = pitch if kind != _LINEAR and pitch else extent[0] * texel
    texture.memory = address
    texture.format = getattr(_core.GpuTexture.Format, name)
    texture.channels = len(bits)
    texture.dimensions = max(dimensions, 1)
    texture.layered, texture.cube = bool(layered), bool(cube)
    texture.extent = extent
    texture.pitch = row
    texture.bytes = row * (extent[1] * extent[2] - 1) + extent[0] * texel
    texture.normalized_coordinates, texture.normalized_values = bool(normalized), read == 1
    texture.linear_memory = kind == _LINEAR
    texture.address = [
        getattr(_core.GpuTexture.Address, _MODES[mode] if mode < len(_MODES) else "clamp")
        for mode in (mode_x, mode_y, mode_z)
    ]
    texture.filter = getattr(_core.GpuTexture.Filter, _FILTERS[filtering == 1])
    if not request.gpu.native.holds(address, texture.bytes):
        raise CudaError(
            Status.INVALID_VALUE, f"the texture's {texture.bytes} bytes at {address:#x} are not allocated"
        )
    request.session.free_what_is_due()
    return struct.pack("<Q", request.gpu.native.add_texture(texture))


@answers(Call.TEXTURE_DESTROY)
def destroy(request: Request, texture: int) -> bytes:
    """Releases a handle when no kernel that was queued before can read it."""
    session = request.session
    session.textures_destroyed[(request.gpu, texture)] = None
    session.free_what_is_due()
    return b""
