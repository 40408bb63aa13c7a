// SPDX-License-Identifier: Apache-2.0
// The issue ports and functional units of a core: which kinds each port takes, and which of its cycles are
// taken already. What is asked for first gets the cycle, and the core asks for older instructions first.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/core/core_spec.hpp"
#include "cpu/core/cycle_map.hpp"
#include "cpu/stream/record.hpp"
#include "memory/interconnect/timetable.hpp"

namespace manyscale::cpu {

class IssuePorts {
 public:
  // Throws std::invalid_argument for a table of ports that makes no sense.
  explicit IssuePorts(const CoreSpec& spec);

  std::int64_t latency(const Record& record) const { return rows_[row_of(record)].latency; }
  std::int64_t interval(const Record& record) const { return rows_[row_of(record)].interval; }
  // The ports that take it, a bit each.
  std::uint32_t ports_of(const Record& record) const { return rows_[row_of(record)].ports; }

  // Whether it keeps a unit busy for longer than the cycle in which it issues.
  bool keeps_unit(const Record& record) const { return rows_[row_of(record)].interval > 1; }

  // Takes the first free cycle from `ready` on, which is less than CycleMap::range ahead of `now` unless it
  // keeps a unit busy.
  Cycle take(const Record& record, Cycle ready, Cycle now) {
    Row& row = rows_[row_of(record)];
    if (row.interval > 1) return take_unit(row, ready, now);
    // Cycles known to be full need not be looked at again.
    Cycle cycle = ready >= row.full_from && ready < row.full_until ? row.full_until : ready;
    for (;; ++cycle) {
      Slot& slot = slot_at(cycle);
      const std::uint32_t free = row.ports & ~slot.taken;
      if (free == 0 || slot.issued >= width_) continue;
      slot.taken |= free & -free;
      ++slot.issued;
      break;
    }
    if (cycle > ready) {
      if (ready < row.full_from || ready > row.full_until) row.full_from = ready;
      row.full_until = cycle;
    }
    return cycle;
  }

 private:
  // Rows are kinds, and two more for floating point in single precision.
  static constexpr std::size_t rows = instruction_classes + 2;
  static constexpr std::size_t single_divide = instruction_classes;
  static constexpr std::size_t single_root = instruction_classes + 1;
  static constexpr int most_ports = 32;

  struct Row {
    std::uint32_t ports = 0;
    std::int64_t latency = 1;
    std::int64_t interval = 1;
    std::size_t unit = 0;  // whose time it takes where that is longer than a cycle
    Cycle full_from = 0, full_until = 0;
  };
  // What is taken of a cycle; small, since a core goes through all of them again and again.
  struct Slot {
    std::uint32_t taken = 0;
    std::uint32_t issued : 6 = 0;
    std::uint32_t round : 26 = 0;  // which of the cycles that share this slot
  };
  static_assert(sizeof(Slot) == 8);

  static std::size_t row_of(const Record& record) {
    if (record.format == 4) {
      if (record.kind == InstructionClass::float_divide) return single_divide;
      if (record.kind == InstructionClass::float_root) return single_root;
    }
    return static_cast<std::size_t>(record.kind);
  }
  Slot& slot_at(Cycle cycle) {
    Slot& slot = slots_[CycleMap::slot(cycle)];
    const auto round =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(cycle) / CycleMap::range) & ((1u << 26) - 1);
    if (slot.round != round) slot = {0, 0, round};
    return slot;
  }
  Cycle take_unit(Row& row, Cycle ready, Cycle now);
  void read_ports(const std::string& text);

  std::uint32_t width_;
  std::array<Row, rows> rows_;
  std::vector<Slot> slots_;
  // Of units that are not fully pipelined: one per port and kind, division and roots sharing theirs.
  std::vector<memory::Timetable> units_;
};

}  // namespace manyscale::cpu
