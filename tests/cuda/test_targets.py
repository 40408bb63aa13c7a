# SPDX-License-Identifier: Apache-2.0
"""Programs with code that the machine's GPU does not take, or that the simulator cannot execute."""

from __future__ import annotations

import pytest
from kernels import HEAD
from wire_client import Client, serving

from manyscale.cuda.status import Status
from manyscale.cuda.wire import STICKY, Call, MemoryKind

pytestmark = pytest.mark.core

EMPTY = ".visible .entry nothing() { ret; }\n"
NOT_EXECUTED = ".visible .entry unknown() { .reg .b32 %r<2>; frobnicate.b32 %r1, %r1; ret; }\n"


def ptx(target: str, kernel: str) -> str:
    return HEAD.replace("sm_70", target) + kernel


@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize(
    ("machine", "target", "taken"),
    [
        ("v100", "sm_70", True),
        ("v100", "sm_75", False),
        ("v100", "sm_90a", False),
        ("a100", "sm_75", True),
        ("a100", "sm_90", False),
    ],
)
def test_newer_ptx_has_no_image_for_the_gpu(machine: str, target: str, taken: bool, functional: bool):
    with serving(machine, functional=functional) as server:
        client = Client(server.path)
        client.load(ptx(target, EMPTY))
        status = client.call(Call.FUNCTION, 1, 1, tail=b"nothing")[0]
        assert status == (Status.SUCCESS if taken else Status.NO_KERNEL_IMAGE_FOR_DEVICE)
        client.close()
    assert any("--allow-newer" in message for message in server.messages) != taken


def test_newer_ptx_is_taken_with_a_warning_where_that_is_allowed():
    with serving("v100", allow_newer=True) as server:
        client = Client(server.path)
        client.load(ptx("sm_90a", EMPTY))
        client.good(Call.FUNCTION, 1, 1, tail=b"nothing")
        assert client.launch(1, 1, 32, b"") == Status.SUCCESS
        client.close()
    assert any(
        "PTX for sm_90a is taken on a GPU of compute capability 7.0" in message for message in server.messages
    )


@pytest.mark.parametrize("functional", [True, False])
def test_a_launch_that_cannot_be_executed_is_a_failure_that_stays(functional: bool):
    """Else a program that does not look at the status would read values that were not computed."""
    with serving("v100", functional=functional) as server:
        client = Client(server.path)
        client.load(ptx("sm_70", NOT_EXECUTED))
        status = client.call(Call.FUNCTION, 1, 1, tail=b"unknown")[0]
        assert (status, client.flags & STICKY) == (Status.NOT_SUPPORTED, 0)
        client.good(Call.MALLOC, MemoryKind.DEVICE, 0, 256, 0)  # asking alone does no harm
        status = client.launch(1, 1, 32, b"")
        assert (status, client.flags & STICKY) == (Status.NOT_SUPPORTED, STICKY)
        assert client.call(Call.MALLOC, MemoryKind.DEVICE, 0, 256, 0)[0] == Status.NOT_SUPPORTED
        client.close()
