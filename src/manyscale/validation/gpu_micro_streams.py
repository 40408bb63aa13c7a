# SPDX-License-Identifier: Apache-2.0
"""Streams over arrays of doubles by occupancy, with the accesses of gpu-stream of RRZE-HPC/gpu-benches.

Each thread handles one element: it writes (init), reads (read), or does both (scale, triad, stencils of three and five
points). Blocks of the size that gpu-stream takes, and dynamic shared memory, set how many threads are resident. Where
gpu-stream times 256 Mi elements, these kernels run over fewer: a launch fills the L2 with what such a stream leaves
there, then two launches of different lengths are timed, and their difference is the rate of a stream without end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyscale.gpu import TimedLaunch, parse
from manyscale.gpu.isa import Isa
from manyscale.machine import load_machine
from manyscale.validation.gpu_target import GpuTarget
from manyscale.validation.rows import Row

_BYTES = 8  # of an element
_ELEMENTS = 1 << 20  # of an array that the shorter of the two launches handles
_MARGIN = 128  # elements before and after an array, for the stencils
_RESERVED = 1024  # bytes of shared memory that a block of an A100 has besides its own


@dataclass(frozen=True)
class _Kernel:
    """What a thread does with its element, and the arrays whose bytes count."""

    arrays: int
    body: str


# %a is the address of the element of the array that is written; %b, %c and %d of those that are read.
_KERNELS = {
    "init": _Kernel(1, "mov.f64 %f1, 0d3FCD70A3D70A3D71; st.global.f64 [%a], %f1;"),
    "read": _Kernel(
        1,
        "ld.global.nc.f64 %f1, [%b]; setp.neu.f64 %q, %f1, 0d405EC00000000000; @%q ret;"
        "st.global.f64 [%a], %f1;",
    ),
    "scale": _Kernel(
        2, "ld.global.nc.f64 %f1, [%b]; mul.f64 %f1, %f1, 0d3FF3333333333333; st.global.f64 [%a], %f1;"
    ),
    "triad": _Kernel(
        4,
        "ld.global.nc.f64 %f1, [%b]; ld.global.nc.f64 %f2, [%d]; ld.global.nc.f64 %f3, [%c];"
        "fma.rn.f64 %f1, %f1, %f2, %f3; st.global.f64 [%a], %f1;",
    ),
    "3pt": _Kernel(
        2,
        "ld.global.nc.f64 %f1, [%b+-8]; ld.global.nc.f64 %f2, [%b]; ld.global.nc.f64 %f3, [%b+8];"
        "mul.f64 %f1, %f1, 0d3FE0000000000000; sub.f64 %f1, %f1, %f2;"
        "fma.rn.f64 %f1, %f3, 0d3FE0000000000000, %f1; st.global.f64 [%a], %f1;",
    ),
    "5pt": _Kernel(
        2,
        "ld.global.nc.f64 %f1, [%b+-16]; ld.global.nc.f64 %f2, [%b+-8]; ld.global.nc.f64 %f3, [%b];"
        "ld.global.nc.f64 %f4, [%b+8]; ld.global.nc.f64 %f5, [%b+16]; mul.f64 %f2, %f2, 0d3FD0000000000000;"
        "fma.rn.f64 %f1, %f1, 0d3FD0000000000000, %f2; sub.f64 %f1, %f1, %f3;"
        "fma.rn.f64 %f1, %f4, 0d3FE0000000000000, %f1; fma.rn.f64 %f1, %f5, 0d3FE0000000000000, %f1;"
        "st.global.f64 [%a], %f1;",
    ),
}


@dataclass(frozen=True)
class _Point:
    """Resident threads of an SM, as blocks, and GB/s of the kernels in the order of their table."""

    block: int
    blocks: int  # of an SM
    rates: tuple[int, ...]

    @property
    def occupancy(self) -> float:
        return 100 * self.block * self.blocks / 2048


_V100 = (
    _Point(64, 2, (306, 139, 246, 400, 233, 226)),
    _Point(256, 2, (897, 491, 675, 759, 648, 635)),
    _Point(1024, 2, (897, 867, 809, 788, 804, 801)),
)
_A100 = (
    _Point(64, 2, (412, 162, 292, 406, 270, 265)),
    _Point(256, 2, (1501, 592, 956, 1232, 909, 887)),
    _Point(1024, 2, (1539, 1500, 1382, 1358, 1371, 1368)),
)
_MEASURED = {"v100-pcie": (_V100, "v100.txt"), "a100": (_A100, "a100_40.txt")}


def stream_rows(machine: str = "v100-pcie", isa: Isa = "auto") -> list[Row]:
    """GB/s of each kernel at three occupancies; of machines without such measurements none."""
    points, file = _MEASURED.get(load_machine(machine).machine.name or "", ((), ""))
    return [
        Row(
            f"{name} at {point.occupancy:.1f}% occupancy",
            stream_rate(GpuTarget(machine, isa), name, point.block, point.blocks),
            point.rates[index],
            "GB/s",
            f"RRZE-HPC/gpu-benches, gpu-stream/{file}",
        )
        for index, name in enumerate(_KERNELS)
        for point in points
    ]


def stream_rate(target: GpuTarget, name: str, block: int, blocks: int) -> float:
    """GB/s of a kernel with so many blocks on each SM: what twice as many elements take longer."""
    device, kernel = target.device(), _KERNELS[name]
    gpu = device.machine.gpu
    assert gpu is not None and gpu.l2_slices is not None and gpu.l2_slice_capacity is not None  # noqa: PT018
    warm = max(_ELEMENTS, gpu.l2_slices * gpu.l2_slice_capacity // _BYTES)
    arrays = [device.empty(warm + 3 * _ELEMENTS + 2 * _MARGIN, np.float64) for _ in range(4)]
    run = device.load(parse(_text(kernel.body), portable=True))["stream"]
    limits = device.parts.scheduler.spec.model_dump()["limits"]
    shared = int(limits["shared"]) // blocks // 256 * 256 - _RESERVED

    def launch(first: int, count: int) -> TimedLaunch:
        starts = [array.address + _BYTES * (first + _MARGIN) for array in arrays]
        done = run[-(-count // block), block, shared](*starts, count, 0)
        assert isinstance(done, TimedLaunch)
        return done

    launch(0, warm)  # leaves lines of the stream in the L2
    once, twice = launch(warm, _ELEMENTS), launch(warm + _ELEMENTS, 2 * _ELEMENTS)
    return kernel.arrays * _BYTES * _ELEMENTS / (twice.seconds - once.seconds) / 1e9


def _text(body: str) -> str:
    """A kernel: the shared memory is used only if a parameter says so, which it never does."""
    return f"""
.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 8 .b8 unused[];
.visible .entry stream(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 n,
                       .param .u32 use)
{{
  .reg .pred %p, %q, %e;
  .reg .b32 %r<6>;
  .reg .b64 %l<8>, %a, %b, %c, %d;
  .reg .f64 %f<8>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  cvt.s64.s32 %l1, %r4; ld.param.u64 %l2, [n]; setp.ge.u64 %p, %l1, %l2; @%p ret;
  ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %c, [pc]; ld.param.u64 %d, [pd];
  ld.param.u32 %r5, [use]; setp.eq.s32 %e, %r5, 0; shl.b64 %l3, %l1, 3;
  @%e bra NEXT;
  cvt.s64.s32 %l4, %r3; shl.b64 %l4, %l4, 3; add.s64 %l5, %b, %l4; ld.global.nc.f64 %f7, [%l5];
  mov.u64 %l6, unused; add.s64 %l6, %l6, %l4; st.shared.f64 [%l6], %f7;
NEXT:
  add.s64 %a, %a, %l3; add.s64 %b, %b, %l3; add.s64 %c, %c, %l3; add.s64 %d, %d, %l3;
  {body}
  ret;
}}
"""
