// SPDX-License-Identifier: Apache-2.0
// Faults of kernels: what a kernel did wrong, and where.
#pragma once
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace manyscale::gpu {

class Warp;
struct Op;

// What a kernel did wrong. `invalid_operation` is all that no other kind says.
enum class FaultKind : std::uint8_t {
  invalid_operation,
  invalid_address,
  misaligned_address,
  assertion,
  trap,
  instruction_limit,
  deadlock,
};

// Raised by a handler: what happened to which lane; whoever runs the warp adds where.
struct Fault : std::runtime_error {
  Fault(const std::string& what, unsigned lane, FaultKind kind = FaultKind::invalid_operation,
        std::uint64_t address = 0)
      : std::runtime_error(what), lane(lane), kind(kind), address(address) {}
  unsigned lane;
  FaultKind kind;
  std::uint64_t address;  // that was accessed; 0: none
};

// No warp of a CTA can go on.
struct Deadlock : std::exception {};

// Where a kernel went wrong.
struct FaultLocation {
  std::string kernel;
  std::string instruction;  // with its modifiers; empty: of no one instruction
  std::string source;       // "file.ptx:12 (saxpy.cu:7)"
  std::array<std::uint32_t, 3> cta{};
  std::array<std::uint32_t, 3> thread{};
  std::uint64_t address = 0;  // that was accessed; 0: none
};

// A fault with its location; the message has both, for people.
struct KernelFault : std::runtime_error {
  KernelFault(const std::string& message, FaultKind kind, FaultLocation location)
      : std::runtime_error(message), kind(kind), location(std::move(location)) {}
  FaultKind kind;
  FaultLocation location;
};

// The kernel did not end within what it was allowed, or somebody asked to stop.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace manyscale::gpu
