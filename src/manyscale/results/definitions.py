# SPDX-License-Identifier: Apache-2.0
"""The numbers of runs, each defined once: name, unit, meaning, and how it follows from the statistics.

The terminal, `--json`, `run.json`, reports and sweeps show a number under its name, or the words of `label`. Metrics of
kernels are defined beside their formulas, in `manyscale.gpu.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SECOND = 10**15  # femtoseconds


class Statistics:
    """The scalar statistics of a run, summed over components whose names begin alike."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """`columns` are those of the tidy table."""
        names = ("component", "statistic", "scope", "key", "value")
        rows = zip(*(columns[name] for name in names), strict=True)
        self.values: dict[tuple[str, str, str], float] = {
            (component, statistic, scope): value
            for component, statistic, scope, key, value in rows
            if key is None
        }

    def found(self, prefix: str, statistic: str) -> list[float]:
        """Of each component, such as those of "sm[", also on several GPUs; of the whole run."""
        return [
            value
            for (component, name, scope), value in self.values.items()
            if name == statistic
            and scope == "run"
            and (component.startswith(prefix) or f".{prefix}" in component)
        ]

    def total(self, prefix: str, *statistics: str) -> float | None:
        """The sum; None where nothing was counted."""
        found = [value for statistic in statistics for value in self.found(prefix, statistic)]
        return sum(found) if found else None

    def of_kernels(self, metric: str) -> list[float]:
        """A metric of each launch."""
        return [
            value
            for (component, name, scope), value in self.values.items()
            if name == metric and scope != "run" and component.endswith("gpu")
        ]


@dataclass(frozen=True)
class Definition:
    """A number of runs. `follows` computes it from the statistics; None where they do not hold it."""

    name: str
    unit: str
    meaning: str
    follows: Callable[[Statistics], float | None] | None = None
    words: str = ""

    @property
    def label(self) -> str:
        """What people read."""
        return self.words or self.name.replace("_", " ")


def _sum(prefix: str, *statistics: str) -> Callable[[Statistics], float | None]:
    return lambda found: found.total(prefix, *statistics)


def _most(prefix: str, statistic: str) -> Callable[[Statistics], float | None]:
    return lambda found: max(found.found(prefix, statistic), default=None)


def _cores(found: Statistics) -> float | None:
    return len(found.found("core[", "cycles")) or None


def _ipc(found: Statistics) -> float | None:
    cycles = max(found.found("core[", "cycles"), default=0.0)
    return (found.total("core[", "instructions") or 0.0) / cycles if cycles else None


def _launches(found: Statistics) -> float | None:
    return len(found.of_kernels("cycles")) or None


def _total_cycles(found: Statistics) -> float | None:
    return sum(found.of_kernels("cycles")) or None


_ALL = (
    # Every run
    Definition("simulated_seconds", "s", "simulated time that the work took", words="simulated"),
    Definition("events", "event", "events that the engine delivered"),
    Definition("windows", "1", "windows of the parallel engine"),
    Definition("pending_events", "event", "events that were still to come when the run was ended"),
    Definition("exit_code", "1", "of the program", words="exit code"),
    # The host's clock: what may differ between two equal runs
    Definition("wall_seconds", "s", "time of the host", words="took"),
    Definition("wall_threads", "1", "threads of the host that simulated"),
    Definition("wall_processes", "1", "processes of the host that simulated"),
    Definition("wall_events_per_second", "event/s", "events in a second of the host"),
    Definition("wall_instructions_per_second", "instruction/s", "instructions in a second of the host"),
    Definition("wall_packet_hops_per_second", "hop/s", "packet hops in a second of the host"),
    Definition("wall_accesses_per_second", "access/s", "accesses in a second of the host"),
    # GPU kernels
    Definition("launches", "1", "launches of kernels", _launches),
    Definition(
        "total_cycles",
        "cycle",
        "cycles of the GPU's clock of all launches, one after the other",
        _total_cycles,
    ),
    Definition(
        "warp_instructions",
        "instruction",
        "instructions that warps executed, of the ISA that the kernel runs as: PTX, or SASS; the unit says which",
        _sum("sm[", "warp_instructions"),
    ),
    Definition(
        "thread_instructions",
        "instruction",
        "the same, each counted once for every thread that executed it",
        _sum("sm[", "thread_instructions"),
    ),
    Definition(
        "issued_instructions",
        "1",
        "instructions that SMs issued, which is what is timed: SASS, or what PTX is lowered to",
        _sum("sm[", "issued_instructions"),
    ),
    # Unified memory
    Definition("page_faults", "1", "page faults of the device on managed memory", _sum("uvm", "faults")),
    Definition(
        "fault_batches", "1", "fault batches that the UVM driver served", _sum("uvm", "fault_batches")
    ),
    Definition(
        "pages_prefetched",
        "1",
        "pages that the driver moved with others that had faulted",
        _sum("uvm", "pages_prefetched"),
    ),
    Definition(
        "bytes_to_device", "B", "managed memory that moved to the device", _sum("uvm", "bytes_to_device")
    ),
    # CUDA programs
    Definition("copy_count", "1", "copies and fills that the program asked for"),
    Definition("copied_bytes", "B", "bytes of these"),
    Definition("calls", "1", "calls of the CUDA runtime and driver"),
    # Programs on cores
    Definition(
        "cycles", "cycle", "cycles of the cores' clock until the program ended", _most("core[", "cycles")
    ),
    Definition(
        "instructions", "instruction", "instructions that all cores committed", _sum("core[", "instructions")
    ),
    Definition("ipc", "instruction/cycle", "instructions of all cores in one cycle", _ipc, words="IPC"),
    Definition("cores", "core", "cores that were simulated", _cores),
    # MPI jobs
    Definition("ranks", "rank", "ranks of the job"),
    Definition("messages", "message", "messages between ranks, within nodes too", _sum("job", "messages")),
    Definition("bytes", "B", "bytes of these", _sum("job", "bytes")),
    Definition("packets", "packet", "packets that were sent into the network", _sum("job", "packets")),
    Definition(
        "packet_hops", "hop", "links that packets went over, all together", _sum("job", "packet_hops")
    ),
    # Memory traffic
    Definition("accesses", "access", "accesses that cores completed", _sum("core[", "completed")),
    Definition("latency_seconds", "s", "of an access, in the mean"),
    Definition(
        "bandwidth_bytes_per_second", "B/s", "bytes that cores accessed in a second of simulated time"
    ),
)

DEFINITIONS: dict[str, Definition] = {definition.name: definition for definition in _ALL}

Headline = dict[str, dict[str, Any]]


def headline(units: Mapping[str, str] | None = None, **values: float | None) -> Headline:
    """Numbers by name with their units; a name that is not defined is a mistake."""
    told = units or {}
    return {
        name: {"value": value, "unit": told.get(name, DEFINITIONS[name].unit)}
        for name, value in values.items()
    }


def headline_problem(numbers: Mapping[str, Any]) -> str | None:
    """Why this, read from a file, is no headline; None if it is one."""
    for name, entry in numbers.items():
        if not isinstance(entry, dict) or "value" not in entry or "unit" not in entry:
            return f"headline number '{name}' has no value or no unit"
        if not isinstance(entry["unit"], str):
            return f"the unit of headline number '{name}' is not a text"
        if not _is_number(entry["value"]):
            return f"headline number '{name}' is no number"
    return None


def _is_number(value: Any) -> bool:
    """Whether a headline number can be that: none, finite, or whole and within 64 bits."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or isinstance(value, float)


def plain(numbers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The values of a headline by name, as `--json` shows them."""
    return {name: entry["value"] for name, entry in numbers.items()}
