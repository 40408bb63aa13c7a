# SPDX-License-Identifier: Apache-2.0
"""Reads the `gpgpusim.config` files of GPGPU-Sim and Accel-Sim as descriptions of a GPU.

Each number keeps the options that it comes from as its source. Options that the model has no parameter for, or
does not know, are listed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyscale.errors import nearest
from manyscale.machine.description import Machine
from manyscale.machine.gpgpusim_options import OPTION, Option, OptionReader, is_whole
from manyscale.machine.loading import ResolvedMachine, machine_tree, read_machine_text
from manyscale.machine.presets import preset_path
from manyscale.machine.statements import Statement, Tree, inherited, leaves, merge, origin_at, state, values
from manyscale.spec import Base, build, refusal
from manyscale.units import shown

LANES = 32
TENSOR_STEPS = 16  # SASS instructions of the 16 x 16 x 16 product that GPGPU-Sim has one time for
_AS_V100 = ("gpu.sm", "gpu.scheduler", "gpu.uvm", "link.copy_engine", "cuda")
_ASSUMED = {
    "gpu.scheduler.kernel_latency": 2000,
    "gpu.scheduler.end_latency": 200,
    "gpu.scheduler.cta_interval": 1,
    "gpu.crossbar.flit_size": "40B",
    "gpu.crossbar.link_latency": "1ns",
    "gpu.memory.link_latency": "1ns",
    "gpu.memory.capacity": "16GiB",
    "gpu.l2.cache.line": "128B",
    "link.data_latency": "23840ps",
    "link.command_latency": "0s",
    "link.bandwidth": "16GB/s",
    "link.copy_engines": 2,
}
_MEGAHERTZ = 10**6
_FEMTOSECONDS = 10**15  # of a second
_UNLIMITED_QUEUE = 1024  # the largest that memory.dram takes, where GPGPU-Sim says 0 for no limit

_REQUIRED = ("gpgpu_n_clusters", "gpgpu_n_mem", "gpgpu_clock_domains", "gpgpu_cache:dl2")
_CACHE = re.compile(r"(?:(?P<kind>[SN]):)?(?P<sets>\d+):(?P<line>\d+):(?P<ways>\d+)((?:,[\w:]*)*)")
# Timings of -gpgpu_dram_timing_opt in the order of its old form, and the parameters of a channel they set.
_DRAM_TIMINGS = {
    "nbk": (),
    "CCD": ("tccd_s",),
    "RRD": ("trrd_s", "trrd_l"),
    "RCD": ("trcd", "trcd_write"),
    "RAS": ("tras",),
    "RP": ("trp",),
    "RC": ("trc",),
    "CL": ("tcl",),
    "WL": ("tcwl",),
    "CDLR": ("twtr_s", "twtr_l"),
    "WR": ("twr",),
    "nbkgrp": (),
    "CCDL": ("tccd_l",),
    "RTPL": ("trtp",),
}
_SLICE_HASHES = {"0": "modulo", "1": "xor", "2": "polynomial"}


@dataclass(frozen=True)
class ImportedConfig:
    """The machine that a file describes, and the options, as they stand there, that it does not depend on."""

    resolved: ResolvedMachine
    left_out: tuple[str, ...]


def looks_like_gpgpusim(path: Path) -> bool:
    """Whether a file is to be read as one of GPGPU-Sim's: by its suffix, or by the first word that is no comment."""
    if path.suffix == ".config":
        return True
    if path.suffix in (".toml", ".ini", ".cfg"):
        return False
    first = next(
        (line for line in map(str.strip, read_machine_text(path).splitlines()) if line and line[0] != "#"), ""
    )
    return OPTION.match(first) is not None


