// SPDX-License-Identifier: Apache-2.0
// The page log: migrations, faults and accesses of the host with their times, for plots. Bounded; rows beyond
// the bound are counted and lost.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/statistics.hpp"
#include "engine/time.hpp"

namespace manyscale::gpu {

enum class PageEventKind : std::uint8_t {
  fault,
  batch,       // a fault batch of the driver
  to_device,   // a transfer
  populate,    // pages without data are created on the device
  to_host,     // a transfer
  drop,        // a page is evicted without a transfer
  host_fault,  // a page fault of the host
  host_read,   // accesses of the host, in program order
  host_write,
  remote_read,  // remote accesses of the device; cause host, or fault if the page migrated meanwhile
  remote_write,
};

struct PageEvent {
  // Why pages migrated: a page fault, a prefetcher, a prefetch command of the host, an eviction, or an access
  // of the host.
  enum class Cause : std::uint8_t { fault, prefetch, command, eviction, host };

  Time begin = 0;
  Time end = 0;
  std::uint64_t address = 0;  // of the first page
  std::uint32_t pages = 0;    // of a batch: its faults
  PageEventKind kind = PageEventKind::fault;
  Cause cause = Cause::fault;
};

class PageLog {
 public:
  explicit PageLog(std::int64_t rows) : most_(static_cast<std::size_t>(rows)) {}

  bool wanted() const { return most_ != 0; }
  void add(const PageEvent& event) {
    if (events_.size() == most_)
      ++lost_;
    else
      events_.push_back(event);
  }
  // Rows beyond the bound.
  const Counter& lost() const { return lost_; }
  const std::vector<PageEvent>& events() const { return events_; }

 private:
  std::size_t most_;
  Counter lost_;
  std::vector<PageEvent> events_;
};

}  // namespace manyscale::gpu
