// SPDX-License-Identifier: Apache-2.0
// What the parser of PTX makes of each construct of the language. What it refuses is in test_ptx_errors.cpp.
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/parser.hpp"
#include "test_checks.hpp"

using namespace manyscale::ptx;
using manyscale::test::check;
using Kind = Operand::Kind;

namespace {

const std::string kHead = ".version 8.3\n.target sm_80\n.address_size 64\n";

Module module_of(const std::string& text) {
  return parse(kHead + text, "test.ptx");
}

// One kernel, k, with registers and variables to use and the statements given.
Module kernel(const std::string& statements) {
  return module_of(
      ".global .u32 g[8];\n.func f();\n.entry k(.param .u64 a, .param .b8 s[24]) {\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .f32 %f<8>;\n.reg .v4 .f32 v;\n" +
      statements + "\n}\n");
}

const Function& k_of(const Module& module) {
  return module.functions.back();
}

const Function& function_named(const Module& module, std::string_view name) {
  for (const Function& function : module.functions) {
    if (function.name == name) return function;
  }
  throw std::out_of_range("no function " + std::string(name));
}

const Variable& variable_named(const Module& module, std::string_view name) {
  for (const Variable& variable : module.variables) {
    if (variable.name == name) return variable;
  }
  throw std::out_of_range("no variable " + std::string(name));
}

std::string name_of_register(const Module& module, const Operand& operand) {
  return std::string(k_of(module).registers.at(operand.id).name);
}

template <class T>
std::vector<T> values_of(const Variable& variable) {
  std::vector<T> values(variable.initial.size() / sizeof(T));
  std::memcpy(values.data(), variable.initial.data(), values.size() * sizeof(T));
  return values;
}

// The value of a constant expression.
std::int64_t integer(const std::string& expression) {
  const Module module = kernel("mov.u64 %rd1, " + expression + ";");
  const Operand& operand = module.operands_of(k_of(module).instructions[0])[1];
  check(operand.kind == Kind::integer, expression + " is an integer");
  check(operand.text == expression, expression + " is kept as written");
  return operand.value;
}

double floating(const std::string& expression) {
  const Module module = kernel("mov.f64 %rd1, " + expression + ";");
  const Operand& operand = module.operands_of(k_of(module).instructions[0])[1];
  check(operand.kind == Kind::floating, expression + " is a floating-point number");
  if (operand.is_f32) return std::bit_cast<float>(static_cast<std::uint32_t>(operand.value));
  return std::bit_cast<double>(operand.value);
}

TEST(heads_of_modules) {
  const Module module = parse(
      "// first\n/* two\nlines */ .version 7.8\r\n.target sm_90a, texmode_independent, "
      "debug\r\n.address_size 32\r\n",
      "m");
  check(module.version_major == 7 && module.version_minor == 8, "the version");
  check(module.target == "sm_90a", "the target without its options");
  check(module.address_size == 32, "the address size");
  check(parse(".version 8.10\n.target sm_75", "m").version_minor == 10, "a version is not a decimal number");
  check(parse(".version 8.1\n.target sm_75", "m").address_size == 64,
        "addresses have 64 bits if nothing is said");
  check(parse(kHead + std::string("\0\0", 2), "m").functions.empty(), "NULs after the end are left out");
  check(parse("\xEF\xBB\xBF" + kHead, "m").target == "sm_80", "a byte order mark is left out");
}

TEST(debugging_information) {
  const Module module = module_of(
      ".file 1 \"a.cu\", 1700000000, 512\n.file 3 \"dir\" \"b.cu\"\n"
      ".entry k() {\n ret;\n .loc 1 12 3\n ret;\n .loc 3 7 1, function_name $info, inlined_at 1 12 3\n "
      "ret;\n ret;\n}\n"
      ".entry later() { ret; }\n"
      ".section .debug_info {\n.b8 1\n.b32 .debug_abbrev\n$info: .b64 x+4, { }\n}\n@@DWARF .byte 0x12, 1.5, "
      "\"x\"\n"
      "# 12 \"header.h\"\n.section .debug_loc { }\n");
  check(module.files == std::vector<std::string>{"", "a.cu", "", "dir/b.cu"}, "files by their number");
  const auto& instructions = function_named(module, "k").instructions;
  check(instructions[0].source.line == 0, "an instruction without a line");
  check(instructions[1].source.file == 1 && instructions[1].source.line == 12, "a line");
  check(instructions[3].source.file == 3 && instructions[3].source.line == 7, "a line holds until the next");
  check(function_named(module, "later").instructions[0].source.line == 0, "a line ends with its function");
}

TEST(registers) {
  const Module module = module_of(
      ".entry k() { .reg .b32 %r<3>, a; .reg .v2 .f32 v<2>; .reg .pred p; .reg .f16x2 h; .reg .b128 q;\n"
      "mov.b32 %r2, a; mov.f32 v1.y, v0.x; .reg .b32 x1<4>, y; mov.b32 x12, x13; mov.b32 %r01, y; }");
  const auto& registers = k_of(module).registers;
  check(registers.size() == 14, "registers are counted");
  check(registers[2].name == "%r2" && registers[2].type == Type::b32, "a register of a group");
  check(registers[3].name == "a", "a register with a name of its own");
  check(registers[5].name == "v1" && registers[5].elements == 2 && registers[5].type == Type::f32,
        "a vector register");
  check(
      registers[6].type == Type::pred && registers[7].type == Type::f16x2 && registers[8].type == Type::b128,
      "types of registers");
  const auto operands = [&](std::size_t i) { return module.operands_of(k_of(module).instructions[i]); };
  check(operands(0)[0].id == 2 && operands(0)[1].id == 3, "registers are resolved");
  check(operands(1)[0].id == 5 && operands(1)[0].component == 1 && operands(1)[0].text == "v1.y",
        "an element");
  check(name_of_register(module, operands(2)[0]) == "x12", "a group whose prefix ends in a digit");
  check(name_of_register(module, operands(3)[0]) == "%r1", "leading zeros in the number of a register");
}

TEST(scopes) {
  const Module module = module_of(
      ".shared .b32 s;\n.entry k() {\n.reg .b32 a, %r<4>; .shared .b64 s;\n"
      "mov.b32 a, %r1;\n{ .reg .b64 a, %r1; .local .b8 s[4]; mov.b64 a, %r1; mov.b32 %r2, s; { mov.b64 a, s; "
      "} }\n"
      "mov.b32 a, %r1; mov.b32 a, s;\n{ .reg .b16 %r<2>; mov.b16 %r1, a; mov.b16 %r3, a; } }\n"
      ".entry later() { .reg .b32 a; mov.b32 a, s; }");
  const Function& function = module.functions[0];
  const auto id = [&](std::size_t i, std::size_t operand) {
    return module.operands_of(function.instructions[i])[operand].id;
  };
  check(function.registers[id(0, 0)].type == Type::b32, "a register of the function");
  check(function.registers[id(1, 0)].type == Type::b64, "a register of the inner scope hides it");
  check(function.registers[id(1, 1)].type == Type::b64, "one register of a group can be hidden");
  check(id(2, 0) == id(0, 1) + 1, "the others of the group remain");
  check(function.variables[id(2, 1)].space == Space::local, "a variable of the inner scope");
  check(id(3, 1) == id(2, 1), "inner scopes see outer ones");
  check(id(4, 0) == id(0, 0) && id(4, 1) == id(0, 1), "what was hidden comes back");
  check(function.variables[id(5, 1)].size == 8, "a variable of the function hides the module's");
  check(function.registers[id(6, 0)].type == Type::b16, "a group hides registers of an outer one");
  check(function.registers[id(7, 0)].type == Type::b32, "as far as it goes");
  check(!module.operands_of(module.functions[1].instructions[0])[1].is_local, "scopes end with the function");
}

TEST(variables) {
  const Module module = module_of(
      ".visible .global .align 16 .v4 .f32 matrix[2][3];\n.extern .shared .align 8 .b8 dynamic[];\n"
      ".weak .const .u16 w;\n.common .global .b64 c;\n.global .attribute(.managed) .u32 m, n[0x10];\n"
      ".global .b8 e[2*3+1];\n.global .texref t; .tex .u32 old; .global .samplerref s = { filter_mode = "
      "nearest };\n"
      ".const[2] .b32 bank; .global .f64 z<3>; .extern .global .u32 later; .extern .global .u32 later;\n"
      ".visible .global .u32 later = 7; .extern .global .u32 later; .shared .b8 none[0];\n");
  const Variable& matrix = variable_named(module, "matrix");
  check(matrix.size == 96 && matrix.alignment == 16 && matrix.vector == 4, "an array of vectors");
  check(matrix.linkage == Linkage::visible && matrix.initial.empty(), "visible and not initialised");
  const Variable& dynamic = variable_named(module, "dynamic");
  check(dynamic.unsized && dynamic.size == 0 && dynamic.alignment == 8, "an array without a size");
  check(dynamic.space == Space::shared && dynamic.linkage == Linkage::external, "an external variable");
  check(variable_named(module, "w").space == Space::constant && variable_named(module, "w").alignment == 2,
        "the alignment is that of the type");
  check(variable_named(module, "w").linkage == Linkage::weak, "weak");
  check(variable_named(module, "c").linkage == Linkage::common, "common");
  check(variable_named(module, "n").size == 64, "a list of variables");
  check(variable_named(module, "e").size == 7, "a size that is computed");
  check(
      variable_named(module, "t").type == Type::texref && variable_named(module, "old").type == Type::texref,
      "textures");
  check(variable_named(module, "z2").type == Type::f64, "a group of variables");
  check(variable_named(module, "later").initial.size() == 4, "declared before and after it is defined");
  check(variable_named(module, "later").linkage == Linkage::visible, "the definition counts");
}

TEST(initialisers) {
  const Module module = module_of(
      ".global .u32 one = 5;\n.const .s32 some[4] = {1, -2};\n.global .s16 grid[][2] = {{1, 2}, {3}, {}};\n"
      ".global .v2 .f32 pairs[2] = {{1.0, 0fBF800000}, {2.5}};\n.global .f64 d = 0f3F800000;\n.global .b32 "
      "bits = 1.0;\n"
      ".global .b64 bits64 = 0d3FF0000000000000;\n.global .u8 wrapped[] = {300, -1, 0xFFU, 017, 0b11, 1+2*3, "
      "WARP_SZ};\n"
      ".func callee();\n.global .u64 pointers[] = {one, some+8, generic(one), generic(grid)+4, callee, 0, "
      "one - 4};\n"
      ".global .b8 packed[4] = {1, 0xFF(one), 0xFF00(one), 0xFF00000000000000(generic(one)+4)};\n"
      ".global .b128 wide = -2; .global .s64 least = -9223372036854775808; .global .u64 most = "
      "0xFFFFFFFFFFFFFFFF;\n"
      ".global .u32 narrow = one; .global .u32 none[3] = {};\n");
  check(values_of<std::uint32_t>(variable_named(module, "one")) == std::vector<std::uint32_t>{5},
        "one value");
  check(values_of<std::int32_t>(variable_named(module, "some")) == std::vector<std::int32_t>{1, -2, 0, 0},
        "what is left out is zero");
  check(
      values_of<std::int16_t>(variable_named(module, "grid")) == std::vector<std::int16_t>{1, 2, 3, 0, 0, 0},
      "the first dimension follows from the values");
  check(!variable_named(module, "grid").unsized && variable_named(module, "grid").size == 12, "and the size");
  check(values_of<float>(variable_named(module, "pairs")) == std::vector<float>{1, -1, 2.5, 0}, "vectors");
  check(values_of<double>(variable_named(module, "d")) == std::vector<double>{1}, "a float for a double");
  check(values_of<float>(variable_named(module, "bits")) == std::vector<float>{1}, "a float for bits");
  check(values_of<double>(variable_named(module, "bits64")) == std::vector<double>{1}, "a double for bits");
  check(values_of<std::uint8_t>(variable_named(module, "wrapped")) ==
            std::vector<std::uint8_t>{44, 255, 255, 15, 3, 7, 32},
        "values wrap around");
  check(values_of<std::int64_t>(variable_named(module, "wide")) == std::vector<std::int64_t>{-2, -1},
        "128 bits");
  check(values_of<std::uint64_t>(variable_named(module, "least"))[0] == std::uint64_t{1} << 63,
        "the least integer");
  check(values_of<std::int64_t>(variable_named(module, "most"))[0] == -1, "the largest integer");
  check(variable_named(module, "none").initial.size() == 12, "an empty list");

  const auto& pointers = variable_named(module, "pointers").relocations;
  check(pointers.size() == 6 && variable_named(module, "pointers").size == 56, "an address each");
  check(pointers[1].offset == 8 && pointers[1].addend == 8 && module.variables[pointers[1].id].name == "some",
        "with an offset");
  check(!pointers[0].generic && pointers[2].generic && pointers[3].generic && pointers[3].addend == 4,
        "generic");
  check(pointers[4].is_function && module.functions[pointers[4].id].name == "callee", "of a function");
  check(pointers[5].offset == 48 && pointers[5].addend == -4, "with a negative offset");
  const auto& packed = variable_named(module, "packed").relocations;
  check(packed.size() == 3 && packed[0].offset == 1 && packed[0].size == 1 && packed[0].shift == 0,
        "the first byte");
  check(packed[1].shift == 8 && packed[2].shift == 56 && packed[2].generic && packed[2].addend == 4,
        "the other bytes");
  check(variable_named(module, "narrow").relocations[0].size == 4, "an address in 32 bits");
}

TEST(functions) {
  const Module module = module_of(
      ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 rest);\n"
      ".visible .func (.param .align 16 .b8 out[32]) both (.param .b32 a);\n.func plain;\n"
      ".weak .func (.reg .u32 r) quick (.reg .u32 x, .reg .pred p) { mov.u32 r, x; ret; }\n"
      ".visible .func (.param .align 16 .b8 out[32]) both (.param .b32 a) .noreturn { .reg .b32 t; "
      "ld.param.b32 t, [a]; }\n"
      ".func variadic(.param .b32 n, .param .align 8 .b8 rest[]);\n"
      ".visible .entry launch(.param .u64 .ptr .global .align 4 p, .param .align 8 .b8 s[24], .param .v2 "
      ".f32 q)\n"
      ".maxntid 128, 2\n.minnctapersm 3 .maxnreg 64 .maxnctapersm 2 .unknown_directive 1, \"x\" .pragma "
      "\"nounroll\";\n"
      ".explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 { ret; }\n"
      ".entry bare .reqntid 32, 4, 2 { ret; }\n.func .attribute(.unified(1, 0x2)) unified() .abi_preserve 8 "
      "{ ret; }\n"
      ".func other(); .func third(); .alias other, quick; .alias third, other;\n");
  check(module.functions.size() == 10, "a function that was declared is defined with the same id");
  const Function& vprintf = function_named(module, "vprintf");
  check(!vprintf.has_body && vprintf.linkage == Linkage::external, "an external function");
  check(vprintf.results.size() == 1 && vprintf.parameters.size() == 2, "its parameters");
  const Function& both = module.functions[1];
  check(both.name == "both" && both.has_body && both.noreturn && both.instructions.size() == 1, "its body");
  check(both.variables[both.results[0]].size == 32 && both.variables[both.results[0]].alignment == 16,
        "its result");
  check(both.variables[both.parameters[0]].name == "a" && both.variables.size() == 2, "its parameter");
  const Function& quick = function_named(module, "quick");
  check(quick.register_parameters && quick.registers[quick.parameters[1]].type == Type::pred,
        "parameters in registers");
  check(quick.registers[quick.results[0]].name == "r" && quick.linkage == Linkage::weak,
        "results in registers");
  check(function_named(module, "variadic").variables[1].unsized, "the rest of the parameters");
  const Function& launch = function_named(module, "launch");
  check(launch.is_entry && launch.linkage == Linkage::visible, "a kernel");
  check(launch.variables[0].type == Type::u64 && launch.variables[0].alignment == 8,
        ".ptr is about what it points to");
  check(launch.variables[1].size == 24 && launch.variables[1].alignment == 8, "a structure");
  check(launch.variables[2].size == 8 && launch.variables[2].vector == 2, "a vector");
  check(launch.maximum_threads[0] == 128 && launch.maximum_threads[1] == 2 && launch.maximum_threads[2] == 1,
        ".maxntid");
  check(launch.minimum_ctas == 3 && launch.maximum_registers == 64, ".minnctapersm and .maxnreg");
  check(launch.required_cluster[0] == 2 && launch.maximum_cluster == 8 && launch.required_threads[0] == 0,
        "clusters");
  const Function& bare = function_named(module, "bare");
  check(bare.required_threads[0] == 32 && bare.required_threads[2] == 2 && bare.parameters.empty(),
        ".reqntid");
  const std::uint32_t target = function_named(module, "third").alias_of;
  check(target != kNone && module.functions[target].name == "quick", "an alias of an alias");
}

