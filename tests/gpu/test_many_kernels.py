# SPDX-License-Identifier: Apache-2.0
"""Modules with very many kernels: reading, checking and using all of them takes time in proportion to their number."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from manyscale import gpu
from manyscale.cuda import linking
from manyscale.gpu.assembler import with_line_marks
from manyscale.gpu.sass import without_resolved_declarations

pytestmark = [pytest.mark.core, pytest.mark.long]

FEW, MANY = 3_000, 6_000
MOST_RATIO = 2.6  # of twice as many; 4 if it were quadratic
MOST_SECONDS = 20.0  # a thirtieth of it is needed

KERNEL = """
.func helper{0}(.param .u64 where)
{{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [where];
    st.u32 [%rd1], {0};
    ret;
}}
.visible .entry kernel{0}(.param .u64 out)
{{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    .param .u64 where;
    st.param.u64 [where], %rd1;
    call helper{0}, (where);
    ret;
}}
"""


def module(kernels: int) -> str:
    texts = (KERNEL.format(number) for number in range(kernels))
    return ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(texts)


def check_all(text: str) -> None:
    assert not any(kernel.problems for kernel in gpu.check(text))


def load_all(text: str) -> None:
    device = gpu.Device()
    loaded = device.load(text)
    for name in loaded.kernels:
        assert loaded[name].parameters


def prepare_for_the_assembler(text: str) -> None:
    assert with_line_marks(without_resolved_declarations(linking.link([text.encode()])))


@pytest.mark.parametrize("work", [check_all, load_all, prepare_for_the_assembler])
def test_time_is_in_proportion_to_the_number_of_kernels(work: Callable[[str], None]):
    def seconds(text: str) -> float:
        begin = time.process_time()
        work(text)
        return time.process_time() - begin

    texts = module(FEW), module(MANY)
    measured = [[seconds(text) for text in texts] for _ in range(3)]
    few, many = (min(column) for column in zip(*measured, strict=True))
    assert many < MOST_SECONDS
    assert many < MOST_RATIO * few, f"{FEW} kernels took {few:.3f} s, {MANY} took {many:.3f} s"
