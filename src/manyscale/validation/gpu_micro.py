# SPDX-License-Identifier: Apache-2.0
"""Microbenchmarks of the GPU: latencies, throughputs and bandwidths beside those measured on a V100 or Titan V.

Kernels time themselves with `%clock64`, as they do on hardware, and only after the instruction cache is warm. What they
compute with comes from memory, and the number of rounds from the launch: an assembler that knew them would compute the
results itself.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from manyscale.errors import ManyscaleError
from manyscale.gpu import DeviceArray, TimedDevice, TimedLaunch, parse
from manyscale.gpu.isa import Isa
from manyscale.machine import load_machine
from manyscale.validation.gpu_micro_streams import stream_rows
from manyscale.validation.gpu_target import GpuTarget
from manyscale.validation.rows import Row, calibrated

_JIA = "Jia et al., arXiv:1804.06826"
_TABLE = f"{_JIA}, Table 3.1"
_BENCHES = "RRZE-HPC/gpu-benches"
_CHASE = f"{_BENCHES}, gpu-latency/v100.txt"
_TUNER = "Accel-Sim tuner, Titan V"
_PPT = "PPT-GPU, Titan V"
_ARAFA = "Arafa et al., HPEC 2019, Titan V"

_ROUNDS = 3  # of a timed loop; the last counts
_COPIES = 64  # of an instruction in a loop
_CHAIN = 256  # instructions of which each needs the result before it

# Dependent instructions, how many of the machine they are, and the latency of a result. One instruction adds three
# numbers. What is published for IMAD is taken as what an instruction of another unit waits for it: FMNMX has 5 cycles
# there as well, and both are of other units than most instructions of their kind. Where the next instruction is of
# the same unit, NVIDIA's assembler lets it wait for 4.
_LATENCIES = (
    ("FADD latency", "add.f32 %f1, %f1, %f2;", 1, 4, _JIA),
    ("FFMA latency", "fma.rn.f32 %f1, %f1, %f2, %f1;", 1, 4, _JIA),
    ("IADD latency", "add.s32 %t{n}, %r2, %r1; add.s32 %r2, %t{n}, %r3;", 1, 4, _JIA),
    (
        "IMAD latency",
        "mad.lo.s32 %r2, %r2, %r1, %r2; xor.b32 %r2, %r2, %r3;",
        2,
        5,
        f"{_JIA} (recalled)",
    ),
    ("IMAD latency in its unit", "mul.lo.u32 %r2, %r2, %r1;", 1, 4, f"{_ARAFA}: mul.lo.u32"),
    ("DFMA latency", "fma.rn.f64 %d1, %d1, %d1, %d1;", 1, 8, _JIA),
    ("HFMA2 latency", "fma.rn.f16x2 %r2, %r2, %r1, %r2;", 1, 6, _JIA),
)

# Four independent chains of an instruction, the operations it counts as, and how many of these an SM does per cycle.
# The tuner's special function is a fast square root; here it is one that is a single machine instruction.
_CHAINS = 4
_THROUGHPUTS = (
    ("FP32", "fma.rn.f32 %f{i}, %f{i}, %f0, %f{i};", 2, 126.86, "flop/clk/SM"),
    ("FP64", "fma.rn.f64 %d{i}, %d{i}, %d0, %d{i};", 2, 63.93, "flop/clk/SM"),
    ("INT32", "mad.lo.s32 %r{i}, %r{i}, %r0, %r{i};", 2, 126.89, "op/clk/SM"),
    ("SFU", "ex2.approx.ftz.f32 %f{i}, %f{i};", 1, 15.98, "op/clk/SM"),
    ("FP16", "fma.rn.f16x2 %r{i}, %r{i}, %r0, %r{i};", 4, 249.33, "flop/clk/SM"),
    (
        "shared 32-bit load",
        "ld.shared.u32 %r5, [%r11+{offset}]; xor.b32 %r{i}, %r{i}, %r5;",
        4,
        126.5,
        "B/clk/SM",
    ),
    (
        "shared 64-bit load",
        "ld.shared.u64 %l5, [%r10+{offset}]; xor.b64 %l{i}, %l{i}, %l5;",
        8,
        127.9,
        "B/clk/SM",
    ),
    ("L1 64-bit load", "ld.global.u64 %l5, [%l6+{offset}]; xor.b64 %l{i}, %l{i}, %l5;", 8, 122.8, "B/clk/SM"),
)
# All lanes want another word of one bank: a word in each cycle.
_CONFLICT = "ld.shared.u32 %r5, [%r9+{word}]; xor.b32 %r{i}, %r{i}, %r5;"

# KiB of a random pointer chase on a V100 at 1380 MHz, and cycles of a load (gpu-benches, gpu-latency).
_CHASES = ((64, 28.2), (256, 212.2), (16384, 425.2), (131072, 432.0), (524288, 433.7))
_CHASED = 1024  # loads of a round

_THREADS = 1024
_ROW = 256  # bytes that a warp reads at once, eight by each lane
_ROWS = 16  # rows that loads read one after the other
_TIMED_ROUNDS = 16  # after one that is not timed; the tuner times as many instructions

_WORD = 8  # bytes of a pointer in a chase
_STREAM_BYTES = 64 << 20
_L2_FOOTPRINT = 2 << 20  # a power of two that the L2 holds
_L2_LOADS = 64  # of 16 bytes, by each thread
_WIDE = 16  # bytes of the widest load

# What is published of other GPUs than the V100, by the names of the rows.
_LUO = "Luo et al., arXiv:2501.12084"
_MEASURED = {
    "titanv": (
        ("FFMA latency", 4.12, _TUNER),
        ("IADD latency", 4.31, _TUNER),
        ("IMAD latency in its unit", 4, f"{_ARAFA}: mul.lo.u32"),
        ("DFMA latency", 8.06, _TUNER),
        ("HFMA2 latency", 6.18, _TUNER),
        ("shared memory latency", 27.0, _TUNER),
        ("L1 hit latency", 33.73, _TUNER),
        ("L2 hit latency", 211.07, _TUNER),
        ("L2 miss latency", 313.46, _TUNER),
        ("atomic add beyond a hit in L2", 243.6 - 211.1, _TUNER),
        *((f"{name} throughput", reference, _TUNER) for name, _, _, reference, _ in _THROUGHPUTS),
        ("L2 load bandwidth", 1365.7, _TUNER),
        ("DRAM read bandwidth", 646, "Debdeep23/test1, Titan V: dot_product of 4 and 8 Mi elements"),
        ("empty kernel", 2718, _PPT),
        ("empty CTA", 2.13, _PPT),
    ),
    "p100": (
        ("FADD latency", 6, _JIA),
        ("FFMA latency", 6, _JIA),
        ("IADD latency", 6, _JIA),
        ("L1 hit latency", 82, _TABLE),
        ("DRAM read bandwidth", 510, f"{_JIA}: 69.6% of 732 GB/s"),
    ),
    "a100": (
        ("shared memory latency", 30, _LUO),
        ("L1 hit latency", 32.5, _LUO),
        ("L2 hit latency", 282.3, f"{_LUO}, mean of near and far"),
        ("L2 miss latency", 548.8, f"{_LUO}, mean of near and far"),
        ("DRAM read bandwidth", 1500, f"{_BENCHES}, gpu-stream/a100_40.txt"),
        ("empty kernel", 2447, "PPT-GPU-subcore, A100"),
    ),
}

_HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
_EMPTY = _HEAD + ".visible .entry empty() { ret; }"


def rows(machine: str = "v100-pcie", isa: Isa = "auto") -> list[Row]:
    """All microbenchmarks; of GPUs for which fewer measurements are published, those.

    The machines state their parameters from these measurements, or are calibrated to them.
    """
    found = calibrated(
        [*latency_rows(machine, isa), *throughput_rows(machine, isa), *whole_gpu_rows(machine, isa)]
    )
    streams = calibrated(stream_rows(machine, isa))
    measured = _MEASURED.get(load_machine(machine).machine.name or "")
    if measured is None:
        return [*found, *calibrated(chase_rows(machine, isa)), *streams]
    published = [
        dataclasses.replace(row, reference=reference, source=source)
        for row in found
        for name, reference, source in measured
        if name == row.name
    ]
    return [*published, *streams]


def latency_rows(machine: str = "v100-pcie", isa: Isa = "auto") -> list[Row]:
    """Cycles until a dependent instruction issues, in one warp."""
    target = GpuTarget(machine, isa)
    found = [
        Row(name, _instruction_latency(target, text) / instructions, cycles, "cycles", source)
        for name, text, instructions, cycles, source in _LATENCIES
    ]
    # The chase in L1 goes round 4 KiB; in L2 round 1 MiB, so far that L1 has forgotten; in memory it never comes back.
    shared, l1 = _shared_latency(target), _chase(target, pointers=64, stride=64, loads=128)
    l2 = _chase(target, pointers=4096, stride=256, loads=2048)
    memory = _chase(target, pointers=256 * _ROUNDS, stride=4096, loads=256)
    return [
        *found,
        Row("shared memory latency", shared, 19, "cycles", _TABLE),
        Row("L1 hit latency", l1, 28, "cycles", _TABLE),
        Row("L2 hit latency", l2, 212.1, "cycles", _CHASE),
        Row("L2 miss latency", memory, 425.4, "cycles", _CHASE),
        Row("atomic add beyond a hit in L2", _atomic_latency(target) - l2, 243.6 - 211.1, "cycles", _TUNER),
        Row("constant hit latency", _constant_latency(target, 128), 27, "cycles", f"{_JIA} (recalled)"),
        Row("constant L1.5 latency", _constant_latency(target, 1024), 89, "cycles", f"{_JIA} (recalled)"),
    ]


def chase_rows(machine: str = "v100-pcie", isa: Isa = "ptx") -> list[Row]:
    """Cycles of a load in a random chase over lines of more and more memory: L1, L2, memory, beyond the L1 TLB."""
    measured = [(size, _random_chase(GpuTarget(machine, isa), size * 8), cycles) for size, cycles in _CHASES]
    source = f"{_CHASE} (calibrated)"
    return [
        Row(f"random chase over {size} KiB", got, cycles, "cycles", source) for size, got, cycles in measured
    ]


def throughput_rows(machine: str = "v100-pcie", isa: Isa = "auto") -> list[Row]:
    """Operations per cycle of one SM that is full of independent work."""
    target = GpuTarget(machine, isa)
    found = [
        Row(f"{name} throughput", _throughput(target, instruction) * operations, reference, unit, _TUNER)
        for name, instruction, operations, reference, unit in _THROUGHPUTS
    ]
    conflict = _throughput(target, _CONFLICT) * 4
    return [*found, Row("32-way bank conflict", conflict, 4, "B/clk/SM", "one of 32 banks of 4 B")]


def whole_gpu_rows(machine: str = "v100-pcie", isa: Isa = "auto") -> list[Row]:
    """What all SMs together get from the L2 and from memory, and the cost of a launch."""
    target = GpuTarget(machine, isa)
    empty = _empty(target)
    l2 = _l2_bytes_per_cycle(target, empty)
    return [
        Row("L2 load bandwidth", l2, 2440 / 1.38, "B/clk", f"{_BENCHES}, gpu-cache/v100.txt: 2440 GB/s"),
        Row("DRAM read bandwidth", _stream(target, empty), 867, "GB/s", f"{_BENCHES}, gpu-stream/v100.txt"),
        Row("empty kernel", empty.cycles, 2718, "cycles", _PPT),
        Row("empty CTA", _empty_cta(target), 2.13, "cycles", _PPT),
    ]


def _launch(
    device: TimedDevice,
    body: str,
    out: DeviceArray,
    data: DeviceArray | int = 0,
    *,
    grid: int = 1,
    block: int = 1,
    rounds: int = _ROUNDS,
    declare: str = "",
    head: str = "",
) -> TimedLaunch:
    """Runs a kernel whose parameters, an array of results and one of data, are in %out and %data."""
    text = f"""{_HEAD}{head}
