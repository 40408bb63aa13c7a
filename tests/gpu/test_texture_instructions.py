# SPDX-License-Identifier: Apache-2.0
"""tex, tld4 and txq against the formulas of the chapter "Texture Fetching" of the CUDA programming guide.

Nearest point: tex(x) = T[floor(x)]. Linear: tex(x) = (1 - a) T[i] + a T[i + 1] with i = floor(x - 0.5) and a the
fraction of x - 0.5 in 9 bits of fixed point, 8 of them fractional; in two and three dimensions likewise.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from manyscale import _core, gpu
from manyscale.errors import ManyscaleError

pytestmark = pytest.mark.core

HEADER = ".version 8.7\n.target sm_90\n.address_size 64\n"
THREADS = 96


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


@pytest.fixture
def random():
    return np.random.default_rng(17)


# Kernels


def kernel(instruction: str, coordinates: int, result: str = "b32", results: int = 4) -> str:
    """Each thread loads `coordinates` words to %f0… and executes an instruction with results in %r0…; %texture is the
    handle. Words loaded are also in %i0…, as integers. %p is stored behind the results."""
    bytes_each = 2 if result == "b16" else 4
    loads = "\n    ".join(
        f"ld.global.f32 %f{i}, [%in+{4 * i}];\n    ld.global.b32 %i{i}, [%in+{4 * i}];"
        for i in range(coordinates)
    )
    stores = "\n    ".join(f"st.global.{result} [%out+{bytes_each * i}], %r{i};" for i in range(results))
    return f"""{HEADER}
