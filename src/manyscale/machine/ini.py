# SPDX-License-Identifier: Apache-2.0
"""Reads the INI listings of the SST-GPU and UVM Smart reports, also as copied from a page with its markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyscale.errors import nearest
from manyscale.machine.statements import Layer, Statement, Tree, state
from manyscale.spec import Base, refusal
from manyscale.units import shown

# Section and key of a listing -> the parameters they set.
MACHINE_KEYS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "CPU": {
        "clock": ("cpu.clock",),
        "num_cores": ("cpu.cores",),
        "max_reqs_cycle": ("cpu.requests_per_cycle",),
    },
    "Memory": {
        "clock": ("memory.clock",),
        "network_bw": ("memory.bandwidth",),
        "capacity": ("memory.capacity",),
    },
    "Network": {
        "latency": ("mesh.latency",),
        "bandwidth": ("mesh.bandwidth",),
        "flit_size": ("mesh.flit_size",),
    },
    "GPU": {
        "clock": ("gpu.clock",),
        "gpu_cores": ("gpu.sm_count",),
        "gpu_l2_parts": ("gpu.l2_slices",),
        "gpu_l2_capacity": ("gpu.l2_slice_capacity",),
        "gpu_cpu_latency": ("link.data_latency", "link.command_latency"),
        "gpu_cpu_bandwidth": ("link.bandwidth",),
        "num_sm_blobs": ("gpu.sm_groups",),
    },
    "GPUMemory": {
        "clock": ("gpu.memory.clock",),
        "network_bw": ("gpu.memory.bandwidth",),
        "capacity": ("gpu.memory.capacity",),
        "memControllers": ("gpu.memory.controllers",),
        "hbmStacks": ("gpu.memory.stacks",),
        "hbmChan": ("gpu.memory.channels_per_stack",),
        "hbmRows": ("gpu.memory.rows",),
        "page_size": ("gpu.uvm.page_size",),
        "page_fault_handling_latency": ("gpu.uvm.fault_latency",),
        "page_table_walk_latency": ("gpu.uvm.walk_latency",),
    },
    "GPUNetwork": {
        "latency": ("gpu.crossbar.latency",),
        "bandwidth": ("gpu.crossbar.bandwidth",),
        "linkbandwidth": ("gpu.crossbar.link_bandwidth",),
        "flit_size": ("gpu.crossbar.flit_size",),
    },
    "GPU-CPU Interconnect": {},
}
# What runs, rather than what it runs on.
WORKLOAD_KEYS: Mapping[str, tuple[str, ...]] = {
    "CPU": ("application",),
    "ariel": ("executable", "gpu_mode", "gpu_enabled"),
}
SECTIONS = sorted({*MACHINE_KEYS, *WORKLOAD_KEYS})

_SECTION = re.compile(r"(?:##+\s*)?\[([^\]]*)\]\s*")
_KEY = re.compile(r"([A-Za-z][\w-]*)\s*[:=]\s*(.*)")
_PCIE = re.compile(r"PCIe\s+3\.0\s+(\d{1,2})x,\s*8\s*GTPS per channel per direction\b.*")
_PAGE_SIZE = re.compile(r"(\d+)\s*([kKMG])B")


def looks_like_ini(text: str) -> bool:
    """Whether a text without a telling file name is a listing: its first entry is `key: value`."""
    entries = (line for line in map(_without_markup, text.splitlines()) if line and line[0] not in "#;[")
    return re.match(r"[A-Za-z][\w-]*\s*:", next(entries, "")) is not None


def read_ini(text: str, origin: str) -> Layer:
    """What a listing states; all its unknown sections and keys are one error, a line for each."""
    reader = _Reader(origin)
    for number, line in enumerate(text.splitlines(), start=1):
        reader.read(number, _without_markup(line))
    if reader.problems:
        raise refusal(reader.problems)
    return Layer(reader.tree, workload=reader.workload)


def _without_markup(line: str) -> str:
    """The line as the author typed it: Markdown's escapes and TeX's micro sign undone."""
    line = re.sub(r"\\?\$\s*\\mu\s*s\s*\\?\$", "us", line.strip())
    return re.sub(r"\\([_$*#\[\]-])", r"\1", line)


@dataclass
class _Reader:
    origin: str
    tree: Tree = field(default_factory=dict)
    workload: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    section: str | None = None
    section_known: bool = True
    seen: set[tuple[str, str]] = field(default_factory=set)

    def read(self, number: int, line: str) -> None:
        heading = _SECTION.fullmatch(line)
        if heading:
            self._enter(number, heading.group(1).strip())
        elif line and line[0] not in "#;" and self.section_known:
            self._entry(number, line)

    def _enter(self, number: int, section: str) -> None:
        self.section = section
        self.section_known = section in SECTIONS
        if not self.section_known:
            self._problem(number, f"unknown section [{section[:60]}]; {nearest(section, SECTIONS)}")

    def _entry(self, number: int, line: str) -> None:
        if self.section is None:
            self._problem(number, f"expected a section such as [CPU] before {shown(line)}")
            return
        if self.section == "GPU-CPU Interconnect":
            self._interconnect(number, line)
            return
        match = _KEY.fullmatch(line)
        if match is None:
            self._problem(number, f"expected 'key: value', got {shown(line)}")
            return
        self._assign(number, self.section, match.group(1), match.group(2).strip())

    def _assign(self, number: int, section: str, key: str, value: str) -> None:
        machine_keys, workload_keys = MACHINE_KEYS.get(section, {}), WORKLOAD_KEYS.get(section, ())
        if key not in machine_keys and key not in workload_keys:
            hint = nearest(key, [*machine_keys, *workload_keys])
            self._problem(number, f"unknown key '{key[:60]}' in [{section}]; {hint}")
        elif (section, key) in self.seen:
            self._problem(number, f"'{key}' is stated twice in [{section}]")
        elif key in workload_keys:
            self.workload[key] = value
        else:
            self._state(number, machine_keys[key], _binary_page(value) if key == "page_size" else value)
            if key == "page_fault_handling_latency":  # one latency for each fault
                self._state(number, ("gpu.uvm.handling",), "fixed")
        self.seen.add((section, key))

    def _interconnect(self, number: int, line: str) -> None:
        match = _PCIE.fullmatch(line)
        if match is None:
            self._problem(
                number, f"expected 'PCIe 3.0 16x, 8 GTPS per channel per direction', got {shown(line)}"
            )
            return
        # A lane moves 8 gigabits each second, of which 128 in 130 are data; a fraction of a byte is dropped.
        self._state(number, ("link.bandwidth",), Base(8 * 10**9 * int(match.group(1)) * 128 // (130 * 8)))

    def _state(self, number: int, paths: tuple[str, ...], value: Any) -> None:
        where = f"{self.origin}, line {number}"
        for path in paths:
            state(self.tree, path.split("."), Statement(value, where, where))

    def _problem(self, number: int, message: str) -> None:
        self.problems.append(f"{self.origin}, line {number}: {message}")


def _binary_page(value: str) -> str:
    # Pages are powers of two, so the listings' "4KB" is 4096 bytes.
    match = _PAGE_SIZE.fullmatch(value)
    return f"{match.group(1)}{match.group(2).upper()}iB" if match else value
