// SPDX-License-Identifier: Apache-2.0
// What integer instructions, loads, stores and atomics do, from values worked out by hand.
#include <cstring>
#include <vector>

#include "test_riscv.hpp"

using namespace manyscale::test;

namespace {

using u64 = std::uint64_t;
constexpr u64 minus_one = ~u64{0}, smallest = u64{1} << 63, largest = smallest - 1;
constexpr u64 smallest_word = 0xffffffff80000000;

// a0 after `name a0, a1, a2`.
u64 binary(std::string_view name, u64 first, u64 second) {
  TestProcess process({encode(name, a0, a1, a2)});
  process.hart.x[a1] = first;
  process.hart.x[a2] = second;
  check(process.interpreter.run(process.hart, 1) == Stop::budget, std::string(name) + " runs");
  check_bits(process.hart.pc, TestProcess::code + 4, std::string(name) + " goes on");
  return process.hart.x[a0];
}

// a0 after `name a0, a1, immediate`.
u64 with_immediate(std::string_view name, u64 first, std::int32_t immediate) {
  TestProcess process({encode_i(name, a0, a1, immediate)});
  process.hart.x[a1] = first;
  check(process.interpreter.run(process.hart, 1) == Stop::budget, std::string(name) + " runs");
  return process.hart.x[a0];
}

struct Binary {
  std::string_view name;
  u64 first, second, expected;
};

TEST(arithmetic) {
  constexpr Binary cases[] = {
      {"add", minus_one, 2, 1},
      {"sub", 0, 1, minus_one},
      {"sll", 1, 63 + 64, smallest},
      {"srl", smallest, 63, 1},
      {"sra", smallest, 63, minus_one},
      {"slt", minus_one, 0, 1},
      {"sltu", minus_one, 0, 0},
      {"xor", 0xff00, 0x0ff0, 0xf0f0},
      {"or", 0xff00, 0x0ff0, 0xfff0},
      {"and", 0xff00, 0x0ff0, 0x0f00},
      {"addw", 0x7fffffff, 1, smallest_word},
      {"subw", 0, 0x80000000, smallest_word},
      {"sllw", 0x100000001, 31 + 32, smallest_word},
      {"srlw", 0xffffffff80000000, 31, 1},
      {"sraw", 0x80000000, 4, 0xfffffffff8000000},
      {"mul", 0x100000001, 0x100000001, 0x200000001},
      {"mulh", minus_one, minus_one, 0},
      {"mulh", smallest, smallest, u64{1} << 62},
      {"mulhu", minus_one, minus_one, minus_one - 1},
      {"mulhsu", minus_one, minus_one, minus_one},
      {"mulhsu", 2, minus_one, 1},
      {"mulw", 0x10000, 0x8000, smallest_word},
      {"div", u64{0} - 7, 2, u64{0} - 3},
      {"div", 5, 0, minus_one},
      {"div", smallest, minus_one, smallest},
      {"divu", minus_one, 2, largest},
      {"divu", 5, 0, minus_one},
      {"rem", u64{0} - 7, 2, minus_one},
      {"rem", 5, 0, 5},
      {"rem", smallest, minus_one, 0},
      {"remu", minus_one, 10, 5},
      {"remu", 5, 0, 5},
      {"divw", 0x80000000, minus_one, smallest_word},
      {"divw", 7, 0x100000000, minus_one},
      {"divuw", 0x80000000, 1, smallest_word},
      {"divuw", 0x80000000, 0, minus_one},
      {"remw", 0x80000000, minus_one, 0},
      {"remw", 0xfffffff9, 0, u64{0} - 7},
      {"remuw", 0xffffffff, 0, minus_one},
      {"remuw", 0xffffffff, 16, 15},
      {"add.uw", 0xffffffff00000001, 5, 6},
      {"sh1add", 3, 100, 106},
      {"sh2add", 3, 100, 112},
      {"sh3add", 3, 100, 124},
      {"sh3add.uw", 0xffffffff00000003, 100, 124},
      {"andn", 0xff, 0x0f, 0xf0},
      {"orn", 0, 0, minus_one},
      {"xnor", 5, 5, minus_one},
      {"max", minus_one, 1, 1},
      {"maxu", minus_one, 1, minus_one},
      {"min", minus_one, 1, minus_one},
      {"minu", minus_one, 1, 1},
      {"rol", smallest, 1, 1},
      {"ror", 1, 1, smallest},
      {"rolw", 0x80000000, 1, 1},
      {"rorw", 1, 1, smallest_word},
      {"bclr", minus_one, 63, largest},
      {"bext", smallest, 63, 1},
      {"binv", 5, 0, 4},
      {"bset", 0, 63, smallest},
      {"czero.eqz", 7, 0, 0},
      {"czero.eqz", 7, 1, 7},
      {"czero.nez", 7, 1, 0},
      {"czero.nez", 7, 0, 7},
      {"clz", 1, 0, 63},
      {"clz", 0, 0, 64},
      {"ctz", smallest, 0, 63},
      {"cpop", minus_one, 0, 64},
  };
  for (const auto& [name, first, second, expected] : cases) {
    // Instructions of one source have the bits of the second fixed.
    const bool unary = row_named(name).shape->rs2 == File::none;
    TestProcess process({unary ? encode(name, a0, a1) : encode(name, a0, a1, a2)});
    const u64 found = unary ? with_immediate(name, first, 0) : binary(name, first, second);
    check_bits(found, expected,
               std::string(name) + " of " + hexadecimal(first) + " and " + hexadecimal(second));
  }
  constexpr struct {
    std::string_view name;
    u64 first;
    u64 expected;
  } unary[] = {{"clzw", 1, 31},
               {"ctzw", smallest, 32},
               {"cpopw", minus_one, 32},
               {"sext.b", 0x80, minus_one - 127},
               {"sext.h", 0x18000, 0xffffffffffff8000},
               {"zext.h", minus_one, 0xffff},
               {"orc.b", 0x0100200000000080, 0xff00ff00000000ff},
               {"rev8", 0x0102030405060708, 0x0807060504030201}};
  for (const auto& [name, first, expected] : unary) {
    check_bits(with_immediate(name, first, 0), expected, std::string(name) + " of " + hexadecimal(first));
  }
}

TEST(immediates) {
  check_bits(with_immediate("addi", 5, -6), minus_one, "addi");
  check_bits(with_immediate("slti", minus_one, 0), 1, "slti");
  check_bits(with_immediate("sltiu", 5, -1), 1, "sltiu compares with the extended immediate");
  check_bits(with_immediate("xori", 0, -1), minus_one, "xori");
  check_bits(with_immediate("ori", 0x800, 0x7ff), 0xfff, "ori");
  check_bits(with_immediate("andi", minus_one, -2048), minus_one - 2047, "andi");
  check_bits(with_immediate("slli", 1, 63), smallest, "slli");
  check_bits(with_immediate("srli", minus_one, 63), 1, "srli");
  check_bits(with_immediate("srai", smallest, 62), minus_one - 1, "srai");
  check_bits(with_immediate("addiw", 0x7fffffff, 1), smallest_word, "addiw");
  check_bits(with_immediate("slliw", 1, 31), smallest_word, "slliw");
  check_bits(with_immediate("srliw", minus_one, 31), 1, "srliw");
  check_bits(with_immediate("sraiw", 0x80000000, 31), minus_one, "sraiw");
  check_bits(with_immediate("slli.uw", minus_one, 4), 0xffffffff0, "slli.uw");
  check_bits(with_immediate("rori", 1, 4), u64{1} << 60, "rori");
  check_bits(with_immediate("roriw", 1, 1), smallest_word, "roriw");
  check_bits(with_immediate("bseti", 0, 40), u64{1} << 40, "bseti");
  check_bits(with_immediate("bclri", minus_one, 0), minus_one - 1, "bclri");
  check_bits(with_immediate("binvi", 0, 1), 2, "binvi");
  check_bits(with_immediate("bexti", 8, 3), 1, "bexti");
  // lui a0, 0x80000; auipc a1, 1
  TestProcess process({0x80000537, 0x00001597});
  process.interpreter.run(process.hart, 2);
  check_bits(process.hart.x[a0], smallest_word, "lui");
  check_bits(process.hart.x[a1], TestProcess::code + 4 + 0x1000, "auipc");
}

TEST(zero_stays_zero) {
  TestProcess process({encode_i("addi", zero, zero, 5), encode("mul", zero, a1, a1),
                       encode_i("ld", zero, a2, 0), encode("amoadd.d", zero, a2, a1),
                       encode("feq.d", zero, 0, 0), encode("add", a0, zero, zero)});
  process.hart.x[a0] = process.hart.x[a1] = 3;
  process.hart.x[a2] = TestProcess::data;
  process.memory.write(TestProcess::data, &minus_one, 8);
  check(process.interpreter.run(process.hart, 6) == Stop::budget, "writes to x0 run");
  check_bits(process.hart.x[0], 0, "x0");
  check_bits(process.hart.x[a0], 0, "a0 read it");
}

// The loads' extensions, and accesses of every size that cross pages.
TEST(loads_and_stores) {
  for (const u64 at : {TestProcess::data, TestProcess::data + page_bytes - 3}) {
    const std::string where = at == TestProcess::data ? "" : " across pages";
    constexpr struct {
      std::string_view store, load;
      u64 expected;
    } cases[] = {{"sb", "lb", 0xffffffffffffff89}, {"sb", "lbu", 0x89},
                 {"sh", "lh", 0xffffffffffffab89}, {"sh", "lhu", 0xab89},
                 {"sw", "lw", 0xffffffffefcdab89}, {"sw", "lwu", 0xefcdab89},
                 {"sd", "ld", 0x89674523efcdab89}};
    for (const auto& [store, load, expected] : cases) {
      TestProcess process({encode_s(store, a1, a2, 16), encode_i(load, a0, a2, 16)});
      process.hart.x[a1] = 0x89674523efcdab89;
      process.hart.x[a2] = at - 16;
      check(process.interpreter.run(process.hart, 2) == Stop::budget, std::string(store) + where + " runs");
      check_bits(process.hart.x[a0], expected, std::string(store) + ", " + std::string(load) + where);
      u64 found = 0;
      process.memory.read(at, &found, 8);
      const unsigned bits = 8 * row_named(store).size;
      check_bits(found, bits == 64 ? process.hart.x[a1] : process.hart.x[a1] & ((u64{1} << bits) - 1),
                 std::string(store) + where + " writes so many bytes");
    }
  }
}

TEST(atomics) {
  constexpr struct {
    std::string_view name;
    u64 memory, operand, expected;
  } cases[] = {
      {"amoswap", 5, 7, 7},        {"amoadd", 5, minus_one, 4},  {"amoxor", 6, 3, 5},
      {"amoand", 6, 3, 2},         {"amoor", 6, 3, 7},           {"amomin", minus_one, 1, minus_one},
      {"amomax", minus_one, 1, 1}, {"amominu", minus_one, 1, 1}, {"amomaxu", minus_one, 1, minus_one}};
  for (const auto& [name, memory, operand, expected] : cases) {
    for (const bool wide : {false, true}) {
      const std::string full = std::string(name) + (wide ? ".d" : ".w");
      TestProcess process({encode(full, a0, a2, a1)});
      process.hart.x[a1] = operand;
      process.hart.x[a2] = TestProcess::data;
      process.memory.write(TestProcess::data, &memory, 8);
      process.interpreter.run(process.hart, 1);
      check_bits(process.hart.x[a0], memory, full + " gives what was there");
      u64 found = 0;
      process.memory.read(TestProcess::data, &found, 8);
      const u64 untouched = memory & ~u64{0xffffffff};
      check_bits(found, wide ? expected : untouched | (expected & 0xffffffff), full + " leaves in memory");
    }
  }
}

TEST(reservations) {
  const std::uint32_t reserve = encode("lr.d", a0, a2), conditional = encode("sc.d", a3, a2, a1);
  TestProcess process({reserve, conditional, conditional});
  process.hart.x[a1] = 9;
  process.hart.x[a2] = TestProcess::data;
  process.interpreter.run(process.hart, 3);
  check_bits(process.hart.x[a3], 1, "a second sc fails");
  process.hart.pc = TestProcess::code;
  process.interpreter.run(process.hart, 1);
  check_bits(process.hart.x[a0], 9, "the first sc wrote");
  const u64 other = 10;
  process.memory.write(TestProcess::data, &other, 8);
  process.interpreter.run(process.hart, 1);
  check_bits(process.hart.x[a3], 1, "sc fails after another write");
  u64 found = 0;
  process.memory.read(TestProcess::data, &found, 8);
  check_bits(found, 10, "and writes nothing");
}

TEST(branches) {
  constexpr struct {
    std::string_view name;
    u64 first, second;
    bool taken;
  } cases[] = {{"beq", 1, 1, true},          {"beq", 1, 2, false},         {"bne", 1, 2, true},
               {"bne", 1, 1, false},         {"blt", minus_one, 0, true},  {"blt", 0, 0, false},
               {"bge", 0, 0, true},          {"bge", minus_one, 0, false}, {"bltu", minus_one, 0, false},
               {"bltu", 0, minus_one, true}, {"bgeu", minus_one, 0, true}, {"bgeu", 0, minus_one, false}};
  for (const auto& [name, first, second, taken] : cases) {
    TestProcess process({encode_b(name, a1, a2, 2046)});
    process.hart.x[a1] = first;
    process.hart.x[a2] = second;
    process.interpreter.run(process.hart, 1);
    check_bits(process.hart.pc, TestProcess::code + (taken ? 2046 : 4), name.data());
  }
  // jalr a0, 5(a0): the target is taken before the return address is written, without its lowest bit.
  TestProcess process({encode_i("jalr", a0, a0, 5)});
  process.hart.x[a0] = TestProcess::code + 0x100;
  process.interpreter.run(process.hart, 1);
  check_bits(process.hart.pc, TestProcess::code + 0x104, "jalr's target");
  check_bits(process.hart.x[a0], TestProcess::code + 4, "jalr's return address");
}

TEST(control_registers) {
  auto csr = [](std::string_view name, std::uint32_t rd, std::uint32_t rs1, std::uint32_t number) {
    return encode_i(name, rd, rs1, static_cast<std::int32_t>(number));
  };
  TestProcess process(
      {csr("csrrwi", a0, 31, ControlRegister::fflags), csr("csrrci", a0, 3, ControlRegister::fflags),
       csr("csrrwi", a1, 3, ControlRegister::frm), csr("csrrs", a2, zero, ControlRegister::fcsr),
       csr("csrrs", a3, zero, ControlRegister::instret), csr("csrrs", t0, zero, ControlRegister::cycle)});
  process.interpreter.set_time(1000, 2000);
  check(process.interpreter.run(process.hart, 6) == Stop::budget, "control registers run");
  check_bits(process.hart.x[a0], 31, "fflags before");
  check_bits(process.hart.x[a2], 3 << 5 | 28, "fcsr is both");
  check_bits(process.hart.x[a3], 4, "instret counts those before");
  check_bits(process.hart.x[t0], 1005, "cycle goes on from what was set");
  for (const auto& [word, kind] :
       {std::pair{csr("csrrw", zero, a0, ControlRegister::cycle), Fault::Cause::illegal},
        std::pair{csr("csrrs", a0, zero, 0x300), Fault::Cause::illegal},
        std::pair{csr("csrrs", a0, zero, 0xc22), Fault::Cause::unsupported}}) {
    TestProcess refused({word});
    check(
        refused.interpreter.run(refused.hart, 1) == Stop::fault && refused.interpreter.fault().cause == kind,
        disassemble(word, 0) + " is refused");
  }
}

}  // namespace
