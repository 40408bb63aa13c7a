// SPDX-License-Identifier: Apache-2.0
// Floating point: the host's arithmetic (dynamic rounding mode) and the one in integers (rounding mode in the
// instruction) must agree bit by bit and flag by flag; what only one of them does has values from the manual.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/random.hpp"
#include "test_riscv.hpp"

using manyscale::Random;
using namespace manyscale::test;

namespace {

using u64 = std::uint64_t;
constexpr u64 boxed(std::uint32_t bits) {
  return 0xffffffff00000000 | bits;
}
constexpr u64 boxed(float value) {
  return boxed(std::bit_cast<std::uint32_t>(value));
}
constexpr u64 bits_of(double value) {
  return std::bit_cast<u64>(value);
}
constexpr u64 nan64 = 0x7ff8000000000000, signaling64 = 0x7ff0000000000001;
constexpr std::uint32_t nan32 = 0x7fc00000, signaling32 = 0x7f800001;
constexpr std::uint8_t NX = FloatFlag::inexact, UF = FloatFlag::underflow, OF = FloatFlag::overflow,
                       DZ = FloatFlag::divide_by_zero, NV = FloatFlag::invalid;

struct Outcome {
  u64 bits;
  std::uint32_t flags;
};

// Executes instructions `name` on f1, f2, f3 (or x11) into f0 (or x10), one at a time.
class FloatMachine {
 public:
  Outcome run(std::string_view name, const std::array<u64, 3>& operands, std::uint32_t rounding_field,
              std::uint32_t frm) {
    const Row& row = row_named(name);
    const Shape& shape = *row.shape;
    std::uint32_t word = row.encoding.match | (shape.rd == File::integer ? a0 : 0) << 7;
    word |= (shape.rs1 == File::integer ? a1 : 1) << 15;
    if (shape.rs2 != File::none) word |= 2 << 20;
    if (shape.rs3 != File::none) word |= 3 << 27;
    if (shape.rounds) word |= rounding_field << 12;
    if (word != word_) {
      process_.put({word});
      word_ = word;
    }
    Hart& hart = process_.hart;
    hart.pc = TestProcess::code;
    hart.fcsr = frm << 5;
    for (unsigned i = 0; i < 3; ++i) hart.f[i + 1] = operands[i];
    hart.x[a1] = operands[0];
    check(process_.interpreter.run(hart, 1) == Stop::budget, std::string(name) + " runs");
    return {shape.rd == File::integer ? hart.x[a0] : hart.f[0], hart.fcsr & 31};
  }