def import_gpgpusim(path: Path, name: str | None = None) -> ImportedConfig:
    """The machine of a file, called `name` or by the file's own name; all that is wrong with it is one error."""
    reader = OptionReader(str(path), path.name)
    reader.read(read_machine_text(path))
    missing = [f"-{option}" for option in _REQUIRED if option not in reader.options]
    if missing and not reader.problems:
        reader.problems.append(f"{path}: no gpgpusim.config of a whole GPU: {', '.join(missing)} not stated")
    if not reader.problems:
        _describe(reader)
    if reader.problems:
        raise refusal(reader.problems)
    called = Statement(name or path.stem, "file name" if name is None else "command line", str(path))
    text = f"GPU of {path.name}, a configuration of GPGPU-Sim"
    own: Tree = {"name": called, "description": Statement(text, path.name, str(path)), **reader.tree}
    tree = merge(_left_open(), own)
    machine = build(Machine, values(tree), lambda location: origin_at(tree, location, str(path)))
    sources = {where: statement.source for where, statement in leaves(tree)}
    left = (option for option in reader.options.values() if option.name not in reader.used)
    unstated = reader.used.difference(reader.options)
    return ImportedConfig(
        ResolvedMachine(machine, sources), tuple(_left_out(option, unstated) for option in left)
    )


def _left_open() -> Tree:
    """What a file of GPGPU-Sim cannot state and the models need: sections of the V100, and assumptions."""
    v100 = inherited(machine_tree(preset_path("v100")), "v100")
    tree: Tree = {}
    for path in _AS_V100:
        section: Any = v100
        for name in path.split("."):
            section = section[name]
        state(tree, path.split("."), section)
    for path, value in _ASSUMED.items():
        state(
            tree,
            path.split("."),
            Statement(value, "assumed: no option of GPGPU-Sim states it", "gpgpusim.py"),
        )
    return tree


def _left_out(option: Option, known: set[str]) -> str:
    near = difflib.get_close_matches(option.name, known, n=1, cutoff=0.9)
    return f"{option} (line {option.line}{f'; did you mean -{near[0]}?' if near else ''})"


@dataclass(frozen=True)
class _Cache:
    """The part of a cache's text that has numbers: "S:32:128:24,L:B:m:L:P,A:192:4,32:0,32"."""

    sectored: bool
    sets: int
    line: int
    ways: int
    policies: list[str]  # replacement, writes, allocation, allocation of writes, index
    misses: list[str]  # kind, MSHRs, accesses that one can merge

    @property
    def size(self) -> int:
        return self.sets * self.line * self.ways


def _describe(reader: OptionReader) -> None:
    clocks = _clocks(reader)
    schedulers = reader.whole("gpgpu_num_sched_per_core", 1) or 1
    _cores(reader, schedulers)
    _instructions(reader, schedulers)
    _l1(reader)
    _l2(reader)
    reader.copy("gpu.crossbar.flit_size", "icnt_flit_size", unit="B")
    _latencies(reader, clocks)
    _memory(reader)


def _clocks(reader: OptionReader) -> list[int]:
    """Hertz of SMs, interconnect, L2 and DRAM."""
    name = "gpgpu_clock_domains"
    parts = (reader.text(name) or "").split(":")
    if len(parts) != 4 or not all(re.fullmatch(r"\d{1,9}(\.\d{1,6})?", part) for part in parts):
        reader.refuse(name, "four clocks in MHz, such as 1132.0:1132.0:1132.0:850.0")
        return []
    clocks = [_hertz(part) for part in parts]
    for path, clock in zip(("clock", "crossbar.clock", "l2.clock", "memory.clock"), clocks, strict=True):
        reader.put(f"gpu.{path}", Base(clock), name)
    return clocks


def _hertz(megahertz: str) -> int:
    whole, _, part = megahertz.partition(".")
    return int(whole) * _MEGAHERTZ + int(part.ljust(6, "0") if part else 0)


