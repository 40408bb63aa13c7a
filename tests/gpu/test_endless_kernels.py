# SPDX-License-Identifier: Apache-2.0
"""Kernels that never end are given up at the limit of instructions, however they spin, in every form."""

import numpy as np
import pytest

from manyscale import _core, gpu
from manyscale.errors import KernelError
from manyscale.gpu.assembler import find_assembler

pytestmark = pytest.mark.core

# Bodies of loops; %value comes from memory, so that no compiler knows that it never changes.
LOOPS = {
    "branches": "",
    "all warps meet at a barrier": "bar.sync 0;",
    "lanes go apart and meet": """
      setp.lt.u32 %own, %lane, 7;
      @%own bra FEW;
      atom.global.add.u32 %count, [%at+4], 1;
      bra MEET;
    FEW:
      atom.global.add.u32 %count, [%at+8], 2;
    MEET:
      bar.warp.sync -1;""",
    "lanes vote": "vote.sync.any.pred %go, %go, -1;",
}


def endless(body: str) -> str:
    return f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry endless(.param .u64 at)
{{
  .reg .b64 %at;
  .reg .b32 %value, %lane, %count;
  .reg .pred %go, %own;
  ld.param.u64 %at, [at];
  cvta.to.global.u64 %at, %at;
  mov.u32 %lane, %laneid;
LOOP:
  ld.volatile.global.u32 %value, [%at];
  setp.eq.u32 %go, %value, 0;
  {body}
  @%go bra LOOP;
  ret;
}}
"""


def run(device: gpu.Device, loop: str, at: gpu.DeviceArray) -> None:
    device.load(endless(LOOPS[loop]))["endless"][2, 64](at)
    device.synchronize()


@pytest.mark.parametrize("isa", ["ptx", "sass"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("timed", [False, True], ids=["functional", "timed"])
def test_an_endless_kernel_is_given_up_at_the_limit(loop: str, isa: str, timed: bool):
    if isa == "sass" and find_assembler() is None:
        pytest.skip("there is no ptxas")
    options = {"maximum_instructions": 20_000, "isa": isa}
    device = gpu.TimedDevice("v100", **options) if timed else gpu.Device(**options)
    at = device.zeros(4, np.uint32)
    with pytest.raises(KernelError) as caught:
        run(device, loop, at)
    assert caught.value.kind is _core.GpuFaultKind.instruction_limit