.visible .entry kernel(.param .u64 texture, .param .u64 input, .param .u64 output, .param .u64 flags)
{{
    .reg .b64 %texture, %in, %out, %flags;
    .reg .f32 %f<8>;
    .reg .b32 %i<8>, %thread;
    .reg .{result} %r<4>;
    .reg .pred %p;
    mov.u32 %thread, %tid.x;
    setp.ne.u32 %p, %thread, %thread;
    ld.param.u64 %texture, [texture];
    ld.param.u64 %in, [input];
    ld.param.u64 %out, [output];
    ld.param.u64 %flags, [flags];
    mad.wide.u32 %in, %thread, {4 * coordinates}, %in;
    mad.wide.u32 %out, %thread, {bytes_each * results}, %out;
    mad.wide.u32 %flags, %thread, 4, %flags;
    {loads}
    {instruction}
    {stores}
    selp.u32 %i0, 1, 0, %p;
    st.global.u32 [%flags], %i0;
    ret;
}}"""


RESULTS = "{%r0, %r1, %r2, %r3}"


def run(
    device, texture, instruction: str, inputs: np.ndarray, result: str = "b32", results: int = 4
) -> np.ndarray:
    """Results [thread, component] as unsigned words; inputs are words [thread, coordinate]."""
    inputs = np.ascontiguousarray(inputs)
    assert inputs.itemsize == 4
    handle = texture if isinstance(texture, int) else texture.handle
    dtype = np.uint16 if result == "b16" else np.uint32
    output, flags = device.zeros((len(inputs), results), dtype), device.zeros(len(inputs), np.uint32)
    module = device.load(kernel(instruction, inputs.shape[1], result, results))
    module["kernel"][1, len(inputs)](handle, device.array(inputs), output, flags)
    run.flags = flags.numpy()
    return output.numpy()


def tex(device, texture, geometry: str, coordinates: np.ndarray, kind: str = "f32") -> np.ndarray:
    """tex with float or integer coordinates, x first; results of type `kind`."""
    coordinates = np.asarray(coordinates)
    prefix = "i" if coordinates.dtype.kind in "iu" else "f"
    count = coordinates.shape[1]
    names = [f"%{prefix}{i}" for i in range(count)]
    if count == 3:
        names.append(names[-1])
    type_ = "s32" if prefix == "i" else "f32"
    instruction = f"tex.{geometry}.v4.{kind}.{type_} {RESULTS}, [%texture, {{{', '.join(names)}}}];"
    words = run(device, texture, instruction, coordinates)
    return words.view({"f32": np.float32, "s32": np.int32, "u32": np.uint32}[kind])


# The guide's formulas


def axis_position(x: np.ndarray, extent: int, address: str, normalized: bool) -> np.ndarray:
    """Coordinates in texels. Wrap and mirror only exist for normalised ones; others are clamped by index."""
    x = x.astype(np.float64)
    if not normalized:
        return x
    if address == "wrap":
        x = x - np.floor(x)
    elif address == "mirror":
        whole = np.floor(x)
        x = np.where(whole % 2 == 0, x - whole, 1 - (x - whole))
    return x * extent


def axis_index(i: np.ndarray, extent: int, address: str, normalized: bool) -> tuple[np.ndarray, np.ndarray]:
    """Indices within the texture, and whether a texel is there at all (or the border)."""
    i = i.astype(int)
    if address == "border":
        return np.clip(i, 0, extent - 1), (i >= 0) & (i < extent)
    if address == "wrap" and normalized:
        return i % extent, np.ones(i.shape, bool)
    return np.clip(i, 0, extent - 1), np.ones(i.shape, bool)


def reference(
    texels: np.ndarray, coordinates: np.ndarray, address: str, filtering: str, normalized: bool
) -> np.ndarray:
    """`texels` [z, y, x, channel] or with fewer axes, `coordinates` [thread, x y z]."""
    axes = coordinates.shape[1]
    extents = texels.shape[:axes][::-1]
    positions = [
        axis_position(coordinates[:, axis], extents[axis], address, normalized) for axis in range(axes)
    ]
    if filtering == "point":
        corners = [([np.floor(each) for each in positions], np.ones(len(coordinates)))]
    else:
        corners = []
        firsts = [np.floor(each - 0.5) for each in positions]
        weights = [
            np.floor((each - 0.5 - first) * 256 + 0.5) / 256
            for each, first in zip(positions, firsts, strict=True)
        ]
        for sides in product((0, 1), repeat=axes):
            weight = np.prod([a if side else 1 - a for a, side in zip(weights, sides, strict=True)], axis=0)
            corners.append(([first + side for first, side in zip(firsts, sides, strict=True)], weight))
    total = np.zeros((len(coordinates), texels.shape[-1]))
    for indices, weight in corners:
        found = [
            axis_index(i, extent, address, normalized) for i, extent in zip(indices, extents, strict=True)
        ]
        inside = np.logical_and.reduce([there for _, there in found])
        values = texels[tuple(index for index, _ in reversed(found))].astype(np.float64)
        total += np.where(inside[:, None], values, 0) * weight[:, None]
    return total


def coordinates_for(random, extents: tuple[int, ...], normalized: bool) -> np.ndarray:
    """Coordinates around a texture and in it, some of them on centres and on edges of texels."""
    span = np.array(extents, np.float64)
    points = random.uniform(-1.5, 2.5, (THREADS, len(extents))) * span
    points[::4] = np.floor(points[::4])
    points[1::4] = np.floor(points[1::4]) + 0.5
    points[2::8] = np.clip(points[2::8], 0, span)
    # Texels are a power of two in number where coordinates are normalised: the division is exact.
    return (points / span if normalized else points).astype(np.float32)


# tex


@pytest.mark.parametrize("shape", [(16,), (8, 16), (4, 8, 16)])
@pytest.mark.parametrize("filtering", ["point", "linear"])
@pytest.mark.parametrize(
    ("address", "normalized"),
    [
        ("clamp", False),
        ("border", False),
        ("wrap", False),
        *product(["clamp", "border", "wrap", "mirror"], [True]),
    ],
)
def test_sampling_follows_the_guide(device, random, shape, filtering, address, normalized):
    texels = random.normal(size=shape).astype(np.float32)
    points = coordinates_for(random, shape[::-1], normalized)
    texture = device.texture(texels, address=address, filter=filtering, normalized=normalized)
    actual = tex(device, texture, f"{len(shape)}d", points)
    expected = reference(texels[..., None], points, address, filtering, normalized)
    np.testing.assert_array_equal(actual[:, :1], expected.astype(np.float32))
    np.testing.assert_array_equal(actual[:, 1:], np.tile(np.float32([0, 0, 1]), (THREADS, 1)))


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("filtering", ["point", "linear"])
def test_channels(device, random, channels, dtype, filtering):
    texels = random.normal(size=(8, 16, channels)).astype(dtype)
    points = coordinates_for(random, (16, 8), False)
    actual = tex(device, device.texture(texels, filter=filtering, channels=channels), "2d", points)
    expected = reference(texels, points, "clamp", filtering, False)
    np.testing.assert_array_equal(actual[:, :channels], expected.astype(np.float32))
    np.testing.assert_array_equal(
        actual[:, channels:], np.tile(np.float32([0, 0, 1][channels - 4 :]), (THREADS, 1))[:, : 4 - channels]
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("filtering", ["point", "linear"])
def test_integers_read_as_fractions(device, random, dtype, filtering):
    limits = np.iinfo(dtype)
    texels = random.integers(limits.min, limits.max, (8, 16), dtype, endpoint=True)
    texels[0, :2] = limits.min, limits.max
    points = coordinates_for(random, (16, 8), False)
    fractions = np.maximum(texels / np.float64(limits.max), -1).astype(np.float32)
    actual = tex(device, device.texture(texels, filter=filtering, read="normalized"), "2d", points)
    expected = reference(fractions[..., None], points, "clamp", filtering, False)
    np.testing.assert_array_equal(actual[:, :1], expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32])
def test_integers_read_as_they_are(device, random, dtype):
    limits = np.iinfo(dtype)
    texels = random.integers(limits.min, limits.max, (8, 16, 4), dtype, endpoint=True)
    points = coordinates_for(random, (16, 8), False)
    kind = "s32" if limits.min < 0 else "u32"
    actual = tex(device, device.texture(texels, channels=4), "2d", points, kind)
    expected = reference(texels, points, "clamp", "point", False)
    np.testing.assert_array_equal(actual.astype(np.float64), expected)


@pytest.mark.parametrize("address", ["clamp", "border"])
@pytest.mark.parametrize("shape", [(16,), (8, 16), (4, 8, 16)])
def test_indices_are_not_filtered(device, random, address, shape):
    texels = random.normal(size=shape).astype(np.float32)
    indices = random.integers(-4, 20, (THREADS, len(shape)), np.int32)
    texture = device.texture(texels, address=address, filter="linear")
    actual = tex(device, texture, f"{len(shape)}d", indices)
    expected = reference(texels[..., None], indices, address, "point", False)
    np.testing.assert_array_equal(actual[:, :1], expected.astype(np.float32))


def test_a_buffer_reads_zero_outside(device, random):
    texels = random.integers(-100, 100, (50, 4), np.int32)
    texture = device.texture(texels, channels=4, linear_memory=True)
    indices = np.arange(THREADS, dtype=np.int32)[:, None] - 20
    actual = tex(device, texture, "1d", indices, "s32")
    inside = (indices[:, 0] >= 0) & (indices[:, 0] < 50)
    expected = np.where(inside[:, None], texels[np.clip(indices[:, 0], 0, 49)], 0)
    np.testing.assert_array_equal(actual, expected)


def test_not_a_number_is_the_first_texel(device):
    texture = device.texture(np.arange(1, 9, dtype=np.float32))
    points = np.array([[np.nan], [np.inf], [-np.inf], [1e30]], np.float32)
    np.testing.assert_array_equal(tex(device, texture, "1d", points)[:, 0], [1, 8, 1, 8])


def test_results_of_16_bits(device, random):
    texels = random.normal(size=(8, 16, 4)).astype(np.float32)
    texture = device.texture(texels, channels=4, filter="linear")
    points = coordinates_for(random, (16, 8), False)
    expected = reference(texels, points, "clamp", "linear", False).astype(np.float32).astype(np.float16)
    halves = run(device, texture, f"tex.2d.v4.f16.f32 {RESULTS}, [%texture, {{%f0, %f1}}];", points, "b16")
    np.testing.assert_array_equal(halves.view(np.float16), expected)
    pairs = run(device, texture, "tex.2d.v2.f16x2.f32 {%r0, %r1}, [%texture, {%f0, %f1}];", points, results=2)
    np.testing.assert_array_equal(pairs.view(np.float16), expected)


def test_forms_of_tex(device, random):
    """Levels, gradients, offsets and the predicate, where there is one level and everything is in memory."""
    texels = random.normal(size=(8, 16)).astype(np.float32)
    texture = device.texture(texels, filter="linear")
    points = coordinates_for(random, (16, 8), False)
    expected = reference(texels[..., None], points, "clamp", "linear", False).astype(np.float32)[:, 0]
    source = "[%texture, {%f0, %f1}]"
    for text in (
        f"tex.base.2d.v4.f32.f32 {RESULTS}, {source};",
        f"tex.level.2d.v4.f32.f32 {RESULTS}, {source}, 0f00000000;",
        f"tex.level.2d.v4.f32.f32 {RESULTS}, {source}, 0fBF800000;",
        f"tex.grad.2d.v4.f32.f32 {RESULTS}, {source}, {{%f0, %f1}}, {{%f1, %f0}};",
        f"tex.2d.v4.f32.f32 {RESULTS}|%p, {source};",
    ):
        actual = run(device, texture, text, points).view(np.float32)
        np.testing.assert_array_equal(actual[:, 0], expected)
    assert run.flags.all()
    moved = reference(texels[..., None], points + np.float32([2, -3]), "clamp", "linear", False)
    for text in (
        f"tex.2d.v4.f32.f32 {RESULTS}, {source}, {{2, -3}};",
        f"tex.level.2d.v4.f32.f32 {RESULTS}, {source}, 0f00000000, {{2, -3}};",
    ):
        actual = run(device, texture, text, points).view(np.float32)
        np.testing.assert_allclose(actual[:, 0], moved[:, 0], atol=1e-5)


@pytest.mark.parametrize("filtering", ["point", "linear"])
@pytest.mark.parametrize("component", range(4))
def test_gather_takes_the_four_texels_around(device, random, component, filtering):
    texels = random.normal(size=(8, 16, 4)).astype(np.float32)
    texture = device.texture(texels, channels=4, filter=filtering)
    points = coordinates_for(random, (16, 8), False)
    text = f"tld4.{'rgba'[component]}.2d.v4.f32.f32 {RESULTS}, [%texture, {{%f0, %f1}}];"
    actual = run(device, texture, text, points).view(np.float32)
    x, y = (np.floor(points[:, axis].astype(np.float64) - 0.5).astype(int) for axis in (0, 1))
    for i, (dx, dy) in enumerate([(0, 1), (1, 1), (1, 0), (0, 0)]):
        expected = texels[np.clip(y + dy, 0, 7), np.clip(x + dx, 0, 15), component]
        np.testing.assert_array_equal(actual[:, i], expected)


# Layers and cubes


def layered(
    device,
    texels: np.ndarray,
    axes: int,
    *,
    is_layered: bool = True,
    cube: bool = False,
    filtering: str = "point",
):
    """A texture with layers: its handle and its array."""
    array = device.array(texels)
    native = _core.GpuTexture()
    native.memory, native.bytes = array.address, array.nbytes
    native.format = _core.GpuTexture.Format.f32
    native.dimensions, native.layered, native.cube = axes, is_layered, cube
    native.extent = [*texels.shape[::-1], *[1] * (3 - texels.ndim)]
    native.pitch = texels.shape[-1] * 4
    native.normalized_coordinates = cube
    native.filter = getattr(_core.GpuTexture.Filter, filtering)
    return device.native.add_texture(native), array


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("filtering", ["point", "linear"])
def test_layers_are_apart(device, random, axes, filtering):
    texels = random.normal(size=(5, 8, 16)[:: 2 if axes == 1 else 1]).astype(np.float32)
    handle, _array = layered(device, texels, axes, filtering=filtering)
    points = coordinates_for(random, (16, 8)[:axes], False)
    layers = random.integers(-2, 8, THREADS, np.int32)
    inputs = np.column_stack([layers.view(np.float32), points])
    names = ["%i0", *(f"%f{i + 1}" for i in range(axes)), *(["%f2"] if axes == 2 else [])]
    actual = run(
        device, handle, f"tex.a{axes}d.v4.f32.f32 {RESULTS}, [%texture, {{{', '.join(names)}}}];", inputs
    )
    each = np.stack([reference(layer[..., None], points, "clamp", filtering, False) for layer in texels])
    expected = each[np.clip(layers, 0, 4), np.arange(THREADS)]
    np.testing.assert_array_equal(actual.view(np.float32)[:, :1], expected.astype(np.float32))


def face_of(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The guide's table of cubemaps: face, and the coordinates on it."""
    if abs(x) > abs(y) and abs(x) > abs(z):
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif abs(y) > abs(z):
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


