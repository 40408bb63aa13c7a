// SPDX-License-Identifier: Apache-2.0
// What a decoder of one machine instruction works with: its modifiers and operands, turned into slots. As
// with PTX, a modifier or an operand's property that nobody accepted makes the instruction unsupported, so a
// decoder never ignores what it does not know.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/exec/builder.hpp"
#include "gpu/exec/op.hpp"
#include "gpu/exec/sass/lanes.hpp"
#include "gpu/exec/sass/registers.hpp"
#include "gpu/ptx/types.hpp"
#include "gpu/sass/instruction.hpp"

namespace manyscale::gpu {

class MachineDecoder;

class MachineBuilder {
 public:
  MachineBuilder(MachineDecoder& decoder, const sass::Instruction& instruction, Op& op, Class& kind);

  // --- Modifiers
  bool accept(std::string_view modifier);
  // The index of the one of `choices` that is there, or -1.
  int accept_one_of(std::initializer_list<std::string_view> choices);
  // Accounts for modifiers that change nothing in what is computed.
  void ignore(std::initializer_list<std::string_view> modifiers);

  // --- Operands by what they are, in their order: values that are read (general and uniform registers,
  // immediates, constants) and shown; values that are written; predicates that are read and written.
  unsigned values() const { return static_cast<unsigned>(values_.size()); }
  const sass::Operand& value(unsigned index) const;
  unsigned results() const { return static_cast<unsigned>(results_.size()); }
  const sass::Operand& result(unsigned index) const;
  unsigned conditions() const { return static_cast<unsigned>(conditions_.size()); }
  unsigned predicate_results() const { return static_cast<unsigned>(predicate_results_.size()); }
  // The first operand of a kind; null if there is none.
  const sass::Operand* find(sass::OperandKind kind) const;

  // The slot of a value of so many words. Properties of the operand (negated, inverted, absolute) are put
  // into `modifiers` as those of source `k`; without room for them they are an error. An immediate is
  // extended by zeros, one of a double is its upper word.
  Slot source(const sass::Operand& operand, unsigned words = 1, std::int64_t* modifiers = nullptr,
              unsigned k = 0);
  Slot source(unsigned index, unsigned words = 1, std::int64_t* modifiers = nullptr, unsigned k = 0) {
    return source(value(index), words, modifiers, k);
  }
  // The slot of a register that is written.
  Slot destination(const sass::Operand& operand, unsigned words = 1);
  Slot destination(unsigned index = 0, unsigned words = 1) { return destination(result(index), words); }
  // Whether somebody wants the result.
  bool is_wanted(const sass::Operand& operand) const;
  // Predicates; a missing one that is read is true or false as `otherwise` says.
  Slot condition(unsigned index, bool& negated, bool otherwise = true);
  // The one predicate that may be something else than true; kNoSlot if all of them are true.
  Slot only_condition(bool& negated);
  // kNoSlot if nobody wants it.
  Slot predicate_result(unsigned index);
  Slot barrier(const sass::Operand& operand);
  Slot constant(std::uint32_t word);
  Slot constant_pair(std::uint64_t value);
  std::uint32_t list(std::initializer_list<Slot> slots);
  std::uint32_t list(std::span<const Slot> slots);
  // The value of an immediate.
  std::int64_t immediate(const sass::Operand& operand) const;

  // Puts the address operand into an operation: base, offset, flags.
  void address(Op& op, const sass::Operand& operand, ptx::Space space);
  // The same for an operation that finds its memory by locate(): a plain address then stands as in PTX.
  void located_address(Op& op, const sass::Operand& operand, ptx::Space space);

  // --- Result
  // Fills in the operation of this instruction; called once.
  Op& emit(Handler handler, Class kind, Flow flow = Flow::next);
  std::string unaccounted() const;
  [[noreturn]] void unsupported(const std::string& why) const;
  const sass::Instruction& instruction() const { return instruction_; }
  MachineDecoder& decoder() { return decoder_; }
  std::string_view name() const { return sass::name_of(instruction_.opcode); }

 private:
  MachineDecoder& decoder_;
  const sass::Instruction& instruction_;
  Op& op_;
  Class& kind_;
  std::vector<const sass::Operand*> values_;
  std::vector<const sass::Operand*> results_;
  std::vector<const sass::Operand*> conditions_;
  std::vector<const sass::Operand*> predicate_results_;
  std::uint32_t accepted_ = 0;  // one bit per modifier
  std::uint32_t read_ = 0;      // one bit per predicate that is read
};

// A machine instruction and who decodes it.
struct MachineOpcode {
  std::string_view name;
  void (*decode)(MachineBuilder&);
};

// The lists of the files beside this one.
std::span<const MachineOpcode> machine_integer_opcodes();
std::span<const MachineOpcode> machine_integer_parts_opcodes();
std::span<const MachineOpcode> machine_integer_extremes_opcodes();
std::span<const MachineOpcode> machine_logic_opcodes();
std::span<const MachineOpcode> machine_bits_opcodes();
std::span<const MachineOpcode> machine_float_opcodes();
std::span<const MachineOpcode> machine_half_opcodes();
std::span<const MachineOpcode> machine_convert_opcodes();
std::span<const MachineOpcode> machine_pack_opcodes();
std::span<const MachineOpcode> machine_move_opcodes();
std::span<const MachineOpcode> machine_memory_opcodes();
std::span<const MachineOpcode> machine_atomic_opcodes();
std::span<const MachineOpcode> machine_mbarrier_opcodes();
std::span<const MachineOpcode> machine_warp_opcodes();
std::span<const MachineOpcode> machine_control_opcodes();
std::span<const MachineOpcode> machine_tensor_opcodes();
std::span<const MachineOpcode> machine_texture_opcodes();
std::span<const MachineOpcode> machine_surface_opcodes();
const MachineOpcode* find_machine_opcode(std::string_view name);

}  // namespace manyscale::gpu