def _cores(reader: OptionReader, schedulers: int) -> None:
    clusters, each = reader.whole("gpgpu_n_clusters"), reader.whole("gpgpu_n_cores_per_cluster", 1)
    if clusters is not None and each is not None:
        reader.put("gpu.sm_count", clusters * each, "gpgpu_n_clusters", "gpgpu_n_cores_per_cluster")
    reader.put("gpu.sm.sub_cores", schedulers, "gpgpu_num_sched_per_core")
    reader.copy("gpu.scheduler.limits.registers", "gpgpu_shader_registers")
    reader.copy("gpu.scheduler.limits.ctas", "gpgpu_shader_cta")
    name = "gpgpu_shader_core_pipeline"
    threads = reader.wholes(name, ":")
    if threads and (len(threads) != 2 or threads[1] != LANES or threads[0] % LANES):
        reader.refuse(name, f"threads of an SM and a warp of {LANES}, such as 2048:{LANES}")
    elif threads:
        reader.put("gpu.scheduler.limits.threads", threads[0], name)
        reader.put("gpu.scheduler.limits.warps", threads[0] // LANES, name)
        reader.put("gpu.sm.warps", threads[0] // LANES, name)
    policy = reader.text("gpgpu_scheduler")
    if policy in ("lrr", "gto"):
        reader.put("gpu.sm.scheduler", policy, "gpgpu_scheduler")
    elif policy is not None:
        reader.used.discard("gpgpu_scheduler")  # another policy than the model's
    reader.copy("gpu.scheduler.kernel_latency", "gpgpu_kernel_launch_latency", least=0)
    reader.copy("gpu.sm.cta_launch_latency", "gpgpu_TB_launch_latency", least=0)


def _instructions(reader: OptionReader, schedulers: int) -> None:
    """Latencies and intervals. GPGPU-Sim lists ADD, MAX, MUL, MAD, DIV and perhaps SHFL; a DIV is a sequence here."""

    def timing(kind: str, list_name: str, index: int, units: str, *others: str) -> None:
        latency, interval = f"ptx_opcode_latency_{list_name}", f"ptx_opcode_initiation_{list_name}"
        latencies, intervals = reader.wholes(latency), reader.wholes(interval)
        # No units of its own: the instructions go to those of another kind.
        counts = [reader.whole(name, least=0) or 0 for name in (units, *others)]
        count = next((count for count in counts if count), schedulers)
        if len(latencies) > index:
            reader.put(f"gpu.sm.timing.{kind}.latency", latencies[index], latency)
        if len(intervals) > index:
            # Each sub-core has one unit: its share of all of them.
            each = max(1, intervals[index] * schedulers // count)
            reader.put(f"gpu.sm.timing.{kind}.interval", each, interval, units)

    single = "gpgpu_num_sp_units"
    for kind, index in (("integer", 0), ("logic", 0), ("multiply_add", 3)):
        timing(kind, "int", index, "gpgpu_num_int_units", single)
    timing("shuffle", "int", 5, "gpgpu_num_int_units", single)
    timing("fp32", "fp", 0, single)
    timing("fp64", "dp", 0, "gpgpu_num_dp_units")
    timing("special_function", "sfu", 0, "gpgpu_num_sfu_units")
    latency, interval = (
        reader.whole("ptx_opcode_latency_tesnor"),
        reader.whole("ptx_opcode_initiation_tensor"),
    )
    if latency is not None and interval is not None:
        count = reader.whole("gpgpu_num_tensor_core_units", schedulers) or schedulers
        each = max(1, interval * schedulers // count // TENSOR_STEPS)
        names = ("ptx_opcode_latency_tesnor", "ptx_opcode_initiation_tensor", "gpgpu_num_tensor_core_units")
        note = f"of {TENSOR_STEPS} steps"
        last = max(1, latency - (TENSOR_STEPS - 1) * each)
        reader.put("gpu.sm.timing.tensor_half.latency", last, *names, note=note)
        reader.put("gpu.sm.timing.tensor_half.interval", each, *names, note=note)


def _cache(reader: OptionReader, name: str) -> _Cache | None:
    text = reader.text(name)
    if text is None:
        return None
    match = _CACHE.fullmatch(text.replace(" ", ""))
    sets, line, ways = (
        (int(match[part]) for part in ("sets", "line", "ways")) if match and len(text) < 200 else (0, 0, 0)
    )
    if match is None or not all(0 < number <= 2**24 for number in (sets, line, ways)):
        reader.refuse(
            name, "sets, bytes of a line and lines of a set, such as S:32:128:24,L:B:m:L:P,A:192:4,32:0,32"
        )
        return None
    fields = [part.split(":") for part in match[5].split(",")[1:]]
    policies, misses = (fields[index] if len(fields) > index else [] for index in (0, 1))
    return _Cache(match["kind"] == "S", sets, line, ways, policies, misses)


def _l1(reader: OptionReader) -> None:
    name = "gpgpu_cache:dl1"
    cache, shared = _cache(reader, name), reader.whole("gpgpu_shmem_size", least=0)
    if shared is not None:
        reader.put("gpu.scheduler.limits.shared", f"{shared}B", "gpgpu_shmem_size")
    adaptive = reader.whole("gpgpu_adaptive_cache_config", 0, least=0)
    unified = reader.whole("gpgpu_unified_l1d_size")
    if cache is not None:
        size = least = cache.size
        names = [name]
        if adaptive and shared is not None:
            size = unified * 1024 if unified is not None else cache.size + shared
            least = max(size - shared, cache.line * cache.ways)
            names = ["gpgpu_unified_l1d_size", name, "gpgpu_shmem_size"]
        reader.put("gpu.sm.l1.size", f"{size}B", *names)
        reader.put("gpu.sm.l1.least", f"{least}B", *names)
        reader.put("gpu.sm.l1.line", f"{cache.line}B", name)
        reader.put("gpu.sm.l1.ways", cache.ways, name)
        _put_misses(reader, cache, name, ("gpu.sm.l1.outstanding_lines",))
    reader.copy("gpu.sm.l1.hit_latency", "gpgpu_l1_latency")
    reader.copy("gpu.sm.shared_latency", "gpgpu_smem_latency")
    reader.copy("gpu.sm.shared_banks", "gpgpu_shmem_num_banks")
    instructions = _cache(reader, "gpgpu_cache:il1")
    if instructions is not None:
        reader.put("gpu.sm.l1_instructions", f"{instructions.size}B", "gpgpu_cache:il1")
        reader.put("gpu.sm.instruction_line", f"{instructions.line}B", "gpgpu_cache:il1")
    indexing = reader.text("gpgpu_memory_partition_indexing")
    if indexing in _SLICE_HASHES:
        reader.put("gpu.sm.l1.slice_hash", _SLICE_HASHES[indexing], "gpgpu_memory_partition_indexing")
    elif indexing is not None:
        reader.used.discard("gpgpu_memory_partition_indexing")  # a hash that the model does not have


def _l2(reader: OptionReader) -> None:
    name = "gpgpu_cache:dl2"
    cache = _cache(reader, name)
    partitions, each = reader.whole("gpgpu_n_mem"), reader.whole("gpgpu_n_sub_partition_per_mchannel", 1)
    if partitions is not None and each is not None:
        reader.put("gpu.memory.channels", partitions, "gpgpu_n_mem")
        reader.put("gpu.l2_slices", partitions * each, "gpgpu_n_mem", "gpgpu_n_sub_partition_per_mchannel")
    if cache is None:
        return
    reader.put("gpu.l2_slice_capacity", f"{cache.size}B", name)
    reader.put("gpu.l2.cache.line", f"{cache.line}B", name)
    reader.put("gpu.l2.cache.ways", cache.ways, name)
    reader.put("gpu.l2.cache.sectored", cache.sectored, name)
    if len(cache.policies) > 1 and cache.policies[1] in ("B", "T"):
        reader.put("gpu.l2.cache.write", "back" if cache.policies[1] == "B" else "through", name)
    if len(cache.policies) > 4:
        reader.put("gpu.l2.cache.hash_index", cache.policies[4] not in ("L", ""), name)
    _put_misses(reader, cache, name, ("gpu.l2.cache.outstanding_misses", "gpu.l2.cache.merged_misses"))


def _put_misses(reader: OptionReader, cache: _Cache, name: str, paths: tuple[str, ...]) -> None:
    for path, text in zip(paths, cache.misses[1:], strict=False):
        if is_whole(text) and int(text) > 0:
            reader.put(path, int(text), name)


def _latencies(reader: OptionReader, clocks: list[int]) -> None:
    """What GPGPU-Sim adds in cycles of the SMs on the way to the L2 and to DRAM."""
    if not clocks or 0 in clocks:
        if clocks:
            reader.refuse("gpgpu_clock_domains", "clocks above 0")
        return
    core, l2 = clocks[0], clocks[2]
    for name in ("gpgpu_l2_rop_latency", "rop_latency"):
        cycles = reader.whole(name, least=0)
        if cycles is not None:
            reader.put("gpu.l2.cache.tag_latency", cycles * l2 // core, name, note="in cycles of the L2")
            reader.put("gpu.l2.cache.data_latency", 0, name, note="which holds until the data")
    cycles = reader.whole("dram_latency", least=0)
    if cycles is not None:
        way = Base(cycles * _FEMTOSECONDS // core // 2)
        reader.put("gpu.memory.link_latency", way, "dram_latency", note="half of it each way")


def _memory(reader: OptionReader) -> None:
    length, ratio = reader.whole("gpgpu_dram_burst_length"), reader.whole("dram_data_command_freq_ratio", 2)
    width, chips = reader.whole("gpgpu_dram_buswidth"), reader.whole("gpgpu_n_mem_per_ctrlr", 1)
    stacked = length is None or length <= 2
    standard = "hbm2-v100" if stacked else "gddr6"
    reader.put(
        "gpu.memory.standard", standard, "gpgpu_dram_burst_length", note="for what the file leaves open"
    )
    if length is not None and ratio is not None and width is not None and chips is not None:
        reader.put(
            "gpu.memory.channel.burst_bytes",
            f"{length * width * chips}B",
            *("gpgpu_dram_buswidth", "gpgpu_n_mem_per_ctrlr", "gpgpu_dram_burst_length"),
        )
        reader.put(
            "gpu.memory.channel.burst_cycles",
            max(1, length // ratio),
            *("gpgpu_dram_burst_length", "dram_data_command_freq_ratio"),
        )
    buses = reader.whole("dram_dual_bus_interface", least=0)
    if buses is not None:
        reader.put("gpu.memory.channel.separate_row_bus", buses != 0, "dram_dual_bus_interface")
    policy = reader.whole("dram_bnk_indexing_policy", least=0)
    if policy is not None:
        reader.put("gpu.memory.channel.bank_xor", policy != 0, "dram_bnk_indexing_policy")
    queue = reader.whole("gpgpu_frfcfs_dram_sched_queue_size", least=0)
    if queue is not None:
        seen = min(queue, _UNLIMITED_QUEUE) or _UNLIMITED_QUEUE
        reader.put("gpu.memory.channel.read_queue", seen, "gpgpu_frfcfs_dram_sched_queue_size")
    _timings(reader)


def _timings(reader: OptionReader) -> None:
    name = "gpgpu_dram_timing_opt"
    text = reader.text(name)
    if text is None:
        return
    parts = text.replace(" ", "").strip(":").split(":")
    pairs = (
        [part.partition("=")[::2] for part in parts]
        if "=" in text
        else list(zip(_DRAM_TIMINGS, parts, strict=False))
    )
    found: dict[str, int] = {}
    for key, value in pairs:
        if key not in _DRAM_TIMINGS:
            hint = nearest(key, _DRAM_TIMINGS)
            reader.problem(reader.options[name].line, f"-{name}: there is no timing {shown(key)}; {hint}")
        elif not is_whole(value):
            reader.refuse(name, "timings such as nbk=16:CCD=1:RRD=4")
            return
        else:
            found[key] = int(value)
    for key, cycles in found.items():
        # Without bank groups CCDL and RTPL are 0, and the same group is no slower than another.
        least = found.get("CCD", 1) if key == "CCDL" else 1
        for parameter in _DRAM_TIMINGS[key]:
            reader.put(f"gpu.memory.channel.{parameter}", max(least, cycles), name, part=f"{key}={cycles}")
    groups = max(1, found.get("nbkgrp", 1))
    if "nbk" in found:
        part = f"nbk={found['nbk']} nbkgrp={groups}"
        reader.put("gpu.memory.channel.bank_groups", groups, name, part=part)
        reader.put("gpu.memory.channel.banks", max(1, found["nbk"] // groups), name, part=part)
