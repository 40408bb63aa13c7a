// SPDX-License-Identifier: Apache-2.0
#include "memory/dram/address_map.hpp"

#include <bit>
#include <string_view>
#include <vector>

#include "engine/component.hpp"

namespace manyscale::memory {

namespace {

constexpr std::array<std::string_view, 5> field_names{"row", "rank", "bank", "bankgroup", "column"};

// The exponent of a power of two.
int bits_of(std::int64_t value, std::string_view name) {
  if (value < 1 || !std::has_single_bit(static_cast<std::uint64_t>(value))) {
    throw SimulationError(std::string(name) + " must be a power of two, not " + std::to_string(value));
  }
  return std::countr_zero(static_cast<std::uint64_t>(value));
}

struct Part {
  std::size_t field;
  int bits;  // -1: what the other parts leave
};

[[noreturn]] void refuse(const std::string& mapping, const std::string& why) {
  throw SimulationError("mapping '" + mapping + "': " + why +
                        "; it names row, rank, bank, bankgroup and column from high to low, such as "
                        "row:rank:bank:column:bankgroup");
}

Part part_of(const std::string& mapping, std::string_view text) {
  const std::size_t digits = text.find_first_of("0123456789");
  const std::string_view name = text.substr(0, digits);
  Part part{field_names.size(), -1};
  for (std::size_t field = 0; field < field_names.size(); ++field) {
    if (name == field_names[field]) part.field = field;
  }
  if (part.field == field_names.size()) refuse(mapping, "unknown field '" + std::string(text) + "'");
  if (digits != std::string_view::npos) {
    const std::string number(text.substr(digits));
    if (number.size() > 2 || number.find_first_not_of("0123456789") != std::string::npos) {
      refuse(mapping, "'" + std::string(text) + "' is not a field and its number of bits");
    }
    part.bits = std::stoi(number);
  }
  return part;
}

}  // namespace

AddressMap::AddressMap(const DramSpec& spec) : bank_xor_(spec.bank_xor) {
  burst_shift_ = bits_of(spec.burst_bytes, "burst_bytes");
  const int row_shift = bits_of(spec.row_bytes, "row_bytes");
  if (row_shift < burst_shift_) {
    throw SimulationError("row_bytes (" + std::to_string(spec.row_bytes) + ") is less than burst_bytes (" +
                          std::to_string(spec.burst_bytes) + ")");
  }
  std::array<int, fields> bits{};
  bits[row] = bits_of(spec.rows, "rows");
  bits[rank] = bits_of(spec.ranks, "ranks");
  bits[bank_field] = bank_bits_ = bits_of(spec.banks, "banks");
  bits[group] = group_bits_ = bits_of(spec.bank_groups, "bank_groups");
  bits[column] = row_shift - burst_shift_;
  read_mapping(spec, bits);

  channels_ = static_cast<std::uint64_t>(spec.interleave_channels);
  interleave_shift_ = bits_of(spec.interleave_bytes, "interleave_bytes");
  if (interleave_shift_ < burst_shift_ && channels_ > 1) {
    throw SimulationError("interleave_bytes (" + std::to_string(spec.interleave_bytes) +
                          ") is less than burst_bytes (" + std::to_string(spec.burst_bytes) + ")");
  }
  offset_mask_ = static_cast<std::uint64_t>(spec.interleave_bytes) - 1;
  if (std::has_single_bit(channels_)) channel_shift_ = std::countr_zero(channels_);
}

void AddressMap::read_mapping(const DramSpec& spec, const std::array<int, fields>& bits) {
  std::vector<Part> parts;
  std::string_view rest = spec.mapping;
  for (;;) {
    const std::size_t colon = rest.find(':');
    parts.push_back(part_of(spec.mapping, rest.substr(0, colon)));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() > most_pieces) refuse(spec.mapping, "more than 10 parts");

  for (std::size_t field = 0; field < fields; ++field) {
    int stated = 0;
    Part* open = nullptr;
    for (Part& part : parts) {
      if (part.field != field) continue;
      if (part.bits >= 0) {
        stated += part.bits;
      } else if (open != nullptr) {
        refuse(spec.mapping, std::string(field_names[field]) + " comes twice without a number of bits");
      } else {
        open = &part;
      }
    }
    if (stated > bits[field] || (open == nullptr && stated < bits[field])) {
      refuse(spec.mapping, std::string(field_names[field]) + " has " + std::to_string(stated) +
                               " bits, but its size makes " + std::to_string(bits[field]));
    }
    if (open != nullptr) open->bits = bits[field] - stated;
  }

  std::array<int, fields> filled{};
  int shift = 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->bits == 0) continue;
    pieces_[piece_count_++] = {static_cast<std::uint8_t>(part->field), static_cast<std::uint8_t>(shift),
                               static_cast<std::uint8_t>(filled[part->field]),
                               static_cast<std::uint32_t>((std::uint64_t{1} << part->bits) - 1)};
    filled[part->field] += part->bits;
    shift += part->bits;
  }
  if (shift + burst_shift_ > 63) refuse(spec.mapping, "the channel has more than 2^63 bytes");
}

}  // namespace manyscale::memory
