// SPDX-License-Identifier: Apache-2.0
// Where in a channel an address lies.
#pragma once
#include <array>
#include <cstdint>

#include "memory/dram/spec.hpp"

namespace manyscale::memory {

// A burst's address; `bank` counts over all ranks and bank groups: (rank * bank_groups + group) * banks +
// bank.
struct DramAddress {
  std::uint32_t bank = 0;
  std::int32_t row = 0;
  std::int32_t column = 0;
};

// The wiring of address bits to rank, bank group, bank, row and column. Addresses beyond the capacity wrap
// around.
class AddressMap {
 public:
  // Throws SimulationError where the organisation or the mapping does not make sense.
  explicit AddressMap(const DramSpec& spec);

  // The address within this channel of a global one.
  std::uint64_t local(std::uint64_t address) const {
    if (channels_ == 1) return address;
    if (channel_shift_ >= 0) {
      return ((address >> channel_shift_) & ~offset_mask_) | (address & offset_mask_);
    }
    return address / (channels_ << interleave_shift_) << interleave_shift_ | (address & offset_mask_);
  }

  // The address of a burst, which is a local address divided by the bytes of a burst.
  DramAddress decode(std::uint64_t burst) const {
    std::array<std::uint32_t, fields> value{};
    for (std::size_t i = 0; i < piece_count_; ++i) {
      const Piece& piece = pieces_[i];
      value[piece.field] |= static_cast<std::uint32_t>((burst >> piece.shift) & piece.mask) << piece.to;
    }
    std::uint32_t bank = value[group] << bank_bits_ | value[bank_field];
    const int bank_width = group_bits_ + bank_bits_;
    if (bank_xor_ && bank_width != 0)
      for (std::uint32_t rest = value[row]; rest != 0; rest >>= bank_width)
        bank ^= rest & ((1u << bank_width) - 1);
    return {value[rank] << (group_bits_ + bank_bits_) | bank, static_cast<std::int32_t>(value[row]),
            static_cast<std::int32_t>(value[column])};
  }

  int burst_shift() const { return burst_shift_; }

 private:
  enum : std::size_t { row, rank, bank_field, group, column, fields };
  static constexpr std::size_t most_pieces = 10;

  struct Piece {
    std::uint8_t field;
    std::uint8_t shift;  // in the burst's number
    std::uint8_t to;     // in the field
    std::uint32_t mask;
  };

  void read_mapping(const DramSpec& spec, const std::array<int, fields>& bits);

  std::array<Piece, most_pieces> pieces_{};
  std::size_t piece_count_ = 0;
  int bank_bits_ = 0;
  int group_bits_ = 0;
  int burst_shift_ = 0;
  bool bank_xor_ = false;
  std::uint64_t channels_ = 1;
  int interleave_shift_ = 0;
  int channel_shift_ = -1;  // bits to take out, where the number of channels is a power of two
  std::uint64_t offset_mask_ = 0;
};

}  // namespace manyscale::memory
