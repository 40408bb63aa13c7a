// SPDX-License-Identifier: Apache-2.0
#include "gpu/sm/kernel_profile.hpp"

#include <algorithm>

#include "gpu/exec/location.hpp"

namespace manyscale::gpu {

using ptx::Type;

namespace {

struct Flops {
  std::uint32_t count = 0;
  std::uint32_t bits = 0;
};

// Multiplications and additions of a matrix instruction, shared by the threads of a warp: "m16n8k16" and the
// like.
std::uint32_t matrix_flops(std::string_view shape) {
  std::uint64_t product = 2;
  unsigned numbers = 0;
  for (std::size_t i = 0; i < shape.size();) {
    if (shape[i] != "mnk"[numbers % 3]) return 0;
    std::uint64_t value = 0;
    for (++i; i < shape.size() && shape[i] >= '0' && shape[i] <= '9'; ++i)
      value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(shape[i] - '0'), 4096);
    product *= value;
    ++numbers;
  }
  return numbers == 3 ? static_cast<std::uint32_t>(product / kLanes) : 0;
}

// As Nsight Compute counts them: one for an addition or a product, two for both together.
Flops flops_of(const ptx::Module& module, const ptx::Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "mma" || opcode == "wmma") {
    Flops flops{0, 16};
    for (std::string_view modifier : module.modifiers_of(instruction)) {
      if (modifier == "load" || modifier == "store") return {};
      if (const std::uint32_t count = matrix_flops(modifier)) flops.count = count;
      const Type type = ptx::type_named(modifier);
      if (type == Type::f64) flops.bits = 64;
      if (type == Type::tf32) flops.bits = 32;
      if (type == Type::s32) return {};
    }
    return flops;
  }
  const bool both = opcode == "fma" || opcode == "mad";
  if (!both && opcode != "add" && opcode != "sub" && opcode != "mul") return {};
  for (std::string_view modifier : module.modifiers_of(instruction)) {
    switch (ptx::type_named(modifier)) {
      case Type::f16:
      case Type::bf16:
        return {both ? 2U : 1U, 16};
      case Type::f16x2:
      case Type::bf16x2:
        return {both ? 4U : 2U, 16};
      case Type::f32:
        return {both ? 2U : 1U, 32};
      case Type::f64:
        return {both ? 2U : 1U, 64};
      default:
        break;
    }
  }
  return {};
}

// The matrices of a tensor instruction are in one of its words: 1688 is 16 x 8 x 8.
std::uint32_t matrix_flops_of_word(std::string_view word) {
  struct Shape {
    std::string_view word;
    std::uint32_t products;  // of a warp
  };
  static constexpr Shape kShapes[] = {{"884", 8 * 8 * 4}, {"1688", 16 * 8 * 8}, {"16816", 16 * 8 * 16}};
  for (const Shape& shape : kShapes)
    if (shape.word == word) return 2 * shape.products / kLanes;
  return 0;
}

Flops flops_of(const sass::Instruction& instruction) {
  struct Row {
    std::string_view opcode;
    Flops flops;
  };
  static constexpr Row kRows[] = {{"FADD", {1, 32}},  {"FMUL", {1, 32}},  {"FFMA", {2, 32}},
                                  {"DADD", {1, 64}},  {"DMUL", {1, 64}},  {"DFMA", {2, 64}},
                                  {"HADD2", {2, 16}}, {"HMUL2", {2, 16}}, {"HFMA2", {4, 16}}};
  const std::string_view opcode = name_of(instruction.opcode);
  for (const Row& row : kRows)
    if (row.opcode == opcode) return row.flops;
  if (opcode != "HMMA" && opcode != "DMMA") return {};
  Flops flops{0, opcode == "DMMA" ? 64U : 16U};
  bool in_steps = false;
  bool single = false;
  for (sass::Modifier modifier : instruction.modifiers) {
    const std::string_view word = name_of(modifier);
    if (const std::uint32_t count = matrix_flops_of_word(word)) flops.count = count;
    if (word == "TF32") flops.bits = 32;
    in_steps |= word.starts_with("STEP");
    single |= word == "F32";
  }
  // A Volta multiplies four pairs of matrices at once, in four steps, or in two if it adds up in half
  // precision.
  if (in_steps && !single) flops.count *= 2;
  return flops;
}

