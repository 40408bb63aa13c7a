# SPDX-License-Identifier: Apache-2.0
"""What was published about unified memory: measurements on a GTX 1080 Ti, and results of the simulator UVMSmart.

All of it is in DebashisGanguly/gpgpu-sim_UVMSmart at bafab5d.
"""

from __future__ import annotations

from dataclasses import dataclass

PROGRAMS_SOURCE = "UVMSmart, RealOversubOverhead: nvprof on a GTX 1080 Ti"
FAULTS_SOURCE = "UVMSmart, micro-benchmarks: nvprof on a GTX 1080 Ti"
COPIES_SOURCE = "UVMSmart, transferBandwidth.cu: nvprof on a GTX 1080 Ti"
SIMULATOR_SOURCE = "UVMSmart, ISCA 2019 logs: another simulator"


@dataclass(frozen=True)
class Measured:
    """One run of a program with unified memory, as nvprof saw it.

    Where nvprof gives more bytes to the host than ever came, or far more the other way, it presumably lost records:
    such numbers are None.
    """

    kernels_us: float
    batches: int | None = None  # of GPU page faults
    to_device_mib: float | None = None
    to_host_mib: float | None = None


# By program and working set, in percent of the memory that was free.
MEASURED: dict[str, dict[int, Measured]] = {
    "backprop": {
        100: Measured(11_117.0, 69, 26.69, 22.63),
        125: Measured(11_308.2, 68, 26.81, 24.75),
        150: Measured(14_675.3, 102, 30.69, 30.50),
    },
    "bfs": {
        100: Measured(2_180_605.5, 5305, 6397.2, 6478.7),
        125: Measured(9_718_213.5, 18219, 28407.0, 28259.2),
        150: Measured(33_502_056.2, 72888, 91267.6, 90792.0),
    },
    "fdtd_2d": {
        100: Measured(37_514.0, 205, 102.31, 92.31),
        125: Measured(62_643.0, 331, 176.81, 168.81),
        150: Measured(70_986.0, 364, 215.0, 210.94),
    },
    "hotspot": {
        100: Measured(20_324.0, 99, 44.0, 42.0),
        125: Measured(29_651.0, 169, 56.19, 56.19),
        150: Measured(31_577.0, 187, 63.31, 63.31),
    },
    "needleman_wunsch": {
        100: Measured(154_002.0),
        125: Measured(245_430.0),
        150: Measured(1_515_230.0, 3467, 5077.7, 5074.0),
    },
    "random_access": {
        100: Measured(6_328.1, 18, 16.0, 14.0),
        125: Measured(96_339.0),
        150: Measured(131_790.0),
    },
    "sssp": {
        100: Measured(88_658.7, 395, 291.0, 279.0),
        125: Measured(98_538.4, 416, 331.81, 325.81),
        150: Measured(131_434.2),
    },
}


# These two needed 12 MiB and had 9 MiB at what is called 125%.
_HAD_NINE_MIB = ("hotspot", "random_access")


def oversubscription(program: str, percent: int) -> float:
    """How often what a program needed would have had to fit into what was free."""
    return 12 / 9 if percent == 125 and program in _HAD_NINE_MIB else percent / 100


@dataclass(frozen=True)
class FaultSequence:
    """One thread that touches addresses far apart, one after the other: where, and how long each fault took."""

    name: str
    allocated_kib: int
    offsets_kib: tuple[int, ...]
    microseconds: tuple[float, ...]


FAULTS = (
    FaultSequence(
        "in order", 2048, (0, 64, 128, 256, 512, 1024), (183.74, 25.22, 31.84, 49.28, 84.38, 157.02)
    ),
    FaultSequence(
        "two ahead", 2048, (64, 192, 0, 256, 512, 1024), (175.84, 25.57, 47.84, 50.27, 84.80, 156.42)
    ),
    FaultSequence(
        "four ahead",
        2048,
        (64, 192, 320, 448, 0, 512, 1024),
        (191.94, 24.61, 23.62, 23.55, 58.53, 84.38, 158.24),
    ),
    FaultSequence(
        "three blocks",
        6144,
        tuple(2048 * block + offset for block in range(3) for offset in (0, 64, 128, 256, 512, 1024)),
        (
            *(188.99, 25.12, 32.45, 48.93, 83.84, 158.18),
            *(57.66, 22.08, 31.42, 54.85, 83.46, 155.10),
            *(55.36, 21.73, 30.30, 48.03, 82.37, 154.43),
        ),
    ),
    FaultSequence(
        "a part of a block",
        2048 + 192,
        (0, 64, 128, 256, 512, 1024, 2048, 2112, 2176),
        (173.73, 25.50, 32.03, 49.25, 96.38, 158.88, 93.57, 25.66, 34.34),
    ),
)

# Microseconds of a copy to the device, by KiB, from memory that is not pinned.
COPIES_US = {
    4: 1.184,
    8: 1.568,
    16: 2.368,
    32: 3.969,
    64: 7.200,
    128: 12.673,
    256: 23.233,
    512: 44.418,
    1024: 87.011,
}

# Far faults that UVMSmart counted with enough memory, by program and prefetcher.
SIMULATED_FAULTS: dict[str, dict[str, int]] = {
    "backprop": {"tree": 100, "sequential_local": 460, "random": 4718, "none": 6785},
    "bfs": {"tree": 53, "sequential_local": 162, "random": 1725, "none": 2491},
    "fdtd_2d": {"tree": 58, "sequential_local": 277, "random": 3018, "none": 4224},
    "hotspot": {"tree": 36, "sequential_local": 192, "random": 2137, "none": 3072},
}
