# SPDX-License-Identifier: Apache-2.0
"""Ballots whose lanes name different members, themselves not among them: what hardware gives, as PTX and as SASS."""

import numpy as np
import pytest

from manyscale import gpu
from manyscale.gpu.assembler import find_assembler

pytestmark = pytest.mark.core

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
KERNEL = (
    HEAD
    + """
.visible .entry count(.param .u64 input, .param .u64 output) {
  .reg .b32 %lane, %value, %mask, %votes; .reg .b64 %in, %out; .reg .pred %positive;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %in, [input];
  ld.param.u64 %out, [output];
  mad.wide.u32 %in, %lane, 4, %in;
  mad.wide.u32 %out, %lane, 4, %out;
  ld.global.u32 %value, [%in];
  setp.gt.s32 %positive, %value, 0;
  mov.u32 %mask, 1;
  shl.b32 %mask, %mask, %lane;
  sub.u32 %mask, %mask, 1;
  vote.sync.ballot.b32 %votes, %positive, %mask;
  st.global.u32 [%out], %votes;
  ret;
}
"""
)
ISAS = [
    "ptx",
    pytest.param("sass", marks=pytest.mark.skipif(find_assembler() is None, reason="SASS needs ptxas")),
]


@pytest.mark.parametrize("isa", ISAS)
def test_a_lane_counts_the_votes_of_the_lanes_before_it(isa):
    """`__ballot_sync((1 << lane) - 1, p)` is the ballot of all, cut to the lanes before."""
    device = gpu.Device(isa=isa)
    values = (np.arange(32) * 7 % 5 - 2).astype(np.int32)
    output = device.zeros(32, np.uint32)
    device.load(KERNEL)["count"][1, 32](device.array(values), output)
    ballot = sum(1 << lane for lane in range(32) if values[lane] > 0)
    assert output.numpy().tolist() == [ballot & ((1 << lane) - 1) for lane in range(32)]
