# SPDX-License-Identifier: Apache-2.0
"""What the kernels of a program are looked over for, in the words of NVIDIA's Compute Sanitizer."""

from __future__ import annotations

from manyscale.errors import InputError

# Bits of the core (core/gpu/exec/checks.hpp).
ALL = 0b1111
_RACES, _GLOBAL_READS, _BARRIERS = 0b0001, 0b0100, 0b1000
_BITS = {
    "memcheck": 0,  # invalid accesses always end a kernel
    "racecheck": _RACES,
    "initcheck": _GLOBAL_READS,  # of global memory only, as there
    "synccheck": _BARRIERS,
}
CHECKS = tuple(_BITS)


def checks_of(text: str) -> tuple[str, ...]:
    """The checks that a list names; "all" is all of them.

    >>> checks_of("racecheck,memcheck")
    ('memcheck', 'racecheck')
    """
    names = {name.strip() for name in text.split(",")}
    if names == {"all"}:
        return CHECKS
    if unknown := sorted(names - _BITS.keys()):
        raise InputError(f"--check {text}: {unknown[0]!r} is none of {', '.join(CHECKS)} or all")
    return tuple(name for name in CHECKS if name in names)


def bits_of(checks: tuple[str, ...], isa: str) -> int:
    """What the core looks for in a kernel. SASS has lost warp barriers, so races are not told apart there."""
    bits = 0
    for name in checks:
        bits |= _BITS[name]
    return bits if isa == "ptx" else bits & ~_RACES
