// SPDX-License-Identifier: Apache-2.0
// The parameters and statistics of a branch predictor.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/statistics.hpp"

namespace manyscale::cpu {

struct BranchSpec {
  std::string kind = "tage";
  std::int64_t base_entries = 8192;
  std::int64_t tables = 8;
  std::int64_t table_entries = 1024;
  std::int64_t tag_bits = 11;
  std::int64_t shortest_history = 4;
  std::int64_t longest_history = 256;
  std::int64_t reset_period = 262'144;
  std::int64_t gshare_history = 12;
  std::int64_t loop_entries = 0;
  std::int64_t btb_entries = 4096;
  std::int64_t btb_ways = 4;
  std::int64_t return_stack = 16;
  std::int64_t indirect_entries = 512;
  std::int64_t indirect_tables = 3;
  std::int64_t indirect_history = 64;
};

struct BranchStatistics {
  Counter conditional, jumps, indirect, returns;
  Counter conditional_mispredicts, indirect_mispredicts, return_mispredicts;
  Counter btb_misses, misfetches;
  Counter loop_predictions;
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::BranchSpec> {
  using S = cpu::BranchSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::string>{
          "kind", &S::kind, Unit::none,
          "how directions are predicted: a branch predictor by its name (`manyscale models plugins`)"},
      Field<S, std::int64_t>{"base_entries", &S::base_entries, Unit::count,
                             "two-bit counters by address (bimodal; the base of tage) or by address and "
                             "history (gshare); a power of two",
                             1, 1 << 24},
      Field<S, std::int64_t>{"tables", &S::tables, Unit::count, "tagged tables of tage", 1, 16},
      Field<S, std::int64_t>{"table_entries", &S::table_entries, Unit::count,
                             "entries of each tagged table; a power of two", 1, 1 << 20},
      Field<S, std::int64_t>{"tag_bits", &S::tag_bits, Unit::count, "bits of a tag in tage's tables", 4, 16},
      Field<S, std::int64_t>{"shortest_history", &S::shortest_history, Unit::count,
                             "branches that the first tagged table looks back", 1, 2000},
      Field<S, std::int64_t>{"longest_history", &S::longest_history, Unit::count,
                             "branches that the last tagged table looks back; those between grow "
                             "geometrically",
                             1, 2000},
      Field<S, std::int64_t>{"reset_period", &S::reset_period, Unit::count,
                             "conditional branches between two resets of tage's useful bits", 1, 1e9},
      Field<S, std::int64_t>{"gshare_history", &S::gshare_history, Unit::count,
                             "branches that gshare looks back", 0, 24},
      Field<S, std::int64_t>{"loop_entries", &S::loop_entries, Unit::count,
                             "loops whose trip count is remembered, a power of two; 0: no loop predictor", 0,
                             4096},
      Field<S, std::int64_t>{"btb_entries", &S::btb_entries, Unit::count,
                             "taken branches whose target is known when they are fetched", 1, 1 << 20},
      Field<S, std::int64_t>{"btb_ways", &S::btb_ways, Unit::count,
                             "entries of a set, of which the least recently used leaves; 0: one set of all",
                             0, 1 << 20},
      Field<S, std::int64_t>{"return_stack", &S::return_stack, Unit::count,
                             "return addresses remembered; the oldest is lost when one more is pushed", 0,
                             1024},
      Field<S, std::int64_t>{"indirect_entries", &S::indirect_entries, Unit::count,
                             "entries of each table of targets by address and path, a power of two", 1,
                             1 << 20},
      Field<S, std::int64_t>{"indirect_tables", &S::indirect_tables, Unit::count,
                             "tables of targets; 0: the last target, from the branch target buffer", 0, 8},
      Field<S, std::int64_t>{"indirect_history", &S::indirect_history, Unit::count,
                             "branches that the last table of targets looks back", 1, 2000}};
};

template <>
struct describe<cpu::BranchStatistics> {
  using S = cpu::BranchStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"conditional", &S::conditional, "branch", "conditional branches"},
      Statistic<S, Counter>{"jumps", &S::jumps, "branch", "direct jumps and calls"},
      Statistic<S, Counter>{"indirect", &S::indirect, "branch", "indirect jumps and calls, without returns"},
      Statistic<S, Counter>{"returns", &S::returns, "branch", "returns"},
      Statistic<S, Counter>{"conditional_mispredicts", &S::conditional_mispredicts, "branch",
                            "conditional branches whose direction was predicted wrong"},
      Statistic<S, Counter>{"indirect_mispredicts", &S::indirect_mispredicts, "branch",
                            "indirect jumps whose target was predicted wrong"},
      Statistic<S, Counter>{"return_mispredicts", &S::return_mispredicts, "branch",
                            "returns whose target was predicted wrong"},
      Statistic<S, Counter>{"btb_misses", &S::btb_misses, "branch",
                            "taken branches that the branch target buffer did not hold"},
      Statistic<S, Counter>{"misfetches", &S::misfetches, "branch",
                            "taken branches predicted correctly that re-steered fetch when decoded"},
      Statistic<S, Counter>{"loop_predictions", &S::loop_predictions, "branch",
                            "predictions for which the loop predictor was asked and sure"}};
};

}  // namespace manyscale
