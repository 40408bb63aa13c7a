// SPDX-License-Identifier: Apache-2.0
// Matrix fragments against the tables of the PTX ISA, "Matrix Fragments for mma.m…", written down one by one.
#include <set>
#include <utility>

#include "gpu/exec/fragments.hpp"
#include "test_checks.hpp"

using namespace manyscale::gpu;

namespace {

void check(bool condition, const char* what, unsigned lane, unsigned element) {
  if (condition) {
    ++manyscale::test::passed;
    return;
  }
  manyscale::test::check(
      false, std::string(what) + ", lane " + std::to_string(lane) + ", element " + std::to_string(element));
}

using Formula = MatrixPosition (*)(unsigned group, unsigned thread, unsigned i);

// `elements` are those of one lane. Each element of the matrix must be somewhere, and only once.
void compare(const char* what, Fragment fragment, unsigned elements, Formula formula) {
  check(fragment.registers() * fragment.per_register() == elements, what, 0, 0);
  std::set<std::pair<unsigned, unsigned>> seen;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < elements; ++i) {
      const MatrixPosition position = fragment.position(lane, i);
      if (formula != nullptr) check(position == formula(lane >> 2, lane % 4, i), what, lane, i);
      check(position.row < fragment.rows() && position.column < fragment.columns(), what, lane, i);
      seen.insert({position.row, position.column});
    }
  check(seen.size() == fragment.rows() * fragment.columns(), what, 0, 0);
}

TEST(accumulators_of_eight_columns) {
  const Formula rows_8 = [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{g, t * 2 + i}; };
  const Formula rows_16 = [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i < 2 ? g : g + 8, t * 2 + (i & 1)};
  };
  compare("m8n8k16 C", {Role::c, {8, 8, 16}, 32}, 2, rows_8);
  compare("m8n8k4 C f64", {Role::c, {8, 8, 4}, 64}, 2, rows_8);
  compare("m16n8k16 C f32", {Role::c, {16, 8, 16}, 32}, 4, rows_16);
  compare("m16n8k16 C f16", {Role::c, {16, 8, 16}, 16}, 4, rows_16);
  compare("m16n8k16 C f64", {Role::c, {16, 8, 16}, 64}, 4, rows_16);
}

TEST(multiplicands_of_16_bits) {
  compare("m16n8k8 A f16", {Role::a, {16, 8, 8}, 16}, 4, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i < 2 ? g : g + 8, t * 2 + (i & 1)};
  });
  compare("m16n8k8 B f16", {Role::b, {16, 8, 8}, 16}, 2,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{t * 2 + i, g}; });
  compare("m16n8k16 A f16", {Role::a, {16, 8, 16}, 16}, 8, [](unsigned g, unsigned t, unsigned i) {
    const bool low = i < 2 || (4 <= i && i < 6);
    return MatrixPosition{low ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  });
  compare("m16n8k16 B f16", {Role::b, {16, 8, 16}, 16}, 4, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
  });
}

TEST(multiplicands_of_32_and_64_bits) {
  const Formula a_4 = [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i == 0 ? g : g + 8, t};
  };
  const Formula a_8 = [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
  };
  const Formula b_4 = [](unsigned g, unsigned t, unsigned) { return MatrixPosition{t, g}; };
  const Formula b_8 = [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i == 0 ? t : t + 4, g};
  };
  compare("m16n8k4 A tf32", {Role::a, {16, 8, 4}, 32}, 2, a_4);
  compare("m16n8k4 B tf32", {Role::b, {16, 8, 4}, 32}, 1, b_4);
  compare("m16n8k8 A tf32", {Role::a, {16, 8, 8}, 32}, 4, a_8);
  compare("m16n8k8 B tf32", {Role::b, {16, 8, 8}, 32}, 2, b_8);
  compare("m8n8k4 A f64", {Role::a, {8, 8, 4}, 64}, 1,
          [](unsigned g, unsigned t, unsigned) { return MatrixPosition{g, t}; });
  compare("m8n8k4 B f64", {Role::b, {8, 8, 4}, 64}, 1, b_4);
  compare("m16n8k4 A f64", {Role::a, {16, 8, 4}, 64}, 2, a_4);
  compare("m16n8k8 A f64", {Role::a, {16, 8, 8}, 64}, 4, a_8);
  compare("m16n8k16 A f64", {Role::a, {16, 8, 16}, 64}, 8, [](unsigned g, unsigned t, unsigned i) {
    return i % 2 == 0 ? MatrixPosition{g, i * 2 + t} : MatrixPosition{g + 8, i * 2 - 2 + t};
  });
  compare("m16n8k16 B f64", {Role::b, {16, 8, 16}, 64}, 4,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{t + i * 4, g}; });
}

TEST(multiplicands_of_8_bits) {
  compare("m8n8k16 A s8", {Role::a, {8, 8, 16}, 8}, 4,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{g, t * 4 + i}; });
  compare("m8n8k16 B s8", {Role::b, {8, 8, 16}, 8}, 4,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{t * 4 + i, g}; });
  compare("m16n8k16 A s8", {Role::a, {16, 8, 16}, 8}, 8, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i < 4 ? g : g + 8, t * 4 + (i & 3)};
  });
  compare("m16n8k32 A s8", {Role::a, {16, 8, 32}, 8}, 16, [](unsigned g, unsigned t, unsigned i) {
    const bool low = i < 4 || (8 <= i && i < 12);
    return MatrixPosition{low ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  });
  compare("m16n8k32 B s8", {Role::b, {16, 8, 32}, 8}, 8, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
  });
}

