// SPDX-License-Identifier: Apache-2.0
// The parameters of a core.
#pragma once
#include <cstdint>
#include <string>

#include "cpu/core/branch_spec.hpp"
#include "cpu/core/translation_unit.hpp"
#include "engine/spec.hpp"
#include "memory/cache/cache_spec.hpp"
#include "memory/prefetch/prefetcher.hpp"

namespace manyscale::cpu {

// How long a kind of instruction takes: from its issue to that of one which needs its result, and for how
// long its unit takes no other of the kind.
struct InstructionTiming {
  std::int64_t latency = 1;
  std::int64_t interval = 1;
};

// Of load: what comes before the access to the cache, whose latency is its own. Of store: until its address
// is known. Of atomic and fence: what they take besides the access and besides waiting for older ones.
struct InstructionTimings {
  InstructionTiming integer{1, 1}, multiply{3, 1}, divide{26, 20}, float_add{3, 1}, float_multiply{4, 1},
      float_fused{4, 1}, float_divide{13, 5}, float_divide_single{11, 3}, float_root{18, 9},
      float_root_single{12, 6}, float_convert{4, 1}, load{0, 1}, store{1, 1}, atomic{2, 1}, fence{1, 1},
      control{1, 1}, system{30, 1};
};

struct CoreSpec {
  std::int64_t clock = 2'000'000'000;
  bool in_order = false;

  std::int64_t fetch_width = 4;
  std::int64_t fetch_bytes = 16;
  std::int64_t fetch_buffer = 0;
  std::int64_t front_end_depth = 8;
  std::int64_t mispredict_penalty = 6;
  std::int64_t misfetch_penalty = 3;

  std::int64_t dispatch_width = 4;
  std::int64_t reorder_buffer = 128;
  std::int64_t issue_queue = 60;
  std::int64_t float_queue = 0;
  std::int64_t memory_queue = 0;
  std::int64_t integer_registers = 168;
  std::int64_t float_registers = 168;
  std::int64_t load_queue = 72;
  std::int64_t store_queue = 42;
  std::int64_t issue_width = 0;
  std::string ports =
      "integer multiply control; integer divide float_divide float_root; integer control float_add; "
      "integer float_multiply float_fused float_convert; load; load store atomic; store fence system";
  InstructionTimings timing{};
  std::int64_t commit_width = 4;

  std::string memory_model = "relaxed";
  bool speculative_loads = true;
  std::int64_t forward_latency = 5;
  std::int64_t failed_forward_latency = 13;
  std::int64_t stores_per_cycle = 1;
  std::int64_t outstanding_stores = 10;

  std::int64_t quantum = 4'000'000;
  bool hot_lines = false;
  std::int64_t region_log = 0;
  std::int64_t konata_from = 0;
  std::int64_t konata_count = 0;

