// SPDX-License-Identifier: Apache-2.0
// What happened to pages when, for pictures: a bounded number of rows.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::gpu {

struct PageEvent {
  enum class Kind : std::uint8_t {
    fault,
    batch,       // a group of faults that the driver served
    to_device,   // a transfer
    populate,    // pages that were nowhere come to be on the device
    to_host,     // a transfer
    drop,        // a page leaves the device without one
    host_fault,  // the host lacks a page
    host_read,   // the host has read pages, in the order of its program
    host_write,
    remote_read,   // the device accesses the host's memory where it is; cause host, or fault if the page had
    remote_write,  // come meanwhile
  };
  // Why pages moved: since they faulted, came along with others, the host told so, made room, or the host
  // accessed them.
  enum class Cause : std::uint8_t { fault, prefetch, command, eviction, host };

  Time begin = 0;
  Time end = 0;
  std::uint64_t address = 0;  // of the first page
  std::uint32_t pages = 0;    // of a batch: its faults
  Kind kind = Kind::fault;
  Cause cause = Cause::fault;
};

class PageLog {
 public:
  explicit PageLog(std::int64_t rows) : most_(static_cast<std::size_t>(rows)) {}

  bool wanted() const { return most_ != 0; }
  // False if there was no room for it.
  bool add(const PageEvent& event) {
    if (events_.size() == most_) return false;
    events_.push_back(event);
    return true;
  }
  const std::vector<PageEvent>& events() const { return events_; }

 private:
  std::size_t most_;
  std::vector<PageEvent> events_;
};

}  // namespace manyscale::gpu
