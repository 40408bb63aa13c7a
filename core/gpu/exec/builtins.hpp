// SPDX-License-Identifier: Apache-2.0
// Functions that a program may call without defining them: printf, malloc, free, a failed assertion.
#pragma once
#include <string_view>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

// What they do, for one lane.
namespace builtins {

int print(Warp& warp, unsigned lane, std::uint64_t format, std::uint64_t values);
std::uint64_t allocate(Warp& warp, std::uint64_t bytes);
void free_memory(Warp& warp, unsigned lane, std::uint64_t address);

// Addresses of the texts that an assertion is made of, and its line.
struct Assertion {
  std::uint64_t message = 0;
  std::uint64_t file = 0;
  std::uint32_t line = 0;
  std::uint64_t function = 0;
};
[[noreturn]] void assertion_failed(Warp& warp, unsigned lane, const Assertion& assertion);

}  // namespace builtins

// Decodes a call to a function without a body; Unsupported if it is not one of ours.
void decode_builtin(Builder& builder, std::string_view name, CallSite site);

}  // namespace manyscale::gpu
