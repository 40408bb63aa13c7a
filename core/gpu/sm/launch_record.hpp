// SPDX-License-Identifier: Apache-2.0
// What one SM has counted for one launch: its statistics, how busy pipes were, and where in the program its
// warps issued and waited.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/sm/sm_spec.hpp"
#include "gpu/sm/warp_states.hpp"
#include "memory/protocol.hpp"

namespace manyscale::gpu {

// Pipelines of a sub-core, each of which takes one instruction in every so many cycles. Names as in Nsight
// Compute: XU is the transcendental and data type conversion unit, CBU the convergence barrier unit
// (branches, barriers, fences and exits), LSU the load/store unit (shuffles too).
enum class Pipe : std::uint8_t { alu, fma, fp64, xu, tensor, cbu, lsu, other, count };
inline constexpr std::size_t kPipes = static_cast<std::size_t>(Pipe::count);

// How often an operation of the program was issued, for how many threads, and the cycles that warps stalled
// before it. Each of the five is a group of stall reasons, so that an operation fills one cache line.
struct alignas(64) OperationProfile {
  std::int64_t issued = 0;  // SASS instructions
  std::int64_t threads = 0;
  std::int64_t executed = 0;         // by warps; `threads` is the sum of those that took part
  std::int64_t stall_memory = 0;     // Long Scoreboard, LG Throttle and Tex Throttle
  std::int64_t stall_shared = 0;     // Short Scoreboard, MIO Throttle and Barrier
  std::int64_t stall_execution = 0;  // Wait and Math Pipe Throttle
  std::int64_t stall_other = 0;      // No Instruction and Not Selected
  std::int64_t stall_fault = 0;      // page faults of managed memory
};

struct LaunchRecord {
  std::uint32_t launch = 0;
  memory::Origin origin = memory::nobody;
  SmStatistics statistics;  // without active_cycles, issued_… and busy_…
  std::array<std::int64_t, kPipes> issued{};
  std::array<std::int64_t, kPipes> busy{};
  std::vector<OperationProfile> operations;  // by TimedLaunch::first_operation
  std::vector<std::int64_t> atomic_rounds;   // by slice of the L2
  std::unique_ptr<WarpStates> states;        // over time; null: nobody asked for them
  std::uint32_t resident_warps = 0;
  std::uint64_t unconfirmed_writes = 0;  // lines
  std::uint32_t incomplete_ctas = 0;     // that left before all writes were confirmed
  Cycle resident_since = 0;
  std::int64_t active_cycles = 0;
  Cycle parameters_ready =
      0;  // when the launch's parameters are in the constant cache; 0: nobody asked for them

  // Counts the rounds that an atomic operation takes at a slice of the L2.
  void count_atomic(std::size_t slice, std::int64_t rounds) {
    ++statistics.atomic_requests;
    statistics.atomic_rounds += rounds;
    if (slice >= atomic_rounds.size()) atomic_rounds.resize(slice + 1);
    atomic_rounds[slice] += rounds;
    const std::int64_t more = atomic_rounds[slice] - statistics.atomic_rounds_busiest.value();
    if (more > 0) statistics.atomic_rounds_busiest += more;
  }
  // A warp was in a state from one cycle to another.
  void observe(WarpState state, Cycle begin, Cycle end) {
    if (states) states->add(state, begin, end);
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
    auto pipe = [&](Pipe which, Counter& count, Counter& cycles) {
      count += issued[static_cast<std::size_t>(which)];
      cycles += busy[static_cast<std::size_t>(which)];
    };
    pipe(Pipe::alu, total.issued_alu, total.busy_alu);
    pipe(Pipe::fma, total.issued_fma, total.busy_fma);
    pipe(Pipe::fp64, total.issued_fp64, total.busy_fp64);
    pipe(Pipe::xu, total.issued_xu, total.busy_xu);
    pipe(Pipe::tensor, total.issued_tensor, total.busy_tensor);
    pipe(Pipe::cbu, total.issued_cbu, total.busy_cbu);
    pipe(Pipe::lsu, total.issued_lsu, total.busy_lsu);
    pipe(Pipe::other, total.issued_other, total.busy_other);
  }
};

}  // namespace manyscale::gpu
