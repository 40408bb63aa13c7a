# SPDX-License-Identifier: Apache-2.0
"""Errors of kernels say to programs, too, what went wrong: by a kind and fields, not by words."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from test_faults import CTA, THREAD, kernel

from manyscale import KernelError, _core, gpu

pytestmark = pytest.mark.core

KINDS = {
    "invalid_address": "@%guilty ld.global.u32 %a, [%p+24]; // here",
    "misaligned_address": "mov.u32 %b, tile;\n@%guilty ld.shared.u64 %q, [%b+4];",
    "trap": "@%guilty trap;",
    "deadlock": "bar.sync 3, 128;",
    "invalid_operation": "mov.u32 %a, 16;\n@%guilty bar.sync %a;",
}


def device(timed: bool, **options: Any) -> gpu.Device:
    if not timed:
        return gpu.Device(**options)
    options = {"isa": "ptx", "allow_newer": True, "echo": False, **options}
    return gpu.TimedDevice("v100", changes=["gpu.sm_count=2"], **options)


def fault(body: str, on: gpu.Device) -> KernelError:
    with pytest.raises(KernelError) as caught:
        on.load(kernel(body))["wrong"][(4, 2), (16, 4)](0, 0)
    return caught.value


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "deadlock"])
def test_a_fault_has_a_kind_and_a_location(kind: str, timed: bool):
    error = fault(KINDS[kind], device(timed))
    assert error.kind is getattr(_core.GpuFaultKind, kind)
    assert error.location.kernel == "wrong"
    assert (error.location.cta, error.location.thread) == (CTA, THREAD)
    assert error.location.source.endswith("(wrong.cu:7)")
    assert error.location.instruction in KINDS[kind]
    assert error.location.address == {"invalid_address": 24}.get(kind, error.location.address)
    assert pickle.loads(pickle.dumps(error)).location == error.location  # it crosses processes
    raised = error.__context__  # by the core; dask sends it too
    assert isinstance(raised, _core.KernelFault)
    assert pickle.loads(pickle.dumps(raised.location)).cta == raised.location.cta


def test_a_deadlock_and_too_many_instructions_have_kinds():
    stuck = fault(KINDS["deadlock"], device(False))
    assert (stuck.kind, stuck.location.cta) == (_core.GpuFaultKind.deadlock, (0, 0, 0))
    endless = fault("LOOP: bra LOOP;", device(False, maximum_instructions=1000))
    assert endless.kind is _core.GpuFaultKind.instruction_limit
    with_barrier = fault("LOOP: bar.sync 0; bra LOOP;", device(False, maximum_instructions=1000))
    assert with_barrier.kind is _core.GpuFaultKind.instruction_limit
    assert endless.location.kernel == "wrong"


def test_a_stopped_device_repeats_what_stopped_it():
    on = device(True)
    first = fault(KINDS["trap"], on)
    second = fault("ret;", on)
    assert "the device stopped when a kernel failed" in str(second)
    assert (second.kind, second.location) == (first.kind, first.location)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        (((1, 1, 1), (2048, 1, 1), 0), "block_shape"),
        (((0, 1, 1), (32, 1, 1), 0), "grid_shape"),
        (((1, 1, 1), (32, 1, 1), 1 << 20), "shared_memory"),
    ],
)
def test_a_launch_that_cannot_be_has_a_problem(shape: Any, problem: str):
    on = device(False)
    native = on.load(kernel("ret;"))["wrong"]._native
    with pytest.raises(_core.BadLaunch) as caught:
        on.native.launch(native, *shape, bytes(16), 1, False, 0)
    assert caught.value.problem is getattr(_core.GpuLaunchProblem, problem)
