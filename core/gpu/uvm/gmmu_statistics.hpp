// SPDX-License-Identifier: Apache-2.0
// Statistics of a GPU's memory management unit.
#pragma once
#include "engine/statistics.hpp"

namespace manyscale::gpu {

struct GmmuStatistics {
  Counter translations, l2_tlb_hits, walks, merged_walks;
  Counter faults, merged_faults, permission_faults, stalled, shootdowns;
  Counter remote_reads, remote_writes, remote_bytes;
  Histogram fault_time;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::GmmuStatistics> {
  using S = gpu::GmmuStatistics;
  using C = Statistic<S, Counter>;
  static constexpr auto fields = std::tuple{
      C{"translations", &S::translations, "1", "translation requests of SMs"},
      C{"l2_tlb_hits", &S::l2_tlb_hits, "1", "hits of the L2 TLB"},
      C{"walks", &S::walks, "1", "page walks, including those of replays"},
      C{"merged_walks", &S::merged_walks, "1", "translations that shared an outstanding page walk"},
      C{"faults", &S::faults, "1",
        "page faults: pages not on the device that a translation needed, repeated faults of a page excluded"},
      C{"merged_faults", &S::merged_faults, "1",
        "translations that waited for a page with an outstanding fault or migration"},
      C{"permission_faults", &S::permission_faults, "1", "page faults that were writes to read-only copies"},
      C{"stalled", &S::stalled, "fs", "time with at least one translation waiting for a page"},
      C{"shootdowns", &S::shootdowns, "1", "TLB invalidation messages to SMs"},
      C{"remote_reads", &S::remote_reads, "1", "remote reads of the host's memory, including atomics"},
      C{"remote_writes", &S::remote_writes, "1", "remote writes of the host's memory"},
      C{"remote_bytes", &S::remote_bytes, "B", "bytes of remote accesses"},
      Statistic<S, Histogram>{"fault_time", &S::fault_time, "fs",
                              "from the request of a faulting translation to its response"}};
};

}  // namespace manyscale
