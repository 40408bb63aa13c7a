// SPDX-License-Identifier: Apache-2.0
// When commands may follow each other: the JEDEC rules as earliest cycles per bank, bank group and rank.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "memory/dram/spec.hpp"

namespace manyscale::memory {

enum BusDirection : std::uint8_t { reading, writing };

// The timing rules of a channel's devices and data bus. Leaves out power-down, ZQ calibration, the
// distance of a bank's refresh to activates of other banks, CRC and the second cycle of an activate on HBM's
// row bus.
class DramGates {
 public:
  struct Bank {
    std::int32_t open_row = -1;
    std::uint16_t group = 0;  // counted over all ranks
    std::uint16_t rank = 0;
    Cycle activate = 0;
    Cycle precharge = 0;
    std::array<Cycle, 2> column{};
  };

  // Banks that follow each other.
  struct BankRange {
    std::uint32_t first;
    std::uint32_t end;
  };

  explicit DramGates(const DramSpec& spec)
      : spec_(spec),
        banks_(static_cast<std::size_t>(spec.ranks * spec.bank_groups * spec.banks)),
        groups_(static_cast<std::size_t>(spec.ranks * spec.bank_groups)),
        ranks_(static_cast<std::size_t>(spec.ranks)),
        banks_per_rank_(static_cast<std::uint32_t>(spec.bank_groups * spec.banks)),
        same_direction_(std::max(spec.tccd_s, spec.burst_cycles)),
        read_to_write_(std::max<Cycle>(1, spec.tcl + spec.burst_cycles + spec.turnaround - spec.tcwl)),
        write_end_(spec.tcwl + spec.burst_cycles) {
    for (std::size_t i = 0; i < banks_.size(); ++i) {
      banks_[i].group = static_cast<std::uint16_t>(i / static_cast<std::size_t>(spec.banks));
      banks_[i].rank = static_cast<std::uint16_t>(i / banks_per_rank_);
    }
    for (Rank& rank : ranks_) rank.last_activates.fill(-spec.tfaw);
  }

  const Bank& bank(std::uint32_t index) const { return banks_[index]; }
  std::uint32_t bank_count() const { return static_cast<std::uint32_t>(banks_.size()); }
  std::uint32_t banks_per_rank() const { return banks_per_rank_; }

  Cycle earliest_activate(const Bank& bank) const {
    return std::max({bank.activate, groups_[bank.group].activate, ranks_[bank.rank].activate});
  }
  Cycle earliest_column(const Bank& bank, BusDirection direction) const {
    return std::max(
        {bank.column[direction], groups_[bank.group].column[direction], ranks_[bank.rank].column[direction]});
  }
  // Of banks that are refreshed together.
  bool any_open(BankRange banks) const {
    return std::any_of(at(banks.first), at(banks.end), [](const Bank& bank) { return bank.open_row >= 0; });
  }
  // Also waits for banks that are about to close by themselves.
  Cycle earliest_precharge_of(BankRange banks) const {
    Cycle earliest = 0;
    for (auto bank = at(banks.first); bank != at(banks.end); ++bank) {
      earliest = std::max(earliest, bank->precharge);
    }
    return earliest;
  }
  Cycle earliest_refresh(BankRange banks) const {
    Cycle earliest = 0;
    for (auto bank = at(banks.first); bank != at(banks.end); ++bank) {
      earliest = std::max(earliest, bank->activate);
    }
    return earliest;
  }

  void activate(std::uint32_t index, std::int32_t row, Cycle now) {
    Bank& bank = banks_[index];
    bank.open_row = row;
    raise(bank.column[reading], now + spec_.trcd);
    raise(bank.column[writing], now + spec_.trcd_write);
    raise(bank.precharge, now + spec_.tras);
    raise(bank.activate, now + spec_.trc);
    raise(groups_[bank.group].activate, now + spec_.trrd_l);
    Rank& rank = ranks_[bank.rank];
    rank.last_activates[rank.activates++ % 4] = now;
    raise(rank.activate, std::max(now + spec_.trrd_s, rank.last_activates[rank.activates % 4] + spec_.tfaw));
  }

  void precharge(std::uint32_t index, Cycle now) {
    Bank& bank = banks_[index];
    bank.open_row = -1;
    raise(bank.activate, now + spec_.trp);
  }

  void refresh(BankRange banks, Cycle now) {
    for (std::uint32_t index = banks.first; index != banks.end; ++index) {
      raise(banks_[index].activate, now + spec_.trfc);
    }
  }

  // A read or write; with auto-precharge the bank closes by itself as soon as it may.
  void column(std::uint32_t index, BusDirection direction, bool auto_precharge, Cycle now) {
    Bank& bank = banks_[index];
    Rank& own = ranks_[bank.rank];
    auto& group = groups_[bank.group].column;
    raise(group[direction], now + spec_.tccd_l);
    raise(own.column[direction], now + same_direction_);
    if (direction == reading) {
      raise(bank.precharge, now + spec_.trtp);
      raise(own.column[writing], now + read_to_write_);
    } else {
      raise(bank.precharge, now + write_end_ + spec_.twr);
      raise(own.column[reading], now + write_end_ + spec_.twtr_s);
      raise(group[reading], now + write_end_ + spec_.twtr_l);
    }
    if (ranks_.size() > 1) switch_rank(own, direction, now);
    if (auto_precharge) {
      bank.open_row = -1;
      raise(bank.activate, bank.precharge + spec_.trp);
    }
  }

 private:
  struct Group {
    Cycle activate = 0;
    std::array<Cycle, 2> column{};
  };
  struct Rank {
    Cycle activate = 0;
    std::array<Cycle, 2> column{};
    std::array<Cycle, 4> last_activates{};
    std::uint32_t activates = 0;
  };

  static void raise(Cycle& gate, Cycle to) { gate = std::max(gate, to); }

  // The data bus has to be handed from one rank to another: trtrs between the end of one burst and the start
  // of the other.
  void switch_rank(const Rank& own, BusDirection direction, Cycle now) {
    const Cycle free =
        now + (direction == reading ? spec_.tcl : spec_.tcwl) + spec_.burst_cycles + spec_.trtrs;
    for (Rank& rank : ranks_) {
      if (&rank == &own) continue;
      raise(rank.column[reading], free - spec_.tcl);
      raise(rank.column[writing], free - spec_.tcwl);
    }
  }

  std::vector<Bank>::const_iterator at(std::uint32_t index) const { return banks_.begin() + index; }

  const DramSpec spec_;
  std::vector<Bank> banks_;
  std::vector<Group> groups_;
  std::vector<Rank> ranks_;
  std::uint32_t banks_per_rank_;
  Cycle same_direction_;
  Cycle read_to_write_;
  Cycle write_end_;
};

}  // namespace manyscale::memory
