// SPDX-License-Identifier: Apache-2.0
// Parameters of the UVM driver. None has a default: machines state them all.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/time.hpp"

namespace manyscale::gpu {

struct UvmDriverSpec {
  std::int64_t capacity = 2 << 20;
  bool first_touch = false;

  // --- Fault batches ---
  std::string handling = "fixed";
  Time fault_latency = 0;
  std::int64_t batch_size = 1;
  Time batch_latency = 0;
  Time fetch_latency = 0;
  Time kilobyte_latency = 0;
  Time fault_cost = 0;
  Time run_cost = 0;
  Time block_latency = 0;
  Time partial_block_latency = 0;
  Time scattered_latency = 0;
  Time cold_latency = 0;
  std::string replay = "batch";

  // --- Transfers ---
  std::string curve = "line";
  std::string times_to_device = "4KiB 1ns, 8KiB 2ns";
  std::string times_to_host = "4KiB 1ns, 8KiB 2ns";
  std::int64_t peak_bandwidth = 1;
  double steepness = 1;
  Time transfer_latency = 0;
  std::int64_t bandwidth = 1;

  // --- Policies ---
  std::string prefetcher = "none";
  std::string oversubscribed_prefetcher = "same";
  std::string eviction = "lru_block";
  std::string recency = "migration";
  std::string frames = "page";
  double free_share = 0;
  double reserved_share = 0;
  bool drop_clean = false;

  // --- Remote accesses ---
  std::string remote = "off";
  std::int64_t remote_threshold = 1;
  std::int64_t remote_penalty = 1;

