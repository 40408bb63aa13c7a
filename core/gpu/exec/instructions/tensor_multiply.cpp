// SPDX-License-Identifier: Apache-2.0
// The fragments are gathered into plain matrices, multiplied, and scattered again.
//
// Products of the narrow floating-point formats are exact in f64. Their sum is taken there, in the order of k
// and beginning with C, and rounded once to the type of D: hardware adds in an order and with a precision
// that PTX leaves open, and this is at least as precise.
#include "gpu/exec/instructions/tensor_multiply.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/tensor_matrices.hpp"
#include "gpu/exec/numerics/rounding.hpp"

namespace manyscale::gpu {

using ptx::Type;

unsigned element_bits(Type type) {
  switch (type) {
    case Type::b1:
      return 1;
    case Type::s4:
    case Type::u4:
      return 4;
    case Type::tf32:
      return 32;
    case Type::e4m3:
    case Type::e5m2:
      return 8;
    default:
      return 8 * ptx::size_of(type);
  }
}

Fragment Multiplication::fragment(Role role) const {
  return {role, shape, element_bits(role == Role::a ? a : role == Role::b ? b : c)};
}

Fragment Multiplication::result() const {
  return {Role::c, shape, element_bits(d)};
}

unsigned Multiplication::registers(const Fragment& fragment) const {
  const unsigned matrices = quad_pairs() ? 4 : 1;
  return matrices * fragment.rows() * fragment.columns() / (kLanes * fragment.per_register());
}

void require_all_lanes(const Warp& warp) {
  if (warp.mask == kAllLanes) return;
  const auto missing = static_cast<unsigned>(__builtin_ctz(~warp.mask));
  const auto present = warp.mask == 0 ? 0 : static_cast<unsigned>(__builtin_ctz(warp.mask));
  throw Fault(
      ".sync.aligned needs all lanes of the warp, and lane " + std::to_string(missing) + " takes no part",
      present);
}

namespace {

using namespace tensor;

// The registers of the four matrices, which the operation lists one after the other.
struct Operands {
  const Slot *d, *a, *b, *c;

