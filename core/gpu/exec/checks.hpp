// SPDX-License-Identifier: Apache-2.0
// What a launch is looked over for, beside faults: as many things as wanted, at a cost. Python gives them as
// bits of a number.
#pragma once
#include <cstdint>

namespace manyscale::gpu {

struct Checks {
  bool races = false;          // in shared memory
  bool private_reads = false;  // of shared and local memory that was not written
  bool global_reads = false;   // of global memory that was not written
  bool barriers = false;       // at which lanes of one warp wait apart

  constexpr Checks() = default;
  constexpr Checks(bool all)  // NOLINT(google-explicit-constructor): `check = true` stands for all
      : races(all), private_reads(all), global_reads(all), barriers(all) {}
  static constexpr Checks of_bits(std::uint32_t bits) {
    Checks checks;
    checks.races = (bits & 1U) != 0;
    checks.private_reads = (bits & 2U) != 0;
    checks.global_reads = (bits & 4U) != 0;
    checks.barriers = (bits & 8U) != 0;
    return checks;
  }
  constexpr explicit operator bool() const { return races || private_reads || global_reads || barriers; }
};

}  // namespace manyscale::gpu
