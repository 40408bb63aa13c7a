# SPDX-License-Identifier: Apache-2.0
"""The processor's section of a machine: how many cores, and what each is made of.

What a core and the operating system below the program can be told is taken from the core's own tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.machine.model_specs import any_of
from manyscale.spec import Count, Frequency, Spec, Time, parameter

CORE, PROGRAM, TRACE = "cpu.core", "cpu.program", "cpu.trace"
# Stated elsewhere in a machine, or by a run.
_CORE_ELSEWHERE = (
    "clock",
    "l1",
    "l2",
    "prefetcher",
    "coherent",
    "homes",
    "hot_lines",
    "konata_from",
    "konata_count",
    "region_log",
)
_PROGRAM_ELSEWHERE = ("cores", "clock")
WORK_LATENCY = "2ns"  # where none is stated

if TYPE_CHECKING:  # what the core's tables make at run time
    CpuCore = Spec
    System = Spec
else:
    CpuCore = any_of("CpuCore", "A core.", [CORE], without=_CORE_ELSEWHERE)
    System = any_of("System", "The operating system.", [PROGRAM], without=_PROGRAM_ELSEWHERE)


class Cpu(Spec):
    """The processors of a node: cores that run programs, or a source of memory requests."""

    clock: Frequency | None = parameter(None, doc="core clock", minimum="1Hz")
    cores: Count | None = parameter(
        None, doc="number of cores, of all sockets together", minimum=1, maximum=65536
    )
    sockets: Count | None = parameter(
        None,
        doc="chips that cores, shared slices and channels are divided among; not stated: 1",
        minimum=1,
        maximum=64,
    )
    requests_per_cycle: Count | None = parameter(
        None, doc="memory requests a core may issue in one cycle", minimum=1
    )
    core: CpuCore | None = parameter(None, doc="each of the cores")
    system: System | None = parameter(None, doc="what the operating system takes")
    work_latency: Time | None = parameter(
        None,
        doc="of the link that brings a core its instructions, which stands for no hardware; not stated: 2ns",
        minimum="1fs",
    )