  Operands(const Warp& warp, const Op& op, unsigned count_d, unsigned count_a, unsigned count_b)
      : d(warp.code().slots.data() + op.aux), a(d + count_d), b(a + count_a), c(b + count_b) {}
};

constexpr auto kSame = [](auto x) { return x; };

// --- Multiplying ----------------------------------------------------------------------------------

#ifdef __FMA__
constexpr bool kFusesVectors = true;
#else
constexpr bool kFusesVectors = false;
#endif

// sum += a * b, with one rounding if the host can: products of narrow types are exact, so that for them it is
// the same.
template <class T>
void add_product(const Vector<T>& a, const Vector<T>& b, Vector<T>& sum) {
#ifdef __FMA__
  if constexpr (sizeof(T) == 8)
    sum = _mm256_fmadd_pd(a, b, sum);
  else
    sum = _mm256_fmadd_ps(a, b, sum);
#else
  sum += a * b;
#endif
}

// c += a * b, eight columns and a few rows at a time, each sum in the order of k.
template <MatrixShape Shape, class T>
void multiply_add(const T* a, const T* b, T* c) {
  constexpr unsigned kVectors = 8 * sizeof(T) / kVectorBytes;
  constexpr unsigned kRows = kVectors == 4 ? 2 : 4;  // whose sums are in registers of the host
  for (unsigned column = 0; column < Shape.n; column += 8, b += 8 * Shape.k, c += 8 * Shape.m) {
    for (unsigned row = 0; row < Shape.m; row += kRows) {
      Vector<T> sum[kRows][kVectors];
      std::memcpy(sum, c + row * 8, sizeof(sum));
      for (unsigned k = 0; k < Shape.k; ++k) {
        Vector<T> right[kVectors];
        std::memcpy(right, b + k * 8, sizeof(right));
        for (unsigned r = 0; r < kRows; ++r) {
          const Vector<T> left = a[(row + r) * Shape.k + k] - Vector<T>{};
          for (unsigned v = 0; v < kVectors; ++v) add_product<T>(left, right[v], sum[r][v]);
        }
      }
      std::memcpy(c + row * 8, sum, sizeof(sum));
    }
  }
}

// .satfinite of floating-point results, which PTX had before version 6.5.
double make_finite(double value, double largest) {
  if (value != value) return 0;
  return std::clamp(value, -largest, largest);
}

float round_f32(double value) {
  return canonical(static_cast<float>(value));
}
F16 round_f16(double value) {
  return to_f16(value);
}

template <MatrixShape Shape, class Element>
void multiply_floats(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  constexpr Fragment fragment_a{Role::a, Shape, 32 / Element::kPerRegister};
  constexpr Fragment fragment_b{Role::b, Shape, 32 / Element::kPerRegister};
  const auto kind = std::bit_cast<Multiplication>(op.immediate);
  const unsigned count_d = Shape.m * Shape.n / kLanes / (kind.d == Type::f16 ? 2 : 1);
  const Operands slots(warp, op, count_d, fragment_a.registers(), fragment_b.registers());
  alignas(64) double a[Shape.m * Shape.k], b[Shape.n * Shape.k], c[Shape.m * Shape.n];
  gather<fragment_a>(warp, slots.a, Element(kind.a), a);
  gather<fragment_b>(warp, slots.b, Element(kind.b), b);
  if (kind.c == Type::f16)
    gather_accumulators<Shape, F16>(warp, slots.c, c, [](F16 x) { return to_f64(x); });
  else
    gather_accumulators<Shape, float>(warp, slots.c, c, [](float x) { return double{x}; });
  multiply_add<Shape>(a, b, c);
  if (op.flags & kSaturate) {
    const double largest = kind.d == Type::f16 ? 65504.0 : double{std::numeric_limits<float>::max()};
    for (double& value : c) value = make_finite(value, largest);
  }
  if (kind.d == Type::f16) {
    alignas(64) F16 d[std::size(c)];
    for (unsigned i = 0; i < std::size(c); ++i) d[i] = round_f16(c[i]);
    scatter<Shape>(warp, slots.d, d);
  } else {
    alignas(64) float d[std::size(c)];
    for (unsigned i = 0; i < std::size(c); ++i) d[i] = round_f32(c[i]);
    scatter<Shape>(warp, slots.d, d);
  }
}

template <MatrixShape Shape, Rounding R>
void multiply_doubles(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  constexpr Fragment fragment_a{Role::a, Shape, 64}, fragment_b{Role::b, Shape, 64},
      fragment_c{Role::c, Shape, 64};
  const Operands slots(warp, op, fragment_c.registers(), fragment_a.registers(), fragment_b.registers());
  alignas(64) double a[Shape.m * Shape.k], b[Shape.n * Shape.k], c[Shape.m * Shape.n];
  gather<fragment_a>(warp, slots.a, a);
  gather<fragment_b>(warp, slots.b, b);
  gather_accumulators<Shape, double>(warp, slots.c, c, kSame);
  if constexpr (kFusesVectors && R == Rounding::rn) {
    multiply_add<Shape>(a, b, c);
  } else {
    for (unsigned row = 0; row < Shape.m; ++row)
      for (unsigned k = 0; k < Shape.k; ++k)
        for (unsigned column = 0; column < 8; ++column)
          c[row * 8 + column] = fma<R>(a[row * Shape.k + k], b[k * 8 + column], c[row * 8 + column]);
  }
  for (double& value : c) value = value != value ? from_bits<double>(default_nan_f64) : value;
  scatter<Shape>(warp, slots.d, c);
}

template <MatrixShape Shape, class Element>
void multiply_integers(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  constexpr Fragment fragment_a{Role::a, Shape, 32 / Element::kPerRegister};
  constexpr Fragment fragment_b{Role::b, Shape, 32 / Element::kPerRegister};
  constexpr unsigned count = Shape.m * Shape.n;
  const auto kind = std::bit_cast<Multiplication>(op.immediate);
  const Operands slots(warp, op, count / kLanes, fragment_a.registers(), fragment_b.registers());
  // No sum of products has more than 24 bits, so that f32 has it exactly.
  alignas(64) float a[Shape.m * Shape.k], b[Shape.n * Shape.k], sums[count] = {};
  alignas(64) std::int32_t c[count];
  gather<fragment_a>(warp, slots.a, Element(kind.a), a);
  gather<fragment_b>(warp, slots.b, Element(kind.b), b);
  gather_accumulators<Shape, std::int32_t>(warp, slots.c, c, kSame);
  multiply_add<Shape>(a, b, sums);
  if (op.flags & kSaturate) {
    constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    for (unsigned i = 0; i < count; ++i)
      c[i] = static_cast<std::int32_t>(
          std::clamp(std::int64_t{c[i]} + static_cast<std::int32_t>(sums[i]), least, most));
  } else {
    for (unsigned i = 0; i < count; ++i)
      c[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(c[i]) +
                                       static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[i])));
  }
  scatter<Shape>(warp, slots.d, c);
}