OperationLine line_of(const Program& program, std::uint32_t function, const Code& code, const Op& op) {
  const OpInfo& info = code.infos[op.info];
  OperationLine line;
  line.function = code.name;
  line.ptx_line = info.where.line;
  line.source_line = info.source.line;
  if (info.source.line != 0 && info.source.file < program.files.size())
    line.file = program.files[info.source.file];
  if (const sass::Instruction* machine = machine_instruction_of(code, info)) {
    line.text = name_of(machine->opcode);
    for (sass::Modifier modifier : machine->modifiers)
      if (modifier != sass::Modifier{}) (line.text += '.') += name_of(modifier);
    const Flops flops = flops_of(*machine);
    line.flops = flops.count;
    line.flop_bits = flops.bits;
    return line;
  }
  if (info.instruction == ptx::kNone) {
    line.text = "ret";  // where the text of a function ends
    return line;
  }
  const ptx::Module& module = *program.module;
  const ptx::Instruction& instruction =
      module.functions[program.functions[function]].instructions[info.instruction];
  line.text = instruction.opcode;
  for (std::string_view modifier : module.modifiers_of(instruction)) (line.text += '.') += modifier;
  const Flops flops = flops_of(module, instruction);
  line.flops = flops.count;
  line.flop_bits = flops.bits;
  return line;
}

void add(OperationProfile& to, const OperationProfile& from) {
  to.issued += from.issued;
  to.threads += from.threads;
  to.executed += from.executed;
  to.stall_memory += from.stall_memory;
  to.stall_shared += from.stall_shared;
  to.stall_execution += from.stall_execution;
  to.stall_other += from.stall_other;
  to.stall_fault += from.stall_fault;
}

}  // namespace

std::vector<OperationLine> operation_lines(const Program& program) {
  std::vector<OperationLine> lines;
  for (std::uint32_t function = 0; function < program.codes.size(); ++function) {
    const Code& code = program.codes[function];
    for (const Op& op : code.ops)
      if (op.flow != Flow::join) lines.push_back(line_of(program, function, code, op));
  }
  return lines;
}

KernelProfile take_profile(std::span<Sm* const> sms, const TimedLaunch& launch, std::uint32_t index) {
  KernelProfile result;
  std::vector<OperationProfile> sums(launch.first_operation.back());
  std::vector<std::int64_t> atomic_rounds;  // by slice
  for (Sm* sm : sms) {
    const std::unique_ptr<LaunchRecord> record = sm->take_record(index);
    if (!record) continue;
    ++result.sms;
    record->add_to(result.statistics);
    result.statistics.active_cycles += record->active_cycles;
    if (record->states) result.states.add(std::move(*record->states));
    for (std::size_t i = 0; i < sums.size(); ++i) add(sums[i], record->operations[i]);
    atomic_rounds.resize(std::max(atomic_rounds.size(), record->atomic_rounds.size()));
    for (std::size_t i = 0; i < record->atomic_rounds.size(); ++i)
      atomic_rounds[i] += record->atomic_rounds[i];
  }
  // The slice with most changes of all SMs need not be the one with most of each.
  Counter& busiest = result.statistics.atomic_rounds_busiest;
  if (!atomic_rounds.empty()) busiest += std::ranges::max(atomic_rounds) - busiest.value();
  std::size_t next = 0;
  for (const Code& code : launch.launch.program->codes)
    for (const Op& op : code.ops) {
      if (op.flow == Flow::join) {
        sums[next].threads = sums[next].executed =
            0;  // what waits there belongs to the operation behind it, which has its own
        add(sums[next + 1], sums[next]);
      } else {
        result.operations.push_back(sums[next]);
      }
      ++next;
    }
  return result;
}

}  // namespace manyscale::gpu
