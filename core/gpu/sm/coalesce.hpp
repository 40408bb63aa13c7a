// SPDX-License-Identifier: Apache-2.0
// From the addresses of a warp's lanes to what memory sees of them: lines with sectors, or passes over banks.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

// A line that a warp touches, and which of its sectors.
struct LineAccess {
  std::uint64_t line = 0;  // address
  std::uint8_t sectors = 0;
};

// At most two lines per lane: an access does not cross more than one border.
struct Lines {
  std::array<LineAccess, 2 * kLanes> at;
  unsigned count = 0;
};

// The lines of an access in the order of its lanes.
inline void coalesce(const Access& access, std::uint64_t line_bytes, Lines& lines) {
  lines.count = 0;
  const std::uint64_t line_mask = ~(line_bytes - 1);
  auto add = [&](std::uint64_t sector) {
    const std::uint64_t line = sector & line_mask;
    const auto bit = static_cast<std::uint8_t>(1U << ((sector - line) / 32));
    // Neighbouring lanes mostly touch the line that was touched last.
    for (unsigned i = lines.count; i-- > 0;) {
      if (lines.at[i].line != line) continue;
      lines.at[i].sectors |= bit;
      return;
    }
    lines.at[lines.count++] = {line, bit};
  };
  std::uint64_t last = ~std::uint64_t{0};
  for (Mask left = access.mask; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[static_cast<unsigned>(std::countr_zero(left))];
    const std::uint64_t first = address & ~std::uint64_t{31};
    const std::uint64_t end = address + std::max<unsigned>(access.bytes, 1) - 1;
    if (first != last) add(first);
    last = first;
    for (std::uint64_t sector = first + 32; sector <= end; sector += 32) add(last = sector);
  }
}

// How many lanes of an atomic operation change the word that most of them change.
inline unsigned lanes_of_busiest_word(const Access& access) {
  unsigned most = 1;
  for (Mask left = access.mask; left != 0;) {
    const std::uint64_t word = access.addresses[static_cast<unsigned>(std::countr_zero(left))];
    unsigned same = 0;
    for (Mask rest = left; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (access.addresses[lane] != word) continue;
      left &= ~(Mask{1} << lane);
      ++same;
    }
    most = std::max(most, same);
  }
  return most;
}

// Whether all lanes of a warp want words so close to each other that no two of them are in one bank.
inline bool is_one_pass(const Access& access, unsigned words_of_lane, unsigned banks) {
  if (access.mask != kAllLanes) return false;
  std::uint64_t least = access.addresses[0];
  std::uint64_t most = least;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    least = std::min(least, access.addresses[lane]);
    most = std::max(most, access.addresses[lane]);
  }
  return most / 4 + words_of_lane - least / 4 <= banks;
}

// Passes over the banks of shared memory, and how many of them would do without conflicts.
struct Passes {
  unsigned taken = 1;
  unsigned needed = 1;
};

// Passes that shared memory takes: a bank gives one word in each, to all lanes that want it. Lanes that
// change the same word (`atomic`) wait for each other as well.
inline Passes bank_passes(const Access& access, unsigned banks, bool atomic = false) {
  const unsigned words_of_lane = std::clamp(access.bytes / 4U, 1U, 4U);
  if (!atomic && is_one_pass(access, words_of_lane, banks)) return {};
  // The distinct words of each bank, in a list from `last` on; a bank mostly has one.
  std::array<std::uint32_t, kLanes * 4> words;
  std::array<std::uint8_t, kLanes * 4> before;
  std::array<std::uint8_t, 256> last{};
  std::array<std::uint8_t, 256> per_bank{};
  unsigned distinct = 0;
  unsigned worst = 1;
  std::uint64_t last_address = ~std::uint64_t{0};
  for (Mask left = access.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    // Neighbouring lanes often want the same.
    if (access.addresses[lane] == last_address && !atomic) continue;
    last_address = access.addresses[lane];
    const auto word = static_cast<std::uint32_t>(last_address / 4);
    for (unsigned i = 0; i < words_of_lane; ++i) {
      const std::uint32_t wanted = word + i;
      const unsigned bank = wanted % banks;
      unsigned at = last[bank];
      unsigned listed = per_bank[bank];
      for (; listed != 0 && words[at] != wanted; --listed) at = before[at];
      if (listed != 0 && !atomic) continue;
      words[distinct] = wanted;
      before[distinct] = last[bank];
      last[bank] = static_cast<std::uint8_t>(distinct++);
      worst = std::max<unsigned>(worst, ++per_bank[bank]);
    }
  }
  return {worst, atomic ? words_of_lane : std::max(1U, (distinct + banks - 1) / banks)};
}

}  // namespace manyscale::gpu
