// SPDX-License-Identifier: Apache-2.0
// Texts for messages: the location of an operation in PTX, SASS and source, and the position of a thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

// "(1, 0, 0)".
std::string in_words(const std::array<std::uint32_t, 3>& position);
// The thread of that number within a CTA.
std::array<std::uint32_t, 3> thread_position(const Launch& launch, unsigned thread);
// "file.ptx:12 (saxpy.cu:7)".
std::string location_of(const Program& program, const OpInfo& info);
// The PTX instruction an operation was made of; null for none.
const ptx::Instruction* instruction_of(const Program& program, const Code& code, const OpInfo& info);
// Its opcode with all modifiers.
std::string instruction_text(const Program& program, const Code& code, const OpInfo& info);
// The SASS instruction an operation was made of; null for none.
const sass::Instruction* machine_instruction_of(const Code& code, const OpInfo& info);
// The code that an OpInfo belongs to.
const Code& code_of(const Program& program, const OpInfo& info);

}  // namespace manyscale::gpu
