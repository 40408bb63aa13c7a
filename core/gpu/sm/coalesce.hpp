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
  // Of an atomic operation, rounds of the L2's atomic unit; of a store, which sectors it writes in part.
  std::uint8_t tag = 0;
};

// At most two lines per lane and word: an access does not cross more than one border; or those of eight
// texels per lane.
struct Lines {
  std::array<LineAccess, 8 * kLanes> at;
  unsigned count = 0;

  void add(std::uint64_t line, std::uint8_t sectors) {
    // Neighbouring lanes mostly touch the line that was touched last.
    for (unsigned i = count; i-- > 0;) {
      if (at[i].line != line) continue;
      at[i].sectors |= sectors;
      return;
    }
    at[count++] = {line, sectors, 0};
  }
};

// The lines of an access in the order of its lanes.
inline void coalesce(const Access& access, std::uint64_t line_bytes, Lines& lines) {
  lines.count = 0;
  const std::uint64_t line_mask = ~(line_bytes - 1);
  auto add = [&](std::uint64_t sector) {
    const std::uint64_t line = sector & line_mask;
    lines.add(line, static_cast<std::uint8_t>(1U << ((sector - line) / 32)));
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

// The lines of sectors that a texture instruction reads.
inline void coalesce(const TextureFootprint& texture, std::uint64_t line_bytes, Lines& lines) {
  lines.count = 0;
  for (const std::uint64_t sector : texture.sectors) {
    const std::uint64_t line = sector & ~(line_bytes - 1);
    lines.add(line, static_cast<std::uint8_t>(1U << ((sector - line) / 32)));
  }
}

// Marks which sectors of its lines a store writes only in part. Lanes are taken to write different words.
inline void find_partial_sectors(const Access& access, Lines& lines) {
  const unsigned bytes = std::max<unsigned>(access.bytes, 1);
  unsigned sectors = 0;
  for (unsigned i = 0; i < lines.count; ++i) sectors += std::popcount(lines.at[i].sectors);
  if (static_cast<unsigned>(std::popcount(access.mask)) * bytes >= sectors * 32) return;
  for (unsigned i = 0; i < lines.count; ++i) {
    LineAccess& line = lines.at[i];
    std::array<unsigned, 8> written{};
    for (Mask left = access.mask; left != 0; left &= left - 1) {
      const std::uint64_t offset =
          access.addresses[static_cast<unsigned>(std::countr_zero(left))] - line.line;
      if (offset / 32 < written.size()) written[offset / 32] += bytes;
    }
    for (unsigned sector = 0; sector < written.size(); ++sector)
      if ((line.sectors >> sector & 1) != 0 && written[sector] < 32)
        line.tag |= static_cast<std::uint8_t>(1U << sector);
  }
}

// Rounds of the L2's atomic unit, and how many of them only lanes that change the same word need.
struct AtomicRounds {
  unsigned taken = 0;
  unsigned conflicts = 0;
};

// Rounds that a line of an atomic operation takes: each changes up to `width` bytes of one sector, and no
// word twice.
inline AtomicRounds atomic_rounds(const Access& access, const LineAccess& line, unsigned width) {
  AtomicRounds rounds;
  for (unsigned sectors = line.sectors; sectors != 0; sectors &= sectors - 1) {
    const std::uint64_t sector = line.line + 32U * static_cast<unsigned>(std::countr_zero(sectors));
    unsigned busiest = 0;
    unsigned words = 0;
    Mask left = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      left |= Mask{(access.addresses[lane] & ~std::uint64_t{31}) == sector} << lane;
    for (left &= access.mask; left != 0; ++words) {
      const std::uint64_t word = access.addresses[static_cast<unsigned>(std::countr_zero(left))];
      Mask same = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) same |= Mask{access.addresses[lane] == word} << lane;
      busiest = std::max(busiest, static_cast<unsigned>(std::popcount(same & left)));
      left &= ~same;
    }
    const unsigned needed = (words * std::max<unsigned>(access.bytes, 1) + width - 1) / width;
    const unsigned taken = std::max({needed, busiest, 1U});
    rounds.taken += taken;
    rounds.conflicts += taken - std::max(needed, 1U);
  }
  return rounds;
}

// Passes over the banks of shared memory or of the L1, and how many of them would do without conflicts.
struct Passes {
  unsigned taken = 1;
  unsigned needed = 1;
};

// Whether some neighbouring lanes, all of which take part, want words so close to each other that no two of
// them are in one bank.
inline bool is_one_pass(const std::uint64_t* addresses, unsigned lanes, unsigned words_of_lane,
                        unsigned banks) {
  std::uint64_t least = addresses[0];
  std::uint64_t most = least;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    least = std::min(least, addresses[lane]);
    most = std::max(most, addresses[lane]);
  }
  return most / 4 + words_of_lane - least / 4 <= banks;
}

