# SPDX-License-Identifier: Apache-2.0
"""What the tests of control flow share: a kernel around a body, compared with the reference interpreter."""

import numpy as np
from instruction_support import agree
from reference import HEADER

THREADS = 75


def kernel(body: str, before: str = "", name: str = "kernel") -> str:
    """%thread is the thread's number, %x a word of its own; %a and %b are stored at END."""
    return f"""{HEADER}{before}
.visible .entry {name}(.param .u64 input, .param .u64 output)
{{
    .reg .pred %p, %q, %odd, %third;
    .reg .b32 %thread, %x, %a, %b, %i, %j, %t;
    .reg .b64 %input, %out, %wide;
    .shared .align 4 .b8 tile[{4 * THREADS}];
    mov.u32 %thread, %tid.x;
    ld.param.u64 %input, [input];
    mad.wide.u32 %input, %thread, 4, %input;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %thread, 8, %out;
    ld.global.u32 %x, [%input];
    and.b32 %t, %thread, 1;
    setp.eq.u32 %odd, %t, 1;
    rem.u32 %t, %thread, 3;
    setp.eq.u32 %third, %t, 0;
    mov.u32 %a, 1;
    mov.u32 %b, 0;
{body}
END:
    st.global.v2.u32 [%out], {{%a, %b}};
    ret;
}}"""


def compare(device, body: str, before: str = "", threads: int = THREADS) -> np.ndarray:
    """Runs it on both; gives the two words of each thread."""
    words = np.random.default_rng(9).integers(0, 2**32, threads, np.uint32)
    text = kernel(body, before)
    _input, output = agree(device, text, "kernel", 1, threads, words, np.zeros(2 * threads, np.uint32))
    return output.reshape(-1, 2)


def exchange(wait: str) -> str:
    """Each thread leaves its word and takes that of another after `wait`."""
    return f"""
    mov.u32 %t, tile;
    mad.lo.u32 %j, %thread, 4, %t;
    st.shared.u32 [%j], %x;
    {wait}
    mul.lo.u32 %i, %thread, 7;
    rem.u32 %i, %i, {THREADS};
    mad.lo.u32 %j, %i, 4, %t;
    ld.shared.u32 %a, [%j];"""
