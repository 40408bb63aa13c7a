// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/decoder.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {

using sass::Operand;
using sass::OperandKind;

namespace {

// The registers that the texts name, at least those through which functions of the system are called.
RegisterLayout layout_of(std::span<const MachineText> texts) {
  RegisterLayout layout{.general = 16};
  const auto use = [](unsigned& count, unsigned index, unsigned words, unsigned none) {
    if (index < none) count = std::max(count, index + std::max(words, 1U));
  };
  bool returns = false;
  for (const MachineText& text : texts)
    for (const sass::Instruction& instruction : text.instructions) {
      returns |= instruction.opcode == sass::op("RPCMOV");
      for (unsigned i = 0; i < instruction.operand_count; ++i) {
        const Operand& operand = instruction.operands[i];
        // A value may have more words than an operand says, and an address has two.
        const unsigned words = std::max<unsigned>(operand.count, 4);
        switch (operand.kind) {
          case OperandKind::general:
          case OperandKind::address:
          case OperandKind::constant:
            use(layout.general, operand.index, words, sass::kZeroRegister);
            break;
          case OperandKind::uniform:
            use(layout.uniform, operand.index, words, sass::kZeroUniformRegister);
            break;
          case OperandKind::convergence:
            use(layout.barriers, operand.index, 1, RegisterLayout::kBarriers);
            break;
          default:
            break;
        }
        use(layout.uniform, operand.uniform, 2, sass::kZeroUniformRegister);
        use(layout.uniform, operand.descriptor, 2, sass::kZeroUniformRegister);
      }
    }
  if (returns) layout.general += 2;
  return layout;
}

}  // namespace

MachineDecoder::MachineDecoder(Program& program, Code& code, std::span<const MachineText> texts)
    : program_(program), code_(code), layout_(layout_of(texts)) {}

MachineDecoder::MachineDecoder(Program& program, Code& code, std::uint32_t instructions)
    : program_(program),
      code_(code),
      layout_{.general = 258, .uniform = 64, .barriers = RegisterLayout::kBarriers} {
  code_.sections.push_back({program.kernel_name, 0, 0, instructions});
}

Slot MachineDecoder::return_address(bool upper) const {
  return general_register(layout_.general - (upper ? 1 : 2));
}

Slot MachineDecoder::constant(std::span<const std::uint32_t> words) {
  const auto [found, is_new] = constants_.try_emplace({words.begin(), words.end()}, kNoSlot);
  if (is_new) {
    found->second = make_slot(Base::constants, static_cast<std::uint32_t>(program_.constants.size()));
    for (std::uint32_t word : words) {
      const std::size_t at = program_.constants.size();
      program_.constants.resize(at + kPlaneBytes);
      for (unsigned lane = 0; lane < kLanes; ++lane)
        std::memcpy(program_.constants.data() + at + lane * sizeof word, &word, sizeof word);
    }
  }
  return found->second;
}

Slot MachineDecoder::bank_words(unsigned bank, std::uint32_t offset, unsigned words) {
  if (!program_.banks.holds(bank, offset, 4 * words, program_.parameter_bytes))
    throw Unsupported("nothing is known of bytes " + std::to_string(offset) + " to " +
                      std::to_string(offset + 4 * words - 1) + " of constant bank " + std::to_string(bank));
  const auto [found, is_new] = bank_words_.try_emplace({bank, offset, words}, kNoSlot);
  if (is_new) {
    found->second = make_slot(Base::constants, static_cast<std::uint32_t>(program_.constants.size()));
    for (unsigned i = 0; i < words; ++i) {
      program_.constant_words.push_back(
          {bank, offset + 4 * i, static_cast<std::uint32_t>(program_.constants.size())});
      program_.constants.resize(program_.constants.size() + kPlaneBytes);
    }
  }
  return found->second;
}

void MachineDecoder::decode(const sass::Instruction& instruction, const std::string& function) {
  Op& op = code_.ops.emplace_back();
  op.info = static_cast<std::uint32_t>(code_.infos.size() - 1);
  OpInfo& info = code_.infos.back();
  if (const std::string why = build(instruction, op, info.kind); !why.empty())
    program_.problems.push_back({function, sass::text(instruction), why, info.where});
}