  // --- The host ---
  Time host_fault_latency = 0;
  std::int64_t host_granularity = 4096;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::UvmDriverSpec> {
  using S = gpu::UvmDriverSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"capacity", &S::capacity, Unit::bytes,
                             "memory of the device; other allocations reduce what is left for managed pages",
                             2 << 20, 1e14},
      Field<S, bool>{"first_touch", &S::first_touch, Unit::none,
                     "whether a page is created where it is first accessed; else pages begin on the host"},
      Field<S, std::string>{
          "handling", &S::handling, Unit::none,
          "model of the driver's time: fixed, a constant for each fault batch of one page; or measured"},
      Field<S, Time>{"fault_latency", &S::fault_latency, Unit::time,
                     "fixed handling: of a fault batch, before its transfers", 0, 1e15},
      Field<S, std::int64_t>{"batch_size", &S::batch_size, Unit::count,
                             "measured handling: entries of the fault buffer in a batch; a page has one for "
                             "each SM that faulted on it",
                             1, 1e6},
      Field<S, Time>{"batch_latency", &S::batch_latency, Unit::time,
                     "measured handling: of a batch, besides its contents", 0, 1e15},
      Field<S, Time>{"fetch_latency", &S::fetch_latency, Unit::time,
                     "measured handling: of batch_latency, the time before the driver reads the fault buffer",
                     0, 1e15},
      Field<S, Time>{"kilobyte_latency", &S::kilobyte_latency, Unit::time,
                     "measured handling: more for each KiB to migrate", 0, 1e15},
      Field<S, Time>{
          "fault_cost", &S::fault_cost, Unit::time,
          "measured handling: more for each fault of a batch but the first, counted as in batch_size", 0,
          1e15},
      Field<S, Time>{"run_cost", &S::run_cost, Unit::time,
                     "measured handling: more for each run of faulted pages of a block but the first", 0,
                     1e15},
      Field<S, Time>{"block_latency", &S::block_latency, Unit::time,
                     "measured handling: more for the first pages in a block of 2 MiB", 0, 1e15},
      Field<S, Time>{"partial_block_latency", &S::partial_block_latency, Unit::time,
                     "measured handling: the same for the smaller block at an allocation's end", 0, 1e15},
      Field<S, Time>{"scattered_latency", &S::scattered_latency, Unit::time,
                     "measured handling: more for a block whose pages to migrate are not one run", 0, 1e15},
      Field<S, Time>{"cold_latency", &S::cold_latency, Unit::time,
                     "measured handling: more for the first batch of all", 0, 1e15},
      Field<S, std::string>{"replay", &S::replay, Unit::none,
                            "when translations of migrated pages are replayed: arrival, or batch (at the end "
                            "of the fault batch)"},
      Field<S, std::string>{"curve", &S::curve, Unit::none,
                            "model of the duration of transfers: measured, arctangent or line"},
      Field<S, std::string>{"times_to_device", &S::times_to_device, Unit::none,
                            "measured: sizes and durations of transfers to the device, such as 4KiB 1760ns, "
                            "60KiB 5800ns; linear between them and beyond"},
      Field<S, std::string>{"times_to_host", &S::times_to_host, Unit::none,
                            "measured: the same of transfers to the host"},
      Field<S, std::int64_t>{"peak_bandwidth", &S::peak_bandwidth, Unit::bandwidth,
                             "arctangent: of large transfers", 1, 2e12},
      Field<S, double>{"steepness", &S::steepness, Unit::none,
                       "arctangent: of bandwidth = peak * 2/pi * atan(steepness * KiB)", 1e-6, 1e3},
      Field<S, Time>{"transfer_latency", &S::transfer_latency, Unit::time, "line: of any transfer", 0, 1e15},
      Field<S, std::int64_t>{"bandwidth", &S::bandwidth, Unit::bandwidth, "line: more for each byte", 1,
                             2e12},
      Field<S, std::string>{"prefetcher", &S::prefetcher, Unit::none,
                            "the pages that are prefetched with a page fault: one of {UVM prefetcher}"},
      Field<S, std::string>{
          "oversubscribed_prefetcher", &S::oversubscribed_prefetcher, Unit::none,
          "the UVM prefetcher from when the device's memory was first full; same: no change"},
      Field<S, std::string>{"eviction", &S::eviction, Unit::none,
                            "the pages that are evicted from a full memory: one of {eviction policy}"},
      Field<S, std::string>{
          "recency", &S::recency, Unit::none,
          "what the eviction policy observes: migration, or access too (lfu counts accesses only)"},
      Field<S, std::string>{
          "frames", &S::frames, Unit::none,
          "allocation of the device's memory: page; block, 2 MiB from the first page on; or root: the same, "
          "but blocks smaller than 2 MiB share root chunks of that size, 64 KiB at a time, and the root "
          "chunk of the oldest migration is evicted as a whole, without the eviction policy"},
      Field<S, double>{"free_share", &S::free_share, Unit::ratio,
                       "of the memory, the share that pages are evicted ahead to keep free", 0, 0.9},
      Field<S, double>{"reserved_share", &S::reserved_share, Unit::ratio,
                       "of the pages, the share from the least recently used on that is not evicted", 0, 0.9},
      Field<S, bool>{"drop_clean", &S::drop_clean, Unit::none,
                     "whether pages that the device did not write are evicted without a transfer"},
      Field<S, std::string>{"remote", &S::remote, Unit::none,
                            "remote accesses of the device before a page migrates: off, always, "
                            "oversubscribed (only since memory was full) or adaptive"},
      Field<S, std::int64_t>{"remote_threshold", &S::remote_threshold, Unit::count,
                             "accesses to 64 KiB after which they migrate to the device", 1, 1e8},
      Field<S, std::int64_t>{"remote_penalty", &S::remote_penalty, Unit::count,
                             "adaptive: factor of the threshold since memory was full, for each round trip",
                             1, 1e8},
      Field<S, Time>{"host_fault_latency", &S::host_fault_latency, Unit::time,
                     "of a page fault of the host on pages of the device, before their transfer", 0, 1e15},
      Field<S, std::int64_t>{"host_granularity", &S::host_granularity, Unit::bytes,
                             "bytes that migrate with a page fault of the host, aligned to their size", 4096,
                             2 << 20}};
};

}  // namespace manyscale
