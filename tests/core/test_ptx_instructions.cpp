// SPDX-License-Identifier: Apache-2.0
// What the parser of PTX makes of instructions and their operands.
#include "test_ptx.hpp"

using namespace manyscale::ptx;
using namespace manyscale::ptx::test;

namespace {

TEST(guards_modifiers_and_operands) {
  const Module module = kernel(
      "@%p1 add.sat.s32 %r1, %r2, -3;\n@!%p2 ld.global.L1::no_allocate.L2::128B.v2.f32 {%f1, _}, [%rd1+8];\n"
      "mad .lo .u32 %r1, %r2, %r3, 0x10;\nbar.sync 0;\nret;\nwhatever.new::thing.1d %r1;");
  const auto& instructions = k_of(module).instructions;
  check(instructions.size() == 6, "instructions are counted");
  const Instruction& add = instructions[0];
  check(add.opcode == "add" && add.modifiers == 2 && module.modifiers_of(add)[1] == "s32",
        "the opcode and its modifiers");
  check(add.guard != kNone && !add.guard_negated && k_of(module).registers[add.guard].name == "%p1",
        "a guard");
  check(add.where.line == 12 && add.where.column == 6, "where it stands");
  check(module.operands_of(add)[2].value == -3 && module.operands_of(add)[2].where.column == 28,
        "an immediate");
  const Instruction& load = instructions[1];
  check(load.guard_negated && module.modifiers_of(load)[1] == "L1::no_allocate", "modifiers with ::");
  const Operand& vector = module.operands_of(load)[0];
  check(vector.kind == OperandKind::vector && vector.count == 2 && vector.text == "{%f1, _}", "a vector");
  check(module.children(vector)[1].kind == OperandKind::sink, "a result that is not wanted");
  check(module.modifiers_of(instructions[2]).size() == 2, "spaces between modifiers");
  check(instructions[4].operands == 0 && instructions[4].guard == kNone, "no operands");
  check(instructions[5].opcode == "whatever" && module.modifiers_of(instructions[5])[0] == "new::thing",
        "any opcode");
}

TEST(operands) {
  const Module module = kernel(
      "setp.eq.and.u32 %p1|%p2, %r1, 5, !%p3;\nshfl.sync.bfly.b32 %r1|_, %r2, 1, 31, -1;\nmov.u32 %r1, "
      "%tid.y;\n"
      "mov.u64 %rd1, g+4;\nmov.u64 %rd1, g[3];\nld.global.u32 %r1, g[2];\nmov.u64 %rd2, f;\nmov.f32 %f1, "
      "v.w;\n"
      "mov.f32 %f1, 0f3F800000;\nmov.f64 %rd1, 1.5e1;\nvadd.s32.u32.s32 %r1, %r2.b3, %r3.h1;\nadd.f32 %f1, "
      "-%f2, .5;\n"
      "vadd4.u32.u32.u32 %r1, %r2.b7610, %r3, %r4;\nmov.v4.f32 v, {1.0, 2.0, %f1, %f2};\nmov.u32 %r1, "
      "WARP_SZ;\n"
      "mov.v4.u32 v, %ntid; mov.u32 %r1, %envreg31; mov.u64 %rd1, g - 8; mov.u64 %rd1, s;");
  const auto operands = [&](std::size_t i) { return module.operands_of(k_of(module).instructions[i]); };
  check(operands(0)[0].kind == OperandKind::pair && operands(0)[0].text == "%p1|%p2", "a pair");
  check(name_of_register(module, module.children(operands(0)[0])[1]) == "%p2", "its second half");
  check(operands(0)[3].kind == OperandKind::reg && operands(0)[3].negated && operands(0)[3].text == "!%p3",
        "a negated predicate");
  check(module.children(operands(1)[0])[1].kind == OperandKind::sink, "half a pair");
  check(operands(2)[1].kind == OperandKind::special && operands(2)[1].text == "%tid" &&
            operands(2)[1].component == 1,
        "a special register");
  check(operands(3)[1].kind == OperandKind::variable && operands(3)[1].value == 4 && !operands(3)[1].is_local,
        "an address of a variable");
  check(operands(4)[1].kind == OperandKind::variable && operands(4)[1].value == 12,
        "the address of an element");
  check(operands(5)[1].kind == OperandKind::address && operands(5)[1].value == 8, "an element of an array");
  check(operands(6)[1].kind == OperandKind::function && module.functions[operands(6)[1].id].name == "f",
        "a function");
  check(operands(7)[1].component == 3 && operands(7)[1].text == "v.w", "an element of a vector");
  check(operands(8)[1].is_f32 && operands(8)[1].value == 0x3F800000, "the bits of a float");
  check(!operands(9)[1].is_f32 && std::bit_cast<double>(operands(9)[1].value) == 15, "a double");
  check(operands(10)[1].part == 3 && operands(10)[2].part == 17 && operands(10)[0].part == 255,
        "parts of a register");
  check(operands(11)[1].negated && operands(11)[2].kind == OperandKind::floating, "-register and .5");
  check(operands(12)[1].part == 254 && operands(12)[1].text == "%r2.b7610", "a choice of bytes");
  check(module.children(operands(13)[1])[0].kind == OperandKind::floating, "immediates in a vector");
  check(operands(14)[1].kind == OperandKind::integer && operands(14)[1].value == 32, "WARP_SZ");
  check(operands(15)[1].kind == OperandKind::special && operands(15)[1].component == 255,
        "a whole special register");
  check(operands(16)[1].text == "%envreg31" && operands(17)[1].value == -8,
        "%envreg31 and a negative offset");
  check(operands(18)[1].is_local && k_of(module).variables[operands(18)[1].id].name == "s", "a parameter");
}

TEST(addresses) {
  const Module module = kernel(
      "ld.u32 %r1, [%rd1]; ld.u32 %r1, [%rd1+16]; ld.u32 %r1, [%rd1+-8]; ld.u32 %r1, [%rd1 - 8]; ld.u32 %r1, "
      "[g+4*2];\n"
      "ld.u32 %r1, [0x100]; ld.param.u32 %r1, [s+20]; ld.u32 %r1, [%rd1+4+4];\n"
      "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [g, {%f5, %f6}]; tex.1d.v4.f32.f32 v, [%rd1, %rd2, {%f5}];\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2, {%r1, "
      "%r2}], [%rd3+8];");
  const auto operands = [&](std::size_t i) { return module.operands_of(k_of(module).instructions[i]); };
  const auto base = [&](std::size_t i) { return module.children(operands(i)[1])[0]; };
  const std::int64_t expected[] = {0, 16, -8, -8, 8, 0x100, 20, 8};
  for (std::size_t i = 0; i < 8; ++i) {
    check(operands(i)[1].kind == OperandKind::address && operands(i)[1].value == expected[i],
          "an address and its offset");
    check(base(i).value == 0, "the offset belongs to the address");
  }
  check(base(0).kind == OperandKind::reg && name_of_register(module, base(0)) == "%rd1",
        "a register as base");
  check(base(4).kind == OperandKind::variable && !base(4).is_local, "a variable of the module as base");
  check(base(5).kind == OperandKind::integer, "no base");
  check(base(6).kind == OperandKind::variable && base(6).is_local, "a parameter as base");
  check(operands(8)[1].count == 2 && module.children(operands(8)[1])[1].kind == OperandKind::vector,
        "a texture and coordinates");
  check(operands(9)[1].count == 3 && operands(9)[1].text == "[%rd1, %rd2, {%f5}]", "a sampler");
  check(operands(10)[1].count == 2 && operands(10)[2].value == 8, "a bulk copy");
}

TEST(constants) {
  check(integer("0x1F") == 31 && integer("017") == 15 && integer("0b101") == 5 && integer("7U") == 7,
        "bases");
  check(integer("0XfFU") == 255 && integer("0") == 0 && integer("00") == 0, "more bases");
  check(integer("1 + 2 * 3") == 7 && integer("(1 + 2) * 3") == 9 && integer("10 - 4 - 3") == 3, "precedence");
  check(integer("7 / 2") == 3 && integer("-7 / 2") == -3 && integer("-7 % 3") == -1, "division");
  check(integer("-7U / 2") == 0x7FFFFFFFFFFFFFFC, "unsigned division");
  check(integer("1 << 4 | 1") == 17 && integer("6 & 3 ^ 1") == 3 && integer("~0") == -1, "bits");
  check(integer("1 << 64") == 0 && integer("1 << -1") == 0 && integer("-1 >> 99") == -1,
        "shifts by too much");
  check(integer("-8 >> 1") == -4 && integer("0xFFFFFFFFFFFFFFFF >> 60") == 15,
        "shifts keep the sign if there is one");
  check(integer("3 < 4") == 1 && integer("3 >= 4") == 0 && integer("3 == 3") == 1 && integer("3 != 3") == 0,
        "comparisons");
  check(integer("-1 < 1") == 1 && integer("-1 < 1U") == 0, "unsigned comparisons");
  check(integer("2 && 0") == 0 && integer("2 || 0") == 1 && integer("!2") == 0, "logic");
  check(integer("1 ? 2 : 3") == 2 && integer("0 ? 2 : 1 ? 4 : 5") == 4, "choices");
  check(integer("(-9223372036854775807 - 1) / -1") == std::numeric_limits<std::int64_t>::min(),
        "the one quotient too large");
  check(integer("(-9223372036854775807 - 1) % -1") == 0, "and its remainder");
  check(integer("9223372036854775807 + 1") == std::numeric_limits<std::int64_t>::min(), "sums wrap around");
  check(integer("(.s64)2.75") == 2 && integer("(.u64)-1.0") == -1 && integer("(.s64)1e300") == -1,
        "conversions");
  check(integer("- - 5") == 5 && integer("-WARP_SZ") == -32 && integer("+5") == 5, "signs");
  check(floating("1.5") == 1.5 && floating(".5") == 0.5 && floating("2.") == 2 && floating("1e3") == 1000,
        "decimals");
  check(floating("1.e2") == 100 && floating("1.25E-1") == 0.125 && floating("-1.5") == -1.5, "exponents");
  check(floating("0d4000000000000000") == 2 && floating("0F40000000") == 2 && floating("-0f40000000") == -2,
        "bits");
  check(floating("1.0 + 2.0 * 3.0") == 7 && floating("(.f64)3 / 2") == 1.5, "arithmetic");
  check(floating("1e999") > 1e308 && floating("1e-999") == 0, "beyond the range");
}

TEST(labels) {
  const Module module = module_of(
      ".entry k() { .reg .pred p; .reg .b32 i;\nstart: bra end;\n{ L: @p bra L; bra start; bra M; M: }\n"
      "{ L: bra L; }\nL: { bra L; L: ret; }\nouter: inner: bra.uni outer;\nT: .branchtargets start, L, end;\n"
      "brx.idx i, T;\n{ bra end; T: .branchtargets L; brx.idx i, T; }\nend: }");
  const Function& function = k_of(module);
  const auto target = [&](std::size_t i) { return module.operands_of(function.instructions[i])[0].id; };
  check(target(0) == function.instructions.size(), "a label after the last instruction");
  check(target(1) == 1 && target(2) == 0 && target(3) == 4, "labels of a scope and of the one around it");
  check(target(4) == 4, "the same label in another scope");
  check(target(5) == 6, "a label that follows hides one that is there");
  check(target(7) == 7, "two labels at one position");
  check(function.branch_tables.size() == 2 &&
            function.branch_tables[0].targets ==
                std::vector<std::uint32_t>{0, 5, static_cast<std::uint32_t>(function.instructions.size())},
        "a table of labels");
  const Operand& table = module.operands_of(function.instructions[8])[1];
  check(table.kind == OperandKind::table && table.id == 0 && table.component == 0 && table.text == "T",
        "used in a branch");
  check(module.operands_of(function.instructions[10])[1].id == 1, "a table of an inner scope");
}

TEST(calls) {
  const Module module = module_of(
      ".func (.param .b32 r) f(.param .b32 a); .func g();\n.entry k() { .param .b32 in, out; .reg .b64 p; "
      ".reg .b32 q;\n"
      "call (out), f, (in); call.uni g; call g, (); call (q), p, (q, 5), proto;\n"
      "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]) .noreturn;\n"
      "targets: .calltargets g, f; call p, (in), targets; call (_), f, (in);\n{ .param .b32 in; call (out), "
      "f, (in); }\n"
      "registers: .callprototype (.reg .f64 _) _ (.reg .u32 _); none: .callprototype _; }\n");
  const Function& function = k_of(module);
  const auto operands = [&](std::size_t i) { return module.operands_of(function.instructions[i]); };
  check(operands(0).size() == 3 && operands(0)[0].kind == OperandKind::list &&
            operands(0)[2].kind == OperandKind::list,
        "a call");
  check(operands(0)[1].kind == OperandKind::function && module.functions[operands(0)[1].id].name == "f",
        "of a function");
  check(module.children(operands(0)[2])[0].is_local, "with a parameter");
  check(operands(1).size() == 1 && operands(2)[1].count == 0, "without parameters");
  check(operands(3)[1].kind == OperandKind::reg && operands(3)[3].kind == OperandKind::table &&
            operands(3)[3].component == 2,
        "through a register");
  const Prototype& prototype = function.prototypes.at(operands(3)[3].id);
  check(prototype.results.size() == 1 && prototype.parameters.size() == 2 && prototype.noreturn,
        "its prototype");
  check(prototype.parameters[1].size == 24 && prototype.parameters[1].alignment == 8, "a structure in it");
  check(operands(4)[2].kind == OperandKind::table && operands(4)[2].component == 1,
        "one of several functions");
  check(function.call_tables[0].targets == std::vector<std::uint32_t>{1, 0}, "these functions");
  check(module.children(operands(5)[0])[0].kind == OperandKind::sink, "a result that is not wanted");
  check(module.children(operands(6)[2])[0].id != module.children(operands(0)[2])[0].id,
        "a parameter of an inner scope");
  check(function.prototypes[1].parameters[0].space == Space::reg && function.prototypes[2].results.empty(),
        "other prototypes");
}

TEST(aliases_are_calls_of_the_function) {
  const Module module = module_of(
      ".func f() { ret; } .func a(); .global .u64 p = a;\n.entry k() { .reg .b64 r; call a; T: .calltargets "
      "a; mov.u64 r, a; }\n"
      ".alias a, f;");
  const Function& function = k_of(module);
  check(module.operands_of(function.instructions[0])[0].id == 0, "a call");
  check(module.operands_of(function.instructions[1])[1].id == 0, "an address");
  check(function.call_tables[0].targets[0] == 0 && module.variables[0].relocations[0].id == 0,
        "tables and variables");
}

TEST(function_variables) {
  const Module module = module_of(
      ".entry k() { .local .align 8 .b8 depot[64]; .shared .f32 tile[4][8]; .global .u32 counter = 3; .const "
      ".u32 c[2] = {1, 2};\n"
      ".extern .shared .b8 dynamic[]; .reg .b64 r; mov.b64 r, depot; mov.b64 r, counter; ret; }");
  const Function& function = k_of(module);
  check(module.variables.empty() && function.variables.size() == 5, "variables of a function are its own");
  check(function.variables[1].size == 128 && function.variables[2].initial.size() == 4, "sizes and values");
  check(module.operands_of(function.instructions[1])[1].is_local, "and used as such");
}

TEST(large_functions) {
  std::string text = ".entry k() { .reg .b32 %r<50000>;\n";
  for (int i = 0; i < 100'000; ++i) {
    const std::string n = std::to_string(i % 50'000);
    text += "$L" + std::to_string(i) + ": add.s32 %r" + n + ", %r" + n + ", " + n + "; bra $L" +
            std::to_string(99'999 - i) + ";\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  const Module module = module_of(text + "}");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const Function& function = k_of(module);
  check(function.instructions.size() == 200'000 && function.registers.size() == 50'000, "a large function");
  check(module.operands_of(function.instructions[0])[0].id == 0, "its first register");
  check(module.operands_of(function.instructions[199'998])[0].id == 49'999, "its last register");
  check(module.operands_of(function.instructions[1])[0].id == 199'998, "its last label");
  // Far more than it takes, and far less than anything but linear time would.
  check(seconds.count() < 5, "within seconds");
}

}  // namespace