TEST(instructions) {
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
  check(vector.kind == Kind::vector && vector.count == 2 && vector.text == "{%f1, _}", "a vector");
  check(module.children(vector)[1].kind == Kind::sink, "a result that is not wanted");
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
  check(operands(0)[0].kind == Kind::pair && operands(0)[0].text == "%p1|%p2", "a pair");
  check(name_of_register(module, module.children(operands(0)[0])[1]) == "%p2", "its second half");
  check(operands(0)[3].kind == Kind::reg && operands(0)[3].negated && operands(0)[3].text == "!%p3",
        "a negated predicate");
  check(module.children(operands(1)[0])[1].kind == Kind::sink, "half a pair");
  check(
      operands(2)[1].kind == Kind::special && operands(2)[1].text == "%tid" && operands(2)[1].component == 1,
      "a special register");
  check(operands(3)[1].kind == Kind::variable && operands(3)[1].value == 4 && !operands(3)[1].is_local,
        "an address of a variable");
  check(operands(4)[1].kind == Kind::variable && operands(4)[1].value == 12, "the address of an element");
  check(operands(5)[1].kind == Kind::address && operands(5)[1].value == 8, "an element of an array");
  check(operands(6)[1].kind == Kind::function && module.functions[operands(6)[1].id].name == "f",
        "a function");
  check(operands(7)[1].component == 3 && operands(7)[1].text == "v.w", "an element of a vector");
  check(operands(8)[1].is_f32 && operands(8)[1].value == 0x3F800000, "the bits of a float");
  check(!operands(9)[1].is_f32 && std::bit_cast<double>(operands(9)[1].value) == 15, "a double");
  check(operands(10)[1].part == 3 && operands(10)[2].part == 17 && operands(10)[0].part == 255,
        "parts of a register");
  check(operands(11)[1].negated && operands(11)[2].kind == Kind::floating, "-register and .5");
  check(operands(12)[1].part == 254 && operands(12)[1].text == "%r2.b7610", "a choice of bytes");
  check(module.children(operands(13)[1])[0].kind == Kind::floating, "immediates in a vector");
  check(operands(14)[1].kind == Kind::integer && operands(14)[1].value == 32, "WARP_SZ");
  check(operands(15)[1].kind == Kind::special && operands(15)[1].component == 255,
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
    check(operands(i)[1].kind == Kind::address && operands(i)[1].value == expected[i],
          "an address and its offset");
    check(base(i).value == 0, "the offset belongs to the address");
  }
  check(base(0).kind == Kind::reg && name_of_register(module, base(0)) == "%rd1", "a register as base");
  check(base(4).kind == Kind::variable && !base(4).is_local, "a variable of the module as base");
  check(base(5).kind == Kind::integer, "no base");
  check(base(6).kind == Kind::variable && base(6).is_local, "a parameter as base");
  check(operands(8)[1].count == 2 && module.children(operands(8)[1])[1].kind == Kind::vector,
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
  check(target(7) == 7, "two labels at one place");
  check(function.branch_tables.size() == 2 &&
            function.branch_tables[0].targets ==
                std::vector<std::uint32_t>{0, 5, static_cast<std::uint32_t>(function.instructions.size())},
        "a table of labels");
  const Operand& table = module.operands_of(function.instructions[8])[1];
  check(table.kind == Kind::table && table.id == 0 && table.component == 0 && table.text == "T",
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
  check(operands(0).size() == 3 && operands(0)[0].kind == Kind::list && operands(0)[2].kind == Kind::list,
        "a call");
  check(operands(0)[1].kind == Kind::function && module.functions[operands(0)[1].id].name == "f",
        "of a function");
  check(module.children(operands(0)[2])[0].is_local, "with a parameter");
  check(operands(1).size() == 1 && operands(2)[1].count == 0, "without parameters");
  check(
      operands(3)[1].kind == Kind::reg && operands(3)[3].kind == Kind::table && operands(3)[3].component == 2,
      "through a register");
  const Prototype& prototype = function.prototypes.at(operands(3)[3].id);
  check(prototype.results.size() == 1 && prototype.parameters.size() == 2 && prototype.noreturn,
        "its prototype");
  check(prototype.parameters[1].size == 24 && prototype.parameters[1].alignment == 8, "a structure in it");
  check(operands(4)[2].kind == Kind::table && operands(4)[2].component == 1, "one of several functions");
  check(function.call_tables[0].targets == std::vector<std::uint32_t>{1, 0}, "these functions");
  check(module.children(operands(5)[0])[0].kind == Kind::sink, "a result that is not wanted");
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
