// SPDX-License-Identifier: Apache-2.0
// Fragments into plain matrices and back: A has rows of k elements; B, C and D are matrices of 8 columns, one
// after the other, because 8 columns are multiplied at a time.
#pragma once
#ifdef __AVX__
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpu/exec/fragments.hpp"
#include "gpu/exec/numerics/fp8.hpp"
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu::tensor {

using ptx::Type;

// --- Elements as they lie in registers ------------------------------------------------------------
// Each of these turns the 32 lanes of one register into floats: kPerRegister of lane 0, of lane 1, and so on.

template <class T>
T load(const std::byte* lanes, unsigned index) {
  T value;
  std::memcpy(&value, lanes + index * sizeof(T), sizeof(T));
  return value;
}

// F16 and Bf16.
template <class T>
struct Half {
  static constexpr unsigned kPerRegister = 2;
  explicit Half(Type) {}
  void operator()(const std::byte* lanes, float* values) const {
#ifdef __F16C__
    if constexpr (std::is_same_v<T, F16>) {
      // The payload of a NaN is kept here, but no result depends on it.
      for (unsigned i = 0; i < 64; i += 8)
        _mm256_storeu_ps(values + i, _mm256_cvtph_ps(load<__m128i>(lanes, i / 8)));
      return;
    }
#endif
    for (unsigned i = 0; i < 64; ++i) values[i] = to_f32(load<T>(lanes, i));
  }
};

// Hardware reads 19 bits of the register.
struct Tf32Bits {
  static constexpr unsigned kPerRegister = 1;
  explicit Tf32Bits(Type) {}
  void operator()(const std::byte* lanes, float* values) const {
    for (unsigned i = 0; i < 32; ++i)
      values[i] = from_bits<float>(load<std::uint32_t>(lanes, i) & 0xffffe000);
  }
};

struct Float8 {
  static constexpr unsigned kPerRegister = 4;
  bool is_e4m3;
  explicit Float8(Type type) : is_e4m3(type == Type::e4m3) {}
  void operator()(const std::byte* lanes, float* values) const {
    if (is_e4m3)
      for (unsigned i = 0; i < 128; ++i) values[i] = to_f32(load<E4m3>(lanes, i));
    else
      for (unsigned i = 0; i < 128; ++i) values[i] = to_f32(load<E5m2>(lanes, i));
  }
};

struct Byte {
  static constexpr unsigned kPerRegister = 4;
  int sign;  // the value of the highest bit, taken off twice
  explicit Byte(Type type) : sign(type == Type::s8 ? 0x80 : 0) {}
  void operator()(const std::byte* lanes, float* values) const {
    for (unsigned i = 0; i < 128; ++i)
      values[i] = static_cast<float>((load<std::uint8_t>(lanes, i) ^ sign) - sign);
  }
};

struct Nibble {
  static constexpr unsigned kPerRegister = 8;
  int sign;
  explicit Nibble(Type type) : sign(type == Type::s4 ? 8 : 0) {}
  void operator()(const std::byte* lanes, float* values) const {
    for (unsigned i = 0; i < 128; ++i) {
      const int bits = load<std::uint8_t>(lanes, i);
      values[2 * i] = static_cast<float>(((bits & 15) ^ sign) - sign);
      values[2 * i + 1] = static_cast<float>(((bits >> 4) ^ sign) - sign);
    }
  }
};

// --- Gathering and scattering --- --------------------------------------------------------------------

// As wide as the vectors of the host.
#ifdef __AVX__
inline constexpr unsigned kVectorBytes = 32;
#else
inline constexpr unsigned kVectorBytes = 16;
#endif
template <class T>
using Vector [[gnu::vector_size(kVectorBytes)]] = T;

// Turns lines of `width` elements into as many lines of 8.
template <unsigned width, class T>
void transpose(const T* from, T* to) {
  for (unsigned i = 0; i < width; ++i)
    for (unsigned line = 0; line < 8; ++line) to[i * 8 + line] = from[line * width + i];
}

#ifdef __AVX__
template <unsigned width>
  requires(width % 8 == 0)
void transpose(const float* from, float* to) {
  using Floats = Vector<float>;
  using Indices = Vector<std::int32_t>;
  constexpr Indices kLow{0, 8, 1, 9, 4, 12, 5, 13}, kHigh{2, 10, 3, 11, 6, 14, 7, 15};
  constexpr Indices kLowPairs{0, 1, 8, 9, 4, 5, 12, 13}, kHighPairs{2, 3, 10, 11, 6, 7, 14, 15};
  constexpr Indices kLowHalves{0, 1, 2, 3, 8, 9, 10, 11}, kHighHalves{4, 5, 6, 7, 12, 13, 14, 15};
  for (unsigned first = 0; first < width; first += 8) {
    Floats a[8], b[8];
    for (unsigned i = 0; i < 8; ++i) std::memcpy(&a[i], from + i * width + first, sizeof(Floats));
    for (unsigned i = 0; i < 4; ++i) {
      b[2 * i] = __builtin_shuffle(a[2 * i], a[2 * i + 1], kLow);
      b[2 * i + 1] = __builtin_shuffle(a[2 * i], a[2 * i + 1], kHigh);
    }
    for (unsigned i = 0; i < 8; i += 4) {
      a[i] = __builtin_shuffle(b[i], b[i + 2], kLowPairs);
      a[i + 1] = __builtin_shuffle(b[i], b[i + 2], kHighPairs);
      a[i + 2] = __builtin_shuffle(b[i + 1], b[i + 3], kLowPairs);
      a[i + 3] = __builtin_shuffle(b[i + 1], b[i + 3], kHighPairs);
    }
    for (unsigned i = 0; i < 4; ++i) {
      b[i] = __builtin_shuffle(a[i], a[i + 4], kLowHalves);
      b[i + 4] = __builtin_shuffle(a[i], a[i + 4], kHighHalves);
    }
    std::memcpy(to + first * 8, b, sizeof(b));
  }
}
#endif

// Puts a block of 8 lines into A, which has rows of k elements, or into B, which is one matrix of 8 columns
// after the other.
template <Fragment Matrix, class T, class Out>
void transpose_into(const T* values, unsigned index, Out* matrix) {
  constexpr unsigned width = 4 * Matrix.per_register();
  constexpr unsigned k = Matrix.shape.k;
  const Fragment::Block block = Matrix.block(index);
  if constexpr (Matrix.role == Role::a) {
    for (unsigned line = 0; line < 8; ++line) {
      Out* row = matrix + (block.line + line) * k + block.first;
      for (unsigned i = 0; i < width; ++i) row[i] = values[line * width + i];
    }
  } else {
    T rows[8 * width];
    transpose<width>(values, rows);
    Out* rows_of_matrix = matrix + block.line * k + block.first * 8;
    for (unsigned i = 0; i < 8 * width; ++i) rows_of_matrix[i] = rows[i];
  }
}

template <Fragment Matrix, class Element, class Out>
void gather(Warp& warp, const Slot* slots, Element element, Out* matrix) {
  static_assert(Matrix.per_register() == Element::kPerRegister);
  for (unsigned index = 0; index < Matrix.registers(); ++index) {
    alignas(32) float values[kLanes * Element::kPerRegister];
    element(warp.lanes<const std::byte>(slots[index]), values);
    transpose_into<Matrix>(values, index, matrix);
  }
}

template <Fragment Matrix>
void gather(Warp& warp, const Slot* slots, double* matrix) {
  for (unsigned index = 0; index < Matrix.registers(); ++index)
    transpose_into<Matrix>(warp.lanes<const double>(slots[index]), index, matrix);
}

// C and D are matrices of 8 columns one after the other: a block is 64 elements in a row. It takes one
// register where lanes hold two elements in one, else two.
template <MatrixShape Shape>
constexpr unsigned block_offset(Fragment::Block block) {
  return block.first / 8 * Shape.m * 8 + block.line * 8;
}

// C for elements of type T in registers.
template <MatrixShape Shape, class T, class Out, class Convert>
void gather_accumulators(Warp& warp, const Slot* slots, Out* matrix, Convert convert) {
  constexpr Fragment fragment{Role::c, Shape, 8 * sizeof(T)};
  constexpr unsigned per_block = 2 / fragment.per_register();
  for (unsigned i = 0; i < fragment.registers(); i += per_block) {
    Out* block = matrix + block_offset<Shape>(fragment.block(i));
    if constexpr (per_block == 1) {
      const T* lanes = warp.lanes<const T>(slots[i]);
      for (unsigned j = 0; j < 64; ++j) block[j] = convert(lanes[j]);
    } else {
      const T *even = warp.lanes<const T>(slots[i]), *odd = warp.lanes<const T>(slots[i + 1]);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        block[2 * lane] = convert(even[lane]);
        block[2 * lane + 1] = convert(odd[lane]);
      }
    }
  }
}

// D of elements that have the registers' type already.
template <MatrixShape Shape, class T>
void scatter(Warp& warp, const Slot* slots, const T* matrix) {
  constexpr Fragment fragment{Role::c, Shape, 8 * sizeof(T)};
  constexpr unsigned per_block = 2 / fragment.per_register();
  for (unsigned i = 0; i < fragment.registers(); i += per_block) {
    const T* block = matrix + block_offset<Shape>(fragment.block(i));
    if constexpr (per_block == 1) {
      std::memcpy(warp.lanes<T>(slots[i]), block, 64 * sizeof(T));
    } else {
      T *even = warp.lanes<T>(slots[i]), *odd = warp.lanes<T>(slots[i + 1]);
#pragma GCC ivdep
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        even[lane] = block[2 * lane];
        odd[lane] = block[2 * lane + 1];
      }
    }
  }
}

}  // namespace manyscale::gpu::tensor
