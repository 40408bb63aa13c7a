# SPDX-License-Identifier: Apache-2.0
"""Addresses that are put into instructions when a cubin is loaded: of functions, of variables, to return to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from sass_support import needs_assembler

from manyscale import InputError, gpu
from manyscale.gpu.assembler import find_assembler

pytestmark = [pytest.mark.core, needs_assembler]

CALLS = """
.version 8.0
.target {architecture}
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.extern .func (.param .u32 result) missing(.param .u32 x);
.visible .func (.param .u32 result) scaled(.param .u32 x)
{{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [x];
    ld.global.u32 %r2, [factor];
    mad.lo.u32 %r3, %r1, %r2, 7;
    st.param.u32 [result], %r3;
    ret;
}}
.visible .entry calls(.param .u64 data)
{{
    .reg .b32 %r<4>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %d2, %r1, 4, %d1;
    ld.global.u32 %r2, [%d2];
    {{
        .param .u32 given;
        .param .u32 taken;
        st.param.u32 [given], %r2;
        call (taken), {callee}, (given);
        ld.param.u32 %r3, [taken];
    }}
    st.global.u32 [%d2], %r3;
    ret;
}}
"""


def relocatable(folder: Path, architecture: str, callee: str) -> bytes:
    """A cubin as nvcc -rdc=true makes it: each function has its own section, and addresses are filled in later."""
    source, target = folder / "calls.ptx", folder / "calls.cubin"
    source.write_text(CALLS.format(architecture=architecture, callee=callee))
    command = [str(find_assembler()), "-c", f"-arch={architecture}", str(source), "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target.read_bytes()


@pytest.mark.parametrize("architecture", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90"])
def test_functions_and_variables_are_found_by_the_addresses_in_the_code(
    tmp_path: Path, architecture: str
) -> None:
    device = gpu.Device(maximum_instructions=100_000)
    module = device.load(relocatable(tmp_path, architecture, "scaled"))
    values = np.arange(100, 164, dtype=np.uint32)
    data = device.array(values)
    module["calls"][1, 64](data)
    np.testing.assert_array_equal(data.numpy(), 3 * values + 7)


def test_a_function_that_is_not_there_is_named(tmp_path: Path) -> None:
    device = gpu.Device()
    module = device.load(relocatable(tmp_path, "sm_80", "missing"))
    with pytest.raises(InputError, match="missing is not defined"):
        module["calls"][1, 32](device.zeros(32, np.uint32))
