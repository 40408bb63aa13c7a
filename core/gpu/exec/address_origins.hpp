// SPDX-License-Identifier: Apache-2.0
// Origins of the addresses of a kernel: the pointers among its parameters and the module variables that flow
// into each register of its PTX, and the indices of the CTA that it depends on. A flow-insensitive fixpoint
// over all reachable functions. Leaves out pointers that pass through memory.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// Where a pointer comes from: a word of the parameters, or a variable.
struct AddressOrigin {
  bool is_parameter = true;
  std::uint32_t function = ptx::kNone;  // of a variable that a function declares
  std::uint32_t variable = 0;
  std::uint64_t offset = 0;  // of a word in the block of parameters
};

// What may flow into a register.
struct AddressValue {
  static constexpr std::uint32_t kAxis = 1;  // << 0, 1, 2: %ctaid.x, .y, .z, by one-to-one operations
  static constexpr std::uint32_t kQuotient = 1 << 3;    // the same three after a division
  static constexpr std::uint32_t kRemainder = 1 << 6;   // the same three after a remainder
  static constexpr std::uint32_t kAxes = 0x1ff;         // all of these
  static constexpr std::uint32_t kVarying = 1 << 9;     // differs between threads
  static constexpr std::uint32_t kLoaded = 1 << 10;     // depends on what is in memory
  static constexpr std::uint32_t kPointer = 1 << 11;    // may be a pointer that was found in memory
  static constexpr std::uint32_t kAddend = 1 << 12;     // such a value was added to something else
  static constexpr std::uint32_t kElsewhere = 1 << 13;  // an address of shared, local or constant memory
  static constexpr std::uint32_t kParameter = 1 << 14;  // an address of a parameter

  std::uint64_t origins =
      0;  // by bit: indices of AddressOrigins::origins; the last bit stands for all others
  std::uint32_t flags = 0;

  bool merge(const AddressValue& other);
  // The axes of the grid along which CTAs have different values, as far as operations tell.
  std::uint8_t axes() const;
};

class AddressOrigins {
 public:
  static constexpr std::size_t kLastBit = 63;

  AddressOrigins(const ptx::Module& module, std::uint32_t kernel, const std::set<std::uint32_t>& functions);

  // The value of the base of an address, where the instruction stands that has it as its operand.
  AddressValue address(const ptx::Operand& operand) const { return addresses_.at(&operand); }
  const std::vector<AddressOrigin>& origins() const { return origins_; }

 private:
  struct FunctionValues {
    std::vector<AddressValue> registers;
    std::vector<AddressValue> variables;  // parameters of device functions and of calls
    AddressValue local;                   // all that is stored to local memory
  };

  void visit(std::uint32_t function);
  void visit(std::uint32_t function, const ptx::Instruction& instruction);
  // The value of an operand; of an address, that of its base.
  AddressValue value(std::uint32_t function, const ptx::Operand& operand);
  void visit_load(std::uint32_t function, const ptx::Instruction& instruction);
  void visit_store(std::uint32_t function, const ptx::Instruction& instruction);
  void visit_call(std::uint32_t function, const ptx::Instruction& instruction);
  void pass_arguments(std::uint32_t caller, std::uint32_t callee, std::span<const ptx::Operand> results,
                      std::span<const ptx::Operand> arguments);
  AddressValue compute(std::uint32_t function, const ptx::Instruction& instruction);
  AddressValue load_parameter(std::uint32_t function, const ptx::Operand& address, unsigned bytes,
                              unsigned elements);
  void assign(std::uint32_t function, const ptx::Operand& destination, const AddressValue& value);
  std::uint64_t origin(const AddressOrigin& origin);
  std::uint64_t all_parameters();

  const ptx::Module& module_;
  std::uint32_t kernel_;
  std::set<std::uint32_t> functions_;
  std::map<std::uint32_t, std::uint64_t> parameter_offsets_;  // by variable of the kernel
  std::uint64_t parameter_bytes_ = 0;
  std::map<std::uint32_t, FunctionValues> values_;
  // Registers written since the last label: what was written there holds, not what else is written elsewhere.
  std::map<std::uint32_t, AddressValue> since_label_;
  bool is_guarded_ = false;
  std::map<const ptx::Operand*, AddressValue> addresses_;
  std::vector<AddressOrigin> origins_;
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t, std::uint64_t>, std::size_t> indices_;
  bool changed_ = false;
};

// What an instruction of PTX says of the memory that it touches.
struct AccessModifiers {
  ptx::Space space = ptx::Space::generic;
  ptx::Type type = ptx::Type::none;
  unsigned elements = 1;
  bool read_only = false;  // .nc

  unsigned bytes() const { return ptx::size_of(type) * elements; }
};
AccessModifiers access_modifiers(const ptx::Module& module, const ptx::Instruction& instruction);
// Whether the first operand of an instruction is not a result.
bool has_no_result(std::string_view opcode);
bool is_modified_by(const ptx::Module& module, const ptx::Instruction& instruction, std::string_view name);

}  // namespace manyscale::gpu
