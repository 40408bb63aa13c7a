// SPDX-License-Identifier: Apache-2.0
#include "memory/dram/banked_channel.hpp"

#include <algorithm>
#include <bit>

#include "memory/dram/controller.hpp"

namespace manyscale::memory {

BankedChannel::Served BankedChannel::serve(std::uint64_t address, std::uint8_t sectors, bool write,
                                           Cycle cycle, DramCounts& counts) {
  const std::uint64_t local = map_.local(address);
  const std::uint64_t first = local >> map_.burst_shift();
  const Cycle to_data = write ? spec_.tcwl : spec_.tcl;
  const Cycle to_column = write ? spec_.trcd_write : spec_.trcd;
  Served served{never, 0, 0};
  for (std::uint32_t left = burst_mask(local, sectors, map_.burst_shift()); left != 0; left &= left - 1) {
    const DramAddress address = map_.decode(first + static_cast<std::uint64_t>(std::countr_zero(left)));
    Bank& bank = banks_[address.bank];
    Cycle column = std::max(cycle, bank.column);
    Cycle started = column;
    if (bank.open_row == address.row) {
      ++counts.row_hits;
    } else {
      if (bank.open_row < 0) {
        ++counts.row_misses;
      } else {
        ++counts.row_conflicts;
        started = std::max(column, bank.activated + spec_.tras);
        column = started + spec_.trp;
      }
      ++counts.activates;
      bank.activated = column;
      bank.open_row = address.row;
      column += to_column;
    }
    const Cycle data = std::max(column + to_data, bus_);
    bus_ = data + spec_.burst_cycles;
    bank.column = data - to_data + spec_.burst_cycles;
    // A hit that waits for the bus begins with its column command.
    served.started = std::min(served.started, started == column ? data - to_data : started);
    served.finished = bus_;
    served.moving += spec_.burst_cycles * period_;
  }
  counts.bus_busy += served.moving;
  return served;
}

}  // namespace manyscale::memory
