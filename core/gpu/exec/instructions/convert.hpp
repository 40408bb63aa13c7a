// SPDX-License-Identifier: Apache-2.0
// What the files of conversions share.
#pragma once
#include <bit>
#include <cstdint>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/instructions/float_lanes.hpp"
#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

// A conversion from one number to one number, as a handler for all of them is told it.
struct Conversion {
  ptx::Type to = ptx::Type::none;
  ptx::Type from = ptx::Type::none;
  std::uint8_t to_bytes = 0;    // of the register that is written
  std::uint8_t from_bytes = 0;  // of the register that is read
  Rounding rounding = Rounding::rn;
  bool to_whole = false;  // rounds to a whole number
  std::uint16_t flags = 0;
};

// How a conversion stands in Op::immediate.
constexpr std::int64_t packed(const Conversion& conversion) {
  return std::bit_cast<std::int64_t>(conversion);
}
constexpr Conversion unpacked(std::int64_t immediate) {
  return std::bit_cast<Conversion>(immediate);
}

// The handler of any conversion, in steps that look up what to do.
void convert_by_steps(Warp& warp, const Op& op);

// Decodes conversions that write or read two numbers in a register.
bool is_packed(ptx::Type type);
void decode_packed(Builder& builder, ptx::Type to, ptx::Type from);
// Decodes `cvt.pack`.
void decode_pack(Builder& builder);

// A call of f<R>() with a rounding that is known at run time only.
template <class F>
auto with_rounding(Rounding rounding, F f) {
  switch (rounding) {
    case Rounding::rz:
      return f.template operator()<Rounding::rz>();
    case Rounding::rm:
      return f.template operator()<Rounding::rm>();
    case Rounding::rp:
      return f.template operator()<Rounding::rp>();
    default:
      return f.template operator()<Rounding::rn>();
  }
}

// A call of f with a value of the C++ integer that stands for a PTX type.
template <class F>
auto with_integer(ptx::Type type, F f) {
  switch (type) {
    case ptx::Type::u8:
      return f(std::uint8_t{});
    case ptx::Type::s8:
      return f(std::int8_t{});
    case ptx::Type::u16:
      return f(std::uint16_t{});
    case ptx::Type::s16:
      return f(std::int16_t{});
    case ptx::Type::u32:
      return f(std::uint32_t{});
    case ptx::Type::s32:
      return f(std::int32_t{});
    case ptx::Type::s64:
      return f(std::int64_t{});
    default:
      return f(std::uint64_t{});
  }
}

// A call of f with a value of the unsigned integer that fills a register.
template <class F>
auto with_register(unsigned bytes, F f) {
  switch (bytes) {
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

}  // namespace manyscale::gpu
