# SPDX-License-Identifier: Apache-2.0
"""Kernels around loads and stores, for the tests of memory: each thread has a slot in each state space."""

from reference import HEADER

THREADS = 45
SLOT = 32
"""Bytes that each thread has."""


def own_slots(space: str) -> str:
    """Sets %own to the address of the thread's slot in a space, filled with what its slot in global memory holds."""
    copy = "".join(
        f"""
    ld.global.b64 %copy, [%input+{offset}];
    st.{{}}.b64 [%own+{offset}], %copy;"""
        for offset in range(0, SLOT, 8)
    )
    match space.split():
        case ["generic", kind]:
            return f"{own_slots(kind)}\n    cvta.{kind}.u64 %own, %own;"
        case ["shared"]:
            return f"""
    mov.u64 %own, shared_slots;
    mad.wide.u32 %own, %thread, {SLOT}, %own;{copy.format(*["shared"] * 4)}"""
        case ["local"]:
            return f"\n    mov.u64 %own, local_slots;{copy.format(*['local'] * 4)}"
    return "\n    cvta.to.global.u64 %own, %input;"


def frame(body: str, space: str, declarations: str = "") -> str:
    """A kernel around `body`, in which %own points at the thread's slot of a space and %out at its results."""
    return f"""{HEADER}
.visible .entry kernel(.param .u64 input, .param .u64 output)
{{
    .reg .b32 %thread;
    .reg .b64 %own, %input, %out, %copy;
    .shared .align 16 .b8 shared_slots[{THREADS * SLOT}];
    .local .align 16 .b8 local_slots[{SLOT}];
    {declarations}
    mov.u32 %thread, %tid.x;
    ld.param.u64 %input, [input];
    mad.wide.u32 %input, %thread, {SLOT}, %input;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 256, %out;{own_slots(space)}
    {body}
    ret;
}}"""


def space_of(space: str) -> str:
    return "" if space.startswith("generic") else f".{space}"
