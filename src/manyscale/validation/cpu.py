# SPDX-License-Identifier: Apache-2.0
"""Processors: latencies of caches, memory, instructions and wrong branches, bandwidths, beside what is published.

Each is measured in the simulated machine by a small RISC-V program (`programs/micro.c`). What a machine's file was
calibrated with is compared here too: then the row shows that the model does what the file says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyscale import cpu
from manyscale.validation.rows import Row, calibrated

PROGRAM = Path(__file__).parent / "programs" / "micro.elf"
_REGION = "measured"
_UNROLLED = 64  # operations in an iteration of a chain or a stream
_LINE = 64  # bytes
# Loads of a chase are an addition apart, whose cycle is not part of their latency.
_ADDITION = 1
# What memory latencies are measured with elsewhere: pages so large that no TLB misses.
_LARGE_PAGES = ("cpu.core.translation.enabled=false",)

_ANANDTECH = "AnandTech 10353, p. 10, E5-2699 v4"
_LLVM = "LLVM X86SchedBroadwell"
_TABLE_5 = "ElasticSimMATE, Table 5"
_TX2 = "SimEng tx2.yaml, LLVM AArch64SchedThunderX2T99"
_SNIPER = "Sniper nehalem.cfg, gainestown.cfg: the times on the way added up"
_TABLE_2 = "ElasticSimMATE, Table 2"


@dataclass(frozen=True)
class Measured:
    """What a small program took between its marks."""

    cycles: int
    seconds: float  # of the slowest process
    mispredicts: int


@dataclass(frozen=True)
class Operation:
    """An operation's latency and how many a cycle takes, as published; None: not compared."""

    name: str
    latency: float | None
    per_cycle: float | None


BROADWELL = (
    Operation("integer", 1, 4),
    Operation("multiply", 3, 1),
    Operation("divide", 25, 1 / 10),
    Operation("float_add", 3, 1),
    Operation("float_multiply", 3, 2),
    Operation("float_fused", 5, 2),
    Operation("float_divide", 14, 1 / 4),
    Operation("load", None, 2),
)
THUNDERX2 = (
    Operation("integer", 1, 3),
    Operation("multiply", 5, 1),
    Operation("divide", 39, None),
    Operation("float_add", 6, 2),
    Operation("float_multiply", 6, 2),
    Operation("float_fused", 6, 2),
    Operation("float_divide", 23, None),
    Operation("load", None, 2),
)


_TESTS = ("two loads", "STREAM triad")


def rows(machine: str = "") -> list[Row]:
    """All of them; each processor is a machine of its own, so none can be chosen.

    The machines state what these rows show, or are calibrated to it; nothing was fitted to those in `_TESTS`.
    """
    del machine
    found = [*broadwell_rows(), *dibona_rows(), *nehalem_rows(), *elasticsimmate_rows()]
    return [row if any(name in row.name for name in _TESTS) else calibrated([row])[0] for row in found]


def broadwell_rows() -> list[Row]:
    """The Xeon E5 v4: measured latencies, LLVM's tables of instructions."""
    machine = "broadwell"
    found = [
        Row(f"{machine}: load from L1", chase(machine, "16KiB"), 4, "cycles", _ANANDTECH),
        Row(f"{machine}: load from L2", chase(machine, "128KiB"), 12, "cycles", _ANANDTECH),
        Row(f"{machine}: load from L3", chase(machine, "4MiB"), 48, "cycles", _ANANDTECH),
        Row(f"{machine}: two loads from L3", chase(machine, "4MiB", two=True), 57, "cycles", _ANANDTECH),
        Row(f"{machine}: load from memory", 1e9 * cold_chase(machine), 57, "ns", _ANANDTECH),
        Row(f"{machine}: two loads from memory", 1e9 * cold_chase(machine, two=True), 75, "ns", _ANANDTECH),
        Row(f"{machine}: mispredicted branch", mispredict(machine), 16, "cycles", _LLVM),
    ]
    return found + operation_rows(machine, BROADWELL, _LLVM)


def dibona_rows() -> list[Row]:
    """The ThunderX2 of Dibona: the article's latencies, published tables of instructions, a measured bandwidth."""
    machine = "dibona"
    found = [
        Row(f"{machine}: load from L1", chase(machine, "16KiB"), 4, "cycles", _TABLE_5),
        Row(f"{machine}: load from L2", chase(machine, "128KiB"), 15, "cycles", _TABLE_5),
        Row(f"{machine}: load from L3", chase(machine, "4MiB"), 68, "cycles", _TABLE_5),
        Row(f"{machine}: mispredicted branch", mispredict(machine), 12, "cycles", _TX2),
        Row(
            f"{machine}: STREAM triad, 32 cores",
            triad(machine, 32) / 1e9,
            120.5,
            "GB/s",
            "AnandTech 12694, p. 6: 241 GB/s on two sockets",
        ),
    ]
    return found + operation_rows(machine, THUNDERX2, _TX2)


