# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA programs that are queued: each has its own traffic in L2 and memory, and all adds up."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels import KERNELS, NAMES
from wire_client import Client, serving

from manyscale import gpu, load_machine
from manyscale.cuda import fatbin
from manyscale.cuda.records import copies_of, launches_of
from manyscale.cuda.timed_gpu import TimedGpu
from manyscale.cuda.wire import ASYNC, NON_BLOCKING, Call, CopySide, MemoryKind
from traffic_support import WatchedCommands, check_profile, check_sums, check_traffic, watch

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"
WORDS = 1 << 14
BYTES = 4 * WORDS
ADD = NAMES.index("add")


@dataclass(frozen=True)
class Case:
    """A kernel of a fat binary. Of its arguments an array is given by its type, and has `WORDS` elements."""

    fixture: str
    kernel: str
    grid: Any
    block: Any
    arguments: tuple[Any, ...]


F, N, U, B, H, D = np.float32, np.int32, np.uint32, np.uint8, np.float16, np.float64
CASES = (
    Case("vector_add", "_Z3addPKfS0_Pfi", 64, 256, (F, F, F, WORDS)),
    Case("stencil", "_Z4stepPKfPfiii", (4, 8), (16, 8), (F, F, 64, 64, 4)),
    Case("matrix_multiply", "_Z8multiplyIfLi16EEvPKT_S2_PS0_iii", (4, 4), (16, 16), (F, F, F, 64, 64, 64)),
    Case("matrix_multiply", "_Z8multiplyIdLi16EEvPKT_S2_PS0_iii", (4, 4), (16, 16), (D, D, D, 64, 64, 64)),
    Case("matrix_multiply", "_Z8multiplyIiLi8EEvPKT_S2_PS0_iii", (8, 8), (8, 8), (N, N, N, 64, 64, 64)),
    Case("histogram", "_Z5countPKhiPj", 8, 192, (B, WORDS, U)),
    Case("reduction", "_Z11sum_shufflePKfiPf", 12, 256, (F, WORDS, F)),
    Case("reduction", "_Z7maximumPKiiPi", 128, 128, (N, WORDS, N)),
    Case("scan", "_Z11scan_blocksPKjPjS1_i", 64, 256, (U, U, U, WORDS)),
    Case("scan", "_Z10add_beforePjPKji", 64, 256, (U, U, WORDS)),
    Case("nbody", "_Z10acceleratePK6float4P6float3if", 8, 64, (F, F, 512, 0.5)),
    Case("radix_sort", "_Z12count_digitsPKjiiPj", 128, 128, (U, WORDS, 4, U)),
    Case("radix_sort", "_Z14exclusive_scanPji", 1, 256, (U, 2048)),
    Case("half_precision", "_Z5fusedPK6__halfS1_PS_i", 64, 256, (H, H, H, WORDS)),
    Case("half_precision", "_Z16through_bfloat16PKfPfi", 64, 256, (F, F, WORDS)),
    Case("tensor_cores", "_Z8multiplyPK6__halfS1_Pfii", (4, 4), 32, (H, H, F, 48, 64)),
    Case("sparse_csr", "_Z10add_scaledPdPKdddi", 64, 256, (D, D, 2.0, 1.0, WORDS)),
)


def device() -> tuple[gpu.TimedDevice, WatchedCommands]:
    machine = load_machine("v100-sst", ["gpu.sm_count=4", "gpu.l2_slices=4"]).machine
    on = gpu.TimedDevice(machine, echo=False, allow_newer=True)  # kernels for sm_75
    return on, watch(on)


def loaded(on: gpu.TimedDevice, case: Case) -> tuple[Any, list[Any]]:
    """The kernel, and arguments for one launch."""
    data = (FIXTURES / f"{case.fixture}.fatbin").read_bytes()
    text = next(image.ptx() for image in fatbin.images(data, case.fixture) if image.is_ptx)
    arguments = [on.zeros(WORDS, value) if isinstance(value, type) else value for value in case.arguments]
    return on.load(text)[case.kernel], arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fixture}-{case.kernel}")
