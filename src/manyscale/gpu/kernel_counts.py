# SPDX-License-Identifier: Apache-2.0
"""Counters of one launch, and the peak rates of its GPU: the inputs of all metrics."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyscale.machine.gpu_system import GpuSystem

LANES = 32
SECTOR_BYTES = 32
PRECISIONS = ("fp64", "fp32", "fp16", "tensor")
PIPES = ("alu", "fma", "fp64", "xu", "tensor", "lsu", "cbu", "other")

_INSTRUCTION_BYTES = 16
_HEADER_BYTES = 8  # of each message on the crossbar (core/memory/protocol.hpp)
_FLOPS_OF_A_TENSOR_STEP = 2 * 256  # products and sums of the steps that core/gpu/lower/lower.cpp makes
_BYTES = re.compile(r"\.[a-z]+(8|16|32|64|128)(?:x2)?$")
# Instructions of SASS begin with capitals.
_TENSOR = ("mma", "wmma", "HMMA", "DMMA")
_GLOBAL = ("LDG", "LD", "LDL", "STG", "ST", "STL", "ATOM", "ATOMG", "RED")
_MACHINE_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class OccupancyLimit(enum.Enum):
    """The resource of an SM that keeps a further CTA off it."""

    CTA_SIZE = "the size of its CTAs"
    CTA_COUNT = "the CTAs that an SM holds"
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"


@dataclass(frozen=True)
class MachinePeaks:
    """The peak rates of a GPU, and the resources of an SM."""

    clock: int  # hertz
    sms: int
    sub_cores: int
    warps: int
    limits: Mapping[str, int]  # resources of an SM, which limit its occupancy
    register_unit: int  # registers of a warp are allocated in multiples of it
    address_interval: int
    global_interval: int
    tags: int  # lines that the L1 looks up in a cycle
    request_interval: int  # cycles between requests of an SM to the L2
    atomic_cycles: float  # of the SM clock, for which an atomic operation occupies its L2 slice
    slices: int  # of the L2
    flits: float  # per port of the crossbar and cycle of the SMs
    flit: int  # bytes
    intervals: Mapping[str, int]  # issue interval in cycles, by kind of instruction
    instruction_cache: int  # bytes of a sub-core's
    end_seconds: float  # from the end of the last CTA to that of the kernel
    flops: Mapping[str, float]  # by precision, per second
    l2_bytes: float  # per second
    dram_bytes: float  # per second


def machine_peaks(parts: GpuSystem) -> MachinePeaks:
    """The peaks of a GPU as it is simulated: they follow from the parameters of its components."""
    sm, scheduler = parts.sms[0].spec.model_dump(), parts.scheduler.spec.model_dump()
    sub_cores = len(parts.sms) * sm["sub_cores"]

    def rate(kind: str, flops: int) -> float:
        return float(sub_cores * flops * parts.clock / sm["timing"][kind]["interval"])

    slices, channels = (
        [
            component.spec.model_dump()
            for name, component in parts.system.components.items()
            if name.startswith(kind)
        ]
        for kind in ("slice[", "channel[")
    )
    crossbar = parts.system.components["crossbar"].spec.model_dump()
    return MachinePeaks(
        clock=parts.clock,
        sms=len(parts.sms),
        sub_cores=sm["sub_cores"],
        warps=sm["warps"],
        limits=scheduler["limits"],
        register_unit=scheduler["units"]["registers"],
        address_interval=sm["address_interval"],
        global_interval=sm["global_interval"],
        tags=sm["l1"]["tags"],
        request_interval=sm["l1"]["request_interval"],
        atomic_cycles=slices[0]["atomic_interval"] * parts.clock / slices[0]["clock"],
        slices=len(slices),
        flits=crossbar["output_ports"] * crossbar["clock"] / parts.clock,
        flit=crossbar["flit"],
        intervals={
            kind: timing["interval"] for kind, timing in sm["timing"].items() if isinstance(timing, dict)
        },
        instruction_cache=sm["l0_instructions"],
        end_seconds=scheduler["end_latency"] / scheduler["clock"],
        flops={
            "fp64": rate("fp64", 2 * LANES),
            "fp32": rate("fp32", 2 * LANES),
            "fp16": rate("fp16", 4 * LANES),  # two halves in a register
            "tensor": rate("tensor_half", _FLOPS_OF_A_TENSOR_STEP),
        },
        l2_bytes=sum(_slice_bytes(spec) for spec in slices),
        dram_bytes=sum(_channel_bytes(spec) for spec in channels),
    )


def _slice_bytes(spec: Mapping[str, Any]) -> float:
    cache = spec["cache"]
    return float(min(cache["banks"] * spec["width"], cache["ports"] * cache["line"]) * spec["clock"])


def _channel_bytes(spec: Mapping[str, Any]) -> float:
    if spec["backend"] == "simple":
        return float(spec["bandwidth"])
    return float(spec["burst_bytes"] / spec["burst_cycles"] * spec["clock"])


@dataclass(frozen=True)
class KernelCounts:
    """The counters of one launch, whatever else ran at the same time.

    A write-back of the L2 belongs to the launch whose access evicts the line, not to the one that wrote it.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    begun: int  # femtoseconds
    first_cta: int
    ended: int
    registers: int
    ctas_per_sm: int
    warps_per_cta: int
    code_instructions: int  # of the machine, in the program
    sms: int  # that had a CTA
    sm: Mapping[str, int]  # sums over the SMs, by the names of their statistics
    l2: Mapping[str, int]
    crossbar: Mapping[str, int]
    dram: Mapping[str, int]
    operations: Mapping[str, list[Any]]  # columns, a row for each operation that was executed
    peaks: MachinePeaks
    states: Mapping[str, list[int]] = field(default_factory=dict)  # cycles of warps by state, in intervals
    state_interval: int = 1  # cycles
    prepared: int = 0  # cycles of its launch that had passed when it began

    @property
    def seconds(self) -> float:
        """With the part of the launch that passed while the kernel before still ran: as if it had run alone."""
        return (self.ended - self.begun) / 10**15 + self.prepared / self.peaks.clock

    @property
    def elapsed_cycles(self) -> int:
        """From its turn in the stream to its end."""
        return round((self.ended - self.begun) * self.peaks.clock / 10**15)

    @property
    def cycles(self) -> int:
        """The same in cycles of an SM."""
        return self.elapsed_cycles + self.prepared

    @property
    def execution_seconds(self) -> float:
        """From the start of the first CTA to the end of the last."""
        return max((self.ended - self.first_cta) / 10**15 - self.peaks.end_seconds, 0.0)

    @property
    def ctas(self) -> int:
        x, y, z = self.grid
        return x * y * z

    @property
    def threads_per_cta(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def code_bytes(self) -> int:
        return self.code_instructions * _INSTRUCTION_BYTES

    @property
    def l2_bytes(self) -> int:
        """Data that went between the SMs and the L2."""
        return self.crossbar["bytes"] - _HEADER_BYTES * self.crossbar["messages"]

    @property
    def dram_bytes(self) -> int:
        return self.dram["read_bytes"] + self.dram["write_bytes"]

    @cached_property
    def flops(self) -> dict[str, int]:
        """Floating-point operations by precision; those of tensor cores apart."""
        sums = dict.fromkeys(PRECISIONS, 0)
        columns = (self.operations[name] for name in ("text", "flops", "flop_bits", "threads"))
        for text, flops, bits, threads in zip(*columns, strict=True):
            if flops:
                sums["tensor" if text.startswith(_TENSOR) else f"fp{bits}"] += flops * threads
        return sums

    @cached_property
    def global_bytes_used(self) -> int:
        """Bytes that threads requested of global and local memory."""
        rows = zip(self.operations["text"], self.operations["threads"], strict=True)
        return sum(threads * _access_bytes(text) for text, threads in rows if _goes_to_memory(text))

    @cached_property
    def occupancy_limit(self) -> OccupancyLimit:
        """The resource that keeps a further CTA off an SM."""
        limits, warps = self.peaks.limits, self.warps_per_cta
        each = self.registers * LANES
        rounded = -(-each // self.peaks.register_unit) * self.peaks.register_unit
        fitting = {
            OccupancyLimit.CTA_SIZE: min(limits["warps"], limits["threads"] // LANES, self.peaks.warps)
            // warps,
            OccupancyLimit.CTA_COUNT: limits["ctas"],
            OccupancyLimit.REGISTERS: limits["registers"] // max(rounded * warps, 1),
        }
        return min(
            (limit for limit, ctas in fitting.items() if ctas <= self.ctas_per_sm),
            key=fitting.__getitem__,
            default=OccupancyLimit.SHARED_MEMORY,
        )

    @property
    def occupancy_limit_text(self) -> str:
        """The resource that limits occupancy, for messages."""
        limit = self.occupancy_limit
        return f"registers ({self.registers} a thread)" if limit is OccupancyLimit.REGISTERS else limit.value


def _goes_to_memory(text: str) -> bool:
    opcode, *modifiers = text.split(".")
    if opcode.isupper():
        return opcode in _GLOBAL
    elsewhere = {"shared", "shared::cta", "param", "const"}
    return opcode in ("ld", "ldu", "st", "atom", "red") and elsewhere.isdisjoint(modifiers)


def _access_bytes(text: str) -> int:
    """Bytes that an instruction such as ld.global.v4.f32 or LDG.E.128.SYS moves for each thread."""
    if text[:1].isupper():
        return next((_MACHINE_BYTES[word] for word in text.split(".")[1:] if word in _MACHINE_BYTES), 4)
    found = _BYTES.search(text)
    vector = 4 if ".v4." in text else 2 if ".v2." in text else 1
    return vector * (int(found[1]) // 8 * (2 if text.endswith("x2") else 1) if found else 4)


def bytes_accessed(text: str, threads: int) -> int:
    """Bytes of global or local memory that threads access with an instruction, such as ld.global.f32."""
    return threads * _access_bytes(text) if _goes_to_memory(text) else 0
