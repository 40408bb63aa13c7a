// SPDX-License-Identifier: Apache-2.0
// A PTX module as its text says it, with names resolved: what the parser makes and everything else reads.
// Views point into the module's own text. Instructions are not interpreted here: an opcode is a word, its
// modifiers are words, and whether they mean something is for the executor to say.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/types.hpp"

namespace manyscale::ptx {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// A position in the PTX text, counted from 1.
struct Location {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// A position in the program that was compiled to PTX (.file and .loc); line 0 where there is none.
struct SourceLine {
  std::uint32_t file = kNone;  // the number that .file gave
  std::uint32_t line = 0;
};

enum class OperandKind : std::uint8_t {
  reg,       // id: index into the function's registers; component 0..3 for one element of a vector register
  special,   // text: "%tid", "%clock64", …; component 0..3 for .x .y .z .w
  integer,   // value
  floating,  // value: the bits of a double, or of a float if is_f32
  variable,  // id: index into the function's variables if is_local, else into the module's; value: added
  function,  // id: index into the module's functions
  label,     // id: index of the instruction it stands before (it may be one past the last)
  table,     // id: index into the function's branch_tables (component 0), call_tables (1) or prototypes (2)
  address,   // [base + value]: children(): the base (reg, variable or integer 0) and, for textures and the
             // like, what else stood between the brackets ({x, y}, a sampler, …)
  vector,    // {a, b, …}: children()
  pair,      // a|b: children(), two of them
  list,      // (a, b, …) of a call: children()
  sink,      // _
};

struct Operand {
  OperandKind kind = OperandKind::sink;
  bool negated = false;   // !p, and -r or -variable where a compiler writes it
  bool is_f32 = false;    // 0f…: value holds a float's bits
  bool is_local = false;  // variable declared in the function (parameters too)
  std::uint8_t component = 255;
  // Of a register in a video instruction (vadd r1, r2.b0, r3.h1): n for .bn, 16 + n for .hn, 254 for another
  // choice of bytes such as .b3210 (see text), 255 for all of it.
  std::uint8_t part = 255;
  std::uint32_t id = kNone;
  std::uint32_t first = 0;  // children: module.operands[first … first + count)
  std::uint32_t count = 0;
  std::int64_t value = 0;
  std::string_view text;  // as written
  Location where;
};

struct Instruction {
  std::string_view opcode;  // "add", "ld", …: up to the first dot
  std::uint32_t first_modifier =
      0;  // module.modifiers[first_modifier … + modifiers): "cc", "u32", "shared::cta"
  std::uint32_t first_operand = 0;  // module.operands[first_operand … + operands)
  std::uint16_t modifiers = 0;
  std::uint16_t operands = 0;
  std::uint32_t guard = kNone;  // the predicate register of @p or @!p
  bool guard_negated = false;
  Location where;
  SourceLine source;
};

struct Register {
  std::string_view name;
  Type type = Type::none;
  std::uint8_t elements = 1;  // of a vector register (.v2, .v4)
};

// An address that stands in an initialiser and is filled in when the module is loaded.
struct Relocation {
  std::uint64_t offset = 0;  // in the variable's bytes
  std::uint8_t size = 8;     // bytes to fill
  std::uint8_t shift = 0;    // mask operators such as 0xFF00(symbol): the address shifted right by that
  bool is_function = false;
  bool generic = false;      // generic(symbol)
  std::uint32_t id = kNone;  // of the variable or function in the module
  std::int64_t addend = 0;
};

enum class Linkage : std::uint8_t { internal, visible, external, weak, common };

struct Variable {
  std::string_view name;
  Space space = Space::global;
  Type type = Type::none;
  Linkage linkage = Linkage::internal;
  std::uint8_t vector = 1;  // elements of .v2, .v4
  bool unsized = false;     // extern .shared x[]
  bool managed = false;     // .attribute(.managed): host and device share it
  std::uint32_t alignment = 1;
  std::uint64_t size = 0;          // bytes
  std::vector<std::byte> initial;  // empty, or `size` bytes
  std::vector<Relocation> relocations;
  Location where;
};

struct BranchTable {  // .branchtargets: instruction indices
  std::string_view name;
  std::vector<std::uint32_t> targets;
};

struct CallTable {  // .calltargets: function ids
  std::string_view name;
  std::vector<std::uint32_t> targets;
};

struct Prototype {  // .callprototype
  std::string_view name;
  std::vector<Variable> results;
  std::vector<Variable> parameters;
  bool noreturn = false;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  bool noreturn = false;
  Linkage linkage = Linkage::internal;
  std::vector<std::uint32_t> parameters;  // ids in variables, or in registers for .reg parameters
  std::vector<std::uint32_t> results;
  bool register_parameters = false;  // parameters and results are .reg, not .param
  std::vector<Register> registers;
  std::vector<Variable> variables;  // .param, .local, .shared, … declared in it, parameters first
  std::vector<Instruction> instructions;
  std::vector<BranchTable> branch_tables;
  std::vector<CallTable> call_tables;
  std::vector<Prototype> prototypes;
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid; 0: not given
  std::uint32_t maximum_threads[3] = {0, 0, 0};   // .maxntid
  std::uint32_t minimum_ctas = 0;                 // .minnctapersm
  std::uint32_t maximum_registers = 0;            // .maxnreg
  std::uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster, in CTAs
  std::uint32_t maximum_cluster = 0;              // .maxclusterrank
  std::uint32_t alias_of = kNone;                 // .alias: the function it is another name of
  Location where;
};

struct Module {
  std::string name;                   // of the file, for messages
  std::unique_ptr<std::string> text;  // everything views point into
  unsigned version_major = 0;
  unsigned version_minor = 0;
  std::string_view target;  // "sm_80"
  unsigned address_size = 64;
  std::vector<Function> functions;  // declarations too
  std::vector<Variable> variables;  // of module scope
  std::vector<Operand> operands;
  std::vector<std::string_view> modifiers;
  std::vector<std::string> files;                        // by number of .file; "" where there is none
  std::vector<std::unique_ptr<char[]>> generated_names;  // of registers that the text declares as %r<100>

  std::span<const Operand> children(const Operand& operand) const {
    return {operands.data() + operand.first, operand.count};
  }
  std::span<const Operand> operands_of(const Instruction& instruction) const {
    return {operands.data() + instruction.first_operand, instruction.operands};
  }
  std::span<const std::string_view> modifiers_of(const Instruction& instruction) const {
    return {modifiers.data() + instruction.first_modifier, instruction.modifiers};
  }
};

}  // namespace manyscale::ptx
