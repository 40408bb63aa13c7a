// SPDX-License-Identifier: Apache-2.0
// What a simulated program did that ends the run: where, and what it was.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "cpu/stream/hexadecimal.hpp"
#include "engine/component.hpp"

namespace manyscale::cpu {

// Where and why a program could not go on; kept as numbers so that others can
// add symbols and lines.
struct Failure {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;  // within the process
  std::uint64_t pc = 0;
  std::string kind;           // load, store, fetch, illegal, unsupported, breakpoint,
                              // system call, memory, …
  std::uint64_t address = 0;  // of the access or jump; of a system call its number
  std::string what;           // for a person
};

// A program's failure as an error of the simulation.
class ProgramError : public SimulationError {
 public:
  explicit ProgramError(Failure failure) : SimulationError(message(failure)), failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }

 private:
  static std::string message(const Failure& failure);

  Failure failure_;
};

}  // namespace manyscale::cpu
