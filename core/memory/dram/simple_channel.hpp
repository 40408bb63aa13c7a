// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "memory/dram/spec.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

// A memory channel as a fixed latency and a bus that carries one request after the other; leaves out banks,
// rows, refresh and the order in which a controller would serve requests.
class SimpleChannel {
 public:
  explicit SimpleChannel(const DramSpec& spec) : latency_(spec.latency) {
    for (std::size_t sectors = 0; sectors < transfer_.size(); ++sectors) {
      const std::int64_t bytes = static_cast<std::int64_t>(sectors) * sector_bytes;
      transfer_[sectors] = (bytes * second + spec.bandwidth / 2) / spec.bandwidth;
    }
  }

  struct Served {
    Time started;
    Time finished;
    Time moving;  // how long the bus was taken
  };

  Served serve(std::uint8_t sectors, Time now) {
    const Time transfer = transfer_[static_cast<std::size_t>(std::popcount(sectors))];
    const Time started = std::max(now, free_);
    free_ = add_saturating(started, transfer);
    return {started, add_saturating(free_, latency_), transfer};
  }

 private:
  Time latency_;
  Time free_ = 0;
  std::array<Time, 9> transfer_{};
};

}  // namespace manyscale::memory