@pytest.mark.parametrize("arrays", [False, True])
def test_cubes_are_read_by_direction(device, random, arrays):
    texels = random.normal(size=(18 if arrays else 6, 8, 8)).astype(np.float32)
    handle, _array = layered(device, texels, 2, is_layered=arrays, cube=True)
    directions = random.normal(size=(THREADS, 3)).astype(np.float32)
    layers = random.integers(0, 3 if arrays else 1, THREADS, np.int32)
    inputs = np.column_stack([layers.view(np.float32), directions])
    coordinates = "{%i0, %f1, %f2, %f3}" if arrays else "{%f1, %f2, %f3, %f3}"
    geometry = "acube" if arrays else "cube"
    actual = run(device, handle, f"tex.{geometry}.v4.f32.f32 {RESULTS}, [%texture, {coordinates}];", inputs)
    for direction, layer, value in zip(directions, layers, actual.view(np.float32)[:, 0], strict=True):
        face, s, t = face_of(*map(float, direction))
        column, row = min(int(s * 8), 7), min(int(t * 8), 7)
        assert value == texels[layer * 6 + face, row, column]


# txq


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("width", 16),
        ("height", 8),
        ("depth", 4),
        ("channel_data_type", 0x10D2),
        ("channel_order", 0x10B2),
        ("normalized_coords", 1),
        ("num_mipmap_levels", 1),
        ("filter_mode", 1),
        ("addr_mode_0", 1),
        ("array_size", 0),
        ("force_unnormalized_coords", 0),
    ],
)
def test_questions_about_a_texture(device, question, answer):
    texels = np.zeros((4, 8, 16, 2), np.uint8)
    texture = device.texture(
        texels, channels=2, normalized=True, read="normalized", filter="linear", address="mirror"
    )
    words = run(
        device, texture, f"txq.{question}.b32 %r0, [%texture];", np.zeros((32, 1), np.float32), results=1
    )
    np.testing.assert_array_equal(words, answer)


