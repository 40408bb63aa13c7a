// SPDX-License-Identifier: Apache-2.0
// Parameters of a GPU's memory management unit. None has a default: machines state them all.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/time.hpp"

namespace manyscale::gpu {

struct GmmuSpec {
  std::int64_t clock = 1;
  std::int64_t walk_latency = 0;
  std::int64_t walkers = 1;
  std::int64_t l2_tlb_entries = 0;
  std::int64_t l2_tlb_latency = 0;
  std::int64_t outstanding_faults = 1;
  std::string mapping = "page";
  std::string shootdown = "page";
  Time fault_interval = 0;
  std::int64_t remote_latency = 0;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::GmmuSpec> {
  using S = gpu::GmmuSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock of the memory management unit", 1,
                             1e12},
      Field<S, std::int64_t>{"walk_latency", &S::walk_latency, Unit::cycles, "of a page walk", 0, 1e9},
      Field<S, std::int64_t>{"walkers", &S::walkers, Unit::count, "concurrent page walks", 1, 65536},
      Field<S, std::int64_t>{"l2_tlb_entries", &S::l2_tlb_entries, Unit::count,
                             "entries of the L2 TLB that the SMs share; 0: there is none", 0, 1e8},
      Field<S, std::int64_t>{"l2_tlb_latency", &S::l2_tlb_latency, Unit::cycles, "of a look-up in the L2 TLB",
                             0, 1e6},
      Field<S, std::int64_t>{"outstanding_faults", &S::outstanding_faults, Unit::count,
                             "pages with outstanding page faults; translations of further pages stall", 1,
                             1e8},
      Field<S, std::string>{"mapping", &S::mapping, Unit::none,
                            "reach of a TLB entry: page (4 KiB); or chunk, 64 KiB if all of it is on the "
                            "device"},
      Field<S, std::string>{"shootdown", &S::shootdown, Unit::none,
                            "page: an eviction invalidates the TLB entries of its pages; all: each change "
                            "of the page table flushes the TLBs"},
      Field<S, Time>{"fault_interval", &S::fault_interval, Unit::time,
                     "measured handling: between two entries of the fault buffer", 0, 1e15},
      Field<S, std::int64_t>{"remote_latency", &S::remote_latency, Unit::cycles,
                             "of a remote access, besides the link", 0, 1e9}};
};

}  // namespace manyscale