def test_a_kernel_has_its_own_traffic_alone_and_queued(case: Case) -> None:
    on, watched = device()
    kernel, arguments = loaded(on, case)
    first = kernel[case.grid, case.block](*arguments).profile
    stream, beside = on.stream(), on.stream()
    queued = [kernel[case.grid, case.block, 0, stream](*arguments) for _ in range(3)]
    host = np.zeros(WORDS, U)
    scratch = on.zeros(WORDS, U)
    copies = [scratch.copy_from(host, stream=stream), scratch.copy_to(host, stream=stream)]
    queued.append(kernel[case.grid, case.block, 0, stream](*arguments))
    on.synchronize()
    for profile in (first, *(launch.result.profile for launch in queued)):
        check_profile(profile)
        assert profile["l2_bytes"] == pytest.approx(first["l2_bytes"], rel=0.05)
    # Beside each other they may find less in the L1 that they share.
    _, others = loaded(on, case)
    pairs = ((stream, arguments), (beside, others))
    overlapping = [kernel[case.grid, case.block, 0, on_stream](*given) for on_stream, given in pairs * 2]
    copies.append(scratch.fill(1, stream=beside))
    on.synchronize()
    for launch in overlapping:
        check_profile(launch.result.profile)
    for copy in copies:
        assert copy is not None
        check_traffic(copy.traffic)
        assert copy.l2_bytes == scratch.nbytes
    check_sums(on, watched)


# --- As programs drive the server ---


class Program(Client):
    """A program with the kernel that adds two arrays."""

    def begin(self) -> None:
        self.load(KERNELS)
        self.good(Call.FUNCTION, ADD, 1, tail=b"add")
        self.x, self.y, self.other = (self.allocate(BYTES) for _ in range(3))
        self.pinned = self.allocate(BYTES, MemoryKind.PINNED)

    def add(self, stream: int) -> None:
        assert (
            self.launch(ADD, WORDS // 256, 256, struct.pack("<QQI", self.x, self.y, WORDS), stream=stream)
            == 0
        )

    def copy(self, stream: int, to_device: bool) -> None:
        sides = (CopySide.PINNED, CopySide.DEVICE) if to_device else (CopySide.DEVICE, CopySide.PINNED)
        between = (self.pinned, self.other) if to_device else (self.other, self.pinned)
        self.good(Call.COPY, stream, ASYNC, *sides, between[0], 0, 0, between[1], 0, 0, BYTES, 1, 1)


def test_kernels_and_copies_of_a_program_have_their_own_traffic() -> None:
    """The host waits for one of two streams now and then, and so leaves the run in the middle of the other."""
    with serving() as server:
        (on,) = server.node.gpus
        assert isinstance(on, TimedGpu)
        watched = watch(on)
        program = Program(server.path)
        program.begin()
        one, two = (int(program.good(Call.STREAM_CREATE, NON_BLOCKING, 0)[0]) for _ in range(2))
        for _ in range(3):
            program.add(one)
            program.copy(two, True)
            program.add(one)
            program.copy(two, False)
            program.add(two)
            program.good(Call.STREAM_SYNCHRONIZE, one)
        program.good(Call.DEVICE_SYNCHRONIZE)
        program.close()
        launches, copies = launches_of(server.node), copies_of(server.node)
        assert (len(launches), len(copies)) == (9, 6)
        # Two arrays are read and one is written; a copy writes or reads one.
        assert {record.l2_bytes for record in launches} == {3 * BYTES}
        assert {record.l2_bytes for record in copies} == {BYTES}
        assert launches[0].dram_bytes == 2 * BYTES
        (profile,) = on.profiles.values()
        check_profile(profile)
        for ended in watched.ended:
            check_traffic(ended.traffic)
        assert sum(record.dram_bytes for record in (*launches, *copies)) == sum(
            ended.traffic.dram_bytes for ended in watched.ended
        )
        check_sums(on, watched)
