# SPDX-License-Identifier: Apache-2.0
"""Values that change while kernels are queued: each launch sees those of its own turn, as PTX and as SASS."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import KernelError, gpu
from manyscale.gpu.assembler import find_assembler

pytestmark = pytest.mark.core

ADD_CONSTANTS = """
.version 7.0
.target sm_70
.address_size 64
.visible .const .align 4 .f32 coefficients[8];
.visible .entry add_constant(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    ld.const.f32 %f2, [coefficients+12];
    add.rn.f32 %f3, %f1, %f2;
    st.global.f32 [%rd3], %f3;
    ret;
}
"""

# Writes 1 to the memory whose address is in memory.
WRITE_INDIRECTLY = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry write_indirectly(.param .u64 holder)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [holder];
    ld.global.u64 %rd2, [%rd1];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    mov.u32 %r1, 1;
    st.global.u32 [%rd4], %r1;
    ret;
}
"""


@pytest.fixture(params=["ptx", "sass"])
def device(request: pytest.FixtureRequest) -> gpu.TimedDevice:
    if request.param == "sass" and find_assembler() is None:
        pytest.skip("ptxas, which makes SASS of PTX, is not there")
    return gpu.TimedDevice("v100", isa=request.param)


@pytest.mark.parametrize("streams", [1, 3])
def test_a_launch_reads_constants_when_it_begins(device: gpu.TimedDevice, streams: int):
    """Copies to a constant array between launches, in one stream and in several that wait for each other."""
    module = device.load(ADD_CONSTANTS)
    coefficients = module.variable("coefficients", np.float32)
    queues = [device.stream() for _ in range(streams)]
    arrays = [device.zeros(32) for _ in range(6)]
    last = None
    for turn, array in enumerate(arrays):
        stream = queues[turn % streams]
        if last is not None:
            stream.wait(last)
        coefficients.copy_from(np.arange(8, dtype=np.float32) + 10 * turn, stream=stream)
        module["add_constant"][1, 32, 0, stream](array)
        last = stream.record()
    device.synchronize()
    for turn, array in enumerate(arrays):
        np.testing.assert_array_equal(array.numpy(), np.full(32, 3 + 10 * turn, np.float32))


def test_memory_that_a_queued_kernel_may_reach_is_not_given_to_others(device: gpu.TimedDevice):
    """The kernel has the address of an array from memory, so that nothing in Python keeps the array alive."""
    module = device.load(WRITE_INDIRECTLY)
    array = device.zeros(32, np.uint32)
    holder = device.array(np.array([array.address], np.uint64))
    module["write_indirectly"][1, 32, 0, device.stream()](holder)
    del array
    other = device.zeros(32, np.uint32)
    device.synchronize()
    np.testing.assert_array_equal(other.numpy(), np.zeros(32, np.uint32))


def test_memory_that_is_freed_before_a_queued_kernel_is_no_other_arrays(device: gpu.TimedDevice):
    module = device.load(WRITE_INDIRECTLY)
    array = device.zeros(32, np.uint32)
    holder = device.array(np.array([array.address], np.uint64))
    module["write_indirectly"][1, 32, 0, device.stream()](holder)
    array.free()
    device.zeros(32, np.uint32)
    with pytest.raises(KernelError, match="the memory was freed"):
        device.synchronize()