  memory::CacheSpec l1i{
      .size = 32 * 1024, .ways = 8, .tag_latency = 1, .data_latency = 1, .classify_misses = false};
  memory::CacheSpec l1{.classify_misses = false};
  memory::CacheSpec l2{.size = 0, .ways = 8, .tag_latency = 3, .data_latency = 8, .classify_misses = false};
  bool coherent = false;
  std::int64_t homes = 1;
  std::string home_hash = "modulo";
  std::int64_t writeback_buffer = 16;
  memory::PrefetcherSpec prefetcher{};
  memory::PrefetcherSpec first_prefetcher{};
  std::int64_t fetch_ahead = 0;
  bool mshrs_per_level = false;
  TranslationUnitSpec translation{};
  BranchSpec branch{};
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::InstructionTiming> {
  using S = cpu::InstructionTiming;
  static constexpr auto fields =
      std::tuple{Field<S, std::int64_t>{"latency", &S::latency, Unit::cycles,
                                        "from issue to the issue of one that needs the result", 0, 1000},
                 Field<S, std::int64_t>{"interval", &S::interval, Unit::cycles,
                                        "for which the unit takes no other of its kind", 1, 1000}};
};

template <>
struct describe<cpu::InstructionTimings> {
  using S = cpu::InstructionTimings;
  using T = cpu::InstructionTiming;
  static constexpr auto fields = std::tuple{
      Section<S, T>{"integer", &S::integer, "addition, logic, shift, comparison, move"},
      Section<S, T>{"multiply", &S::multiply, "integer multiplication"},
      Section<S, T>{"divide", &S::divide, "integer division and remainder"},
      Section<S, T>{"float_add", &S::float_add, "addition, comparison, minimum, maximum, sign"},
      Section<S, T>{"float_multiply", &S::float_multiply, "multiplication"},
      Section<S, T>{"float_fused", &S::float_fused, "fused multiply-add"},
      Section<S, T>{"float_divide", &S::float_divide, "division in double precision"},
      Section<S, T>{"float_divide_single", &S::float_divide_single, "division in single precision"},
      Section<S, T>{"float_root", &S::float_root, "square root in double precision"},
      Section<S, T>{"float_root_single", &S::float_root_single, "square root in single precision"},
      Section<S, T>{"float_convert", &S::float_convert, "between formats and register files"},
      Section<S, T>{"load", &S::load, "before a load's access to the cache, whose latency is its own"},
      Section<S, T>{"store", &S::store, "until a store's address is known"},
      Section<S, T>{"atomic", &S::atomic, "an atomic operation, besides its access"},
      Section<S, T>{"fence", &S::fence, "a fence, besides waiting for what it orders"},
      Section<S, T>{"control", &S::control, "branches and jumps"},
      Section<S, T>{"system", &S::system, "entering a system call"}};
};

template <>
struct describe<cpu::CoreSpec> {
  using S = cpu::CoreSpec;
  using I = Field<S, std::int64_t>;
  static constexpr auto fields = std::tuple{
      I{"clock", &S::clock, Unit::frequency, "clock of the core and its caches", 1e6, 1e11},
      Field<S, bool>{"in_order", &S::in_order, Unit::none,
                     "whether instructions issue in program order, waiting for their operands"},
      I{"fetch_width", &S::fetch_width, Unit::count,
        "instructions fetched in a cycle; a taken branch is the last", 1, 64},
      I{"fetch_bytes", &S::fetch_bytes, Unit::bytes, "bytes of instructions fetched in a cycle", 4, 1024},
      I{"fetch_buffer", &S::fetch_buffer, Unit::count,
        "instructions fetched and not yet dispatched; 0: as many as the front end is deep and wide", 0, 1024},
      I{"front_end_depth", &S::front_end_depth, Unit::cycles,
        "from fetch to dispatch, including the instruction cache's hit", 1, 100},
      I{"mispredict_penalty", &S::mispredict_penalty, Unit::cycles,
        "from the execution of a mispredicted branch to the fetch of the right instruction", 0, 100},
      I{"misfetch_penalty", &S::misfetch_penalty, Unit::cycles,
        "fetch cycles lost to a misfetch: a taken branch that the branch target buffer does not hold "
        "re-steers fetch when it is decoded",
        0, 100},
      I{"dispatch_width", &S::dispatch_width, Unit::count,
        "instructions decoded, renamed and dispatched in a cycle", 1, 64},
      I{"reorder_buffer", &S::reorder_buffer, Unit::count, "instructions from dispatch to commit", 2, 4096},
      I{"issue_queue", &S::issue_queue, Unit::count, "instructions from dispatch to issue", 1, 4096},
      I{"float_queue", &S::float_queue, Unit::count,
        "issue queue of floating point alone; 0: it shares the other", 0, 4096},
      I{"memory_queue", &S::memory_queue, Unit::count,
        "issue queue of loads, stores and atomics alone; 0: they share the other", 0, 4096},
      I{"integer_registers", &S::integer_registers, Unit::count,
        "physical integer registers, 32 of which hold committed values", 33, 4096},
      I{"float_registers", &S::float_registers, Unit::count,
        "physical floating-point registers, 32 of which hold committed values", 33, 4096},
      I{"load_queue", &S::load_queue, Unit::count, "loads from dispatch to commit", 1, 4096},
      I{"store_queue", &S::store_queue, Unit::count,
        "stores from dispatch until they are written to the L1 data cache", 1, 4096},
      I{"issue_width", &S::issue_width, Unit::count,
        "instructions issued in a cycle; 0: as many as there are ports", 0, 32},
      Field<S, std::string>{"ports", &S::ports, Unit::none,
                            "issue ports, separated by ';', each with the kinds it takes: those of `timing`; "
                            "`float` is all of floating point"},
      Section<S, cpu::InstructionTimings>{"timing", &S::timing, "latencies and intervals"},
      I{"commit_width", &S::commit_width, Unit::count, "instructions committed in a cycle", 1, 64},
      Field<S, std::string>{"memory_model", &S::memory_model, Unit::none,
                            "relaxed (stores are written in any order) or tso (in program order, and atomic "
                            "operations wait for them)"},
      Field<S, bool>{
          "speculative_loads", &S::speculative_loads, Unit::none,
          "whether a load passes older stores whose address is not known; it then never passes one "
          "that it needs"},
      I{"forward_latency", &S::forward_latency, Unit::cycles, "of a load served by an older store", 0, 1000},
      I{"failed_forward_latency", &S::failed_forward_latency, Unit::cycles,
        "of a load that needs only part of what it loads from an older store", 0, 1000},
      I{"stores_per_cycle", &S::stores_per_cycle, Unit::count,
        "stores written to the L1 data cache in a cycle", 1, 8},
      I{"outstanding_stores", &S::outstanding_stores, Unit::count,
        "outstanding committed stores that miss the private caches", 1, 256},
      I{"quantum", &S::quantum, Unit::time, "how far the core may compute ahead of the others", 1, 1e12},
      Field<S, bool>{"hot_lines", &S::hot_lines, Unit::none,
                     "whether cycles are counted per instruction address"},
      I{"region_log", &S::region_log, Unit::count, "beginnings and ends of regions that are kept one by one",
        0, 1e9},
      I{"konata_from", &S::konata_from, Unit::count, "first instruction in the pipeline log", 0, 1e18},
      I{"konata_count", &S::konata_count, Unit::count, "instructions in the pipeline log", 0, 1e7},
      Section<S, memory::CacheSpec>{"l1i", &S::l1i, "instruction cache; none if its size is 0"},
      Section<S, memory::CacheSpec>{
          "l1", &S::l1, "L1 data cache; its ports are the issue ports for loads and stores_per_cycle"},
      Section<S, memory::CacheSpec>{
          "l2", &S::l2, "private L2 cache; none if its size is 0; as many ports as the L1 cache has MSHRs"},
      Field<S, bool>{"coherent", &S::coherent, Unit::none,
                     "whether its caches speak to homes that keep a directory"},
      I{"homes", &S::homes, Unit::count, "slices that lines are spread over", 1, 4096},
      Field<S, std::string>{"home_hash", &S::home_hash, Unit::none,
                            "how lines are spread over slices: modulo, xor, polynomial or interleaved"},
      I{"writeback_buffer", &S::writeback_buffer, Unit::count, "owned lines given back and not yet confirmed",
        1, 65536},
      Section<S, memory::PrefetcherSpec>{"prefetcher", &S::prefetcher,
                                         "prefetcher of the last private level"},
      Section<S, memory::PrefetcherSpec>{"first_prefetcher", &S::first_prefetcher,
                                         "prefetcher of the L1 data cache, where there is an L2 cache"},
      I{"fetch_ahead", &S::fetch_ahead, Unit::count,
        "instruction lines brought in behind one that was missed", 0, 64},
      Field<S, bool>{"mshrs_per_level", &S::mshrs_per_level, Unit::none,
                     "whether prefetches of the last private level take none of the L1 cache's MSHRs"},
      Section<S, cpu::TranslationUnitSpec>{"translation", &S::translation, "TLBs and page walks"},
      Section<S, cpu::BranchSpec>{"branch", &S::branch, "branch predictor"}};
};

}  // namespace manyscale
