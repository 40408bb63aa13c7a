# SPDX-License-Identifier: Apache-2.0
"""Registers of lowered PTX: values share them without waiting for each other, and what finds none is spilled as an
assembler does."""

from __future__ import annotations

import pytest
from test_lowering import kernel, lower

pytestmark = pytest.mark.core


def rows_of(lowered):
    return [row for operation in lowered.operations for row in operation[3]]


def test_paths_that_exclude_each_other_share_registers_without_waiting_for_each_other() -> None:
    """Eight paths one behind the other in the text, whose values live in every other one: no register that holds what
    a load brings is written by anything else before it is read."""
    names = "".join(f".reg .b32 %v0_{i}; .reg .b32 %v1_{i};" for i in range(24))
    names += "".join(
        f".reg .b32 %t{path}_{i}; .reg .b64 %a{path}_{i}; .reg .b64 %b{path}_{i};"
        for path in range(8)
        for i in range(24)
    )
    tests = "".join(f"setp.eq.u32 %q,%r19,{path}; @%q bra P{path};\n" for path in range(1, 8))
    paths = ""
    for path in range(8):
        registers = [f"%v{path % 2}_{i}" for i in range(24)]
        loads = "".join(
            f"xor.b32 %t{path}_{i},%r19,{i + 5}; mul.wide.u32 %a{path}_{i},%t{path}_{i},{4 * i + 8};"
            f"add.s64 %b{path}_{i},%d16,%a{path}_{i}; ld.global.u32 {r},[%b{path}_{i}];"
            for i, r in enumerate(registers)
        )
        sums = "".join(f"add.u32 %s,%s,{r};" for r in registers)
        paths += f"P{path}: {loads} {sums} bra DONE;\n"
    body = f"{names} .reg .b32 %s; .reg .pred %q; mov.u32 %s,0;\n{tests}{paths}DONE: st.global.u32 [%d15],%s;"
    lowered = lower(kernel(body, ".maxnreg 40"))
    assert lowered.spilled == 0
    held: set[int] = set()  # registers that loads have written and nobody has read
    for kind, reads, writes, _, _ in rows_of(lowered):
        held -= set(reads)
        assert not held & set(writes), (kind, reads, writes)
        if kind == "load_global":
            held |= set(writes)
    assert not held
