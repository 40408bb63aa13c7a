// SPDX-License-Identifier: Apache-2.0
// Which 32-bit registers the values of a function get, and which must live in local memory because there are
// not enough.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/exec/flow_graph.hpp"

namespace manyscale::gpu {

struct RegisterNeeds {
  std::span<const Block> blocks;
  const RegisterUses& uses;              // by operation
  std::span<const char> partial;         // operations whose writes leave the old value in some lanes
  std::span<const std::uint8_t> words;   // of a value: 0 for a predicate
  std::span<const std::uint8_t> depths;  // loops that an operation is in
  std::span<const std::uint32_t> calls;  // operations, in order
  std::uint32_t limit = 255;
};

struct RegisterFile {
  std::vector<std::uint8_t> first;  // by value: its register, or its predicate
  std::uint32_t used = 0;           // registers that live at the same time, at most
  std::uint32_t spills = 0;         // values that are in local memory somewhere
  // Accesses of local memory for them, in the order of the operations.
  struct SpillAccess {
    std::uint32_t op;
    std::uint32_t value;
    bool operator==(const SpillAccess&) const = default;
  };
  std::vector<SpillAccess> loads;   // ahead of an operation
  std::vector<SpillAccess> stores;  // behind it
  std::uint32_t kept = 0;           // registers that hold something during a call
};

RegisterFile assign_registers(const RegisterNeeds& needs);

}  // namespace manyscale::gpu