def nehalem_rows() -> list[Row]:
    """Sniper's Nehalem: the sums of its own configuration."""
    machine, clock = "nehalem", 2.66
    memory = (1 + 3 + 10) / clock + 45 + _LINE / 7.6
    return [
        Row(f"{machine}: load from L1", chase(machine, "16KiB"), 4, "cycles", _SNIPER),
        Row(f"{machine}: load from L2", chase(machine, "128KiB"), 1 + 8, "cycles", _SNIPER),
        Row(f"{machine}: load from L3", chase(machine, "4MiB"), 1 + 3 + 30, "cycles", _SNIPER),
        Row(f"{machine}: load from memory", 1e9 * cold_chase(machine), memory, "ns", _SNIPER),
        Row(f"{machine}: mispredicted branch", mispredict(machine), 8, "cycles", _SNIPER),
    ]


def elasticsimmate_rows() -> list[Row]:
    """The reference system of ElasticSimMATE: what its memory adds to a load."""
    machine, clock = "elasticsimmate", 2e9
    added = cold_chase(machine) - chase(machine, "256KiB") / clock
    return [Row(f"{machine}: what memory adds to L2", 1e9 * added, 30, "ns", _TABLE_2)]


def operation_rows(machine: str, operations: Sequence[Operation], source: str) -> list[Row]:
    """Latency and throughput of operations."""
    found = []
    for operation in operations:
        name = operation.name.replace("_", " ")
        if operation.latency is not None:
            cycles = _per_operation(machine, f"{operation.name}_chain")
            found.append(Row(f"{machine}: {name}, latency", cycles, operation.latency, "cycles", source))
        if operation.per_cycle is not None:
            rate = 1 / _per_operation(machine, f"{operation.name}_stream")
            found.append(
                Row(f"{machine}: {name}, throughput", rate, operation.per_cycle, "per cycle", source)
            )
    return found


def chase(machine: str, footprint: str, *, two: bool = False, loads: int = 20_000) -> float:
    """Cycles of a load whose address needs the last one's data, of lines in a footprint; or of two side by side."""
    arguments = ("chase_two" if two else "chase", str(loads), str(_bytes(footprint)))
    return measure(machine, arguments, _LARGE_PAGES).cycles / loads - _ADDITION


def cold_chase(machine: str, *, two: bool = False, loads: int = 5_000) -> float:
    """Seconds of the same in memory that is in no cache."""
    arguments = ("cold_chase_two" if two else "cold_chase", str(loads), str(_bytes("1GiB")))
    changes = (*_LARGE_PAGES, "memory.prefetcher.kind=none")
    taken = measure(machine, arguments, changes)
    return taken.seconds / loads * (1 - _ADDITION * loads / taken.cycles)


def mispredict(machine: str, branches: int = 20_000) -> float:
    """Cycles that a wrong branch costs: of branches at random beside branches that always go the same way."""
    steady = measure(machine, ("steady_branches", str(branches)))
    random = measure(machine, ("random_branches", str(branches)))
    return (random.cycles - steady.cycles) / (random.mispredicts - steady.mispredicts)


def triad(machine: str, cores: int, array: str = "2MiB") -> float:
    """Bytes in a second that STREAM's triad counts: two arrays read and one written, by each of so many processes."""
    taken = measure(machine, ("triad", "1", str(_bytes(array))), processes=cores)
    return 3 * _bytes(array) * cores / taken.seconds


def measure(
    machine: str, arguments: Sequence[str], changes: Sequence[str] = (), processes: int = 1
) -> Measured:
    """Runs the small program, a process on each of so many cores."""
    program = cpu.Program(PROGRAM, arguments, ranks=processes)
    stated = [change for change in changes if _applies(machine, change)]
    result = cpu.run(program, machine=machine, changes=stated, cores=processes)
    table = result.regions.filter(region=_REGION)
    cycles = max(sum(row[cause] for cause in result.causes) for row in table.iter_rows(named=True))
    wrong = sum(int(result.value(f"core[{core}]", "mispredicts")) for core in range(processes))
    return Measured(cycles, max(table["time"]), wrong)


def _per_operation(machine: str, name: str, iterations: int = 300) -> float:
    return measure(machine, (name, str(iterations))).cycles / (iterations * _UNROLLED)


def _applies(machine: str, change: str) -> bool:
    """Whether a machine has the section that a change is made in."""
    from manyscale.machine import load_machine

    if not change.startswith("memory.prefetcher"):
        return True
    memory = load_machine(machine).machine.memory
    return memory is not None and memory.prefetcher is not None


def _bytes(text: str) -> int:
    from manyscale.units import BYTES, parse

    return int(parse(text, BYTES))
