// SPDX-License-Identifier: Apache-2.0
// What the parser of PTX makes of modules and declarations. Instructions are in test_ptx_instructions.cpp,
// what it refuses in test_ptx_errors.cpp.
#include "test_ptx.hpp"

using namespace manyscale::ptx;
using namespace manyscale::ptx::test;

namespace {

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

}  // namespace
