# SPDX-License-Identifier: Apache-2.0
"""Finds the core that suits the processor, in a wheel that holds several.

A wheel for x86-64 holds the core once for each level of the instruction set, in a folder `isa/LEVEL` of the package;
all give the same results to the bit. A build from source has one core, for the processor it was built on, and no such
folder. The environment variable MANYSCALE_ISA_LEVEL chooses another level, for tests.
"""

from __future__ import annotations

import os

VARIABLE = "MANYSCALE_ISA_LEVEL"

# What each level adds to the one before, as Linux names it in /proc/cpuinfo: x86-64 psABI 1.0, Table 3.1.
_X86_64 = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


def core_folders(package: str) -> list[str]:
    """The folder to look for the core in besides the package's own; none where the package has its own."""
    built = os.path.join(package, "isa")
    if not os.path.isdir(built):
        return []
    levels = sorted(os.listdir(built))
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        chosen = max((level for level in supported_levels(_flags()) if level in levels), default=None)
        if chosen is None:
            raise ImportError(
                f"this wheel of manyscale needs a processor of level {levels[0]}; on an older one, build it from source"
            )
    elif chosen not in levels:
        raise ImportError(f"{VARIABLE}={chosen}: this wheel of manyscale has {', '.join(levels)}")
    return [os.path.join(built, chosen)]


def supported_levels(flags: set[str]) -> list[str]:
    """The levels that a processor with these flags has, from the lowest."""
    found = []
    for level, needed in _X86_64.items():
        if not flags.issuperset(needed.split()):
            break
        found.append(level)
    return found


def _flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:  # those of the first processor: reading all takes long where there are hundreds
                if line.startswith("flags"):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()