.visible .entry microbenchmark(.param .u64 out, .param .u64 data, .param .u32 rounds)
{{
  .reg .pred %p;
  .reg .b32 %r<12>, %round, %rounds, %thread, %index;
  .reg .b64 %l<8>, %begin, %end, %time, %out, %data;
  .reg .f32 %f<12>;
  .reg .f64 %d<8>;
  {declare}
  ld.param.u64 %out, [out];
  ld.param.u64 %data, [data];
  ld.param.u32 %rounds, [rounds];
  mov.u32 %thread, %tid.x;
  {body}
}}
"""
    launch = device.load(parse(text, portable=True))["microbenchmark"][grid, block](out, data, rounds)
    assert isinstance(launch, TimedLaunch)
    return launch


def _empty_cta(target: GpuTarget) -> float:
    """What one more CTA adds to the time of a launch of many that do nothing."""
    empty = target.device().load(parse(_EMPTY, portable=True))["empty"]
    few, many = empty[2000, 32](), empty[8000, 32]()
    assert isinstance(few, TimedLaunch) and isinstance(many, TimedLaunch)  # noqa: PT018
    return (many.cycles - few.cycles) / 6000


def _empty(target: GpuTarget) -> TimedLaunch:
    """A launch that does nothing, of a kernel that the instruction caches know from a launch before."""
    empty = target.device().load(parse(_EMPTY, portable=True))["empty"]
    _, launch = empty[1, 1](), empty[1, 1]()
    assert isinstance(launch, TimedLaunch)
    return launch


def _timed(instructions: str) -> str:
    """A loop that leaves in %time how long its last round took."""
    return f"""
  mov.u32 %round, 0;
