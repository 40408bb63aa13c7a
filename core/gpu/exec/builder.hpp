// SPDX-License-Identifier: Apache-2.0
// What a decoder of one opcode works with: the instruction's modifiers and operands, checked and turned into
// slots. Each file of instructions/ lists its opcodes; a decoder reads its modifiers with accept() and
// type(), its operands with source() and destination(), and ends with emit(). A modifier that nobody accepted
// makes the instruction unsupported, so a decoder never ignores what it does not know.
#pragma once
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu/exec/op.hpp"
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

class FunctionDecoder;

// The instruction cannot be executed (yet): what() says why, without its location.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Builder {
 public:
  Builder(FunctionDecoder& decoder, const ptx::Instruction& instruction);

  // --- Modifiers
  // --------------------------------------------------------------------------------------------- True if the
  // instruction has the modifier ("ftz", "shared::cta"); it is then accounted for.
  bool accept(std::string_view modifier);
  // The index of the one of `choices` that is there, or -1.
  int accept_one_of(std::initializer_list<std::string_view> choices);
  // Accounts for modifiers that change nothing in what is computed (cache hints, scopes, …).
  void ignore(std::initializer_list<std::string_view> modifiers);
  // The next modifier that is a type, from left to right; `none` if there is no further one.
  ptx::Type type();
  std::span<const std::string_view> modifiers() const;

  // --- Operands
  // ----------------------------------------------------------------------------------------------
  unsigned operands() const;
  const ptx::Operand& operand(unsigned index) const;
  std::span<const ptx::Operand> children(const ptx::Operand& operand) const;
  // Throws Unsupported unless there are between `least` and `most` operands.
  void expect_operands(unsigned least, unsigned most);
  void expect_operands(unsigned exactly) { expect_operands(exactly, exactly); }

  // The slot of a value that is read: a register of exactly the type's size, an immediate (made a constant of
  // the type), a special register, or the address of a variable or function.
  Slot source(const ptx::Operand& operand, ptx::Type type);
  Slot source(unsigned index, ptx::Type type) { return source(operand(index), type); }
  // The slot of a register that is written; `_` gets a register that nobody reads.
  Slot destination(const ptx::Operand& operand, ptx::Type type);
  Slot destination(unsigned index, ptx::Type type) { return destination(operand(index), type); }
  // Predicates. A source may be negated (!p): then `negated` is set; without room for it, it is an error.
  Slot predicate_source(const ptx::Operand& operand, bool* negated = nullptr);
  Slot predicate_destination(const ptx::Operand& operand);
  // Bytes of the register an operand names (an immediate or special register: `otherwise`): loads, stores and
  // conversions may use registers wider than their type. 0 for a predicate.
  unsigned register_bytes(const ptx::Operand& operand, unsigned otherwise) const;
  // A constant that is the same in all lanes.
  Slot constant(std::uint64_t bits, unsigned bytes);
  // A register that only this instruction knows.
  Slot scratch(unsigned bytes);
  bool is_register(unsigned index) const { return operand(index).kind == ptx::OperandKind::reg; }
  // The value of an integer immediate; Unsupported if the operand is something else.
  std::int64_t integer(unsigned index) const;
  // An address operand [base + offset]: the slot of its base (64-bit lanes) and what is added. Addresses of
  // variables are constants; those of local variables and of a function's parameters are offsets in its frame
  // (is_frame).
  struct Address {
    Slot base = kNoSlot;  // kNoSlot: the address is `offset` alone
    std::int64_t offset = 0;
    ptx::Space space = ptx::Space::generic;  // of the variable, if there is one
    bool is_frame = false;
    bool is_variable = false;
  };
  // A register of 32 bits is widened, unless `narrow` is there to say that the base has 32-bit lanes.
  Address address(const ptx::Operand& operand, ptx::Space space, bool* narrow = nullptr);

  // --- Result
  // ------------------------------------------------------------------------------------------------ Adds an
  // operation; fill in what the handler needs. The guard and the location are set by the builder.
  Op& emit(Handler handler, Class kind, Flow flow = Flow::next);
  // Puts slots in the function's operand list; returns its start for Op::aux.
  std::uint32_t list(std::span<const Slot> slots);
  std::uint32_t list(std::initializer_list<Slot> slots) {
    return list(std::span(slots.begin(), slots.size()));
  }
  // Asks for a frame's memory, e.g. for a value that has no register.
  FunctionDecoder& decoder() { return decoder_; }
  const ptx::Instruction& instruction() const { return instruction_; }
  // Modifiers that no accept() has seen.
  std::string unaccounted() const;
  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  void refuse_part(const ptx::Operand& operand) const;

  FunctionDecoder& decoder_;
  const ptx::Instruction& instruction_;
  std::uint64_t accepted_ = 0;  // one bit per modifier
};

// Which instructions of an opcode a decoder takes, by the first type among the modifiers: `add` of integers
// and of floats are different matters.
enum class Operates : std::uint8_t {
  always,
  on_integers,
  on_floats,
  on_halves,
  on_pairs
};  // floats: f32, f64; pairs: f32x2; halves: the rest

// An opcode and who decodes it. Files of instructions/ export lists of these.
struct Opcode {
  std::string_view name;
  void (*decode)(Builder&);
  Operates operates = Operates::always;
};

}  // namespace manyscale::gpu
