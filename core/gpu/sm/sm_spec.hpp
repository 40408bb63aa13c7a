// SPDX-License-Identifier: Apache-2.0
// Parameters and statistics of a streaming multiprocessor. No parameter has a default: machines state them
// all.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "engine/time.hpp"

namespace manyscale::gpu {

// Timing of a kind of instruction: latency from its issue to that of one which needs its result, and interval
// for which its pipe takes no other instruction of the same sub-core.
struct InstructionTiming {
  std::int64_t latency = 1;
  std::int64_t interval = 1;
};

// Latencies are those between two instructions of one pipe. Others see a result a little later.
struct SmTimings {
  InstructionTiming integer, logic, multiply_add, multiply_wide, fp32, fp16, fp64, special_function, convert,
      tensor_half, tensor_integer, tensor_double, move_special, shuffle, vote, branch, barrier, fence, other;
  std::int64_t other_unit = 0;
  std::int64_t queued_unit = 0;
  std::int64_t taken = 0;
  std::int64_t guard = 0;
  std::int64_t operand_read = 0;
};

struct L1Spec {
  std::int64_t size = 1024;
  std::int64_t least = 1024;
  std::int64_t line = 32;
  std::int64_t ways = 1;
  std::int64_t hit_latency = 1;
  std::int64_t outstanding_lines = 1;
  std::int64_t outstanding_writes = 1;
  std::int64_t slices = 1;
  std::string slice_hash = "polynomial";
  std::int64_t miss_latency = 0;
  std::int64_t return_latency = 0;
  std::int64_t request_interval = 1;
  std::int64_t write_interval = 1;
  std::int64_t drain_latency = 0;
  std::int64_t tags = 1;
  std::int64_t banks = 1;
  std::int64_t atomic_width = 32;
};

// The TLB of an SM; only managed memory needs it.
struct SmTlbSpec {
  std::int64_t entries = 1;
  std::int64_t ways = 0;
  std::int64_t latency = 0;
  std::string faults = "replayable";
  std::int64_t outstanding = 0;
  Time report_interval = 0;
};

struct SmDeviceTlbSpec {
  std::int64_t entries = 1;
  std::int64_t page = 4096;
  std::int64_t miss_latency = 0;
  std::int64_t region = 4096;
  Time walk_latency = 0;
};

struct SmSpec {
  std::int64_t clock = 1;
  std::int64_t sub_cores = 1;
  std::int64_t warps = 1;
  std::string scheduler = "lrr";
  SmTimings timing{};
  L1Spec l1{};
  SmTlbSpec tlb{};
  SmDeviceTlbSpec device_tlb{};
  std::int64_t shared_latency = 1;
  std::int64_t shared_banks = 1;
  std::int64_t address_interval = 1;
  std::int64_t global_interval = 1;
  std::int64_t memory_queue = 1;
  std::int64_t lsu_interval = 1;
  std::int64_t texture_units = 1;
  std::int64_t texture_latency = 1;
  std::int64_t constant_size = 256;
  std::int64_t constant_line = 64;
  std::int64_t constant_ways = 1;
  std::int64_t constant_latency = 1;
  std::int64_t constant_l15_latency = 1;
  std::int64_t instruction_line = 16;
  std::int64_t instruction_ways = 1;
  std::int64_t prefetched_lines = 0;
  std::int64_t fetch_interval = 1;
  std::int64_t l0_instructions = 128;
  std::int64_t l1_instructions = 128;
  std::int64_t l0_miss_latency = 0;
  std::int64_t l1_miss_latency = 0;
  std::int64_t cta_launch_latency = 0;
};

// Stall reasons have the names of Nsight Compute; the docs of the statistics say what is counted differently.
// In cycles of warps: with `issued_instructions`, which is Selected, they add up to `warp_cycles`. The last
// three are parts of the others.
struct SmStatistics {
  Counter ctas, warp_instructions, thread_instructions, issued_instructions;
  Counter active_cycles, warp_cycles;
  Counter stall_wait, stall_long_scoreboard, stall_short_scoreboard, stall_barrier, stall_no_instruction,
      stall_math_pipe_throttle, stall_not_selected, stall_lg_throttle, stall_mio_throttle, stall_tex_throttle,
      stall_drain, stall_fault;
  Counter issued_alu, issued_fma, issued_fp64, issued_xu, issued_tensor, issued_lsu, issued_cbu, issued_other;
  Counter busy_alu, busy_fma, busy_fp64, busy_xu, busy_tensor, busy_lsu, busy_cbu, busy_other;
  Counter global_requests, global_sectors, l1_hits, l1_misses, shared_requests, shared_wavefronts;
  Counter global_bytes, global_lines, load_sectors, load_sectors_needed, store_sectors, store_sectors_needed,
      lines_needed, local_requests, local_lines, local_store_sectors, l2_requests, missed_loads,
      missed_load_cycles;
  Counter global_wavefronts, global_wavefronts_needed, texture_requests, texture_sectors, texture_cycles;
  Counter shared_conflicts, shared_atomic_conflicts, constant_requests, constant_wavefronts, data_cycles;
  Counter atomic_requests, atomic_rounds, atomic_rounds_busiest, atomic_conflicts, fetch_prefetched,
      fetch_l0_misses, fetch_l1_misses;
  Counter stall_conflict, stall_local, stall_atomic;
  Counter device_tlb_misses;
  Counter tlb_hits, tlb_misses, tlb_shootdowns, faulted_translations, remote_sectors;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::InstructionTiming> {
  using S = gpu::InstructionTiming;
  static constexpr auto fields =
      std::tuple{Field<S, std::int64_t>{"latency", &S::latency, Unit::cycles,
                                        "from issue to the issue of one that needs the result", 1, 1e6},
                 Field<S, std::int64_t>{"interval", &S::interval, Unit::cycles,
                                        "for which the pipe takes no other", 1, 1e6}};
};

template <>
struct describe<gpu::SmTimings> {
  using S = gpu::SmTimings;
  using T = gpu::InstructionTiming;
  static constexpr auto fields = std::tuple{
      Section<S, T>{"integer", &S::integer, "IADD3, IMNMX, ISETP, SEL, MOV"},
      Section<S, T>{"logic", &S::logic, "LOP3, SHF, PRMT"},
      Section<S, T>{"multiply_add", &S::multiply_add, "IMAD"},
      Section<S, T>{"multiply_wide", &S::multiply_wide, "IMAD.WIDE, IMAD.HI"},
      Section<S, T>{"fp32", &S::fp32, "FADD, FMUL, FFMA, FSETP, FMNMX"},
      Section<S, T>{"fp16", &S::fp16, "HADD2, HMUL2, HFMA2"},
      Section<S, T>{"fp64", &S::fp64, "DADD, DMUL, DFMA"},
      Section<S, T>{"special_function", &S::special_function, "MUFU"},
      Section<S, T>{"convert", &S::convert, "I2F, F2I, F2F, POPC, FLO"},
      Section<S, T>{"tensor_half", &S::tensor_half, "HMMA"},
      Section<S, T>{"tensor_integer", &S::tensor_integer, "IMMA"},
      Section<S, T>{"tensor_double", &S::tensor_double, "DMMA"},
      Section<S, T>{"move_special", &S::move_special, "S2R"},
      Section<S, T>{"shuffle", &S::shuffle, "SHFL"},
      Section<S, T>{"vote", &S::vote, "VOTE, MATCH"},
      Section<S, T>{"branch", &S::branch, "BRA, CALL, RET"},
      Section<S, T>{"barrier", &S::barrier, "BAR"},
      Section<S, T>{"fence", &S::fence, "MEMBAR"},
      Section<S, T>{"other", &S::other, "everything else"},
      Field<S, std::int64_t>{"other_unit", &S::other_unit, Unit::cycles,
                             "more until an integer or fp32 result can be used by the other of the two", 0,
                             1e6},
      Field<S, std::int64_t>{"queued_unit", &S::queued_unit, Unit::cycles,
                             "more until an integer or fp32 result can be used by memory instructions, "
                             "special functions, conversions and tensor cores",
                             0, 1e6},
      Field<S, std::int64_t>{"taken", &S::taken, Unit::cycles,
                             "more until the instruction at a branch's target can issue", 0, 1e6},
      Field<S, std::int64_t>{"guard", &S::guard, Unit::cycles,
                             "more until a predicate can decide whether an instruction takes effect", 0, 1e6},
      Field<S, std::int64_t>{"operand_read", &S::operand_read, Unit::cycles,
                             "until a memory instruction of SASS has read its operands, and others "
                             "may overwrite them",
                             0, 1e6}};
};

template <>
struct describe<gpu::L1Spec> {
  using S = gpu::L1Spec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"size", &S::size, Unit::bytes, "of L1 and shared memory together", 1024, 1e9},
      Field<S, std::int64_t>{"least", &S::least, Unit::bytes, "of L1 that shared memory leaves", 1024, 1e9},
      Field<S, std::int64_t>{"line", &S::line, Unit::bytes, "of a line, in sectors of 32 B", 32, 256},
      Field<S, std::int64_t>{"ways", &S::ways, Unit::count, "lines of a set", 1, 1024},
      Field<S, std::int64_t>{"hit_latency", &S::hit_latency, Unit::cycles, "of a load, from issue to use", 1,
                             1e6},
      Field<S, std::int64_t>{"outstanding_lines", &S::outstanding_lines, Unit::count,
                             "lines requested of the L2 and not yet returned (MSHRs)", 1, 1e6},
      Field<S, std::int64_t>{"outstanding_writes", &S::outstanding_writes, Unit::count,
                             "lines of stores that the L2 has not confirmed", 1, 1e6},
      Field<S, std::int64_t>{"slices", &S::slices, Unit::count, "slices of the L2", 1, 65536},
      Field<S, std::string>{"slice_hash", &S::slice_hash, Unit::none, "hash that spreads lines over slices"},
      Field<S, std::int64_t>{"miss_latency", &S::miss_latency, Unit::cycles,
                             "from the issue of a load to its request's way into the network", 0, 1e6},
      Field<S, std::int64_t>{"return_latency", &S::return_latency, Unit::cycles,
                             "from the network to the use of what was loaded", 0, 1e6},
      Field<S, std::int64_t>{"request_interval", &S::request_interval, Unit::cycles, "between two requests",
                             1, 1e6},
      Field<S, std::int64_t>{"write_interval", &S::write_interval, Unit::cycles,
                             "for which a sector that is written keeps the way to the network", 1, 1e6},
      Field<S, std::int64_t>{"drain_latency", &S::drain_latency, Unit::cycles,
                             "from when its last store leaves the SM until a warp can end", 0, 1e6},
      Field<S, std::int64_t>{
          "tags", &S::tags, Unit::count,
          "lines of an instruction that are looked up in a cycle, after a first cycle with one", 1, 64},
      Field<S, std::int64_t>{"banks", &S::banks, Unit::count, "of the data array, 4 bytes wide", 1, 256},
      Field<S, std::int64_t>{
          "atomic_width", &S::atomic_width, Unit::bytes,
          "words of a sector that the L2 changes at once for an atomic operation of a warp", 1, 32}};
};

