// SPDX-License-Identifier: Apache-2.0
// What the values of a function are, seen as an assembler sees them: where each is computed and used, which
// are copies of others, which are constants.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

inline constexpr std::uint32_t kNoOperation = ~std::uint32_t{0};

enum class SourceKind : std::uint8_t {
  none,
  reg,        // a register's element
  immediate,  // in the instruction
  bank,       // in the constant bank: a kernel's parameter, the shape of the grid
};

// An operand once moves and constants are gone.
struct Source {
  SourceKind kind = SourceKind::none;
  std::uint64_t value = 0;  // the element, the bits, or the offset in the bank

  bool is_constant() const { return kind == SourceKind::immediate || kind == SourceKind::bank; }
  bool is_zero() const { return kind == SourceKind::immediate && value == 0; }
  std::uint32_t reg() const { return static_cast<std::uint32_t>(value); }
  bool operator==(const Source&) const = default;
};

// The operands of an operation behind its result, in the order of the text.
struct Sources {
  std::array<Source, 4> list;
  unsigned count = 0;
  std::span<const Source> all() const { return std::span(list).first(count); }
};

// Operations are given by their index in Code::ops, registers by their element: 32 bits, or 64, or a
// predicate.
class Values {
 public:
  Values(const Program& program, const Code& code, const ptx::Function& function, bool is_kernel);

  const Code& code() const { return code_; }
  const ptx::Module& module() const { return module_; }
  const OpInfo& info(std::uint32_t op) const { return code_.infos[code_.ops[op].info]; }
  // The instruction an operation was made of; null for joins and the end of a function.
  const ptx::Instruction* text(std::uint32_t op) const;
  std::string_view opcode(std::uint32_t op) const;
  bool has(std::uint32_t op, std::string_view modifier) const;
  ptx::Type type(std::uint32_t op, unsigned index = 0) const;
  std::span<const std::uint32_t> reads(std::uint32_t op) const;
  std::span<const std::uint32_t> writes(std::uint32_t op) const;
  std::uint32_t result(std::uint32_t op) const { return writes(op)[0]; }

  std::size_t count() const { return bytes_.size(); }
  unsigned bytes(std::uint32_t element) const { return bytes_[element]; }  // 0: a predicate
  bool is_predicate(std::uint32_t element) const { return bytes_[element] == 0; }
  unsigned words(std::uint32_t element) const {
    return bytes_[element] == 0 ? 0 : narrow_[element] ? 1 : (bytes_[element] + 3U) / 4U;
  }
  // Whether 32 bits of a value of 64 are enough: it only becomes an address of shared or local memory
  // or constants.
  bool is_narrow(std::uint32_t element) const { return narrow_[element] != 0; }
  std::uint32_t guard(std::uint32_t op) const;  // the element of its guard; kNoOperation for none
  bool is_guarded(std::uint32_t op) const { return code_.ops[op].guard != kNoSlot; }

  // The one operation that computes an element, in all lanes; kNoOperation if there are several.
  std::uint32_t definition(std::uint32_t element) const { return definitions_[element]; }
  // How many operations write it.
  std::uint32_t writers(std::uint32_t element) const { return writers_[element]; }
  // The operations that use it, copies not counted but their users.
  std::span<const std::uint32_t> users(std::uint32_t element) const;
  // The operations that write it.
  std::span<const std::uint32_t> writing(std::uint32_t element) const;
  // Whether an operation only gives a value another name.
  bool is_copy(std::uint32_t op) const { return copies_[op] != 0; }

  // Whether an operation reads what the launch gave the kernel, and not the results of a call.
  bool is_kernel_parameter(std::uint32_t op) const;
  // Whether an operation computes something that nobody uses.
  bool is_unused(std::uint32_t op) const { return unused_[op] != 0; }
  // Whether an operation does nothing but compute its results.
  bool is_pure(std::uint32_t op) const;

  Source resolve(std::uint32_t element) const;
  Source source(const ptx::Operand& operand, ptx::Type type) const;
  Sources sources(std::uint32_t op) const;
  // The base of the address of a memory operation and what is added to it.
  Source address(std::uint32_t op, std::int64_t& offset) const;
  // Zeros at the low end of a value that are known whatever it is.
  unsigned trailing_zeros(const Source& source, unsigned depth = 0,
                          std::uint32_t assumed = kNoOperation) const;

 private:
  unsigned trailing_zeros_of(std::uint32_t op, unsigned depth, std::uint32_t assumed) const;
  void find_definitions();
  void find_copies();
  void find_users();
  void find_unused();
  void find_narrow();
  bool is_plain_load(std::uint32_t op) const;
  bool keeps_narrow(std::uint32_t op, std::uint32_t element) const;
  bool copy_of_move(std::uint32_t op, Source& to) const;
  bool is_free_conversion(std::uint32_t op) const;
  bool is_taken_apart(std::uint32_t op) const;
  bool is_used_at_once(std::uint32_t op, std::uint32_t original) const;

  const Program& program_;
  const ptx::Module& module_;
  const Code& code_;
  const ptx::Function& function_;
  const bool is_kernel_;
  std::vector<std::uint32_t> first_element_;  // by register of the function
  std::uint32_t declared_ = 0;                // elements of the text; the others are the decoder's own
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> writers_;  // how many operations write an element
  std::vector<std::uint32_t> readers_;
  std::vector<std::uint32_t> definitions_;
  std::vector<Source> meanings_;  // of copies and constants
  std::vector<char> copies_;      // by operation
  std::vector<char> unused_;      // by operation
  std::vector<char> narrow_;      // by element
  std::vector<std::uint32_t> first_user_;
  std::vector<std::uint32_t> users_;
  std::vector<std::uint32_t> first_writer_;
  std::vector<std::uint32_t> writing_;
};

}  // namespace manyscale::gpu
