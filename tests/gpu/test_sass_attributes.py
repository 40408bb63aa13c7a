# SPDX-License-Identifier: Apache-2.0
"""What kernels of SASS need is known without decoding them, and whether a file can be executed, by one look at it."""

from __future__ import annotations

import time

import pytest

from manyscale import _core
from manyscale.gpu.parsing import ParsedModule
from manyscale.gpu.sass import assembled_sass, executable_sass

pytestmark = pytest.mark.core

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"


def module_of(kernels: int, functions: int) -> ParsedModule:
    """Kernels that call functions by pointers, so that each of them may reach all."""
    bodies = [
        f".func (.param .b32 out) f{i}(.param .b32 x) {{ .reg .b32 %r<3>; ld.param.b32 %r1, [x]; "
        + "".join(f"mad.lo.s32 %r1, %r1, {i + 3}, {each}; " for each in range(40))
        + "st.param.b32 [out], %r1; ret; }"
        for i in range(functions)
    ]
    names = ", ".join(f"f{i}" for i in range(functions))
    table = f".global .u64 table[{functions}] = {{{names}}};"
    entries = [
        f".visible .entry k{i}(.param .u64 p, .param .u32 which) {{ .shared .align 4 .b8 tile[{4 * i + 4}]; "
        ".reg .b64 %rd<6>; .reg .b32 %r<4>; "
        "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [which]; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, table; "
        "add.u64 %rd4, %rd3, %rd2; ld.global.u64 %rd5, [%rd4]; mov.u64 %rd3, tile; "
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; "
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %rd5, (a), proto; "
        "ld.param.b32 %r2, [b]; } st.shared.u32 [%rd3], %r2; st.global.u32 [%rd1], %r2; ret; }"
        for i in range(kernels)
    ]
    text = (HEAD + "\n".join([*bodies, table, *entries])).encode()
    native = _core.parse_ptx(text, "many.ptx")
    return ParsedModule("many.ptx", native.kernels, native.target, native)


def test_attributes_are_those_of_the_decoded_kernel() -> None:
    file = executable_sass(module_of(3, 4), "sm_80")
    module = _core.GpuDevice().load(file)
    for index in range(3):
        kernel = module.kernel(f"k{index}")
        assert kernel is not None
        assert kernel.static_shared_bytes == 4 * index + 4
        assert kernel.parameter_bytes == 12
        assert kernel.registers > 0
        before = (kernel.static_shared_bytes, kernel.parameter_bytes, kernel.registers)
        assert not kernel.problems  # decoded now
        assert (kernel.static_shared_bytes, kernel.parameter_bytes, kernel.registers) == before


def test_asking_for_all_kernels_grows_with_the_file() -> None:
    def seconds(size: int) -> float:
        file = assembled_sass(module_of(size, size), "sm_80")
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            assert file.is_executable()
            module = _core.GpuDevice().load(file)
            assert all(module.kernel(f"k{index}").registers for index in range(size))
            best = min(best, time.process_time() - begin)
        return best

    small, large = seconds(10), seconds(40)
    assert large < 9 * small + 0.02, f"four times the file took {large / small:.1f} times as long"
