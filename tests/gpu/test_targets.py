# SPDX-License-Identifier: Apache-2.0
"""Code for other GPUs than the machine's: refused as NVIDIA's driver refuses it, unless newer PTX is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from manyscale import gpu, load_machine
from manyscale.cuda.properties import describe
from manyscale.gpu.assembler import assemble, find_assembler
from manyscale.gpu.targets import NewerTargetWarning, WrongTargetError, fits

pytestmark = pytest.mark.core

KERNEL = """
.version 8.0
.target {target}
.address_size 64
.visible .entry put(.param .u64 out)
{{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], 7;
    ret;
}}
"""

SMALL = ("gpu.sm_count=2", "gpu.l2_slices=2")


def device(machine: str, *changes: str, **options) -> gpu.TimedDevice:
    return gpu.TimedDevice(load_machine(machine, [*SMALL, *changes]).machine, **options)


@pytest.mark.parametrize(
    ("kind", "target", "capability", "taken"),
    [
        ("PTX", "sm_70", 70, True),
        ("PTX", "sm_60", 80, True),
        ("PTX", "sm_75", 70, False),
        ("PTX", "sm_90a", 90, True),
        ("PTX", "sm_90a", 100, False),
        ("PTX", "sm_100f", 103, True),
        ("PTX", "sm_100f", 120, False),
        ("PTX", "sm_120", 121, True),
        ("SASS", "sm_80", 86, True),
        ("SASS", "sm_86", 80, False),
        ("SASS", "sm_70", 80, False),
        ("SASS", "sm_90a", 90, True),
        ("SASS", "sm_100a", 103, False),
    ],
)
def test_a_gpu_takes_what_the_driver_would_take(kind, target, capability, taken):
    assert fits(kind, target, capability) == taken


@pytest.mark.parametrize(
    ("machine", "target"), [("v100", "sm_75"), ("v100", "sm_90a"), ("a100", "sm_90"), ("p100", "sm_70")]
)
def test_newer_ptx_is_refused_or_taken_with_a_warning(machine, target):
    text = KERNEL.format(target=target)
    with pytest.raises(WrongTargetError, match=f"this PTX is for {target}.*--allow-newer"):
        device(machine).load(text)
    allowing = device(machine, allow_newer=True)
    with pytest.warns(NewerTargetWarning, match=f"this PTX is for {target}"):
        module = allowing.load(text)
    out = allowing.zeros(1, np.uint32)
    module["put"][1, 1](out)
    assert out.numpy()[0] == 7


def test_code_for_one_gpu_runs_on_that_one():
    on = device("a100", 'gpu.architecture="sm_90"')
    out = on.zeros(1, np.uint32)
    on.load(KERNEL.format(target="sm_90a"))["put"][1, 1](out)
    assert out.numpy()[0] == 7


@pytest.mark.skipif(find_assembler() is None, reason="ptxas, which makes SASS of PTX, is not there")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
def test_sass_for_other_gpus_is_refused_even_if_newer_ptx_is_allowed(target):
    cubin = assemble(KERNEL.format(target=target).encode(), "put.ptx", target)
    with pytest.raises(WrongTargetError, match=f"this SASS is for {target}"):
        device("v100", allow_newer=True).load(cubin)
    if target != "sm_75":
        device("a100", f'gpu.architecture="{target.removesuffix("a")}"').load(cubin)


@pytest.mark.parametrize(
    ("machine", "capability"), [("p100", 60), ("gtx1080ti", 61), ("v100", 70), ("titanv", 70), ("a100", 80)]
)
def test_a_machine_keeps_its_compute_capability_under_another_name(machine, capability):
    """It comes from gpu.architecture, which each preset states with its source."""
    resolved = load_machine(machine)
    assert "gpu.architecture" in resolved.sources
    renamed = load_machine(machine, ['name="mine"']).machine
    for described in (resolved.machine, renamed):
        assert describe(described, 0, 1).capability == capability
        assert gpu.TimedDevice(described).capability == capability
