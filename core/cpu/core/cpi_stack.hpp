// SPDX-License-Identifier: Apache-2.0
// Where a core's cycles went: every cycle has exactly one cause, by what the oldest instruction that had not
// committed was waiting for, so the causes add up to the cycles.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace manyscale::cpu {

enum class Cause : std::uint8_t {
  base,             // instructions committed, or the widths of the pipeline held them up
  dependency,       // the result of a unit other than memory was outstanding
  unit,             // its operands were there, but no unit was free
  branch,           // fetch was on the wrong path, or was re-steered
  fetch,            // the instruction cache missed
  fetch_tlb,        // the address of an instruction was not in the TLB
  l1,               // a load was served by the L1 cache, or by an older store
  l2,               // … by a private L2 cache
  l3,               // … by a private L3 cache
  shared,           // … by a cache shared with other cores
  peer,             // … by another core's cache
  dram,             // … by memory
  tlb,              // the address of a load or store was not in the TLB
  store_buffer,     // no entry was free for another store
  synchronisation,  // an atomic operation, a fence, a system call, or what the program waited for there
  sleeping,         // the program's threads on this core all waited for others
  idle,             // there was nothing to do: no thread yet, or none any more
};
inline constexpr std::size_t causes = 17;

// In the order of Cause; the names of statistics are "cpi." and these.
inline constexpr std::array<std::string_view, causes> cause_names{
    "base",   "dependency", "unit", "branch", "fetch",        "fetch_tlb",       "l1",       "l2",  "l3",
    "shared", "peer",       "dram", "tlb",    "store_buffer", "synchronisation", "sleeping", "idle"};

struct CpiStack {
  std::array<std::int64_t, causes> cycles{};

  std::int64_t& operator[](Cause cause) { return cycles[static_cast<std::size_t>(cause)]; }
  std::int64_t operator[](Cause cause) const { return cycles[static_cast<std::size_t>(cause)]; }
  std::int64_t sum() const {
    std::int64_t total = 0;
    for (const std::int64_t each : cycles) total += each;
    return total;
  }
};

}  // namespace manyscale::cpu
