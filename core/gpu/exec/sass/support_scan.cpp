// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/support_scan.hpp"

#include <algorithm>
#include <cstring>

namespace manyscale::gpu {

using sass::CubinFunction;
using sass::Instruction;
using sass::OperandKind;
using sass::Words;

namespace {

// Bits that say nothing of whether an instruction is supported: the guard, and what the issue logic reads.
constexpr std::uint64_t kGuard = std::uint64_t{0xf} << 12;
constexpr std::uint64_t kSchedule = ((std::uint64_t{1} << 21) - 1) << (105 - 64);
constexpr std::size_t kMostKnown = std::size_t{1} << 22;

// Of an instruction that may name a constant: what says whether a launch knows the constant.
std::uint64_t constants_context(const Words& words, const Program& program) {
  const std::uint64_t form = words.bits(9, 3);
  if (form != 3 && form != 5) return 0;
  const auto bank = static_cast<unsigned>(words.bits(54, 5));
  if (bank == 0 || words.bit(91))
    return 1 + (program.banks.first_parameter | std::uint64_t{(program.parameter_bytes + 15) / 16} << 16);
  if (bank == ConstantBanks::kVariableBank) return 2 + program.banks.variable_bytes;
  return 3 + (bank < ConstantBanks::kCount ? program.banks.fixed[bank].size() : 0);
}

std::string code_text(const Words& words) {
  constexpr char kDigits[] = "0123456789abcdef";
  const std::uint64_t code = words.bits(0, 12);
  return std::string("opcode 0x") + kDigits[code >> 8] + kDigits[code >> 4 & 15] + kDigits[code & 15];
}

}  // namespace

std::size_t SupportScan::Hash::operator()(const Key& key) const {
  std::uint64_t mixed = key.low * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 32) ^ key.high) * 0xd6e8feb86659fd93U;
  mixed = (mixed ^ (mixed >> 32) ^ key.context) * 0x9e3779b97f4a7c15U;
  return mixed ^ (mixed >> 29);
}

std::uint32_t SupportScan::index_of(const std::string& instruction, const std::string& why) {
  const auto [found, is_new] =
      indices_.try_emplace({instruction, why}, static_cast<std::uint32_t>(missing_.size()));
  if (is_new) missing_.push_back({instruction, why, {}, {}});
  return found->second;
}

std::uint32_t SupportScan::problem_of(MachineDecoder& decoder, const Instruction& instruction) {
  ++distinct_;
  const std::uint64_t code = instruction.words.bits(0, 12);
  for (unsigned i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::target) depends_on_offset_[code] = true;
  if (instruction.opcode == sass::op("CALL")) is_call_[code] = true;
  const std::string why = decoder.problem_of(instruction);
  if (why.empty()) return kFine;
  return index_of(instruction.known() ? sass::mnemonic(instruction) : code_text(instruction.words), why);
}

SupportScan::Found SupportScan::missing_in(const SassModule& module, const CubinFunction& function,
                                           const CubinFunction& kernel) {
  Found found;
  const std::vector<std::byte>& bytes = module.cubin().sections[function.section].bytes;
  Program program = module.outline(kernel);
  Code code;
  MachineDecoder decoder(program, code, static_cast<std::uint32_t>(bytes.size() / Instruction::kBytes));
  for (std::size_t at = 0; at + Instruction::kBytes <= bytes.size(); at += Instruction::kBytes) {
    ++instructions_;
    Words words;
    std::memcpy(&words.low, bytes.data() + at, sizeof words.low);
    std::memcpy(&words.high, bytes.data() + at + sizeof words.low, sizeof words.high);
    const auto decoded = [&] {
      return sass::decode(words, module.cubin().architecture, static_cast<std::uint32_t>(at));
    };
    const std::uint64_t opcode = words.bits(0, 12);
    std::uint32_t index = kFine;
    if (depends_on_offset_[opcode]) {
      index = problem_of(decoder, decoded());
    } else {
      if (known_.size() >= kMostKnown) known_.clear();
      const Key key{words.low & ~kGuard, words.high & ~kSchedule, constants_context(words, program)};
      const auto [entry, is_new] = known_.try_emplace(key, kFine);
      if (is_new) entry->second = problem_of(decoder, decoded());
      index = entry->second;
    }
    found.calls |= is_call_[opcode];
    if (index == kFine) continue;
    ++found.counts[index];
    Missing& missing = missing_[index];
    if (missing.kernel.empty() || kernel.name < missing.kernel) {
      missing.kernel = kernel.name;
      missing.example = words;
    }
  }
  for (const std::string& why : module.unresolved(function)) {
    const std::uint32_t index = index_of("an address in the code", why);
    ++found.counts[index];
    Missing& missing = missing_[index];
    if (missing.kernel.empty() || kernel.name < missing.kernel) missing.kernel = kernel.name;
  }
  return found;
}

void SupportScan::add(sass::Cubin cubin) {
  if (architecture_ != cubin.architecture.number) known_.clear();
  architecture_ = cubin.architecture.number;
  DeviceMemory memory;
  const SassModule module(std::move(cubin), memory);
  Counts of_functions;
  bool functions_are_known = false;
  for (const CubinFunction& kernel : module.cubin().functions) {
    if (!kernel.is_kernel) continue;
    ++kernels_;
    Found found = missing_in(module, kernel, kernel);
    if (found.calls && !functions_are_known) {
      functions_are_known = true;
      for (const CubinFunction& function : module.cubin().functions)
        if (!function.is_kernel)
          for (const auto& [index, count] : missing_in(module, function, kernel).counts)
            of_functions[index] += count;
    }
    for (const auto& [index, count] : found.counts) missing_[index].instructions += count;
    if (found.calls) found.counts.insert(of_functions.begin(), of_functions.end());
    if (found.counts.empty()) ++supported_;
    for (const auto& [index, count] : found.counts) {
      ++missing_[index].kernels;
      if (found.counts.size() == 1) ++missing_[index].alone;
    }
  }
  for (const auto& [index, count] : of_functions) missing_[index].instructions += count;
}

}  // namespace manyscale::gpu
