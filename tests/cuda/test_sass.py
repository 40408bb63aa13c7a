# SPDX-License-Identifier: Apache-2.0
"""Programs that carry SASS: which is taken, and that it runs without any PTX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernels import HEAD
from wire_client import container

from manyscale import gpu, load_machine
from manyscale.cuda.executable import Executable
from manyscale.cuda.fatbin import Image, best_cubin, images
from manyscale.cuda.modules import CudaModule
from manyscale.cuda.node import Node, NodeOptions
from manyscale.errors import InputError
from manyscale.gpu.assembler import find_assembler
from manyscale.gpu.sass import assembled_sass, without_resolved_declarations

pytestmark = pytest.mark.core

EMPTY_KERNEL = ".visible .entry empty() { ret; }\n"
FIXTURES = Path(__file__).parent / "fixtures"


def sass(*architectures: int) -> list[Image]:
    return [Image(False, architecture, (8, 0), 0, b"", 0) for architecture in architectures]


def test_a_gpu_takes_sass_of_its_own_generation_that_is_not_newer():
    found = sass(70, 75, 80, 86, 90)
    assert best_cubin(found, 70) is found[0]
    assert best_cubin(found, 75) is found[1]
    assert best_cubin(found, 80) is found[2]
    assert best_cubin(found, 89) is found[3]
    assert best_cubin(sass(86), 80) is None
    assert best_cubin(sass(70), 80) is None
    assert best_cubin([Image(True, 80, (8, 0), 0, b"", 0)], 80) is None


def test_sass_that_nvcc_made_runs_without_ptx():
    found = images((FIXTURES / "vector_add-cubins.fatbin").read_bytes())
    chosen = best_cubin(found, 80)
    assert chosen is not None
    device = gpu.Device()
    module = device.load(chosen.unpacked())
    assert module.isa == "sass"
    a, b = np.arange(1000, dtype=np.float32), np.full(1000, 0.25, np.float32)
    result = device.zeros(1000)
    module["_Z3addPKfS0_Pfi"][8, 128](device.array(a), device.array(b), result, 1000)
    np.testing.assert_array_equal(result.numpy(), a + b)


def test_sass_runs_where_all_ptx_is_for_newer_gpus():
    """As in cuBLAS, whose PTX is for the newest GPU only; checks ask for PTX where there is some."""
    cubin = best_cubin(images((FIXTURES / "vector_add-cubins.fatbin").read_bytes()), 80)
    assert cubin is not None
    own = container((cubin.unpacked(), 80), kind=2)
    newer = container(((HEAD.replace("sm_70", "sm_90") + EMPTY_KERNEL).encode(), 90))
    entries = own[16:] + newer[16:]
    both = newer[:8] + len(entries).to_bytes(8, "little") + entries
    node = Node(load_machine("a100").machine, NodeOptions(functional=True, checks=("racecheck",)))
    notes: list[str] = []
    module = CudaModule(1, [both], {}, lambda gpu, address, size: None, notes.append)
    assert module.kernel(node.gpus[0], "_Z3addPKfS0_Pfi").native.isa == "sass"
    assert notes == ["module-1.ptx: it runs as SASS; racecheck finds races in PTX only"]


def test_a_program_with_sass_alone_is_refused_only_where_no_gpu_can_run_it():
    program = Executable(Path("vector_add"), machine="EM_X86_64")
    program.separate.append(sass(80, 90))
    program.check_runnable(80)
    program.check_runnable(86)
    with pytest.raises(InputError, match="which this GPU cannot run, and no PTX"):
        program.check_runnable(70)


LINKED = b"""
.version 7.0
.target sm_75
.address_size 64
.extern .global .align 4 .f32 factor;
.extern .func (.param .b32 result) scaled (.param .b32 value);
.visible .entry scale(.param .u64 out)
{
    .reg .b64 %rd<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [out];
    ld.global.f32 %f1, [factor];
    .param .b32 value;
    .param .b32 result;
    st.param.f32 [value], %f1;
    call (result), scaled, (value);
    ld.param.f32 %f2, [result];
    st.global.f32 [%rd1], %f2;
    ret;
}
.visible .global .align 4 .f32 factor = 0f40400000;
.visible .func (.param .b32 result) scaled (.param .b32 value)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [value];
    add.rn.f32 %f2, %f1, %f1;
    st.param.f32 [result], %f2;
    ret;
}
"""


@pytest.mark.skipif(find_assembler() is None, reason="SASS needs ptxas: pip install nvidia-cuda-nvcc-cu12")
def test_linked_ptx_is_assembled_though_it_declares_what_it_defines():
    assert without_resolved_declarations(LINKED).count(b"\n") == LINKED.count(b"\n")
    assert assembled_sass(gpu.parse(LINKED), "sm_75").kernels == ["scale"]
    device = gpu.Device(isa="sass")
    out = device.zeros(1)
    device.load(LINKED)["scale"][1, 1](out)
    assert out.numpy()[0] == 6
