// SPDX-License-Identifier: Apache-2.0
// What the system calls on files and on paths share.
#pragma once
#include "cpu/linux/output_file.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

inline constexpr int most_descriptors = 1024;

// The open file of a descriptor; nullptr if there is none.
OpenFile* file_of(Call& call, int descriptor);
// Gives a file the lowest free descriptor that is not below `lowest`, or gives
// back an error.
std::int64_t add_file(Call& call, std::shared_ptr<OpenFile> file, bool close_on_exec, int lowest);
// Writes facts as a `struct stat`.
std::int64_t put_facts(Call& call, std::uint64_t address, const FileFacts& facts);
// Throws ProgramError if the reason why memory could not be written is that
// there is no more.
void refuse_memory(Call& call, std::uint64_t address);

}  // namespace manyscale::cpu