// Passes that some lanes need: a bank gives one word in each, to all lanes that want it. Lanes that change
// the same word (`atomic`) wait for each other as well.
inline unsigned passes_of(const Access& access, Mask lanes, unsigned words_of_lane, unsigned banks,
                          bool atomic) {
  // The distinct words of each bank, in a list from `last` on; a bank mostly has one.
  std::array<std::uint64_t, kLanes * 4> words;
  std::array<std::uint8_t, kLanes * 4> before;
  std::array<std::uint8_t, 256> last;
  std::array<std::uint8_t, 256> per_bank;
  std::fill_n(per_bank.begin(), banks, std::uint8_t{0});
  unsigned distinct = 0;
  unsigned worst = 1;
  std::uint64_t last_address = ~std::uint64_t{0};
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    // Neighbouring lanes often want the same.
    if (access.addresses[lane] == last_address && !atomic) continue;
    last_address = access.addresses[lane];
    for (unsigned i = 0; i < words_of_lane; ++i) {
      const std::uint64_t wanted = last_address / 4 + i;
      const auto bank = static_cast<unsigned>(wanted % banks);
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
  return worst;
}

// Whether lanes whose numbers differ in one bit want the same, wherever both take part.
template <unsigned Bit>
bool same_in_pairs(const Access& access) {
  Mask different = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    different |= Mask{access.addresses[lane] != access.addresses[lane ^ Bit]} << lane;
  const Mask low = Bit == 1 ? 0x55555555U : 0x33333333U;
  const Mask pairs = access.mask & access.mask >> Bit & low;  // both of which take part
  return (different & pairs) == 0;
}

// Passes of an access. A pass gives each of 32 lanes a word, so wide accesses go by halves or quarters of a
// warp. `packs`: if lanes want the same in pairs, a pass gives two words to each (shared memory of Volta and
// later).
inline Passes bank_passes(const Access& access, unsigned banks, bool atomic = false, bool packs = false) {
  const unsigned words_of_lane = std::clamp(access.bytes / 4U, 1U, 4U);
  if (words_of_lane == 1 || atomic) {
    if (!atomic && access.mask == kAllLanes && is_one_pass(access.addresses.data(), kLanes, 1, banks))
      return {};
    return {passes_of(access, access.mask, words_of_lane, banks, atomic), atomic ? words_of_lane : 1};
  }
  unsigned lanes = kLanes / words_of_lane;
  if (packs && (same_in_pairs<1>(access) || same_in_pairs<2>(access))) lanes *= 2;
  const Mask group = kAllLanes >> (kLanes - lanes);
  Passes passes{0, 0};
  for (unsigned first = 0; first < kLanes; first += lanes) {
    const Mask wanting = access.mask & group << first;
    if (wanting == 0) continue;
    const bool together =
        wanting == group << first && is_one_pass(&access.addresses[first], lanes, words_of_lane, banks);
    passes.taken += together ? 1 : passes_of(access, wanting, words_of_lane, banks, false);
    ++passes.needed;
  }
  return passes;
}

}  // namespace manyscale::gpu
