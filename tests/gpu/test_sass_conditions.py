# SPDX-License-Identifier: Apache-2.0
"""Machine instructions that have a predicate of their own beside their guard, such as `@P0 EXIT P1`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from manyscale import gpu
from manyscale.gpu.assembler import assemble, find_assembler

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(find_assembler() is None, reason="ptxas, which makes SASS of PTX, is not there"),
]

# Who stores the result of a reduction: if (i < n && (!by_x || tid.x == 0) && (!by_y || tid.y == 0)) …
STORE = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 n, .param .u32 by_x, .param .u32 by_y)
{
    .reg .pred %p<10>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [by_x];
    ld.param.u32 %r3, [by_y];
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %tid.x;
    mov.u32 %r6, %tid.y;
    setp.ge.s32 %p1, %r4, %r1;
    setp.ne.s32 %p2, %r2, 0;
    setp.ne.s32 %p3, %r5, 0;
    and.pred %p4, %p2, %p3;
    or.pred %p5, %p1, %p4;
    @%p5 bra DONE;
    setp.ne.s32 %p6, %r3, 0;
    setp.ne.s32 %p7, %r6, 0;
    and.pred %p8, %p6, %p7;
    @%p8 bra DONE;
    mad.lo.s32 %r7, %r6, 32, %r5;
    mad.lo.s32 %r8, %r4, 128, %r7;
    mul.wide.u32 %rd2, %r8, 4;
    add.s64 %rd3, %rd1, %rd2;
    add.s32 %r9, %r8, 1;
    st.global.u32 [%rd3], %r9;
DONE:
    ret;
}
"""


@pytest.mark.parametrize("architecture", ["sm_70", "sm_80", "sm_90"])
def test_lanes_exit_where_guard_and_predicate_hold(architecture: str):
    listing = gpu.disassemble(STORE, architecture=architecture)
    texts = [each.text or "" for function in listing.functions for each in function.instructions]
    assert any("EXIT P" in text or "EXIT !P" in text for text in texts), "the assembler makes no such EXIT"
    device = gpu.Device(isa="sass")
    kernel = device.load(assemble(STORE.encode(), "store.ptx", architecture))["store"]
    for n, by_x, by_y in itertools.product((0, 1, 2), (0, 1), (0, 1)):
        out = device.zeros((2, 4, 32), np.uint32)
        kernel[2, (32, 4)](out, n, by_x, by_y)
        wanted = np.arange(1, 257, dtype=np.uint32).reshape(2, 4, 32)
        wanted[n:] = 0
        wanted[:, :, by_x or 32 :] = 0
        wanted[:, by_y or 4 :] = 0
        np.testing.assert_array_equal(out.numpy(), wanted)
