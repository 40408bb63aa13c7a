// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/program_error.hpp"

namespace manyscale::cpu {

std::string ProgramError::message(const Failure& failure) {
  return "process " + std::to_string(failure.process) + ", thread " + std::to_string(failure.thread) +
         ", pc " + hexadecimal(failure.pc) + ": " + failure.what;
}

}  // namespace manyscale::cpu