AGAIN:
  .pragma "nounroll";
  mov.u64 %begin, %clock64;
  {instructions}
  mov.u64 %end, %clock64;
  add.u32 %round, %round, 1;
  setp.lt.u32 %p, %round, %rounds;
  @%p bra AGAIN;
  sub.u64 %time, %end, %begin;
  st.global.u64 [%out], %time;"""


def _instruction_latency(target: GpuTarget, instruction: str) -> float:
    device = target.device()
    out = device.zeros(16, np.uint64)
    registers = ("u32 %r1", "u32 %r2", "u32 %r3", "f32 %f1", "f32 %f2", "f64 %d1", "u64 %l1", "u64 %l2")
    slots = [(*register.split(), 8 * index) for index, register in enumerate(registers, 1)]
    body = f"""
  {"".join(f"ld.volatile.global.{kind} {name}, [%out+{offset}];" for kind, name, offset in slots)}
  {_timed("".join(instruction.format(n=n) for n in range(_CHAIN)))}
  {"".join(f"st.global.{kind} [%out+{offset}], {name};" for kind, name, offset in slots)}
  ret;"""
    _launch(device, body, out, declare=f".reg .b32 %t<{_CHAIN}>;")
    return float(out.numpy()[0]) / _CHAIN


def _shared_latency(target: GpuTarget) -> float:
    device = target.device()
    out = device.zeros(2, np.uint64)
    body = f"""
  mov.u32 %r1, cell;
  st.shared.u32 [%r1], %r1;
  {_timed("ld.shared.u32 %r1, [%r1];" * _CHAIN)}
  st.global.u32 [%out+8], %r1;
  ret;"""
    _launch(device, body, out, declare=".shared .align 4 .b32 cell;")
    return float(out.numpy()[0]) / _CHAIN


def _atomic_latency(target: GpuTarget) -> float:
    """Cycles of an addition to a word in L2 that says where the word of the next one is, as the tuner measures it."""
    device = target.device()
    out = device.zeros(2, np.uint64)
    words = np.arange(1, 1 + _ROUNDS * _COPIES, dtype=np.uint32)
    data = device.array(words)
    additions = "".join(
        f"mul.wide.u32 %w{n}, %r1, 4; add.s64 %a{n}, %data, %w{n}; atom.global.add.u32 %r1, [%a{n}], 10;"
        for n in range(_COPIES)
    )
    body = f"""
  mov.u32 %r1, %thread;
  {_timed(additions)}
  st.global.u32 [%out+8], %r1;
  ret;"""
    # The second time the words are in the L2, where a copy from the host leaves those of the tuner.
    for _ in range(2):
        data.set(words)
        _launch(device, body, out, data, declare=f".reg .b64 %w<{_COPIES}>, %a<{_COPIES}>;")
    return float(out.numpy()[0]) / _COPIES


def _constant_latency(target: GpuTarget, words: int) -> float:
    """The cycles of a load in a ring of so many words of constant memory, each 64 bytes after the one before."""
    device = target.device()
    out = device.zeros(2, np.uint64)
    step = 64 // _WORD
    ring = ", ".join(str((i + step) % words * _WORD) if i % step == 0 else "0" for i in range(words))
    loads = max(_CHAIN, 2 * words // step)
    # The sum of a variable's address and an offset is part of the load.
    chain = "".join(f"add.u64 %u{n}, %l1, ring_address; ld.const.u64 %l1, [%u{n}];" for n in range(loads))
    body = f"""
  mov.u64 %l1, 0;
  mov.u64 ring_address, ring;
  {_timed(chain)}
  st.global.u64 [%out+8], %l1;
  ret;"""
    declare = f".reg .b64 ring_address, %u<{loads}>;"
    _launch(device, body, out, declare=declare, head=f".const .align 64 .b64 ring[{words}] = {{{ring}}};")
    return float(out.numpy()[0]) / loads


def _chase(target: GpuTarget, *, pointers: int, stride: int, loads: int) -> float:
    """The cycles of a load in a ring of pointers that are `stride` bytes apart."""
    device = target.device()
    out = device.zeros(2, np.uint64)
    data = device.empty(pointers * stride // _WORD, np.uint64)
    addresses = np.arange(pointers, dtype=np.uint64) * np.uint64(stride) + np.uint64(data.address)
    ring: npt.NDArray[np.uint64] = np.zeros(data.size, np.uint64)
    ring[:: stride // _WORD] = np.roll(addresses, -1)
    data.set(ring)
    body = f"""
  mov.u64 %l1, %data;
  {_timed("ld.global.u64 %l1, [%l1];" * loads)}
  st.global.u64 [%out+8], %l1;
  ret;"""
    _launch(device, body, out, data)
    cycles, end = out.numpy()
    if end != addresses[loads * _ROUNDS % pointers]:
        raise ManyscaleError("the pointer chase did not end where it should")
    return float(cycles) / loads


def _random_chase(target: GpuTarget, lines: int) -> float:
    """The cycles of a load in a ring of lines in random order; of a ring that is too long to go round, a part."""
    device = target.device()
    out = device.zeros(2, np.uint64)
    loads = min(lines, _CHASED)
    words = 128 // _WORD
    data = device.empty(lines * words, np.uint64)
    # As many loads as the chase makes; where the ring is shorter, the chase goes round it.
    order = np.random.default_rng(1).permutation(lines)[: min(lines, _ROUNDS * loads)].astype(np.uint64)
    ring: npt.NDArray[np.uint64] = np.zeros(data.size, np.uint64)
    ring[order * np.uint64(words)] = np.roll(order, -1) * np.uint64(128) + np.uint64(data.address)
    data.set(ring)
    start = data.address + int(order[0]) * 128
    body = f"""
  mov.u64 %l1, {start};
  {_timed("ld.global.u64 %l1, [%l1];" * loads)}
  st.global.u64 [%out+8], %l1;
  ret;"""
    _launch(device, body, out, data)
    return float(out.numpy()[0]) / loads


def _throughput(target: GpuTarget, instruction: str) -> float:
    """Instructions of a thread that one SM finishes per cycle."""
    device = target.device()
    times = device.zeros((_THREADS, 2), np.uint64)
    data = device.zeros(_ROWS * _ROW // 8, np.uint64)
    chains = range(1, 1 + _CHAINS)
    kinds = ("u32 %r", "f32 %f", "f64 %d", "u64 %l")
    start = "".join(
        f"ld.volatile.global.{kind}{i}, [%data+{8 * i}];" for kind in kinds for i in range(1 + _CHAINS)
    )
    # Addresses: a word and two words for each lane, words of one bank, and what L1 holds.
    addresses = """
  and.b32 %r5, %thread, 31;
  mov.u32 %r6, cells;
  mad.lo.u32 %r11, %r5, 4, %r6;
  mad.lo.u32 %r10, %r5, 8, %r6;
  mad.lo.u32 %r9, %r5, 128, %r6;
  mad.wide.u32 %l6, %r5, 8, %data;
  ld.volatile.global.u32 %r7, [%data];
  ld.volatile.global.u64 %l7, [%data];"""
    # Loads of one address would become one: after some of them an addition of zero hides that addresses come again.
    hide = "add.u64 %l6, %l6, %l7; " + "".join(f"add.u32 %r{i}, %r{i}, %r7;" for i in (9, 10, 11))
    repeated = ""
    for number in range(_COPIES * _CHAINS):
        row = number % _ROWS
        repeated += hide if row == 0 and "ld." in instruction else ""
        repeated += instruction.format(i=1 + number % _CHAINS, offset=_ROW * row, word=4 * row)
    # The results are added up so that every chain is of use.
    sums = "".join(
        f"add.u32 %r0, %r0, %r{i}; add.f32 %f0, %f0, %f{i}; add.f64 %d0, %d0, %d{i}; add.u64 %l0, %l0, %l{i};"
        for i in chains
    )
    body = f"""
  {start}
  {addresses}
  mov.u32 %round, 0;
