// SPDX-License-Identifier: Apache-2.0
// Who holds which line in the private caches above a home.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "memory/flat_map.hpp"

namespace manyscale::memory {

// A set of requesters.
class RequesterSet {
 public:
  static constexpr std::uint32_t most = 256;
  using Words = std::array<std::uint64_t, most / 64>;

  RequesterSet() = default;
  explicit RequesterSet(const Words& words) : words_(words) {}
  static RequesterSet of(std::uint32_t requester) {
    RequesterSet set;
    set.add(requester);
    return set;
  }

  bool empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }
  bool has(std::uint32_t requester) const { return (words_[requester / 64] & bit(requester)) != 0; }
  void add(std::uint32_t requester) { words_[requester / 64] |= bit(requester); }
  void remove(std::uint32_t requester) { words_[requester / 64] &= ~bit(requester); }
  std::uint32_t count() const {
    int all = 0;
    for (const std::uint64_t word : words_) all += std::popcount(word);
    return static_cast<std::uint32_t>(all);
  }
  // Visits them from the first to the last.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t left = words_[i]; left != 0; left &= left - 1)
        visit(64 * i + static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }
  const Words& words() const { return words_; }

 private:
  static std::uint64_t bit(std::uint32_t requester) { return std::uint64_t{1} << requester % 64; }

  Words words_{};
};

// Who holds a line: one owner, or any number of sharers (some of which may have dropped it without a word).
struct Holders {
  RequesterSet sharers;
  std::int32_t owner = -1;

  bool any() const { return owner >= 0 || !sharers.empty(); }
};

// The holders of all lines that have some. The first 64 requesters lie beside the owner, the others in a
// table of their own, so that a system without them pays nothing for their room.
class Directory {
 public:
  Holders find(std::uint64_t line) const {
    const Near* near = near_.find(line);
    if (near == nullptr) return {};
    RequesterSet::Words words{near->sharers};
    if (far_.size() > 0) {
      if (const Far* far = far_.find(line)) std::copy(far->begin(), far->end(), words.begin() + 1);
    }
    return {RequesterSet(words), near->owner};
  }
  void set(std::uint64_t line, const Holders& holders) {
    const RequesterSet::Words& words = holders.sharers.words();
    near_[line] = {words[0], holders.owner};
    if ((words[1] | words[2] | words[3]) != 0) {
      far_[line] = {words[1], words[2], words[3]};
    } else if (far_.size() > 0) {
      far_.erase(line);
    }
  }
  // Forgets the line if this requester owns it; whether it did.
  bool erase_owned(std::uint64_t line, std::uint32_t requester) {
    const Near* near = near_.find(line);
    if (near == nullptr || near->owner != static_cast<std::int32_t>(requester)) return false;
    erase(line);
    return true;
  }
  void erase(std::uint64_t line) {
    near_.erase(line);
    if (far_.size() > 0) far_.erase(line);
  }

 private:
  struct Near {
    std::uint64_t sharers = 0;
    std::int32_t owner = -1;
  };
  using Far = std::array<std::uint64_t, RequesterSet::most / 64 - 1>;

  FlatMap<Near> near_;
  FlatMap<Far> far_;
};

}  // namespace manyscale::memory
