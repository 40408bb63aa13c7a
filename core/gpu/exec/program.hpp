// SPDX-License-Identifier: Apache-2.0
// A kernel decoded for execution: its own code and that of every function it can reach, with all addresses
// known.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/exec/cross_cta_reads.hpp"
#include "gpu/exec/op.hpp"
#include "gpu/ptx/module.hpp"
#include "gpu/sass/instruction.hpp"

namespace manyscale::gpu {

// What is known of an operation besides how to run it.
struct OpInfo {
  Class kind = Class::other;
  ptx::Location where;     // in the PTX; of SASS only the line, 0 if unknown
  ptx::SourceLine source;  // in the program's own source
  std::uint32_t instruction =
      ptx::kNone;                // in the function's instructions, or in Code::machine; kNone for a join
  std::uint32_t first_read = 0;  // Code::registers[first_read … + reads): the registers it reads
  std::uint32_t first_write = 0;
  std::uint16_t reads = 0;
  std::uint16_t writes = 0;
};

// A function's parameter or result in its own frame.
struct ParameterLocation {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

struct CallSite {
  std::uint32_t callee = 0;                  // index of its code; kNone for an indirect call
  std::vector<ParameterLocation> arguments;  // in the caller's frame
  std::vector<ParameterLocation> results;
  std::vector<Slot> register_arguments;
  std::vector<Slot> register_results;
};

// A function of SASS: operations [first, first + count) of a Code, and its offset in the code window.
struct CodeSection {
  std::string name;
  std::uint64_t address = 0;  // bytes from the start of the window
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Code {
  std::string name;
  std::vector<Op> ops;
  std::vector<OpInfo> infos;
  std::vector<std::uint32_t> registers;  // lists of the infos: ids of the function's registers
  std::vector<Slot> slots;               // lists of the operations
  std::vector<std::vector<std::uint32_t>> branch_tables;  // targets, as indices into ops
  std::vector<CallSite> calls;
  std::vector<ParameterLocation> parameters;
  std::vector<ParameterLocation> results;
  std::vector<Slot> register_parameters;
  std::vector<Slot> register_results;
  std::vector<std::uint8_t> register_parameter_bytes;
  std::vector<std::uint8_t> register_result_bytes;
  std::uint32_t frame_bytes = 0;      // registers
  std::uint32_t discarded_bytes = 0;  // of these, at the end: results that nobody reads
  std::uint32_t local_bytes = 0;      // local memory of one thread
  // Of SASS: its instructions, one for each operation, and where the functions lie that it is made
  // of.
  std::vector<sass::Instruction> machine;
  std::vector<CodeSection> sections;
};

// One kernel parameter: where it lies in the parameter block.
struct KernelParameter {
  std::string name;
  ptx::Type type = ptx::Type::none;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t alignment = 1;
  bool is_array = false;
};

// An instruction that cannot be executed.
struct Problem {
  std::string function;
  std::string text;  // opcode with its modifiers
  std::string why;
  ptx::Location where;
};

// Addresses of what a module declares, once it is loaded on a device.
struct Placement {
  std::vector<std::uint64_t> variables;                        // of the module, by id; 0: none
  std::vector<std::vector<std::uint64_t>> function_variables;  // by function, then by variable
};

// A word of a constant bank that SASS names: it is the same for all lanes and known at the launch.
struct ConstantWord {
  std::uint32_t bank = 0;
  std::uint32_t offset = 0;
  std::uint32_t lanes = 0;  // bytes from the start of the program's constants: 32 lanes of the word
};

// What SASS knows of its constant banks.
struct ConstantBanks {
  static constexpr unsigned kCount = 18;
  std::array<std::vector<std::byte>, kCount> fixed;  // the contents of those that a launch does not change
  std::uint64_t variables = 0;                       // the address of bank 3, which the host may write
  std::uint64_t variable_bytes = 0;
  // Offsets in bank 0: of the parameters, of the address of bank 3 and of %envreg0.
  std::uint32_t first_parameter = 0;
  std::uint32_t variables_at = 0;
  std::uint32_t environment_at = 0;
  std::uint32_t descriptor_at = 0;  // of all global memory, which instructions name and nobody looks at
  // Where the generic address of the parameters is found; before sm_90 that of bank 0, which they are part
  // of.
  std::uint32_t generic_parameters_at = 0;
  std::uint64_t generic_parameters = 0;
  std::uint32_t stack_bytes = 0;  // of a thread: it begins at the top of local memory

