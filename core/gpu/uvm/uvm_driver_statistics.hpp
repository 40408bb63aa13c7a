// SPDX-License-Identifier: Apache-2.0
// Statistics of the UVM driver.
#pragma once
#include <cstdint>

#include "engine/statistics.hpp"

namespace manyscale::gpu {

struct UvmDriverStatistics {
  Counter fault_batches, driver_busy;
  Counter pages_faulted_in, pages_prefetched, pages_commanded_in, pages_populated;
  Counter prefetched_used, prefetched_unused, prefetches_dropped;
  Counter pages_evicted, pages_dropped, pages_commanded_out, pages_to_host, host_faults, thrashed_pages;
  Counter bytes_to_device, bytes_to_host, transfers_to_device, transfers_to_host;
  Gauge resident_pages;
  Histogram transfer_sizes;
};

// Statistics of one allocation.
struct AllocationStatistics {
  std::int64_t faults = 0;
  std::int64_t pages_to_device = 0;  // migrations, of any cause
  std::int64_t pages_to_host = 0;
  std::int64_t thrashed_pages = 0;
  std::int64_t resident_pages = 0;  // now
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::UvmDriverStatistics> {
  using S = gpu::UvmDriverStatistics;
  using C = Statistic<S, Counter>;
  static constexpr auto fields = std::tuple{
      C{"fault_batches", &S::fault_batches, "1", "fault batches that the driver served"},
      C{"driver_busy", &S::driver_busy, "fs", "time in which the driver served faults"},
      C{"pages_faulted_in", &S::pages_faulted_in, "1", "pages migrated to the device by page faults"},
      C{"pages_prefetched", &S::pages_prefetched, "1", "pages migrated to the device by the prefetcher"},
      C{"pages_commanded_in", &S::pages_commanded_in, "1",
        "pages migrated to the device by prefetch commands of the host"},
      C{"pages_populated", &S::pages_populated, "1",
        "of the pages migrated to the device, those without data, which needed no transfer"},
      C{"prefetched_used", &S::prefetched_used, "1", "prefetched pages that were accessed on the device"},
      C{"prefetched_unused", &S::prefetched_unused, "1",
        "prefetched pages that left the device without an access"},
      C{"prefetches_dropped", &S::prefetches_dropped, "1",
        "pages that were not prefetched because no memory could be freed"},
      C{"pages_evicted", &S::pages_evicted, "1", "pages evicted from the device's memory"},
      C{"pages_dropped", &S::pages_dropped, "1", "pages that left the device without a transfer"},
      C{"pages_commanded_out", &S::pages_commanded_out, "1",
        "pages migrated to the host by prefetch commands of the host"},
      C{"pages_to_host", &S::pages_to_host, "1", "pages migrated to the host by its accesses"},
      C{"host_faults", &S::host_faults, "1", "page faults of the host on pages of the device"},
      C{"thrashed_pages", &S::thrashed_pages, "1", "pages migrated to the device again after an eviction"},
      C{"bytes_to_device", &S::bytes_to_device, "B", "bytes of transfers to the device"},
      C{"bytes_to_host", &S::bytes_to_host, "B", "bytes of transfers to the host"},
      C{"transfers_to_device", &S::transfers_to_device, "1", "transfers to the device"},
      C{"transfers_to_host", &S::transfers_to_host, "1", "transfers to the host"},
      Statistic<S, Gauge>{"resident_pages", &S::resident_pages, "1",
                          "pages that have a frame of the device's memory"},
      Statistic<S, Histogram>{"transfer_sizes", &S::transfer_sizes, "B", "sizes of transfers, both ways"}};
};

}  // namespace manyscale
