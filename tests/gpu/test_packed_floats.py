# SPDX-License-Identifier: Apache-2.0
"""Pairs of f32 in registers of 64 bits, as sm_100 has them: sums, products and fused multiply-adds."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu

pytestmark = pytest.mark.core

KERNEL = """
.version 8.6
.target sm_100
.address_size 64
.visible .entry pairs(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)
{{
    .reg .b64 %rd<10>;
    .reg .b32 %r<2>;
    .reg .pred %p;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u64 %rd4, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd5, %r1, 8;
    add.s64 %rd1, %rd1, %rd5;
    add.s64 %rd2, %rd2, %rd5;
    add.s64 %rd3, %rd3, %rd5;
    add.s64 %rd4, %rd4, %rd5;
    ld.global.b64 %rd6, [%rd1];
    ld.global.b64 %rd7, [%rd2];
    ld.global.b64 %rd8, [%rd3];
    mov.b64 %rd9, %rd8;
    setp.lt.u32 %p, %r1, 30;
    @%p {instruction};
    st.global.b64 [%rd4], %rd9;
    ret;
}}
"""


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Products of f32 are exact in f64; numbers are chosen so that their sums are, too."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.rn.f32x2 %rd9, %rd6, %rd7", lambda a, b, c: a + b),
        ("sub.f32x2 %rd9, %rd6, %rd7", lambda a, b, c: a - b),
        ("mul.rn.f32x2 %rd9, %rd6, %rd7", lambda a, b, c: a * b),
        ("fma.rn.f32x2 %rd9, %rd6, %rd7, %rd8", fused),
    ],
)
def test_a_pair_is_two_numbers(instruction, expected):
    random = np.random.default_rng(3)
    a, b, c = ((random.integers(-(2**20), 2**20, 64) / np.float32(1024)).astype(np.float32) for _ in range(3))
    device = gpu.Device()
    out = device.zeros(64)
    device.load(KERNEL.format(instruction=instruction))["pairs"][1, 32](
        device.array(a), device.array(b), device.array(c), out
    )
    wanted = np.where(np.arange(64) < 60, expected(a, b, c), c).astype(np.float32)
    np.testing.assert_array_equal(out.numpy(), wanted)


def test_directed_rounding_and_subnormals_are_those_of_each_half():
    a = np.array([1.0, 1e-40] * 32, np.float32)
    b = np.array([2**-30, 1e-40] * 32, np.float32)
    device = gpu.Device()

    def run(instruction: str) -> np.ndarray:
        out = device.zeros(64)
        text = KERNEL.format(instruction=instruction)
        device.load(text)["pairs"][1, 32](device.array(a), device.array(b), device.array(a), out)
        return out.numpy()[:2]

    up = run("add.rp.f32x2 %rd9, %rd6, %rd7")
    assert up[0] == np.nextafter(np.float32(1), np.float32(2))
    assert up[1] == np.float32(1e-40) + np.float32(1e-40)
    np.testing.assert_array_equal(run("add.rz.ftz.f32x2 %rd9, %rd6, %rd7"), np.array([1, 0], np.float32))


def test_what_has_no_pairs_is_named_with_its_type():
    [checked] = gpu.check(KERNEL.format(instruction="min.f32x2 %rd9, %rd6, %rd7"))
    assert [(problem.instruction, problem.why) for problem in checked.problems] == [
        ("min.f32x2", "it is not known for f32x2")
    ]
