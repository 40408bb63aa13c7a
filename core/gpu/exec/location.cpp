// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/location.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace manyscale::gpu {

std::string in_words(const std::array<std::uint32_t, 3>& position) {
  std::string text(1, '(');
  for (unsigned axis = 0; axis < 3; ++axis)
    text.append(axis == 0 ? "" : ", ").append(std::to_string(position[axis]));
  return text.append(")");
}

std::array<std::uint32_t, 3> thread_position(const Launch& launch, unsigned thread) {
  return {thread % launch.block[0], thread / launch.block[0] % launch.block[1],
          thread / launch.block[0] / launch.block[1]};
}

std::string location_of(const Program& program, const OpInfo& info) {
  std::string text = program.module_name;
  if (info.where.line != 0) text += ":" + std::to_string(info.where.line);
  if (info.source.line != 0 && info.source.file < program.files.size())
    text += " (" + program.files[info.source.file] + ":" + std::to_string(info.source.line) + ")";
  return text;
}

const ptx::Instruction* instruction_of(const Program& program, const Code& code, const OpInfo& info) {
  const auto index = static_cast<std::size_t>(&code - program.codes.data());
  if (program.module == nullptr || info.instruction == ptx::kNone || index >= program.functions.size())
    return nullptr;
  return &program.module->functions[program.functions[index]].instructions[info.instruction];
}

const sass::Instruction* machine_instruction_of(const Code& code, const OpInfo& info) {
  return info.instruction < code.machine.size() ? &code.machine[info.instruction] : nullptr;
}

std::string instruction_text(const Program& program, const Code& code, const OpInfo& info) {
  if (const sass::Instruction* machine = machine_instruction_of(code, info)) {
    char offset[16];
    std::snprintf(offset, sizeof offset, "0x%04x", machine->offset);
    return sass::text(*machine) + " at " + offset;
  }
  const ptx::Instruction* instruction = instruction_of(program, code, info);
  if (instruction == nullptr) return "ret";
  std::string text(instruction->opcode);
  for (std::string_view modifier : program.module->modifiers_of(*instruction))
    text.append(".").append(modifier);
  return text;
}

const Code& code_of(const Program& program, const OpInfo& info) {
  const auto holds = [&](const Code& code) {
    return !code.infos.empty() && !std::less<>()(&info, code.infos.data()) &&
           std::less<>()(&info, code.infos.data() + code.infos.size());
  };
  return *std::ranges::find_if(program.codes, holds);
}

}  // namespace manyscale::gpu
