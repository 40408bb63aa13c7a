// SPDX-License-Identifier: Apache-2.0
// Cross-CTA reads: plain loads of a kernel that may read what another CTA of the same launch stores. SMs of
// different partitions execute such accesses at issue, on different host threads: the launch needs one
// partition. Leaves out CTAs that store different values to one address, and indices that differ in text but
// not in value.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "gpu/exec/device_memory.hpp"
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// The global memory that a kernel loads from and stores to, as far as its PTX tells before the launch.
struct CrossCtaReads {
  using Range = DeviceMemory::Range;

  struct Origin {
    bool is_parameter = true;
    std::uint64_t offset = 0;  // of the pointer in the parameters
    Range variable;
  };
  // Addresses with the same origins.
  struct Access {
    std::uint64_t origins = 0;    // by bit: indices of `origins`; the last bit stands for all from there on
    bool unknown = false;         // may be a pointer that was found in memory
    bool unknown_addend = false;  // the same unless one of the origins is a pointer
    // The axes of the grid along which CTAs have different addresses. Of loads: none unless the thread
    // stores to the address that it loads from.
    std::uint8_t axes = 0;

    auto operator<=>(const Access&) const = default;
  };
  std::vector<Origin> origins;
  std::vector<Access> loads;
  std::vector<Access> stores;
  bool surfaces = false;  // surfaces are both read and written

  // Whether a launch with these parameters may have one.
  bool possible(const DeviceMemory& memory, std::span<const std::byte> parameters,
                const std::array<std::uint32_t, 3>& grid) const;
};

// The memory of a variable; of a function's own, or of the module if the function is kNone. Size 0: unknown.
using VariableRange = std::function<DeviceMemory::Range(std::uint32_t function, std::uint32_t variable)>;

CrossCtaReads find_cross_cta_reads(const ptx::Module& module, std::uint32_t kernel,
                                   const std::set<std::uint32_t>& functions, const VariableRange& range);

}  // namespace manyscale::gpu
