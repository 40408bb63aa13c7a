# SPDX-License-Identifier: Apache-2.0
"""ldmatrix, stmatrix and movmatrix against the layout of elements that the PTX ISA defines."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tensor_support import HEADER, LANES, braces

from manyscale import gpu

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def device():
    return gpu.Device()


def row_kernel(load: str, store: str) -> str:
    """1024 bytes of `input` go to shared memory; %r0… are loaded from there and stored to `output`, then shared memory
    to `memory`. Row i of matrix j is at 16 * ((8 * j + i) * 5 % 32) + 512."""
    copy_in = "\n    ".join(
        f"ld.global.u32 %word, [%in+{offset}];\n    st.shared.u32 [%to+{offset}], %word;"
        for offset in range(0, 1024, 128)
    )
    copy_out = "\n    ".join(
        f"ld.shared.u32 %word, [%to+{offset}];\n    st.global.u32 [%memory+{offset}], %word;"
        for offset in range(0, 1024, 128)
    )
    stores = "\n    ".join(f"st.global.b32 [%out+{128 * i}], %r{i};" for i in range(4))
    return f"""{HEADER}
.visible .entry kernel(.param .u64 input, .param .u64 output, .param .u64 memory)
{{
    .shared .align 16 .b8 tile[1024];
    .reg .b32 %r<4>, %lane, %word, %to, %row;
    .reg .b64 %in, %out, %memory, %wide;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %in, [input];
    ld.param.u64 %out, [output];
    ld.param.u64 %memory, [memory];
    mad.wide.u32 %in, %lane, 4, %in;
    mad.wide.u32 %out, %lane, 4, %out;
    mad.wide.u32 %memory, %lane, 4, %memory;
    mov.u32 %to, tile;
    mad.lo.u32 %to, %lane, 4, %to;
    {copy_in}
    bar.warp.sync 0xffffffff;
    mul.lo.u32 %row, %lane, 5;
    and.b32 %row, %row, 31;
    shl.b32 %row, %row, 4;
    mov.u32 %word, tile;
    add.u32 %row, %row, %word;
    mul.wide.u32 %wide, %row, 1;
    cvta.shared.u64 %wide, %wide;
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    {load}
    {store}
    {stores}
    bar.warp.sync 0xffffffff;
    {copy_out}
    ret;
}}"""


def run_rows(device, load: str, store: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of 8 elements in the order of lanes, registers [register, lane, half], and rows after the kernel."""
    tile = np.random.default_rng(2).integers(0, 2**16, (64, 8), np.uint16)
    output, memory = device.zeros((4, LANES), np.uint32), device.zeros((64, 8), np.uint16)
    device.load(row_kernel(load, store))["kernel"][1, LANES](device.array(tile), output, memory)
    order = 32 + np.arange(LANES) * 5 % 32
    registers = output.numpy().view(np.uint16).reshape(4, LANES, 2)
    return tile[order], registers, memory.numpy()[order]


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_ldmatrix(device, number, trans, space):
    address = "%row" if space else "%wide"
    load = f"ldmatrix.sync.aligned.m8n8.x{number}{trans}{space}.b16 {braces('r', number)}, [{address}+512];"
    rows, registers, _ = run_rows(device, load)
    for matrix, lane, half in product(range(number), range(LANES), range(2)):
        row, column = lane // 4, 2 * (lane % 4) + half
        if trans:
            row, column = column, row
        assert registers[matrix, lane, half] == rows[8 * matrix + row, column]
    assert not registers[number:].any()


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_is_the_inverse_of_ldmatrix(device, number, trans):
    """What is loaded transposed and stored as it is, or the other way round, is transposed."""
    load = f"ldmatrix.sync.aligned.m8n8.x{number}.shared.b16 {braces('r', number)}, [%row+512];"
    store = f"stmatrix.sync.aligned.m8n8.x{number}{trans}.shared.b16 [%row+512], {braces('r', number)};"
    rows, _, after = run_rows(device, load, store)
    expected = rows.reshape(4, 8, 8).copy()
    if trans:
        expected[:number] = expected[:number].transpose(0, 2, 1)
    np.testing.assert_array_equal(after.reshape(4, 8, 8), expected)


def test_movmatrix_transposes(device):
    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%row+512];"
    rows, registers, _ = run_rows(device, load, "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;")
    np.testing.assert_array_equal(registers[0].reshape(8, 8), rows[:8].T)
