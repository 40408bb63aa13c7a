// SPDX-License-Identifier: Apache-2.0
// What all SMs have counted for one kernel, and how its operations share in it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

// An operation of a program: where it stands, and what one thread computes with it.
struct OperationLine {
  std::string function;
  std::string text;  // opcode with its modifiers
  std::string file;  // of the program's source; "" where the PTX names none
  std::uint32_t source_line = 0;
  std::uint32_t ptx_line = 0;
  std::uint32_t flops = 0;      // floating-point operations of one thread
  std::uint32_t flop_bits = 0;  // their precision
};

struct KernelProfile {
  SmStatistics statistics;                   // of all SMs together
  std::int64_t sms = 0;                      // that had a CTA of it
  std::vector<OperationProfile> operations;  // in the order of operation_lines()
  WarpStates states;                         // of all SMs; empty if nobody asked for them
};

// The operations of a kernel and of the functions that it can reach.
std::vector<OperationLine> operation_lines(const Program& program);

// Takes what the SMs have counted for a launch that has ended.
KernelProfile take_profile(std::span<Sm* const> sms, const TimedLaunch& launch, std::uint32_t index);

}  // namespace manyscale::gpu
