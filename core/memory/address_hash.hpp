// SPDX-License-Identifier: Apache-2.0
// Which slice of a shared cache, or which memory channel, a line belongs to.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/spec.hpp"

namespace manyscale::memory {

struct SliceHashSpec {
  std::int64_t slices = 16;
  std::int64_t line_size = 128;
  std::string hash = "polynomial";
};

// Stands for the address hash in front of the slices of a last-level cache; leaves out the permutations that
// vendors keep secret. `modulo` is the plain remainder. `xor` folds all bits of the line number onto one
// slice number, for powers of two. `polynomial` is the remainder by a primitive polynomial over GF(2) (as
// IPOLY), so that any aligned run of as many lines as slices, at any stride of a power of two, meets every
// slice once; an odd factor of the number of slices is filled from a second, wider remainder and is balanced
// on average. `interleaved` is as `polynomial`, but sixteen aligned runs of as many lines as the power of two
// fill an odd factor in turn, from one on that the wide remainder of the other bits gives: neighbouring lines
// are in different slices. All are linear over GF(2) but for these turns, so a table of what each byte of the
// line number adds gives them.
class SliceHash {
 public:
  enum class HashFunction : std::uint8_t { modulo, xor_fold, polynomial, interleaved };

  explicit SliceHash(const SliceHashSpec& spec) : spec_(spec), function_(function_of(spec.hash)) {
    if (spec.slices < 1 || spec.slices > most_slices) {
      throw std::invalid_argument("a slice hash takes 1 to 65536 slices, not " + std::to_string(spec.slices));
    }
    if (spec.line_size < 1 || !std::has_single_bit(static_cast<std::uint64_t>(spec.line_size))) {
      throw std::invalid_argument("the line size is a power of two, not " + std::to_string(spec.line_size));
    }
    slices_ = static_cast<std::uint32_t>(spec.slices);
    line_shift_ = std::countr_zero(static_cast<std::uint64_t>(spec.line_size));
    even_bits_ = std::countr_zero(slices_);
    odd_factor_ = slices_ >> even_bits_;
    if (function_ == HashFunction::xor_fold && odd_factor_ != 1) {
      throw std::invalid_argument("the xor hash needs a power of two of slices, not " +
                                  std::to_string(slices_));
    }
    if (function_ != HashFunction::modulo) fill_table();
  }

  std::uint32_t slice_of(std::uint64_t address) const {
    std::uint64_t line = address >> line_shift_;
    if (function_ == HashFunction::modulo) {
      return static_cast<std::uint32_t>(odd_factor_ == 1 ? line & (slices_ - 1) : line % slices_);
    }
    std::uint32_t hash = 0;
    for (std::size_t byte = 0; line != 0; ++byte, line >>= 8) hash ^= table_[byte][line & 255];
    // The low half is the power of two, the high half a fraction that picks the odd factor.
    if (odd_factor_ == 1) return hash;
    std::uint32_t odd = (hash >> 16) * odd_factor_ >> 16;
    if (function_ == HashFunction::interleaved) {
      odd += turn_[(address >> line_shift_ >> even_bits_) % turn_.size()];
      if (odd >= odd_factor_) odd -= odd_factor_;
    }
    return (hash & 0xffff) | odd << even_bits_;
  }

  std::uint32_t slices() const { return slices_; }
  const SliceHashSpec& spec() const { return spec_; }

 private:
  static constexpr std::int64_t most_slices = 1 << 16;
  // Primitive polynomials of degree 1 to 16, a bit for each power.
  static constexpr std::array<std::uint32_t, 17> polynomials{1,      3,      7,      0xb,    0x13,   0x25,
                                                             0x43,   0x83,   0x11d,  0x211,  0x409,  0x805,
                                                             0x1053, 0x201b, 0x4443, 0x8003, 0x1100b};
  // The wide remainder: another primitive polynomial of degree 16, taken of the line times `spread` so that
  // short runs too reach its high bits. The pair was found by a random search over 31 numbers of slices; on
  // all numbers up to 256, 64 lines per slice from address 0 at strides of 2^0 to 2^13 lines leave no slice
  // with more than 1.25 times the mean.
  static constexpr std::uint32_t wide_polynomial = 0x11753;
  static constexpr std::uint32_t spread = 0x5e73;
  // The same pair for `interleaved`, which keeps to 1.25 as well.
  static constexpr std::uint32_t turns_polynomial = 0x1003f;
  static constexpr std::uint32_t turns_spread = 0x5437;

  static HashFunction function_of(std::string_view name) {
    if (name == "modulo") return HashFunction::modulo;
    if (name == "xor") return HashFunction::xor_fold;
    if (name == "polynomial") return HashFunction::polynomial;
    if (name == "interleaved") return HashFunction::interleaved;
    throw std::invalid_argument("no slice hash '" + std::string(name) +
                                "': modulo, xor, polynomial or interleaved");
  }
  // The remainder times x.
  static std::uint32_t next_power(std::uint32_t remainder, std::uint32_t polynomial) {
    remainder <<= 1;
    return std::bit_width(remainder) == std::bit_width(polynomial) ? remainder ^ polynomial : remainder;
  }

  void fill_table() {
    const bool fold = function_ == HashFunction::xor_fold;
    const bool turns = function_ == HashFunction::interleaved;
    for (std::uint32_t run = 0; run < turn_.size(); ++run) turn_[run] = run % odd_factor_;
    std::uint32_t low = 1;  // the remainder of x to the power of the bit
    std::uint32_t wide = turns ? turns_spread : spread;
    for (std::size_t bit = 0; bit < 64; ++bit) {
      const bool takes_turns = turns && bit < static_cast<std::size_t>(even_bits_) + 4;
      std::uint32_t adds = odd_factor_ == 1 || takes_turns ? 0 : wide << 16;
      if (even_bits_ != 0) adds |= fold ? 1u << bit % static_cast<std::size_t>(even_bits_) : low;
      auto& bytes = table_[bit / 8];
      const std::size_t weight = std::size_t{1} << bit % 8;
      for (std::size_t value = 0; value < 256; ++value) {
        if ((value & weight) != 0) bytes[value] ^= adds;
      }
      low = next_power(low, polynomials[static_cast<std::size_t>(even_bits_)]);
      wide = next_power(wide, turns ? turns_polynomial : wide_polynomial);
    }
  }

  const SliceHashSpec spec_;
  HashFunction function_;
  std::uint32_t slices_ = 1;
  int line_shift_ = 0;
  int even_bits_ = 0;  // the number of slices is 2^even_bits_ times odd_factor_
  std::uint32_t odd_factor_ = 1;
  std::array<std::uint32_t, 16> turn_{};  // which of the odd factor each of sixteen runs adds
  std::array<std::array<std::uint32_t, 256>, 8> table_{};
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::SliceHashSpec> {
  using Spec = memory::SliceHashSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"slices", &Spec::slices, Unit::count, "slices that lines are spread over", 1,
                                65536},
      Field<Spec, std::int64_t>{"line_size", &Spec::line_size, Unit::bytes, "of a line, a power of two", 1,
                                1 << 20},
      Field<Spec, std::string>{"hash", &Spec::hash, Unit::none, "modulo, xor, polynomial or interleaved"}};
};

}  // namespace manyscale
