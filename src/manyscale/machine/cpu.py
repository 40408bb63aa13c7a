# SPDX-License-Identifier: Apache-2.0
"""The processor's section of a machine: how many cores, and what each is made of.

The parameters of a core and of the operating system below the program come from the core's own tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyscale.machine.model_specs import any_of
from manyscale.spec import Count, Frequency, Ratio, Spec, Time, deferred, parameter

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
    from manyscale.machine.core_specs import CpuCore, CpuSystem
else:
    CpuCore = deferred(lambda: any_of("CpuCore", "A core.", [CORE], without=_CORE_ELSEWHERE))
    CpuSystem = deferred(
        lambda: any_of("System", "The operating system.", [PROGRAM], without=_PROGRAM_ELSEWHERE)
    )


class OpenMP(Spec):
    """The cost of OpenMP's runtime and of threads, in cycles, where a trace does not hold it.

    A recording takes what it cannot measure from here. The last four are the cost of the task queue where tasks of one
    recorded core are scheduled on several: of its lock, and of lines that other cores had last.
    """

    fork: Count = parameter(doc="cycles to begin a parallel region", minimum=0)
    join: Count = parameter(doc="cycles to end one when all threads have come", minimum=0)
    barrier: Count = parameter(doc="cycles of a barrier when all threads have come", minimum=0)
    lock: Count = parameter(doc="cycles to take a free lock", minimum=0)
    create: Count = parameter(doc="cycles to create a task", minimum=0)
    schedule: Count = parameter(doc="cycles from the end of a task to the beginning of the next", minimum=0)
    taskwait: Count = parameter(doc="cycles of a taskwait that need not wait", minimum=0)
    thread: Count = parameter(doc="cycles until a thread that shares a core begins", minimum=0)
    event: Count = parameter(doc="cycles of waiting for an event that has happened", minimum=0)
    wake: Count = parameter(doc="cycles to wake a thread that sleeps", minimum=0)
    pool: Count = parameter(doc="cycles to make the pool of threads", minimum=0)
    worker: Count = parameter(doc="cycles to make each thread of it", minimum=0)
    queue_lock: Count = parameter(doc="cycles that a thread holds the lock of the task queue", minimum=0)
    queue_lines: Count = parameter(doc="lines of the queue that a dequeue gets from other cores", minimum=0)
    polling: Count = parameter(
        doc="cycles that each core that polls the lock adds to the time it is held", minimum=0
    )
    polling_lines: Ratio = parameter(doc="lines that each of them takes from the holder", minimum=0)


class Compaction(Spec):
    """The limits of trace compaction: how much of a program becomes a node of a trace of this machine."""

    max_dispatch_delay: Count = parameter(
        doc="cycles of a computational delay after dispatch; a longer chain has a node in between",
        minimum=0,
        maximum=255,
    )
    max_own_dispatch_delay: Count = parameter(
        doc="cycles of one after a node's own dispatch; a longer one counts from an older node's",
        minimum=0,
        maximum=255,
    )
    max_hidden_completion: Count = parameter(
        doc="cycles that a compacted instruction may complete after the node behind it",
        minimum=0,
        maximum=1000,
    )
    port_sample_period: Count = parameter(
        doc="instructions after which the ports that limit the rate are found again", minimum=1, maximum=65535
    )
    port_node_period: Count = parameter(
        doc="instructions of such ports that one node stands for", minimum=1, maximum=1000
    )
    port_slack: Ratio = parameter(
        doc="ports limit the rate if they need so many times what the core's width does",
        minimum=0,
        maximum=100,
    )
    reorder_buffer_share: Ratio = parameter(
        doc="most instructions of a node, as a share of the reorder buffer", minimum=0, maximum=1
    )


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
    system: CpuSystem | None = parameter(None, doc="what the operating system takes")
    openmp: OpenMP | None = parameter(None, doc="cost of OpenMP's runtime; needed to record programs")
    compaction: Compaction | None = parameter(
        None, doc="limits of trace compaction; needed to record programs"
    )
    work_latency: Time | None = parameter(
        None,
        doc="of the link that brings a core its instructions, which stands for no hardware; not stated: 2ns",
        minimum="1fs",
    )