# What goes wrong


def test_wrong_handles_and_levels_are_faults(device):
    texture = device.texture(np.zeros((8, 16), np.float32))
    points = np.zeros((32, 2), np.float32)
    with pytest.raises(ManyscaleError, match="12345 is not the handle of a texture"):
        tex(device, 12345, "2d", points)
    with pytest.raises(ManyscaleError, match=r"a \.1d access to a 2-dimensional texture"):
        tex(device, texture, "1d", points[:, :1])
    with pytest.raises(ManyscaleError, match="mipmap level"):
        run(
            device,
            texture,
            f"tex.level.2d.v4.f32.f32 {RESULTS}, [%texture, {{%f0, %f1}}], 0f40000000;",
            points,
        )


def test_a_texture_reference_that_is_not_bound_is_a_fault(device):
    text = kernel(f"tex.2d.v4.f32.f32 {RESULTS}, [reference, {{%f0, %f1}}];", 2)
    text = text.replace(".visible", ".global .texref reference;\n.visible", 1)
    arrays = [device.zeros(256, np.float32) for _ in range(3)]
    with pytest.raises(ManyscaleError, match="the texture reference is not bound"):
        device.load(text)["kernel"][1, 32](0, *arrays)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (f"tex.2dms.v4.f32.s32 {RESULTS}, [%texture, {{%i0, %i0, %i0, %i0}}];", "geometry"),
        (f"tex.2d.v4.f32.f32 {RESULTS}, [%texture, %texture, {{%f0, %f0}}];", "samplers"),
        (f"tex.2d.v4.f32.f32 {RESULTS}, [%texture, {{%f0, %f0}}], %f0;", "depth textures"),
    ],
)
def test_what_is_missing_is_refused(device, instruction, message):
    arrays = [device.zeros(256, np.float32) for _ in range(3)]
    with pytest.raises(ManyscaleError, match=message):
        device.load(kernel(instruction, 1))["kernel"][1, 32](0, *arrays)
