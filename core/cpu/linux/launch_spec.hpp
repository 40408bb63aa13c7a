// SPDX-License-Identifier: Apache-2.0
// Launch spec: a program to execute, its arguments and environment, and the files and memory it may use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace manyscale::cpu {

struct LaunchSpec {
  std::vector<std::uint8_t> elf;         // the bytes of a statically linked RISC-V executable
  std::string path = "program";          // of its file, for messages
  std::string name = "program";          // argv[0]: where a program lies must not change what it does
  std::vector<std::string> arguments;    // argv[1] and on
  std::vector<std::string> environment;  // as NAME=value
  std::string root;                      // the folder that the program sees as /; none if empty
  bool writable = false;                 // whether it may change what is in there
  std::string standard_input;            // the bytes it reads from there; each process all of them
  std::uint32_t ranks = 1;               // processes, all of the same program
  std::uint32_t first_rank = 0;          // the rank of the first of them in the whole job
  std::uint32_t job_ranks = 0;           // of the whole job, which has other nodes too; 0: these are all
  std::uint64_t memory_limit = std::uint64_t{4} << 30;   // bytes of memory that each process may touch
  std::uint64_t output_limit = std::uint64_t{64} << 20;  // bytes that each process may write to its outputs
};

}  // namespace manyscale::cpu
