// SPDX-License-Identifier: Apache-2.0
// From PTX text to a module.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "gpu/ptx/module.hpp"

namespace manyscale::ptx {

// The text is not PTX: what() reads "file:line:column: what is wrong, what was expected, the token".
struct SyntaxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How much a text may ask for: a few characters of PTX can declare any amount of memory.
struct Limits {
  std::uint64_t text = std::uint64_t{1} << 30;         // bytes of PTX
  std::uint64_t variable = std::uint64_t{1} << 40;     // bytes of one variable
  std::uint64_t initialised = std::uint64_t{1} << 30;  // bytes of all variables that are given a value
  std::uint32_t function_registers = 1'000'000;        // of one function
  std::uint32_t registers = 32'000'000;                // of all functions
  std::uint64_t names = std::uint64_t{1} << 28;  // bytes of the names that %r<100> and the like stand for
  std::uint32_t group_variables = 1'000'000;     // variables of a module that are declared as a<100>
  std::uint32_t depth = 200;                     // of braces and parentheses in each other
};

// Parses a module; `name` is the file's name in messages. Throws SyntaxError.
Module parse(std::string text, std::string name, const Limits& limits = {});

}  // namespace manyscale::ptx