template <MatrixShape Shape>
void multiply_bits(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  constexpr Fragment fragment_a{Role::a, Shape, 1}, fragment_b{Role::b, Shape, 1};
  constexpr unsigned words = Shape.k / 64;
  const Operands slots(warp, op, Shape.m * Shape.n / kLanes, fragment_a.registers(), fragment_b.registers());
  const auto gather_lines = [&](const Slot* matrix, const Fragment& fragment, std::uint64_t (*lines)[words]) {
    for (unsigned i = 0; i < fragment.registers(); ++i) {
      const Fragment::Block block = fragment.block(i);
      const auto* lanes = warp.lanes<const std::byte>(matrix[i]);
      for (unsigned line = 0; line < 8; ++line)
        std::memcpy(&lines[block.line + line][block.first / 64], lanes + 16 * line, 16);
    }
  };
  std::uint64_t a[Shape.m][words], b[Shape.n][words];
  std::uint32_t c[Shape.m * Shape.n];
  gather_lines(slots.a, fragment_a, a);
  gather_lines(slots.b, fragment_b, b);
  gather_accumulators<Shape, std::uint32_t>(warp, slots.c, c, kSame);
  const bool both = op.flags & kAnd;
  for (unsigned row = 0; row < Shape.m; ++row)
    for (unsigned column = 0; column < Shape.n; ++column)
      for (unsigned i = 0; i < words; ++i)
        c[row * Shape.n + column] += static_cast<std::uint32_t>(
            std::popcount(both ? a[row][i] & b[column][i] : a[row][i] ^ b[column][i]));
  scatter<Shape>(warp, slots.d, c);
}

// m8n8k4 of f16.
void multiply_quad_pairs(Warp& warp, const Op& op) {
  require_all_lanes(warp);
  const auto kind = std::bit_cast<Multiplication>(op.immediate);
  const bool half_c = kind.c == Type::f16, half_d = kind.d == Type::f16;
  const bool row_major_a = op.flags & kRowMajorA, row_major_b = op.flags & kRowMajorB;
  const Operands slots(warp, op, half_d ? 4 : 8, 2, 2);
  const auto half = [&](const Slot* matrix, unsigned lane, unsigned i) -> F16& {
    return warp.lanes<F16>(matrix[i / 2])[2 * lane + i % 2];
  };
  double a[4][8][4], b[4][4][8], c[4][8][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned q = QuadPair::computation(lane);
    for (unsigned i = 0; i < 4; ++i) {
      const MatrixPosition at_a = QuadPair::a(lane, i, row_major_a), at_b = QuadPair::b(lane, i, row_major_b);
      a[q][at_a.row][at_a.column] = to_f64(half(slots.a, lane, i));
      b[q][at_b.row][at_b.column] = to_f64(half(slots.b, lane, i));
    }
    for (unsigned i = 0; i < 8; ++i) {
      const MatrixPosition at = half_c ? QuadPair::c_f16(lane, i) : QuadPair::c_f32(lane, i);
      c[q][at.row][at.column] =
          half_c ? to_f64(half(slots.c, lane, i)) : double{warp.lanes<const float>(slots.c[i])[lane]};
    }
  }
  for (unsigned q = 0; q < 4; ++q)
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned k = 0; k < 4; ++k)
        for (unsigned column = 0; column < 8; ++column) c[q][row][column] += a[q][row][k] * b[q][k][column];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned q = QuadPair::computation(lane);
    for (unsigned i = 0; i < 8; ++i) {
      const MatrixPosition at = half_d ? QuadPair::c_f16(lane, i) : QuadPair::c_f32(lane, i);
      const double value = c[q][at.row][at.column];
      if (half_d)
        half(slots.d, lane, i) = round_f16(value);
      else
        warp.lanes<float>(slots.d[i])[lane] = round_f32(value);
    }
  }
}

// --- Which there are ------------------------------------------------------------------------------

struct Variant {
  MatrixShape shape;
  Type a;  // B may have another one of the same width: s8 and u8, s4 and u4, e4m3 and e5m2
  bool is_wmma;
  Handler handler;
};

constexpr MatrixShape kM8N8K4{8, 8, 4}, kM8N8K16{8, 8, 16}, kM8N8K32{8, 8, 32}, kM8N8K128{8, 8, 128};
constexpr MatrixShape kM16N8K4{16, 8, 4}, kM16N8K8{16, 8, 8}, kM16N8K16{16, 8, 16}, kM16N8K32{16, 8, 32};
constexpr MatrixShape kM16N8K64{16, 8, 64}, kM16N8K128{16, 8, 128}, kM16N8K256{16, 8, 256};
constexpr MatrixShape kM16N16K8{16, 16, 8}, kM16N16K16{16, 16, 16}, kM32N8K16{32, 8, 16},
    kM8N32K16{8, 32, 16};

