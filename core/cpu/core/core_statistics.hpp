// SPDX-License-Identifier: Apache-2.0
// The statistics of a core.
#pragma once
#include "engine/spec.hpp"
#include "engine/statistics.hpp"

namespace manyscale::cpu {

struct CoreStatistics {
  Counter cycles, instructions;
  Counter loads, stores, forwarded_loads, failed_forwards, split_accesses;
  Counter mispredicts, misfetches;
  Counter stall_reorder_buffer, stall_issue_queue, stall_load_queue, stall_store_queue, stall_registers;
  Counter instruction_lines, stream_waits, deferred;
};

// Cycles by cause, in the order of Cause.
struct CpiCounters {
  Counter base, dependency, unit, branch, fetch, fetch_tlb, l1, l2, l3, shared, peer, dram, tlb, store_buffer,
      synchronisation, sleeping, idle;
};

// Instructions by kind, in the order of InstructionClass without markers.
struct InstructionCounters {
  Counter integer, multiply, divide, float_add, float_multiply, float_fused, float_divide, float_root,
      float_convert, load, store, atomic, fence, branch, jump, indirect, system;
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::CoreStatistics> {
  using S = cpu::CoreStatistics;
  using C = Statistic<S, Counter>;
  static constexpr auto fields = std::tuple{
      C{"cycles", &S::cycles, "cycle", "cycles so far: the sum of all cpi"},
      C{"instructions", &S::instructions, "instruction", "instructions committed"},
      C{"loads", &S::loads, "access", "loads executed"},
      C{"stores", &S::stores, "access", "stores written to the L1 data cache"},
      C{"forwarded_loads", &S::forwarded_loads, "access", "loads served by an older store"},
      C{"failed_forwards", &S::failed_forwards, "access",
        "loads that an older store could only serve in part"},
      C{"split_accesses", &S::split_accesses, "access", "loads and stores that crossed a line"},
      C{"mispredicts", &S::mispredicts, "branch", "branches whose direction or target was mispredicted"},
      C{"misfetches", &S::misfetches, "branch",
        "taken branches that re-steered fetch when they were decoded"},
      C{"stall_reorder_buffer", &S::stall_reorder_buffer, "cycle", "dispatch waited for the reorder buffer"},
      C{"stall_issue_queue", &S::stall_issue_queue, "cycle", "dispatch waited for an issue queue"},
      C{"stall_load_queue", &S::stall_load_queue, "cycle", "dispatch waited for the load queue"},
      C{"stall_store_queue", &S::stall_store_queue, "cycle", "dispatch waited for the store queue"},
      C{"stall_registers", &S::stall_registers, "cycle", "dispatch waited for a physical register"},
      C{"instruction_lines", &S::instruction_lines, "access", "lines fetched from the instruction cache"},
      C{"stream_waits", &S::stream_waits, "wait",
        "times that the core waited for its stream source, which nothing had halted"},
      C{"deferred", &S::deferred, "instruction",
        "instructions whose issue was further ahead than the quantum"}};
};

template <>
struct describe<cpu::CpiCounters> {
  using S = cpu::CpiCounters;
  using C = Statistic<S, Counter>;
  static constexpr auto fields = std::tuple{
      C{"base", &S::base, "cycle", "instructions committed, or the widths of the pipeline held them up"},
      C{"dependency", &S::dependency, "cycle", "the oldest instruction waited for a result of a unit"},
      C{"unit", &S::unit, "cycle", "… for a free unit"},
      C{"branch", &S::branch, "cycle", "… for fetch to be redirected after a misprediction or misfetch"},
      C{"fetch", &S::fetch, "cycle", "… for the instruction cache"},
      C{"fetch_tlb", &S::fetch_tlb, "cycle", "… for the translation of its own address"},
      C{"l1", &S::l1, "cycle", "… for data from the L1 cache or an older store"},
      C{"l2", &S::l2, "cycle", "… for data from a private L2 cache"},
      C{"l3", &S::l3, "cycle", "… for data from a private L3 cache"},
      C{"shared", &S::shared, "cycle", "… for data from a shared cache"},
      C{"peer", &S::peer, "cycle", "… for data from another core's cache"},
      C{"dram", &S::dram, "cycle", "… for data from memory"},
      C{"tlb", &S::tlb, "cycle", "… for the translation of a data address"},
      C{"store_buffer", &S::store_buffer, "cycle", "… for a store queue entry"},
      C{"synchronisation", &S::synchronisation, "cycle", "… at an atomic operation, fence or system call"},
      C{"sleeping", &S::sleeping, "cycle", "all threads of this core waited for others"},
      C{"idle", &S::idle, "cycle", "there was no thread"}};
};

template <>
struct describe<cpu::InstructionCounters> {
  using S = cpu::InstructionCounters;
  using C = Statistic<S, Counter>;
  static constexpr auto fields =
      std::tuple{C{"integer", &S::integer, "instruction", "additions, logic, shifts, comparisons, moves"},
                 C{"multiply", &S::multiply, "instruction", "integer multiplications"},
                 C{"divide", &S::divide, "instruction", "integer divisions and remainders"},
                 C{"float_add", &S::float_add, "instruction", "floating-point additions and comparisons"},
                 C{"float_multiply", &S::float_multiply, "instruction", "floating-point multiplications"},
                 C{"float_fused", &S::float_fused, "instruction", "fused multiply-adds"},
                 C{"float_divide", &S::float_divide, "instruction", "floating-point divisions"},
                 C{"float_root", &S::float_root, "instruction", "square roots"},
                 C{"float_convert", &S::float_convert, "instruction", "conversions"},
                 C{"load", &S::load, "instruction", "loads"},
                 C{"store", &S::store, "instruction", "stores"},
                 C{"atomic", &S::atomic, "instruction", "atomic operations"},
                 C{"fence", &S::fence, "instruction", "fences"},
                 C{"branch", &S::branch, "instruction", "conditional branches"},
                 C{"jump", &S::jump, "instruction", "direct jumps"},
                 C{"indirect", &S::indirect, "instruction", "indirect jumps"},
                 C{"system", &S::system, "instruction", "system calls"}};
};

}  // namespace manyscale