  // Whether a launch knows what these bytes are; the last word of a bank may be read with what is behind it.
  bool holds(unsigned bank, std::uint64_t offset, std::uint64_t bytes, std::uint64_t parameter_bytes) const {
    const auto within = [&](std::uint64_t begin, std::uint64_t size) {
      return offset >= begin && offset + bytes <= begin + size;
    };
    if (bank >= kCount) return false;
    if (bank == kVariableBank) return within(0, (variable_bytes + 15) / 16 * 16);
    if (bank != 0) return within(0, fixed[bank].size());
    // Shape of the grid, windows, stack, dynamic shared memory and sequence; then what is put at offsets of
    // its own; then the parameters.
    return within(0, kLaunchBytes) || within(variables_at, 8) || within(environment_at + 4, 8) ||
           within(descriptor_at, 8) || within(generic_parameters_at, 8) || within(kProcessors, 4) ||
           within(first_parameter, (parameter_bytes + 15) / 16 * 16 + 16);
  }
  static constexpr unsigned kVariableBank = 3;
  static constexpr std::uint32_t kLaunchBytes = 0x38;
  static constexpr std::uint32_t kProcessors = 0x10c;
};

struct Program {
  const ptx::Module* module = nullptr;  // that it was decoded from; null if that was SASS
  std::string module_name;              // for messages
  std::string kernel_name;
  std::vector<std::string> files;  // of the source
  std::uint32_t kernel = 0;        // whose code is to be run: an index of `codes`
  std::vector<std::uint32_t>
      functions;  // of the module, ascending: those that can be reached; each has its code
  std::vector<Code> codes;
  std::vector<std::byte> constants;  // values that are the same in all lanes and for all warps
  std::vector<KernelParameter> parameters;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t static_shared_bytes = 0;
  std::uint32_t shared_alignment = 16;
  std::uint64_t reserved_shared_bytes = 0;  // before the kernel's own, for the system (sm_80 and later)
  std::uint32_t registers = 0;              // of a thread, as the SASS says; 0 if it is PTX
  std::map<std::uint32_t, std::string> ptx_texts;  // by line, of the PTX that SASS was made from
  std::vector<ConstantWord> constant_words;
  ConstantBanks banks;
  bool order_matters = false;     // results can depend on the order in which CTAs run: they run in turn
  CrossCtaReads cross_cta_reads;  // of the PTX; nothing where there is only SASS
  std::vector<Problem> problems;

  // The index of the code of a function of the module; kNone if it cannot be reached.
  std::uint32_t code_of(std::uint64_t function) const {
    const auto found = std::lower_bound(functions.begin(), functions.end(), function);
    return found == functions.end() || *found != function
               ? ptx::kNone
               : static_cast<std::uint32_t>(found - functions.begin());
  }
};

// Decodes a kernel. Problems are collected, not thrown: a program with problems must not be run. With
// `reorder`, independent operations are put in the order that an assembler would choose.
Program decode(const ptx::Module& module, std::uint32_t kernel, const Placement& placement,
               bool reorder = false);

// The functions a kernel can get to: by name, or, once there is an indirect call, by any address in the
// module.
std::set<std::uint32_t> reachable_functions(const ptx::Module& module, std::uint32_t kernel);

// The signature alone.
std::vector<KernelParameter> kernel_parameters(const ptx::Module& module, std::uint32_t kernel);

}  // namespace manyscale::gpu
