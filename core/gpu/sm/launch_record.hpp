// SPDX-License-Identifier: Apache-2.0
// What one SM has counted for one launch: its statistics, how busy units were, and where in the program its
// warps issued and waited.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/sm/sm_spec.hpp"
#include "memory/protocol.hpp"

namespace manyscale::gpu {

// Parts of a sub-core that take one instruction in every so many cycles.
enum class Unit : std::uint8_t { integer, fp32, fp64, special, tensor, control, memory, other, count };
inline constexpr std::size_t kUnits = static_cast<std::size_t>(Unit::count);

// How often an operation of the program was issued, for how many threads, and the cycles that warps had
// waited before it, by what they waited for.
struct alignas(64) OperationProfile {
  std::int64_t issued = 0;  // machine instructions
  std::int64_t threads = 0;
  std::int64_t executed = 0;         // by warps; `threads` is the sum of those that took part
  std::int64_t stall_memory = 0;     // global, local and constant memory, and room in the memory queue
  std::int64_t stall_shared = 0;     // shared memory, shuffles and barriers
  std::int64_t stall_execution = 0;  // results of fixed latency and busy units
  std::int64_t stall_other = 0;      // instructions to arrive, and warps that others were preferred to
  std::int64_t stall_fault = 0;      // pages to come from the host
};

struct LaunchRecord {
  std::uint32_t launch = 0;
  memory::Origin origin = memory::nobody;
  SmStatistics statistics;  // without active_cycles, issued_… and busy_…
  std::array<std::int64_t, kUnits> issued{};
  std::array<std::int64_t, kUnits> busy{};
  std::vector<OperationProfile> operations;  // by TimedLaunch::first_operation
  std::vector<std::int64_t> atomic_rounds;   // by slice of the L2
  std::uint32_t resident_warps = 0;
  Cycle resident_since = 0;
  std::int64_t active_cycles = 0;
  Cycle parameters_ready =
      0;  // when the launch's parameters are in the constant cache; 0: nobody asked for them

  // Counts the changes of one word after the other that an atomic operation takes at a slice of the L2.
  void count_atomic(std::size_t slice, std::int64_t rounds) {
    ++statistics.atomic_requests;
    statistics.atomic_rounds += rounds;
    if (slice >= atomic_rounds.size()) atomic_rounds.resize(slice + 1);
    atomic_rounds[slice] += rounds;
    const std::int64_t more = atomic_rounds[slice] - statistics.atomic_rounds_busiest.value();
    if (more > 0) statistics.atomic_rounds_busiest += more;
  }
  void warp_came(Cycle now) {
    if (resident_warps++ == 0) resident_since = now;
  }
  void warp_left(Cycle now) {
    if (--resident_warps == 0) active_cycles += now - resident_since;
  }
  // Adds all of it but the active cycles, which those of another launch may overlap.
  void add_to(SmStatistics& total) const {
    for_each_field<SmStatistics>(
        [&](const auto& field) { total.*(field.member) += (statistics.*(field.member)).value(); });
    auto unit = [&](Unit which, Counter& count, Counter& cycles) {
      count += issued[static_cast<std::size_t>(which)];
      cycles += busy[static_cast<std::size_t>(which)];
    };
    unit(Unit::integer, total.issued_integer, total.busy_integer);
    unit(Unit::fp32, total.issued_fp32, total.busy_fp32);
    unit(Unit::fp64, total.issued_fp64, total.busy_fp64);
    unit(Unit::special, total.issued_special, total.busy_special);
    unit(Unit::tensor, total.issued_tensor, total.busy_tensor);
    unit(Unit::control, total.issued_branch, total.busy_branch);
    unit(Unit::memory, total.issued_memory, total.busy_memory);
    unit(Unit::other, total.issued_other, total.busy_other);
  }
};

}  // namespace manyscale::gpu
