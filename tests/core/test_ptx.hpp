// SPDX-License-Identifier: Apache-2.0
// Modules of PTX for the tests of the parser, and checks of what it makes of them.
#pragma once
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

namespace manyscale::ptx::test {

using manyscale::test::check;

inline const std::string kHead = ".version 8.3\n.target sm_80\n.address_size 64\n";

inline Module module_of(const std::string& text) {
  return parse(kHead + text, "test.ptx");
}

// One kernel, k, with registers and variables to use and the statements given.
inline Module kernel(const std::string& statements) {
  return module_of(
      ".global .u32 g[8];\n.func f();\n.entry k(.param .u64 a, .param .b8 s[24]) {\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .f32 %f<8>;\n.reg .v4 .f32 v;\n" +
      statements + "\n}\n");
}

inline const Function& k_of(const Module& module) {
  return module.functions.back();
}

inline const Function& function_named(const Module& module, std::string_view name) {
  for (const Function& function : module.functions) {
    if (function.name == name) return function;
  }
  throw std::out_of_range("no function " + std::string(name));
}

inline const Variable& variable_named(const Module& module, std::string_view name) {
  for (const Variable& variable : module.variables) {
    if (variable.name == name) return variable;
  }
  throw std::out_of_range("no variable " + std::string(name));
}

inline std::string name_of_register(const Module& module, const Operand& operand) {
  return std::string(k_of(module).registers.at(operand.id).name);
}

template <class T>
std::vector<T> values_of(const Variable& variable) {
  std::vector<T> values(variable.initial.size() / sizeof(T));
  std::memcpy(values.data(), variable.initial.data(), values.size() * sizeof(T));
  return values;
}

// The value of a constant expression.
inline std::int64_t integer(const std::string& expression) {
  const Module module = kernel("mov.u64 %rd1, " + expression + ";");
  const Operand& operand = module.operands_of(k_of(module).instructions[0])[1];
  check(operand.kind == OperandKind::integer, expression + " is an integer");
  check(operand.text == expression, expression + " is kept as written");
  return operand.value;
}

inline double floating(const std::string& expression) {
  const Module module = kernel("mov.f64 %rd1, " + expression + ";");
  const Operand& operand = module.operands_of(k_of(module).instructions[0])[1];
  check(operand.kind == OperandKind::floating, expression + " is a floating-point number");
  if (operand.is_f32) return std::bit_cast<float>(static_cast<std::uint32_t>(operand.value));
  return std::bit_cast<double>(operand.value);
}

}  // namespace manyscale::ptx::test