template <>
struct describe<gpu::SmTlbSpec> {
  using S = gpu::SmTlbSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"entries", &S::entries, Unit::count, "translations of pages of 4 KiB", 1,
                             1 << 24},
      Field<S, std::int64_t>{"ways", &S::ways, Unit::count, "entries of a set; 0: one set of all", 0,
                             1 << 24},
      Field<S, std::int64_t>{"latency", &S::latency, Unit::cycles, "of a look-up, hit or miss", 0, 1e6},
      Field<S, std::string>{"faults", &S::faults, Unit::none,
                            "what accesses of managed memory do while a page fault of the SM is serviced: "
                            "replayable (others go on) or blocking (they wait)"},
      Field<S, std::int64_t>{
          "outstanding", &S::outstanding, Unit::count,
          "lines that are taken in from the first that waits for a translation until none does; "
          "those behind them wait, even if their page is known; 0: any number",
          0, 1e6},
      Field<S, Time>{"report_interval", &S::report_interval, Unit::time,
                     "between two reports that a page is used, for eviction", 0, 1e15}};
};

template <>
struct describe<gpu::SmDeviceTlbSpec> {
  using S = gpu::SmDeviceTlbSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"entries", &S::entries, Unit::count,
                             "translations, the one used least recently goes", 1, 4096},
      Field<S, std::int64_t>{"page", &S::page, Unit::bytes, "bytes of a translation, a power of two", 4096,
                             1e12},
      Field<S, std::int64_t>{"miss_latency", &S::miss_latency, Unit::cycles,
                             "how much later a request leaves whose translation comes from the L2 TLB", 0,
                             1e6},
      Field<S, std::int64_t>{"region", &S::region, Unit::bytes,
                             "bytes of an entry of the L2 TLB, a power of two", 4096, 1e12},
      Field<S, Time>{"walk_latency", &S::walk_latency, Unit::time,
                     "how much later than with an entry of the L2 TLB if it has none yet", 0, 1e12}};
};