AGAIN:
  .pragma "nounroll";
  setp.gt.u32 %p, %round, 1;
  @%p bra TIMED;
  bar.sync 0;
  mov.u64 %begin, %clock64;
TIMED:
  {repeated}
  add.u32 %round, %round, 1;
  setp.le.u32 %p, %round, %rounds;
  @%p bra AGAIN;
  mov.u64 %end, %clock64;
  {sums}
  mad.wide.u32 %l1, %thread, 16, %out;
  st.volatile.global.u64 [%l1], %l0;
  st.volatile.global.u32 [%l1], %r0;
  st.volatile.global.f32 [%l1], %f0;
  st.volatile.global.f64 [%l1], %d0;
  st.volatile.global.u64 [%l1], %begin;
  st.volatile.global.u64 [%l1+8], %end;
  ret;"""
    declare = ".shared .align 128 .b8 cells[8192];"
    _launch(device, body, times, data, block=_THREADS, rounds=_TIMED_ROUNDS, declare=declare)
    begin, end = times.numpy().T
    return _TIMED_ROUNDS * _CHAINS * _COPIES * _THREADS / float(end.max() - begin.min())


def _stream(target: GpuTarget, empty: TimedLaunch) -> float:
    """GB/s of a kernel that reads an array once, without the cost of its launch."""
    device = target.device()
    out, data = device.zeros(1, np.uint32), device.zeros(_STREAM_BYTES // 4, np.uint32)
    block = 256
    grid = _STREAM_BYTES // (_WIDE * block)
    launch = _launch(device, _reading(1, 0), out, data, grid=grid, block=block)
    return _STREAM_BYTES / (launch.seconds - empty.seconds) / 1e9


def _l2_bytes_per_cycle(target: GpuTarget, empty: TimedLaunch) -> float:
    """Bytes per cycle of a kernel that reads, past L1, what the L2 already holds."""
    device = target.device()
    out, data = device.zeros(1, np.uint32), device.zeros(_L2_FOOTPRINT // 4, np.uint32)
    sms, block = len(device.parts.sms), 1024
    _launch(device, _reading(1, 0), out, data, grid=_L2_FOOTPRINT // (_WIDE * block), block=block)
    reading = _reading(_L2_LOADS, 37 * block * _WIDE, wrap=_L2_FOOTPRINT)
    launch = _launch(device, reading, out, data, grid=2 * sms, block=block)
    return 2 * sms * block * _L2_LOADS * _WIDE / (launch.cycles - empty.cycles)


def _reading(loads: int, step: int, wrap: int | None = None) -> str:
    """Each thread reads 16 bytes `loads` times, `step` bytes apart, past L1; `wrap` is where offsets start again."""
    masked = "" if wrap is None else f"and.b32 %index, %index, {wrap - 1};"
    one = f"""
  {masked}
  cvt.u64.u32 %l1, %index;
  add.u64 %l1, %data, %l1;
  ld.global.cg.v4.u32 {{%r1, %r2, %r3, %r4}}, [%l1];
  or.b32 %r5, %r5, %r1; or.b32 %r5, %r5, %r2; or.b32 %r5, %r5, %r3; or.b32 %r5, %r5, %r4;
  add.u32 %index, %index, {step};"""
    # All that is read is zero, so nothing is stored; a compiler could not know that and keeps the loads.
    return f"""
  mov.u32 %r5, 0;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.u32 %index, %r1, %r2, %thread;
  shl.b32 %index, %index, 4;
  {one * loads}
  setp.eq.u32 %p, %r5, 1;
  @%p st.global.u32 [%out], %r5;
  ret;"""
