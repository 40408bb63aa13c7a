// SPDX-License-Identifier: Apache-2.0
// Lanes of SASS's registers: words that an instruction may negate, invert or take the magnitude of,
// and values of 64 bits that lie in two registers.
#pragma once
#include <bit>
#include <cstdint>

#include "gpu/exec/lanes.hpp"
#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/sass/registers.hpp"

namespace manyscale::gpu {

// What is done to source k before it is used, as bits of Op::immediate.
constexpr std::int64_t negated_bit(unsigned k) {
  return std::int64_t{1} << k;
}
constexpr std::int64_t inverted_bit(unsigned k) {
  return std::int64_t{1} << (8 + k);
}
constexpr std::int64_t absolute_bit(unsigned k) {
  return std::int64_t{1} << (16 + k);
}
// Whether the predicate in src[3] or the one that Op::aux names is negated.
inline constexpr std::int64_t kPredicateNegated = std::int64_t{1} << 24;
inline constexpr std::int64_t kOtherNegated = std::int64_t{1} << 25;
// Above these an instruction keeps what it wants.
inline constexpr unsigned kFreeBits = 32;

// What a source's modifiers do to an integer; nothing, and nothing to copy, without them.
template <bool modified>
struct IntegerChange {
  IntegerChange(const Op&, unsigned) {}
  std::uint32_t operator()(std::uint32_t word) const { return word; }
};
template <>
struct IntegerChange<true> {
  IntegerChange(const Op& op, unsigned k) {
    const bool negated = (op.immediate & negated_bit(k)) != 0;
    flip = negated || (op.immediate & inverted_bit(k)) != 0 ? ~std::uint32_t{0} : 0;
    add = negated ? 1 : 0;
  }
  std::uint32_t operator()(std::uint32_t word) const { return (word ^ flip) + add; }

  std::uint32_t flip = 0;
  std::uint32_t add = 0;
};

// A source of 32 bits as an integer.
template <bool modified>
class Words {
 public:
  Words(const Warp& warp, const Op& op, unsigned k)
      : lanes_(warp.lanes<std::uint32_t>(op.src[k])), change_(op, k) {}
  std::uint32_t operator[](unsigned i) const { return change_(lanes_[i]); }

 private:
  const std::uint32_t* lanes_;
  [[no_unique_address]] IntegerChange<modified> change_;
};

// A source of 64 bits as an integer.
class Pairs {
 public:
  Pairs(const Warp& warp, Slot slot)
      : low_(warp.lanes<std::uint32_t>(slot)), high_(warp.lanes<std::uint32_t>(next_word(slot))) {}
  std::uint64_t operator[](unsigned i) const { return low_[i] | std::uint64_t{high_[i]} << 32; }

 private:
  const std::uint32_t* low_;
  const std::uint32_t* high_;
};

// What a source's modifiers do to the word that has the sign of a float.
template <bool modified>
struct SignChange {
  SignChange(const Op&, unsigned) {}
  std::uint32_t operator()(std::uint32_t word) const { return word; }
};
template <>
struct SignChange<true> {
  SignChange(const Op& op, unsigned k)
      : keep((op.immediate & absolute_bit(k)) != 0 ? 0x7fffffff : ~std::uint32_t{0}),
        flip((op.immediate & negated_bit(k)) != 0 ? 0x80000000 : 0) {}
  std::uint32_t operator()(std::uint32_t word) const { return (word & keep) ^ flip; }

  std::uint32_t keep;
  std::uint32_t flip;
};

// A source as a float or a double.
template <class T, bool modified>
class Numbers {
 public:
  Numbers(const Warp& warp, const Op& op, unsigned k)
      : lanes_(warp.lanes<std::uint32_t>(op.src[k])), change_(op, k) {}
  T operator[](unsigned i) const { return std::bit_cast<T>(change_(lanes_[i])); }

 private:
  const std::uint32_t* lanes_;
  [[no_unique_address]] SignChange<modified> change_;
};
template <bool modified>
class Numbers<double, modified> {
 public:
  Numbers(const Warp& warp, const Op& op, unsigned k)
      : low_(warp.lanes<std::uint32_t>(op.src[k])),
        high_(warp.lanes<std::uint32_t>(next_word(op.src[k]))),
        change_(op, k) {}
  double operator[](unsigned i) const {
    return std::bit_cast<double>(low_[i] | std::uint64_t{change_(high_[i])} << 32);
  }

 private:
  const std::uint32_t* low_;
  const std::uint32_t* high_;
  [[no_unique_address]] SignChange<modified> change_;
};

// The two registers of dst = f(lane), 64 bits, for the active lanes.
template <class F>
inline void for_pairs(Warp& warp, Slot dst, F f) {
  auto* low = warp.lanes<std::uint32_t>(dst);
  auto* high = warp.lanes<std::uint32_t>(next_word(dst));
  const Mask mask = warp.mask;
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = f(lane);
      low[lane] = static_cast<std::uint32_t>(value);
      high[lane] = static_cast<std::uint32_t>(value >> 32);
    }
  } else {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = f(lane);
      const std::uint32_t old_low = low[lane];
      const std::uint32_t old_high = high[lane];
      low[lane] = (mask & (Mask{1} << lane)) != 0 ? static_cast<std::uint32_t>(value) : old_low;
      high[lane] = (mask & (Mask{1} << lane)) != 0 ? static_cast<std::uint32_t>(value >> 32) : old_high;
    }
  }
}

// dst = f(lane) in 32 bits, for the active lanes.
template <class F>
inline void for_words(Warp& warp, Slot dst, F f) {
  for_lanes(warp, warp.lanes<std::uint32_t>(dst),
            [=](unsigned i) { return static_cast<std::uint32_t>(f(i)); });
}

// dst = f(lane), which is a float or a double.
template <class T, class F>
inline void for_numbers(Warp& warp, Slot dst, F f) {
  if constexpr (sizeof(T) == 8) {
    for_pairs(warp, dst, [=](unsigned i) { return std::bit_cast<std::uint64_t>(f(i)); });
  } else {
    for_words(warp, dst, [=](unsigned i) { return std::bit_cast<std::uint32_t>(f(i)); });
  }
}

// A predicate that is read.
inline Mask condition(const Warp& warp, Slot slot, bool negated) {
  const Mask value = warp.predicate(slot);
  return negated ? ~value : value;
}
// The predicates of most instructions: in src[3], and in the slot that aux is.
inline Mask first_condition(const Warp& warp, const Op& op) {
  return condition(warp, op.src[3], (op.immediate & kPredicateNegated) != 0);
}
inline Mask second_condition(const Warp& warp, const Op& op) {
  return condition(warp, op.aux, (op.immediate & kOtherNegated) != 0);
}

}  // namespace manyscale::gpu
