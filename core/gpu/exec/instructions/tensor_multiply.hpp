// SPDX-License-Identifier: Apache-2.0
// What tensor cores do: D = A * B + C for matrices that lie in the registers of a warp.
#pragma once
#include <bit>
#include <cstdint>

#include "gpu/exec/fragments.hpp"
#include "gpu/exec/numerics/formats.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

// One kind of multiplication. It travels in Op::immediate; Op::aux lists the registers of D, A, B and C.
struct Multiplication {
  MatrixShape shape;
  ptx::Type d = ptx::Type::none;
  ptx::Type a = ptx::Type::none;
  ptx::Type b = ptx::Type::none;
  ptx::Type c = ptx::Type::none;

  Fragment fragment(Role role) const;
  Fragment result() const;
  // Four multiplications at once, for which QuadPair says where elements are.
  bool quad_pairs() const { return shape == MatrixShape{8, 8, 4} && a == ptx::Type::f16; }
  unsigned registers(const Fragment& fragment) const;
};
static_assert(sizeof(Multiplication) == sizeof(Op::immediate));

// Bits of an element, also where it takes less than a byte.
unsigned element_bits(ptx::Type type);

// Op::flags.
inline constexpr std::uint8_t kSaturate = 1;   // .satfinite
inline constexpr std::uint8_t kRowMajorA = 2;  // of m8n8k4 with .f16
inline constexpr std::uint8_t kRowMajorB = 4;
inline constexpr std::uint8_t kAnd = 8;  // .and.popc, not .xor.popc

// Faults unless all lanes take part.
void require_all_lanes(const Warp& warp);

// The handler of a multiplication, or null if there is none such. The rounding is of f64 only.
Handler find_multiplication(const Multiplication& kind, bool is_wmma, Rounding rounding);

}  // namespace manyscale::gpu
