# SPDX-License-Identifier: Apache-2.0
"""What the tests of `Device(check=True)` share: a kernel around a body, and findings by line."""

import re

import numpy as np
from instruction_support import HEADER

from manyscale import gpu

THREADS = 128


def kernel(body: str, functions: str = "") -> str:
    """%i is the thread, %own its word in `tile`, %in and %out its words in global memory; %first holds in thread 0."""
    return f"""{HEADER}{functions}
.visible .entry kernel(.param .u64 input, .param .u64 output)
{{
    .reg .b32 %i, %own, %lane, %step, %a, %b, %c, %d;
    .reg .b64 %in, %out, %wide, %state, %base;
    .reg .pred %p, %q, %first;
    .shared .align 16 .b8 tile[1024];
    .shared .align 4 .u32 flag;
    .shared .align 8 .b64 barrier;
    .local .align 8 .b8 stack[64];
    mov.u32 %i, %tid.x;
    and.b32 %lane, %i, 31;
    setp.eq.u32 %first, %i, 0;
    shl.b32 %a, %i, 2;
    mov.u32 %own, tile;
    add.u32 %own, %own, %a;
    ld.param.u64 %base, [input];
    mad.wide.u32 %in, %i, 4, %base;
    ld.param.u64 %out, [output];
    mad.wide.u32 %out, %i, 4, %out;
{body}
    ret;
}}"""


def run(body: str, threads: int = THREADS, grid: int = 2, functions: str = "", fill: bool = True):
    """The findings, the results, and the text of the kernel."""
    device = gpu.Device(check=True)
    text = kernel(body, functions)
    values = np.arange(3, threads + 3, dtype=np.uint32)
    source = device.array(values) if fill else device.empty(threads, np.uint32)
    output = device.zeros(threads, np.uint32)
    launch = device.load(text)["kernel"][grid, threads](source, output)
    return launch.warnings, output.numpy(), text


def line_of(text: str, mark: str) -> int:
    """The line of the kernel that ends with that comment."""
    [line] = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(f"// {mark}")]
    return line


def lines_in(finding: str) -> set[int]:
    return {int(line) for line in re.findall(r"<ptx>:(\d+)", finding)}


def races_among(findings: tuple[str, ...]) -> list[str]:
    """Without those that tell of a read that came before the write."""
    return [finding for finding in findings if finding.startswith("race in shared memory")]