template <>
struct describe<gpu::SmSpec> {
  using S = gpu::SmSpec;
  static constexpr bool required = true;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the SM", 1, 1e12},
      Field<S, std::int64_t>{"sub_cores", &S::sub_cores, Unit::count,
                             "processing blocks with a warp scheduler of their own", 1, 16},
      Field<S, std::int64_t>{"warps", &S::warps, Unit::count, "resident warps at most", 1, 256},
      Field<S, std::string>{"scheduler", &S::scheduler, Unit::none,
                            "warp scheduler, by its name among the plug-ins of that kind"},
      Section<S, gpu::SmTimings>{"timing", &S::timing, "instructions by kind"},
      Section<S, gpu::L1Spec>{"l1", &S::l1, "L1 data cache"},
      Section<S, gpu::SmTlbSpec>{"tlb", &S::tlb, "translations of managed memory"},
      Section<S, gpu::SmDeviceTlbSpec>{"device_tlb", &S::device_tlb, "translations of other device memory"},
      Field<S, std::int64_t>{"shared_latency", &S::shared_latency, Unit::cycles,
                             "of a load without conflicts", 1, 1e6},
      Field<S, std::int64_t>{"shared_banks", &S::shared_banks, Unit::count, "of shared memory, 4 bytes wide",
                             1, 256},
      Field<S, std::int64_t>{"address_interval", &S::address_interval, Unit::cycles,
                             "between two instructions of a sub-core to shared memory, constants or textures",
                             1, 1e6},
      Field<S, std::int64_t>{"global_interval", &S::global_interval, Unit::cycles,
                             "between two instructions of a sub-core to global or local memory", 1, 1e6},
      Field<S, std::int64_t>{"memory_queue", &S::memory_queue, Unit::count,
                             "slots of a sub-core's MIO queue: memory, textures, shuffles, special functions",
                             1, 64},
      Field<S, std::int64_t>{"lsu_interval", &S::lsu_interval, Unit::cycles,
                             "between two instructions that the sub-cores give to the LSU", 1, 1e6},
      Field<S, std::int64_t>{"texture_units", &S::texture_units, Unit::count,
                             "lanes of a texture instruction in a cycle, with 16 B of texels each", 1, 32},
      Field<S, std::int64_t>{"texture_latency", &S::texture_latency, Unit::cycles,
                             "of a texture instruction whose texels are in the L1", 1, 1e6},
      Field<S, std::int64_t>{"constant_size", &S::constant_size, Unit::bytes, "constant cache of the SM", 64,
                             1e9},
      Field<S, std::int64_t>{"constant_line", &S::constant_line, Unit::bytes, "of the constant cache", 16,
                             4096},
      Field<S, std::int64_t>{"constant_ways", &S::constant_ways, Unit::count, "of the constant cache", 1,
                             1024},
      Field<S, std::int64_t>{"constant_latency", &S::constant_latency, Unit::cycles,
                             "of a load that the constant cache holds", 1, 1e6},
      Field<S, std::int64_t>{"constant_l15_latency", &S::constant_l15_latency, Unit::cycles,
                             "of a load of constants that the SM's instruction cache holds; those from the "
                             "L2 come later by its latency",
                             1, 1e6},
      Field<S, std::int64_t>{"instruction_line", &S::instruction_line, Unit::bytes,
                             "of the instruction caches", 16, 4096},
      Field<S, std::int64_t>{"instruction_ways", &S::instruction_ways, Unit::count,
                             "of the instruction caches", 1, 1024},
      Field<S, std::int64_t>{"prefetched_lines", &S::prefetched_lines, Unit::count,
                             "lines of a sub-core's stream buffer, which follow the last that missed", 0,
                             1024},
      Field<S, std::int64_t>{"fetch_interval", &S::fetch_interval, Unit::cycles,
                             "between two lines that a stream buffer receives", 1, 1e6},
      Field<S, std::int64_t>{"l0_instructions", &S::l0_instructions, Unit::bytes,
                             "instruction cache of a sub-core", 128, 1e9},
      Field<S, std::int64_t>{"l1_instructions", &S::l1_instructions, Unit::bytes,
                             "instruction cache of the SM", 128, 1e9},
      Field<S, std::int64_t>{"l0_miss_latency", &S::l0_miss_latency, Unit::cycles,
                             "until the SM's cache gives a line", 0, 1e6},
      Field<S, std::int64_t>{"l1_miss_latency", &S::l1_miss_latency, Unit::cycles,
                             "until the L2 gives a line", 0, 1e6},
      Field<S, std::int64_t>{"cta_launch_latency", &S::cta_launch_latency, Unit::cycles,
                             "from the start of a CTA to its first instruction", 0, 1e6}};
};