std::string MachineDecoder::problem_of(const sass::Instruction& instruction) {
  Op op;
  Class kind{};
  std::string why = build(instruction, op, kind);
  program_.constants.clear();
  program_.constant_words.clear();
  constants_.clear();
  bank_words_.clear();
  code_.slots.clear();
  return why;
}

std::string MachineDecoder::build(const sass::Instruction& instruction, Op& op, Class& kind) {
  if (!instruction.known()) return "these bits are no instruction that we know";
  if (instruction.guard != sass::kTruePredicate || instruction.guard_negated) {
    op.guard = instruction.guard == sass::kTruePredicate ? constant(std::vector<std::uint32_t>{kAllLanes})
               : instruction.guard_uniform               ? layout_.uniform_predicate(instruction.guard)
                                                         : layout_.predicate(instruction.guard);
    op.guard_negated = instruction.guard_negated;
  }
  const MachineOpcode* opcode = find_machine_opcode(sass::name_of(instruction.opcode));
  if (opcode == nullptr) return "the instruction is not supported";
  try {
    MachineBuilder builder(*this, instruction, op, kind);
    opcode->decode(builder);
    const std::string left = builder.unaccounted();
    return left.empty() ? left : left + " is not supported";
  } catch (const Unsupported& unsupported) {
    return unsupported.what();
  }
}

void MachineDecoder::decode(const MachineText& text) {
  first_ = static_cast<std::uint32_t>(code_.ops.size());
  address_ = text.address;
  code_.sections.push_back(
      {text.name, text.address, first_, static_cast<std::uint32_t>(text.instructions.size())});
  for (std::size_t i = 0; i < text.instructions.size(); ++i) {
    OpInfo& info = code_.infos.emplace_back();
    info.instruction = static_cast<std::uint32_t>(code_.machine.size());
    if (i < text.lines.size()) {
      info.where.line = text.lines[i].ptx;
      info.source = text.lines[i].source;
    }
    code_.machine.push_back(text.instructions[i]);
    decode(text.instructions[i], text.name);
  }
}

void decode_machine(Program& program, std::span<const MachineText> texts) {
  Code& code = program.codes.emplace_back();
  code.name = program.kernel_name;
  MachineDecoder decoder(program, code, texts);
  for (const MachineText& text : texts) decoder.decode(text);
  // Code that runs on past its end.
  sass::Instruction& exit = code.machine.emplace_back();
  exit.opcode = sass::op("EXIT");
  OpInfo& info = code.infos.emplace_back();
  info.kind = Class::branch;
  info.instruction = static_cast<std::uint32_t>(code.machine.size() - 1);
  Op& end = code.ops.emplace_back();
  end.flow = Flow::exit;
  end.info = static_cast<std::uint32_t>(code.infos.size() - 1);
  code.frame_bytes = decoder.layout().bytes();
  code.discarded_bytes = decoder.layout().discarded_bytes();
  code.local_bytes = program.banks.stack_bytes;
  for (Op& op : code.ops) {
    if (op.flow == Flow::next && op.handler == nullptr && program.problems.empty())
      program.problems.push_back({code.name, "", "an instruction was left out", {}});
    program.order_matters |= (op.flags & kOrdered) != 0 && op.flow != Flow::exit;
  }
}

const MachineOpcode* find_machine_opcode(std::string_view name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const MachineOpcode*> result;
    for (auto list :
         {machine_integer_opcodes(), machine_integer_parts_opcodes(), machine_integer_extremes_opcodes(),
          machine_logic_opcodes(), machine_bits_opcodes(), machine_float_opcodes(), machine_half_opcodes(),
          machine_convert_opcodes(), machine_pack_opcodes(), machine_move_opcodes(), machine_memory_opcodes(),
          machine_atomic_opcodes(), machine_mbarrier_opcodes(), machine_warp_opcodes(),
          machine_control_opcodes(), machine_tensor_opcodes(), machine_texture_opcodes(),
          machine_surface_opcodes()})
      for (const MachineOpcode& opcode : list) result.emplace(opcode.name, &opcode);
    return result;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace manyscale::gpu
