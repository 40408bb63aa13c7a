// SPDX-License-Identifier: Apache-2.0
// Decodes one function of a module into code: layout of its frame, its operations, the locations of its
// registers and where its lanes meet again.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/exec/flow_graph.hpp"
#include "gpu/exec/op_schedule.hpp"
#include "gpu/exec/program.hpp"
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// What the functions of one program share while they are decoded.
struct ProgramDecoder {
  const ptx::Module& module;
  const Placement& placement;
  Program& program;
  bool reorder = false;  // independent operations, as an assembler does
  // Where variables of shared memory lie: by (function or kNone, variable).
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> shared;
  std::map<std::pair<std::uint64_t, unsigned>, Slot> constants;

  Slot constant(std::uint64_t bits, unsigned bytes);
};

class FunctionDecoder {
 public:
  FunctionDecoder(ProgramDecoder& shared, std::uint32_t function);

  Code decode();

  const ptx::Module& module() const { return program_.module; }
  const ptx::Function& function() const { return function_; }
  bool is_kernel() const { return function_.is_entry; }
  ProgramDecoder& program() { return program_; }
  Code& code() { return code_; }

  // The slot of a register's element, noted as read or written by the instruction being decoded.
  Slot read(std::uint32_t register_id, unsigned element);
  Slot write(std::uint32_t register_id, unsigned element);
  // A register that only this instruction writes and reads.
  Slot scratch(unsigned bytes);
  unsigned bytes_of(std::uint32_t register_id) const;
  bool is_predicate(std::uint32_t register_id) const;

  // Where a variable of this function's frame lies: .local, and .param but for a kernel's own.
  std::uint32_t frame_offset(std::uint32_t variable) const { return frame_offsets_[variable]; }
  bool in_frame(const ptx::Variable& variable) const;
  // A kernel's parameter: where it lies in the block.
  std::uint64_t parameter_offset(std::uint32_t variable) const { return frame_offsets_[variable]; }
  std::uint64_t address(const ptx::Operand& variable) const;  // of one that is not in the frame
  const ptx::Variable& variable(const ptx::Operand& operand) const;

  Op& emit(const ptx::Instruction& instruction, Handler handler, Class kind, Flow flow);
  // An operation ahead of the instruction's own, which computes something for it; returns its result.
  Slot emit_hidden(const ptx::Instruction& instruction, Handler handler, unsigned bytes, Slot source,
                   std::int64_t immediate);
  std::uint32_t list(std::span<const Slot> slots);
  std::uint32_t new_call(CallSite site);

 private:
  void lay_out_frame();
  void decode_instruction(const ptx::Instruction& instruction);
  void resolve_targets(std::span<const std::uint32_t> op_of_instruction);
  Schedulable schedulable(const Op& op) const;
  void reorder();
  void assign_slots();
  void insert_joins(std::span<const Block> blocks);
  Slot new_register(unsigned bytes);

  ProgramDecoder& program_;
  std::uint32_t id_;
  const ptx::Function& function_;
  Code code_;
  std::vector<std::uint32_t> first_element_;  // of a register, among all elements
  std::vector<std::uint8_t> bytes_;           // of an element; 0: predicate
  std::vector<std::uint64_t> frame_offsets_;  // by variable
  std::vector<std::uint32_t> reads_;          // of the instruction being decoded
  std::vector<std::uint32_t> writes_;
  RegisterUses uses_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      hidden_;  // (operation, register it reads) of this instruction
};

}  // namespace manyscale::gpu
