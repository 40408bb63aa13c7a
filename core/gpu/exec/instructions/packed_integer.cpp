// SPDX-License-Identifier: Apache-2.0
// The SIMD video instructions on whole registers. Choosing single bytes or halves of operands (`a.b3210`) is
// left out: compilers do not write it.
#include "gpu/exec/instructions/packed_integer.hpp"

#include <algorithm>

#include "gpu/exec/instructions/plain.hpp"
#include "gpu/exec/lanes.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Type;
using I32 = std::int32_t;
using U32 = std::uint32_t;

// Op::flags.
constexpr std::uint8_t kSignedFirst = 1;
constexpr std::uint8_t kSignedSecond = 2;
constexpr std::uint8_t kSignedResult = 4;
constexpr std::uint8_t kSaturates = 8;
constexpr std::uint8_t kAccumulates = 16;

struct Add {
  I32 operator()(I32 a, I32 b) const { return a + b; }
};
struct Subtract {
  I32 operator()(I32 a, I32 b) const { return a - b; }
};
struct Average {
  I32 operator()(I32 a, I32 b) const { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }
};
struct AbsoluteDifference {
  I32 operator()(I32 a, I32 b) const { return a < b ? b - a : a - b; }
};
struct Minimum {
  I32 operator()(I32 a, I32 b) const { return a < b ? a : b; }
};
struct Maximum {
  I32 operator()(I32 a, I32 b) const { return a < b ? b : a; }
};

// F of each part; the results side by side, or with .add their sum with c.
template <class F, unsigned parts>
void by_parts(Warp& warp, const Op& op) {
  constexpr unsigned bits = 32 / parts;
  constexpr I32 ones = (1 << bits) - 1;
  constexpr I32 top = 1 << (bits - 1);
  const I32 a_top = op.flags & kSignedFirst ? top : 0;
  const I32 b_top = op.flags & kSignedSecond ? top : 0;
  const bool saturates = op.flags & kSaturates;
  const bool accumulates = op.flags & kAccumulates;
  const I32 least = op.flags & kSignedResult ? -top : 0;
  const I32 most = op.flags & kSignedResult ? top - 1 : ones;
  map3<U32, U32, U32, U32>(warp, op, [=](U32 a, U32 b, U32 c) {
    U32 sum = c;
    U32 merged = 0;
    for (unsigned i = 0; i < parts; ++i) {
      const I32 x = ((static_cast<I32>(a >> (bits * i)) & ones) ^ a_top) - a_top;
      const I32 y = ((static_cast<I32>(b >> (bits * i)) & ones) ^ b_top) - b_top;
      const I32 exact = F{}(x, y);
      const I32 result = saturates ? std::clamp(exact, least, most) : exact;
      sum += static_cast<U32>(result);
      merged |= static_cast<U32>(result & ones) << (bits * i);
    }
    return accumulates ? sum : merged;
  });
}

struct Packed {
  std::string_view name;
  Handler handler;
};

constexpr Packed kPacked[] = {
    {"vadd2", by_parts<Add, 2>},
    {"vadd4", by_parts<Add, 4>},
    {"vsub2", by_parts<Subtract, 2>},
    {"vsub4", by_parts<Subtract, 4>},
    {"vavrg2", by_parts<Average, 2>},
    {"vavrg4", by_parts<Average, 4>},
    {"vabsdiff2", by_parts<AbsoluteDifference, 2>},
    {"vabsdiff4", by_parts<AbsoluteDifference, 4>},
    {"vmin2", by_parts<Minimum, 2>},
    {"vmin4", by_parts<Minimum, 4>},
    {"vmax2", by_parts<Maximum, 2>},
    {"vmax4", by_parts<Maximum, 4>},
};

}  // namespace

void decode_packed_integer(Builder& builder) {
  const auto* packed = std::ranges::find(kPacked, builder.instruction().opcode, &Packed::name);
  if (packed == std::end(kPacked)) builder.unsupported("the instruction is not known");
  const Type result = builder.type(), first = builder.type(), second = builder.type();
  const auto is_word = [](Type type) { return type == Type::u32 || type == Type::s32; };
  if (!is_word(result) || !is_word(first) || !is_word(second))
    builder.unsupported("not defined for these types");
  std::uint8_t flags = 0;
  if (first == Type::s32) flags |= kSignedFirst;
  if (second == Type::s32) flags |= kSignedSecond;
  if (result == Type::s32) flags |= kSignedResult;
  if (builder.accept("sat")) flags |= kSaturates;
  if (builder.accept("add")) flags |= kAccumulates;
  for (unsigned i = 0; i < builder.operands(); ++i)
    if (builder.operand(i).component != 255) builder.unsupported("parts of operands cannot be chosen");
  emit_plain(builder, packed->handler, Class::integer, result, {first, second, result}).flags = flags;
}

}  // namespace manyscale::gpu
