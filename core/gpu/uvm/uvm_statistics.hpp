// SPDX-License-Identifier: Apache-2.0
// What unified memory counts.
#pragma once
#include <cstdint>
#include <string>

#include "engine/statistics.hpp"

namespace manyscale::gpu {

struct UnifiedMemoryStatistics {
  Counter translations, l2_tlb_hits, walks, merged_walks;
  Counter faults, merged_faults, permission_faults, fault_groups, stalled, driver_busy;
  Counter pages_faulted_in, pages_prefetched, pages_commanded_in, pages_populated;
  Counter prefetched_used, prefetched_unused, prefetches_given_up;
  Counter pages_evicted, pages_dropped, pages_commanded_out, pages_to_host, host_faults;
  Counter thrashed_pages, shootdowns;
  Counter bytes_to_device, bytes_to_host, transfers_to_device, transfers_to_host;
  Counter remote_reads, remote_writes, remote_bytes;
  Counter log_lost;
  Gauge resident_pages;
  Histogram fault_time, transfer_sizes;
};

// What happened to the pages of one allocation.
struct AllocationStatistics {
  std::int64_t faults = 0;
  std::int64_t pages_to_device = 0;  // how often, by any cause
  std::int64_t pages_to_host = 0;
  std::int64_t thrashed_pages = 0;
  std::int64_t resident_pages = 0;  // now
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::UnifiedMemoryStatistics> {
  using S = gpu::UnifiedMemoryStatistics;
  using C = Statistic<S, Counter>;
  static constexpr auto fields = std::tuple{
      C{"translations", &S::translations, "1", "translations that SMs asked for"},
      C{"l2_tlb_hits", &S::l2_tlb_hits, "1", "translations found in the TLB that the SMs share"},
      C{"walks", &S::walks, "1", "page walks, those of replays too"},
      C{"merged_walks", &S::merged_walks, "1", "translations that shared a walk under way"},
      C{"faults", &S::faults, "1", "far faults: pages that the driver was told of"},
      C{"merged_faults", &S::merged_faults, "1", "translations that waited for a page that was to come"},
      C{"permission_faults", &S::permission_faults, "1",
        "faults of these that were writes to copies for reading"},
      C{"fault_groups", &S::fault_groups, "1", "groups in which the driver served faults"},
      C{"stalled", &S::stalled, "fs", "time in which at least one translation waited for a page"},
      C{"driver_busy", &S::driver_busy, "fs", "time in which the driver served faults"},
      C{"pages_faulted_in", &S::pages_faulted_in, "1", "pages that came since they faulted"},
      C{"pages_prefetched", &S::pages_prefetched, "1", "pages that came along with others"},
      C{"pages_commanded_in", &S::pages_commanded_in, "1", "pages that came since the host told so"},
      C{"pages_populated", &S::pages_populated, "1",
        "pages of these that were nowhere before and so needed no transfer"},
      C{"prefetched_used", &S::prefetched_used, "1", "pages that came along and were used before they left"},
      C{"prefetched_unused", &S::prefetched_unused, "1", "pages that came along and left without use"},
      C{"prefetches_given_up", &S::prefetches_given_up, "1", "pages that found no room to come along"},
      C{"pages_evicted", &S::pages_evicted, "1", "pages that left to make room"},
      C{"pages_dropped", &S::pages_dropped, "1", "pages that left without a transfer"},
      C{"pages_commanded_out", &S::pages_commanded_out, "1", "pages that left since the host told so"},
      C{"pages_to_host", &S::pages_to_host, "1", "pages that left since the host accessed them"},
      C{"host_faults", &S::host_faults, "1", "faults of the host on pages that the device had"},
      C{"thrashed_pages", &S::thrashed_pages, "1", "pages that came again after they had been evicted"},
      C{"shootdowns", &S::shootdowns, "1", "messages to TLBs to forget pages"},
      C{"bytes_to_device", &S::bytes_to_device, "B", "bytes of transfers to the device"},
      C{"bytes_to_host", &S::bytes_to_host, "B", "bytes of transfers to the host"},
      C{"transfers_to_device", &S::transfers_to_device, "1", "transfers to the device"},
      C{"transfers_to_host", &S::transfers_to_host, "1", "transfers to the host"},
      C{"remote_reads", &S::remote_reads, "1", "reads of the host's memory where it is, atomic ones too"},
      C{"remote_writes", &S::remote_writes, "1", "writes of the host's memory where it is"},
      C{"remote_bytes", &S::remote_bytes, "B", "bytes of these accesses"},
      C{"log_lost", &S::log_lost, "1", "rows for which the log had no room"},
      Statistic<S, Gauge>{"resident_pages", &S::resident_pages, "1",
                          "pages that have a frame of the device's memory"},
      Statistic<S, Histogram>{"fault_time", &S::fault_time, "fs",
                              "from the request of a translation that faulted to its answer"},
      Statistic<S, Histogram>{"transfer_sizes", &S::transfer_sizes, "B", "sizes of transfers, both ways"}};
};

}  // namespace manyscale