 private:
  TestProcess process_;
  std::uint32_t word_ = 0;
};

// Numbers at which arithmetic has corners, and random ones near each other.
u64 operand(std::string_view name, Random& random) {
  const bool from_integer = row_named(name).shape->rs1 == File::integer;
  const bool wide = row_named(name).format == 8 && name != "fcvt.d.s";
  const u64 bits = random.next();
  if (from_integer) return bits >> (bits & 63);
  static constexpr double corners[] = {0.0,
                                       1.0,
                                       1.5,
                                       2.0,
                                       0.5,
                                       3.0,
                                       1e300,
                                       1e-300,
                                       5e-324,
                                       2.2250738585072014e-308,
                                       1.7976931348623157e308,
                                       4294967295.5,
                                       4294967296.0,
                                       2147483647.5,
                                       9223372036854775807.0,
                                       18446744073709551615.0,
                                       0.49999999999999994,
                                       std::numeric_limits<double>::infinity(),
                                       1.1754943508222875e-38,
                                       1.4e-45,
                                       3.4028234663852886e38};
  switch (bits & 7) {
    case 0:
    case 1: {
      const double value =
          std::copysign(corners[(bits >> 8) % std::size(corners)], bits >> 4 & 1 ? -1.0 : 1.0);
      return wide ? bits_of(value) : boxed(static_cast<float>(value));
    }
    case 2:
      return wide ? (bits & 8 ? nan64 : signaling64) : boxed(bits & 8 ? nan32 : signaling32);
    case 3:  // subnormal, or the smallest normal numbers
      return wide ? (bits & 0x801fffffffffffff) : boxed(static_cast<std::uint32_t>(bits >> 32) & 0x80ffffff);
    case 4:
    case 5: {  // few significant bits, exponents near 1: exact results and ties
      const u64 high = bits >> 8 & 0xf;
      return wide ? (bits & u64{1} << 63) | (1019 + high) << 52 | (bits >> 16 & 0x7) << 49 | (bits >> 20 & 1)
                  : boxed(static_cast<std::uint32_t>((bits >> 63) << 31 | (123 + high) << 23 |
                                                     (bits >> 16 & 0x7) << 20 | (bits >> 20 & 1)));
    }
    default:
      return wide ? bits : boxed(static_cast<std::uint32_t>(bits >> 32));
  }
}

TEST(host_and_integers_agree) {
  FloatMachine machine;
  Random random(11, 0);
  long compared = 0;
  for (const Row& row : instruction_rows()) {
    if (!row.shape->rounds) continue;
    for (std::uint32_t rounding = 0; rounding < 4; ++rounding) {
      // The instruction's bits stay the same for many operands, so that decoding does not dominate.
      std::vector<std::array<u64, 3>> operands(1500);
      for (auto& each : operands)
        each = {operand(row.name, random), operand(row.name, random), operand(row.name, random)};
      std::vector<Outcome> host;
      for (const auto& each : operands)
        host.push_back(machine.run(row.name, each, Rounding::dynamic, rounding));
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const Outcome found = machine.run(row.name, operands[i], rounding, 4);
        ++compared;
        if (found.bits == host[i].bits && found.flags == host[i].flags) continue;
        check(false, std::string(row.name) + " rounding " + std::to_string(rounding) + " of " +
                         hexadecimal(operands[i][0]) + " " + hexadecimal(operands[i][1]) + " " +
                         hexadecimal(operands[i][2]) + ": integers " + hexadecimal(found.bits) + "/" +
                         std::to_string(found.flags) + ", host " + hexadecimal(host[i].bits) + "/" +
                         std::to_string(host[i].flags));
        return;
      }
    }
  }
  check(compared > 200'000, "many were compared");
}

struct Case {
  std::string_view name;
  std::array<u64, 3> operands;
  std::uint32_t rounding;
  u64 expected;
  std::uint32_t flags;
};

TEST(known_values) {
  const u64 one = bits_of(1.0), tiny = bits_of(0x1p-53), infinity = bits_of(INFINITY);
  const std::uint32_t rne = 0, rtz = 1, rdn = 2, rup = 3, rmm = 4;
  const u64 minus_zero = bits_of(-0.0);
  const std::vector<Case> cases = {
      // 1 + 2^-53 is a tie: even is 1, away is the number above.
      {"fadd.d", {one, tiny}, rne, one, NX},
      {"fadd.d", {one, tiny}, rmm, one + 1, NX},
      {"fadd.d", {one, tiny}, rup, one + 1, NX},
      {"fadd.d", {bits_of(-1.0), bits_of(-0x1p-53)}, rmm, bits_of(-1.0) + 1, NX},
      {"fadd.s", {boxed(1.0F), boxed(0x1p-24F)}, rmm, boxed(1.0F) + 1, NX},
      {"fadd.s", {boxed(1.0F), boxed(0x1.fffffep-25F)}, rmm, boxed(1.0F), NX},
      {"fmul.d", {bits_of(0x1.0000000000001p0), bits_of(1.5)}, rmm, bits_of(0x1.8000000000002p0), NX},
      {"fmul.d", {bits_of(0x1.0000000000001p0), bits_of(1.5)}, rtz, bits_of(0x1.8000000000001p0), NX},
      {"fmadd.d", {one, one, tiny}, rmm, one + 1, NX},
      {"fnmadd.d", {one, one, tiny}, rmm, bits_of(-1.0) + 1, NX},
      {"fcvt.s.d", {bits_of(0x1.000001p0)}, rmm, boxed(0x1.000002p0F), NX},
      {"fcvt.s.d", {bits_of(0x1.000001p0)}, rne, boxed(1.0F), NX},
      {"fcvt.d.l", {(u64{1} << 53) + 1}, rmm, bits_of(0x1p53 + 2), NX},
      {"fcvt.w.d", {bits_of(2.5)}, rne, 2, NX},
      {"fcvt.w.d", {bits_of(2.5)}, rmm, 3, NX},
      {"fcvt.w.d", {bits_of(-2.5)}, rmm, u64{0} - 3, NX},
      {"fcvt.w.d", {bits_of(-2.5)}, rdn, u64{0} - 3, NX},
      // Exact zero sums are -0 only downwards.
      {"fsub.d", {one, one}, rne, 0, 0},
      {"fsub.d", {one, one}, rdn, minus_zero, 0},
      {"fadd.d", {minus_zero, minus_zero}, rne, minus_zero, 0},
      // Overflow, underflow (tiny after rounding), division by zero, invalid.
      {"fmul.d", {bits_of(0x1p1023), bits_of(2.0)}, rne, infinity, OF | NX},
      {"fmul.d", {bits_of(0x1p1023), bits_of(2.0)}, rtz, infinity - 1, OF | NX},
      {"fmul.d", {3, bits_of(0.5)}, rne, 2, UF | NX},
      {"fmul.d", {bits_of(0x1.fffffffffffffp-1), bits_of(0x1p-1022)}, rne, bits_of(0x1p-1022), UF | NX},
      {"fmul.d", {bits_of(0x1p-1022), bits_of(0.5)}, rne, bits_of(0x1p-1023), 0},
      {"fdiv.d", {one, minus_zero}, rne, bits_of(-INFINITY), DZ},
      {"fdiv.d", {0, 0}, rne, nan64, NV},
      {"fdiv.s", {boxed(1.0F), boxed(3.0F)}, rne, boxed(0x1.555556p-2F), NX},
      {"fsqrt.d", {bits_of(2.0)}, rne, bits_of(0x1.6a09e667f3bcdp0), NX},
      {"fsqrt.d", {bits_of(-1.0)}, rne, nan64, NV},
      {"fsqrt.d", {minus_zero}, rne, minus_zero, 0},
      {"fadd.d", {signaling64, one}, rne, nan64, NV},
      {"fadd.d", {0xfff8000000001234, one}, rne, nan64, 0},
      {"fmadd.d", {infinity, 0, nan64}, rne, nan64, NV},
      {"fmadd.d", {infinity, one, bits_of(-INFINITY)}, rne, nan64, NV},
      {"fmadd.d", {bits_of(0x1p-1074), bits_of(0x1p-1074), one}, rup, one + 1, NX},
      // A single that is not boxed is NaN; a move does not look at the box.
      {"fadd.s", {bits_of(1.0), boxed(1.0F)}, rne, boxed(nan32), 0},
      {"fmv.x.w", {0x12345678'80000001}, rne, 0xffffffff80000001, 0},
      {"fsgnj.s", {0x3f800000, boxed(-1.0F)}, rne, boxed(0xffc00000), 0},
      {"fsgnjn.d", {one, one}, rne, bits_of(-1.0), 0},
      {"fsgnjx.d", {bits_of(-1.0), bits_of(-2.0)}, rne, one, 0},
      // Minimum and maximum.
      {"fmin.d", {0, minus_zero}, rne, minus_zero, 0},
      {"fmax.d", {minus_zero, 0}, rne, 0, 0},
      {"fmin.d", {nan64, one}, rne, one, 0},
      {"fmax.d", {one, signaling64}, rne, one, NV},
      {"fmax.d", {0xfff8000000000001, nan64}, rne, nan64, 0},
      // Comparisons.
      {"feq.d", {nan64, one}, rne, 0, 0},
      {"feq.d", {signaling64, one}, rne, 0, NV},
      {"feq.d", {0, minus_zero}, rne, 1, 0},
      {"flt.d", {nan64, one}, rne, 0, NV},
      {"fle.d", {one, one}, rne, 1, 0},
      {"flt.s", {boxed(-1.0F), boxed(1.0F)}, rne, 1, 0},
      // Conversions saturate; results of 32 bits are sign-extended.
      {"fcvt.w.d", {bits_of(2147483648.0)}, rtz, 0x7fffffff, NV},
      {"fcvt.w.d", {bits_of(2147483647.5)}, rtz, 0x7fffffff, NX},
      {"fcvt.w.d", {bits_of(2147483647.5)}, rne, 0x7fffffff, NV},
      {"fcvt.w.d", {nan64}, rtz, 0x7fffffff, NV},
      {"fcvt.w.d", {bits_of(-INFINITY)}, rtz, 0xffffffff80000000, NV},
      {"fcvt.wu.d", {bits_of(4294967295.0)}, rtz, ~u64{0}, 0},
      {"fcvt.wu.d", {bits_of(-0.75)}, rtz, 0, NX},
      {"fcvt.wu.d", {bits_of(-1.0)}, rtz, 0, NV},
      {"fcvt.wu.d", {nan64}, rtz, ~u64{0}, NV},
      {"fcvt.l.d", {bits_of(0x1p63)}, rtz, 0x7fffffffffffffff, NV},
      {"fcvt.l.d", {bits_of(-0x1p63)}, rtz, u64{1} << 63, 0},
      {"fcvt.lu.d", {bits_of(0x1p63)}, rtz, u64{1} << 63, 0},
      {"fcvt.lu.d", {bits_of(0x1p64)}, rtz, ~u64{0}, NV},
      {"fcvt.lu.s", {boxed(-0.5F)}, rdn, 0, NV},
      {"fcvt.d.lu", {~u64{0}}, rtz, bits_of(0x1.fffffffffffffp63), NX},
      {"fcvt.s.w", {0xffffffff}, rne, boxed(-1.0F), 0},
      {"fcvt.d.wu", {0xffffffff80000000}, rne, bits_of(2147483648.0), 0},
      {"fcvt.d.s", {boxed(signaling32)}, rne, nan64, NV},
      // Classes.
      {"fclass.d", {bits_of(-INFINITY)}, rne, 1 << 0, 0},
      {"fclass.d", {bits_of(-1.0)}, rne, 1 << 1, 0},
      {"fclass.d", {bits_of(-5e-324)}, rne, 1 << 2, 0},
      {"fclass.d", {minus_zero}, rne, 1 << 3, 0},
      {"fclass.d", {0}, rne, 1 << 4, 0},
      {"fclass.d", {1}, rne, 1 << 5, 0},
      {"fclass.d", {one}, rne, 1 << 6, 0},
      {"fclass.d", {infinity}, rne, 1 << 7, 0},
      {"fclass.d", {signaling64}, rne, 1 << 8, 0},
      {"fclass.s", {0}, rne, 1 << 9, 0},
  };
  FloatMachine machine;
  for (const Case& each : cases) {
    for (const bool is_dynamic : {false, true}) {
      const Outcome found =
          machine.run(each.name, each.operands, is_dynamic ? Rounding::dynamic : each.rounding,
                      is_dynamic ? each.rounding : 0);
      const std::string what = std::string(each.name) + " of " + hexadecimal(each.operands[0]) + " and " +
                               hexadecimal(each.operands[1]) + ", rounding " + std::to_string(each.rounding) +
                               (is_dynamic ? " dynamic" : "");
      check_bits(found.bits, each.expected, what);
      check_equal(found.flags, each.flags, "flags of " + what);
    }
  }
}

TEST(wrong_rounding_modes_are_illegal) {
  for (const std::uint32_t frm : {5U, 6U, 7U}) {
    TestProcess process({encode("fadd.d", 0, 1, 2) | 7 << 12});
    process.hart.fcsr = frm << 5;
    check(process.interpreter.run(process.hart, 1) == Stop::fault &&
              process.interpreter.fault().cause == Fault::Cause::illegal,
          "dynamic rounding with frm " + std::to_string(frm));
  }
}

// Flags stay until they are cleared, over many instructions and calls, and the host's own are left alone.
TEST(flags_accrue) {
  TestProcess process({encode("fdiv.d", 0, 1, 2) | 7 << 12, encode("fadd.d", 3, 1, 4) | 7 << 12,
                       encode_i("csrrwi", a0, 0, ControlRegister::fflags),
                       encode("fadd.d", 3, 1, 1) | 7 << 12});
  process.hart.f[1] = bits_of(1.0);
  process.hart.f[4] = bits_of(0x1p-60);
  process.interpreter.run(process.hart, 1);
  check_equal(process.hart.fcsr & 31, DZ, "division by zero is seen between calls");
  process.interpreter.run(process.hart, 3);
  check_bits(process.hart.x[a0], DZ | NX, "flags of both");
  check_equal(process.hart.fcsr & 31, 0, "cleared");
}

}  // namespace
