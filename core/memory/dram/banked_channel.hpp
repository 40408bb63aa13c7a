// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "memory/dram/address_map.hpp"
#include "memory/dram/statistics.hpp"

namespace manyscale::memory {

// A memory channel as banks with row buffers and one data bus, served in the order of arrival; leaves out the
// command bus, reordering, refresh, and all limits between banks but the data bus.
class BankedChannel {
 public:
  explicit BankedChannel(const DramSpec& spec)
      : spec_(spec),
        map_(spec),
        period_(period_of(spec.clock)),
        banks_(static_cast<std::size_t>(spec.ranks * spec.bank_groups * spec.banks)) {}

  struct Served {
    Cycle started;   // with the first command
    Cycle finished;  // with the last beat
    Time moving;     // how long the bus was taken
  };

  // Counts for the request what becomes of its bursts.
  Served serve(std::uint64_t address, std::uint8_t sectors, bool write, Cycle cycle, DramCounts& counts);

 private:
  struct Bank {
    std::int32_t open_row = -1;
    Cycle activated = 0;
    Cycle column = 0;  // first cycle for another column command
  };

  const DramSpec spec_;
  const AddressMap map_;
  const Time period_;
  std::vector<Bank> banks_;
  Cycle bus_ = 0;  // first cycle in which the data bus is free
};

}  // namespace manyscale::memory