constexpr Variant kVariants[] = {
    {kM8N8K4, Type::f16, false, multiply_quad_pairs},
    {kM16N8K8, Type::f16, false, multiply_floats<kM16N8K8, Half<F16>>},
    {kM16N8K16, Type::f16, false, multiply_floats<kM16N8K16, Half<F16>>},
    {kM16N8K8, Type::bf16, false, multiply_floats<kM16N8K8, Half<Bf16>>},
    {kM16N8K16, Type::bf16, false, multiply_floats<kM16N8K16, Half<Bf16>>},
    {kM16N8K4, Type::tf32, false, multiply_floats<kM16N8K4, Tf32Bits>},
    {kM16N8K8, Type::tf32, false, multiply_floats<kM16N8K8, Tf32Bits>},
    {kM16N8K16, Type::e4m3, false, multiply_floats<kM16N8K16, Float8>},
    {kM16N8K32, Type::e4m3, false, multiply_floats<kM16N8K32, Float8>},
    {kM8N8K16, Type::s8, false, multiply_integers<kM8N8K16, Byte>},
    {kM16N8K16, Type::s8, false, multiply_integers<kM16N8K16, Byte>},
    {kM16N8K32, Type::s8, false, multiply_integers<kM16N8K32, Byte>},
    {kM8N8K32, Type::s4, false, multiply_integers<kM8N8K32, Nibble>},
    {kM16N8K32, Type::s4, false, multiply_integers<kM16N8K32, Nibble>},
    {kM16N8K64, Type::s4, false, multiply_integers<kM16N8K64, Nibble>},
    {kM8N8K128, Type::b1, false, multiply_bits<kM8N8K128>},
    {kM16N8K128, Type::b1, false, multiply_bits<kM16N8K128>},
    {kM16N8K256, Type::b1, false, multiply_bits<kM16N8K256>},
    {kM16N16K16, Type::f16, true, multiply_floats<kM16N16K16, Half<F16>>},
    {kM32N8K16, Type::f16, true, multiply_floats<kM32N8K16, Half<F16>>},
    {kM8N32K16, Type::f16, true, multiply_floats<kM8N32K16, Half<F16>>},
    {kM16N16K16, Type::bf16, true, multiply_floats<kM16N16K16, Half<Bf16>>},
    {kM32N8K16, Type::bf16, true, multiply_floats<kM32N8K16, Half<Bf16>>},
    {kM8N32K16, Type::bf16, true, multiply_floats<kM8N32K16, Half<Bf16>>},
    {kM16N16K8, Type::tf32, true, multiply_floats<kM16N16K8, Tf32Bits>},
    {kM16N16K16, Type::s8, true, multiply_integers<kM16N16K16, Byte>},
    {kM32N8K16, Type::s8, true, multiply_integers<kM32N8K16, Byte>},
    {kM8N32K16, Type::s8, true, multiply_integers<kM8N32K16, Byte>},
    {kM8N8K32, Type::s4, true, multiply_integers<kM8N8K32, Nibble>},
    {kM8N8K128, Type::b1, true, multiply_bits<kM8N8K128>},
};

template <MatrixShape Shape>
Handler doubles(Rounding rounding) {
  switch (rounding) {
    case Rounding::rz:
      return multiply_doubles<Shape, Rounding::rz>;
    case Rounding::rm:
      return multiply_doubles<Shape, Rounding::rm>;
    case Rounding::rp:
      return multiply_doubles<Shape, Rounding::rp>;
    default:
      return multiply_doubles<Shape, Rounding::rn>;
  }
}

// The type that stands in the table for those of its width.
Type representative(Type type) {
  switch (type) {
    case Type::u8:
      return Type::s8;
    case Type::u4:
      return Type::s4;
    case Type::e5m2:
      return Type::e4m3;
    default:
      return type;
  }
}

}  // namespace

Handler find_multiplication(const Multiplication& kind, bool is_wmma, Rounding rounding) {
  const Type type = representative(kind.a);
  if (type != representative(kind.b)) return nullptr;
  if (type == Type::f64) {
    if (kind.shape == kM8N8K4) return doubles<kM8N8K4>(rounding);
    if (is_wmma) return nullptr;
    if (kind.shape == kM16N8K4) return doubles<kM16N8K4>(rounding);
    if (kind.shape == kM16N8K8) return doubles<kM16N8K8>(rounding);
    if (kind.shape == kM16N8K16) return doubles<kM16N8K16>(rounding);
    return nullptr;
  }
  for (const Variant& variant : kVariants)
    if (variant.shape == kind.shape && variant.a == type && variant.is_wmma == is_wmma)
      return variant.handler;
  return nullptr;
}

}  // namespace manyscale::gpu