template <>
struct describe<gpu::SmStatistics> {
  using S = gpu::SmStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"ctas", &S::ctas, "1", "CTAs completed"},
      Statistic<S, Counter>{"warp_instructions", &S::warp_instructions, "1", "PTX instructions of warps"},
      Statistic<S, Counter>{"thread_instructions", &S::thread_instructions, "1",
                            "PTX instructions of threads"},
      Statistic<S, Counter>{"issued_instructions", &S::issued_instructions, "1",
                            "SASS instructions issued, or those that PTX is lowered to (Selected)"},
      Statistic<S, Counter>{"active_cycles", &S::active_cycles, "cycle", "cycles with a CTA on the SM"},
      Statistic<S, Counter>{"warp_cycles", &S::warp_cycles, "cycle", "cycles of warps on the SM"},
      Statistic<S, Counter>{
          "stall_wait", &S::stall_wait, "cycle",
          "Wait: a result of fixed latency; here also those of MUFU, conversions and votes, and the "
          "latency of branches and barriers (Nsight Compute: Short Scoreboard, Branch Resolving)"},
      Statistic<S, Counter>{
          "stall_long_scoreboard", &S::stall_long_scoreboard, "cycle",
          "Long Scoreboard: global or local memory or textures; here also constants (Nsight Compute: IMC "
          "Miss) and fences (Membar)"},
      Statistic<S, Counter>{"stall_short_scoreboard", &S::stall_short_scoreboard, "cycle",
                            "Short Scoreboard: shared memory or a shuffle"},
      Statistic<S, Counter>{"stall_barrier", &S::stall_barrier, "cycle", "Barrier: other warps of the CTA"},
      Statistic<S, Counter>{"stall_no_instruction", &S::stall_no_instruction, "cycle",
                            "No Instruction: the line of instructions was not in the cache"},
      Statistic<S, Counter>{"stall_math_pipe_throttle", &S::stall_math_pipe_throttle, "cycle",
                            "Math Pipe Throttle: the pipe was busy"},
      Statistic<S, Counter>{"stall_not_selected", &S::stall_not_selected, "cycle",
                            "Not Selected: eligible, but another warp issued"},
      Statistic<S, Counter>{"stall_lg_throttle", &S::stall_lg_throttle, "cycle",
                            "LG Throttle: the MIO queue was full, or MSHRs of the L1 were, for an "
                            "instruction of global or local memory"},
      Statistic<S, Counter>{
          "stall_mio_throttle", &S::stall_mio_throttle, "cycle",
          "MIO Throttle: the MIO queue was full, for shared memory, constants, a shuffle, a special "
          "function or a conversion"},
      Statistic<S, Counter>{
          "stall_tex_throttle", &S::stall_tex_throttle, "cycle",
          "Tex Throttle: the MIO queue was full, or MSHRs of the L1 were, for a texture instruction"},
      Statistic<S, Counter>{"stall_drain", &S::stall_drain, "cycle",
                            "Drain: stores to be complete after EXIT"},
      Statistic<S, Counter>{"stall_fault", &S::stall_fault, "cycle",
                            "a page of managed memory; Nsight Compute has none"},
      Statistic<S, Counter>{"issued_alu", &S::issued_alu, "1",
                            "instructions of the ALU pipe: integer and logic"},
      Statistic<S, Counter>{"issued_fma", &S::issued_fma, "1",
                            "instructions of the FMA pipe: single and half precision, integer products"},
      Statistic<S, Counter>{"issued_fp64", &S::issued_fp64, "1", "instructions of the FP64 pipe"},
      Statistic<S, Counter>{"issued_xu", &S::issued_xu, "1",
                            "instructions of the XU pipe: special functions and conversions"},
      Statistic<S, Counter>{"issued_tensor", &S::issued_tensor, "1", "instructions of the tensor pipe"},
      Statistic<S, Counter>{"issued_lsu", &S::issued_lsu, "1",
                            "instructions of the LSU pipe: memory and shuffles"},
      Statistic<S, Counter>{"issued_cbu", &S::issued_cbu, "1",
                            "instructions of the CBU pipe: branches, barriers, fences and exits"},
      Statistic<S, Counter>{"issued_other", &S::issued_other, "1", "other instructions"},
      Statistic<S, Counter>{"busy_alu", &S::busy_alu, "cycle",
                            "cycles that the ALU pipe took no other instruction, all sub-cores"},
      Statistic<S, Counter>{"busy_fma", &S::busy_fma, "cycle", "the same of the FMA pipe"},
      Statistic<S, Counter>{"busy_fp64", &S::busy_fp64, "cycle", "the same of the FP64 pipe"},
      Statistic<S, Counter>{"busy_xu", &S::busy_xu, "cycle", "the same of the XU pipe"},
      Statistic<S, Counter>{"busy_tensor", &S::busy_tensor, "cycle", "the same of the tensor pipe"},
      Statistic<S, Counter>{"busy_lsu", &S::busy_lsu, "cycle", "the same of the LSU pipe"},
      Statistic<S, Counter>{"busy_cbu", &S::busy_cbu, "cycle", "the same of the CBU pipe"},
      Statistic<S, Counter>{"busy_other", &S::busy_other, "cycle", "the same of all other pipes"},
      Statistic<S, Counter>{"global_requests", &S::global_requests, "1",
                            "global and local memory instructions"},
      Statistic<S, Counter>{"global_sectors", &S::global_sectors, "1", "sectors of 32 B they touched"},
      Statistic<S, Counter>{"l1_hits", &S::l1_hits, "1",
                            "sectors of loads found in L1, or on their way there"},
      Statistic<S, Counter>{"l1_misses", &S::l1_misses, "1", "sectors of loads asked of the L2"},
      Statistic<S, Counter>{"shared_requests", &S::shared_requests, "1", "shared memory instructions"},
      Statistic<S, Counter>{"shared_wavefronts", &S::shared_wavefronts, "1",
                            "wavefronts they took, one without conflicts"},
      Statistic<S, Counter>{"global_bytes", &S::global_bytes, "B",
                            "that threads asked of global and local memory"},
      Statistic<S, Counter>{"global_lines", &S::global_lines, "1",
                            "cache lines that global and local memory instructions touched"},
      Statistic<S, Counter>{"load_sectors", &S::load_sectors, "1",
                            "sectors of 32 B that global loads touched"},
      Statistic<S, Counter>{"load_sectors_needed", &S::load_sectors_needed, "1",
                            "sectors of 32 B that global loads would touch if they were coalesced"},
      Statistic<S, Counter>{"store_sectors", &S::store_sectors, "1",
                            "sectors of 32 B that global stores touched"},
      Statistic<S, Counter>{"store_sectors_needed", &S::store_sectors_needed, "1",
                            "sectors of 32 B that global stores would touch if they were coalesced"},
      Statistic<S, Counter>{"lines_needed", &S::lines_needed, "1",
                            "cache lines that global loads and stores would touch if they were coalesced"},
      Statistic<S, Counter>{"local_requests", &S::local_requests, "1", "local memory instructions"},
      Statistic<S, Counter>{"local_lines", &S::local_lines, "1", "cache lines that they touched"},
      Statistic<S, Counter>{"local_store_sectors", &S::local_store_sectors, "1",
                            "sectors of 32 B that stores to local memory touched"},
      Statistic<S, Counter>{"missed_loads", &S::missed_loads, "1",
                            "loads and atomic operations that waited for an answer of the L2"},
      Statistic<S, Counter>{"missed_load_cycles", &S::missed_load_cycles, "cycle",
                            "from when they reached the L1 until they were complete, all together"},
      Statistic<S, Counter>{"l2_requests", &S::l2_requests, "1", "requests to the L2"},
      Statistic<S, Counter>{"global_wavefronts", &S::global_wavefronts, "1",
                            "passes over the banks of the L1 that global and local memory instructions took"},
      Statistic<S, Counter>{"global_wavefronts_needed", &S::global_wavefronts_needed, "1",
                            "passes that they would take if they were coalesced"},
      Statistic<S, Counter>{"texture_requests", &S::texture_requests, "1", "texture instructions"},
      Statistic<S, Counter>{"texture_sectors", &S::texture_sectors, "1", "sectors of 32 B they touched"},
      Statistic<S, Counter>{"texture_cycles", &S::texture_cycles, "cycle", "the texture units were busy"},
      Statistic<S, Counter>{"shared_conflicts", &S::shared_conflicts, "1",
                            "wavefronts of shared memory that bank conflicts add"},
      Statistic<S, Counter>{"shared_atomic_conflicts", &S::shared_atomic_conflicts, "1",
                            "wavefronts of shared memory that atomic operations on one bank add"},
      Statistic<S, Counter>{"constant_requests", &S::constant_requests, "1",
                            "constant memory instructions with an address"},
      Statistic<S, Counter>{"constant_wavefronts", &S::constant_wavefronts, "1",
                            "wavefronts they took, one for each address"},
      Statistic<S, Counter>{"data_cycles", &S::data_cycles, "cycle",
                            "the stage that L1, shared memory, constants and shuffles share was busy"},
      Statistic<S, Counter>{"atomic_requests", &S::atomic_requests, "1",
                            "requests to the L2 of atomic operations"},
      Statistic<S, Counter>{
          "atomic_rounds", &S::atomic_rounds, "1",
          "rounds of the L2's atomic unit that they take: of so many words of a sector, and no word twice"},
      Statistic<S, Counter>{"atomic_rounds_busiest", &S::atomic_rounds_busiest, "1",
                            "of these, at the L2 slice with most"},
      Statistic<S, Counter>{"atomic_conflicts", &S::atomic_conflicts, "1",
                            "of these, only because lanes of a warp change the same word"},
      Statistic<S, Counter>{"fetch_prefetched", &S::fetch_prefetched, "1",
                            "lines of instructions that a stream buffer had, or waited for"},
      Statistic<S, Counter>{"fetch_l0_misses", &S::fetch_l0_misses, "1",
                            "lines of instructions that a sub-core's cache did not have"},
      Statistic<S, Counter>{"fetch_l1_misses", &S::fetch_l1_misses, "1",
                            "of these, lines that the SM's instruction cache did not have"},
      Statistic<S, Counter>{"stall_conflict", &S::stall_conflict, "cycle",
                            "of the stalls: due to wavefronts that conflicts add"},
      Statistic<S, Counter>{"stall_local", &S::stall_local, "cycle",
                            "of stall_long_scoreboard: for local memory"},
      Statistic<S, Counter>{"stall_atomic", &S::stall_atomic, "cycle",
                            "of the stalls: for atomic operations at the L2"},
      Statistic<S, Counter>{"device_tlb_misses", &S::device_tlb_misses, "1",
                            "requests to the L2 whose page the L1 TLB did not know"},
      Statistic<S, Counter>{"tlb_hits", &S::tlb_hits, "1", "lines of managed memory whose page the TLB knew"},
      Statistic<S, Counter>{"tlb_misses", &S::tlb_misses, "1",
                            "lines of managed memory that waited for a translation"},
      Statistic<S, Counter>{"tlb_shootdowns", &S::tlb_shootdowns, "1",
                            "entries of the TLB that had to be forgotten"},
      Statistic<S, Counter>{
          "faulted_translations", &S::faulted_translations, "1",
          "translations that waited for the page to come; SMs that wait for one page count each"},
      Statistic<S, Counter>{"remote_sectors", &S::remote_sectors, "1",
                            "sectors of 32 B accessed in the host's memory"}};
};

}  // namespace manyscale
