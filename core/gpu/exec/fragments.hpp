// SPDX-License-Identifier: Apache-2.0
// Matrix fragments: which lane and register holds which element of the matrices that a warp multiplies
// together.
#pragma once
#include <bit>
#include <cstdint>

namespace manyscale::gpu {

// The part a matrix plays in D = A * B + C; C and D are alike.
enum class Role : std::uint8_t { a, b, c };

// A is m x k, B is k x n, C and D are m x n.
struct MatrixShape {
  std::uint8_t m = 0;
  std::uint8_t n = 0;
  std::uint16_t k = 0;
  friend constexpr bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

struct MatrixPosition {
  unsigned row = 0;
  unsigned column = 0;
  friend constexpr bool operator==(const MatrixPosition&, const MatrixPosition&) = default;
};

// A matrix spread over the registers of a warp, as mma.sync and wmma have it. Registers stand for blocks:
// lane 4 * g + t holds, of line g of the block, the elements that begin at t * step. A line is a row of A or
// C, and a column of B, so that the elements of one register of A and B always follow each other along k. In
// memory the 32 lanes of a register of A or B therefore are the block, line after line.
//
// PTX does not say where wmma has its elements. Here they are where compute capability 7.5 and later have
// them for m16n16k16: fragments of m16n8k16 side by side.
struct Fragment {
  Role role = Role::a;
  MatrixShape shape;
  unsigned bits = 16;  // of an element: 1, 4, 8, 16, 32 or 64

  // What one register holds: the first line and the first element of each line.
  struct Block {
    unsigned line = 0;
    unsigned first = 0;
  };

  constexpr unsigned rows() const { return role == Role::b ? shape.k : shape.m; }
  constexpr unsigned columns() const { return role == Role::a ? shape.k : shape.n; }
  constexpr unsigned lines() const { return role == Role::b ? shape.n : shape.m; }
  // Elements of one lane in one register.
  constexpr unsigned per_register() const { return bits == 64 ? 1 : 32 / bits; }
  // Elements from one lane to the next in a line.
  constexpr unsigned step() const { return role == Role::c ? 2 : per_register(); }
  // Registers that differ: wmma may list them more than once.
  constexpr unsigned registers() const { return rows() * columns() / (32 * per_register()); }

  constexpr Block block(unsigned index) const {
    if (role == Role::c) {
      const unsigned element = index * per_register();
      const TilePosition position = tile(element / 2, shape.n / 8u);
      return {8 * position.line, 8 * position.along + element % 2};
    }
    const unsigned width = 4 * per_register();
    const TilePosition position =
        role == Role::b ? divide(index, shape.k / width) : tile(index, shape.k / width);
    return {8 * position.line, width * position.along};
  }

  // Of an element of a lane, counted from the lowest bits of the first register on.
  constexpr MatrixPosition position(unsigned lane, unsigned element) const {
    const Block at = block(element / per_register());
    const unsigned line = at.line + lane / 4;
    const unsigned along = at.first + lane % 4 * step() + element % per_register();
    return role == Role::b ? MatrixPosition{along, line} : MatrixPosition{line, along};
  }

 private:
  struct TilePosition {
    unsigned line = 0;
    unsigned along = 0;
  };
  // Blocks are as many as a power of two, in every shape.
  static constexpr TilePosition divide(unsigned index, unsigned blocks) {
    return {index >> std::countr_zero(blocks), index & (blocks - 1)};
  }
  // Blocks of 8 rows come in pairs, one below the other: matrices of 16 rows are what the hardware
  // multiplies.
  constexpr TilePosition tile(unsigned index, unsigned blocks) const {
    if (shape.m == 8) return {0, index};
    const TilePosition pair = divide(index / 2, blocks);
    return {2 * pair.line + index % 2, pair.along};
  }
};

// mma.m8n8k4 with .f16 is four multiplications at once, each done by lanes 4 * q … 4 * q + 3 and the four
// that are 16 further on. Where such a lane has its elements; `row_major` is the layout that the instruction
// names.
struct QuadPair {
  static constexpr unsigned computation(unsigned lane) { return lane / 4 % 4; }
  static constexpr MatrixPosition a(unsigned lane, unsigned element, bool row_major) {
    const unsigned high = lane / 16 * 4;
    return row_major ? MatrixPosition{lane % 4 + high, element} : MatrixPosition{element + high, lane % 4};
  }
  static constexpr MatrixPosition b(unsigned lane, unsigned element, bool row_major) {
    const unsigned high = lane / 16 * 4;
    return row_major ? MatrixPosition{lane % 4, element + high} : MatrixPosition{element, lane % 4 + high};
  }
  static constexpr MatrixPosition c_f16(unsigned lane, unsigned element) {
    return {lane % 4 + lane / 16 * 4, element};
  }
  static constexpr MatrixPosition c_f32(unsigned lane, unsigned element) {
    return {(lane & 1) + (element & 2) + lane / 16 * 4, (element & 4) + (lane & 2) + (element & 1)};
  }
};

}  // namespace manyscale::gpu