TEST(multiplicands_of_less_than_a_byte) {
  compare("m8n8k32 A s4", {Role::a, {8, 8, 32}, 4}, 8,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{g, t * 8 + i}; });
  compare("m16n8k32 A s4", {Role::a, {16, 8, 32}, 4}, 16, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i < 8 ? g : g + 8, t * 8 + (i & 7)};
  });
  compare("m16n8k64 A s4", {Role::a, {16, 8, 64}, 4}, 32, [](unsigned g, unsigned t, unsigned i) {
    const bool low = i < 8 || (16 <= i && i < 24);
    return MatrixPosition{low ? g : g + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
  });
  compare("m16n8k64 B s4", {Role::b, {16, 8, 64}, 4}, 16, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g};
  });
  compare("m8n8k128 A b1", {Role::a, {8, 8, 128}, 1}, 32,
          [](unsigned g, unsigned t, unsigned i) { return MatrixPosition{g, t * 32 + i}; });
  compare("m16n8k128 A b1", {Role::a, {16, 8, 128}, 1}, 64, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{i < 32 ? g : g + 8, t * 32 + (i & 31)};
  });
  compare("m16n8k256 A b1", {Role::a, {16, 8, 256}, 1}, 128, [](unsigned g, unsigned t, unsigned i) {
    const bool low = i < 32 || (64 <= i && i < 96);
    return MatrixPosition{low ? g : g + 8, t * 32 + (i & 31) + (i >= 64 ? 128 : 0)};
  });
  compare("m16n8k256 B b1", {Role::b, {16, 8, 256}, 1}, 64, [](unsigned g, unsigned t, unsigned i) {
    return MatrixPosition{t * 32 + (i & 31) + (i >= 32 ? 128 : 0), g};
  });
}

// What is known of hardware, for programs that look into fragments of wmma.
TEST(wmma_is_two_multiplications_of_eight_columns) {
  compare("m16n16k16 A", {Role::a, {16, 16, 16}, 16}, 8, [](unsigned g, unsigned t, unsigned x) {
    return MatrixPosition{g + (x & 2) * 4, t * 2 + (x & 1) + (x & 4) * 2};
  });
  compare("m16n16k16 B", {Role::b, {16, 16, 16}, 16}, 8, [](unsigned g, unsigned t, unsigned x) {
    return MatrixPosition{t * 2 + (x & 1) + (x & 2) * 4, g + (x & 4) * 2};
  });
  compare("m16n16k16 C", {Role::c, {16, 16, 16}, 32}, 8, [](unsigned g, unsigned t, unsigned x) {
    return MatrixPosition{g + (x & 2) * 4, t * 2 + (x & 1) + (x & 4) * 2};
  });
  compare("m16n16k8 B tf32", {Role::b, {16, 16, 8}, 32}, 4, [](unsigned g, unsigned t, unsigned x) {
    return MatrixPosition{t + (x & 1) * 4, g + (x & 2) * 4};
  });
  for (const MatrixShape shape : {MatrixShape{32, 8, 16}, MatrixShape{8, 32, 16}}) {
    for (const unsigned bits : {8u, 16u}) {
      const unsigned lane_bits = 32 / bits;
      compare("wmma A", {Role::a, shape, bits}, shape.m * shape.k / (32 * lane_bits) * lane_bits, nullptr);
      compare("wmma B", {Role::b, shape, bits}, shape.n * shape.k / (32 * lane_bits) * lane_bits, nullptr);
    }
    compare("wmma C", {Role::c, shape, 32}, 8, nullptr);
    compare("wmma C f16", {Role::c, shape, 16}, 8, nullptr);
  }
}

// Each of the four multiplications has all of its elements.
TEST(quad_pairs_hold_four_multiplications) {
  std::set<std::pair<unsigned, unsigned>> a[2][4], b[2][4], c[2][4];
  const auto add = [](auto& seen, MatrixPosition position) { seen.insert({position.row, position.column}); };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned q = QuadPair::computation(lane);
    check(q == (lane % 16) / 4, "quad pair", lane, 0);
    for (unsigned row_major = 0; row_major < 2; ++row_major)
      for (unsigned i = 0; i < 4; ++i) {
        add(a[row_major][q], QuadPair::a(lane, i, row_major));
        add(b[row_major][q], QuadPair::b(lane, i, row_major));
      }
    for (unsigned i = 0; i < 8; ++i) {
      add(c[0][q], QuadPair::c_f16(lane, i));
      add(c[1][q], QuadPair::c_f32(lane, i));
      const unsigned x = (lane & 1) + (i & 2);
      const MatrixPosition expected{lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
      check(QuadPair::c_f32(lane, i) == expected, "m8n8k4 C f32", lane, i);
    }
  }
  for (unsigned kind = 0; kind < 2; ++kind)
    for (unsigned q = 0; q < 4; ++q)
      check(a[kind][q].size() == 32 && b[kind][q].size() == 32 && c[kind][q].size() == 64, "m8n8k4", q, kind);
}

}  // namespace
