// SPDX-License-Identifier: Apache-2.0
// The parser of PTX: one pass over the tokens, one function per construct of the language.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/ptx/constants.hpp"
#include "gpu/ptx/lexer.hpp"
#include "gpu/ptx/parser.hpp"
#include "gpu/ptx/symbols.hpp"

namespace manyscale::ptx {

// Fills a module from its text. Each group of functions below has a source file of its own.
class ModuleParser {
 public:
  ModuleParser(Module& module, const Limits& limits);
  void parse();

 private:
  // What stands before the names of a declaration: .global .align 8 .v2 .f32
  struct Specifiers {
    Space space = Space::global;
    Type type = Type::none;
    Linkage linkage = Linkage::internal;
    std::uint8_t vector = 1;
    std::uint32_t alignment = 0;  // 0: that of the type
    bool managed = false;
  };

  // A variable while its initialiser is read.
  struct Initialiser {
    Variable& variable;
    std::vector<std::uint64_t> strides;  // bytes of one element of each dimension, the vector's last
    std::uint64_t limit = 0;             // bytes that there are at most
    std::uint64_t filled = 0;            // end of the last value
  };

  struct Scope {
    std::size_t first_pending = 0;
    std::uint32_t numbered[2] = {0, 0};  // names that end in a digit: without and with a leading %
  };

  // What kind of name an unknown one should have been.
  enum class Sought : std::uint8_t { name, label, function };

  // A name used as the target of a branch or call, which may be declared later in the scope.
  struct PendingLabel {
    std::string_view name;
    Location where;
    Sought what = Sought::label;
    std::uint32_t operand = kNone;  // in module.operands; or, if kNone:
    std::uint32_t table = 0;        // in the function's branch_tables
    std::uint32_t slot = 0;
  };

  struct Resolved {
    SymbolKind kind = SymbolKind::reg;
    std::uint32_t id = kNone;
  };

  // What the opcode says about names among the operands.
  enum class Role : std::uint8_t { plain, branch, call, address, video };

  // Where an operand stands: by itself, within another, or first in an address, where an offset belongs to
  // that.
  enum class OperandContext : std::uint8_t { top, inner, base };

  // Counts how deep constructs stand in each other, and ends the parse before the stack does.
  class Nesting {
   public:
    explicit Nesting(ModuleParser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.limits_.depth) parser_.fail_depth();
    }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ModuleParser& parser_;
  };

  // parser.cpp: tokens and the statements of a module
  const Token& token() const { return lexer_.token(); }
  Token take();
  bool accept(char punctuation);
  void expect(char punctuation, const char* where);
  [[noreturn]] void fail(const Token& token, const std::string& message) const;
  [[noreturn]] void fail_expected(const std::string& expected) const;
  [[noreturn]] void fail_depth() const;
  std::string found() const;
  std::string_view since(const char* begin) const;
  std::uint32_t expect_number(const char* what);
  void parse_version();
  void parse_target();
  void parse_address_size();
  void parse_module_statement();
  void parse_alias();
  void resolve_aliases();
  void parse_file();
  void parse_source_line();
  void parse_pragma();
  void skip_section();
  void skip_attribute();
  bool is_managed_attribute();
  void skip_balanced(char open, char close);
  Linkage parse_linkage();

  // names.cpp
  void declare_predefined();
  void declare(const Token& name, SymbolKind kind, std::uint32_t id);
  void declare_group(const Token& prefix, SymbolKind kind, std::uint32_t first, std::uint32_t count);
  const std::vector<std::string_view>& numbered_names(const Token& group, std::uint32_t count);
  const Symbol* find_group(std::string_view name, std::uint32_t& number) const;
  bool resolve(std::string_view name, Resolved& result) const;
  [[noreturn]] void fail_unknown(std::string_view name, Location where, Sought what) const;
  void open_scope();
  void close_scope();
  void resolve_pending(std::size_t first);
  bool patch(const PendingLabel& pending);

  // declarations.cpp
  Specifiers parse_specifiers(Linkage linkage);
  bool parse_space(Space& space) const;
  std::uint32_t parse_alignment();
  void parse_declaration(Linkage linkage);
  void parse_registers(const Specifiers& specifiers);
  void parse_variable(const Specifiers& specifiers);
  std::uint32_t parse_group_count();
  std::vector<std::uint64_t> parse_dimensions(Variable& variable, const Token& name);
  Variable make_variable(const Specifiers& specifiers, const Token& name) const;
  void add_variable(Variable variable, const Token& name);
  void add_registers(Function& function, std::size_t count, const Token& name);
  std::vector<Variable>& scope_variables();

  // initialisers.cpp
  void parse_initialiser(Variable& variable, const std::vector<std::uint64_t>& dimensions, const Token& name);
  void parse_values(Initialiser& initialiser, std::size_t level, std::uint64_t begin, std::uint64_t end);
  void parse_value(Initialiser& initialiser, std::uint64_t offset);
  void write_value(Initialiser& initialiser, std::uint64_t offset, const Constant& value, const Token& first);

  // functions.cpp
  void parse_function(Linkage linkage);
  void parse_parameters(Function& function, std::vector<std::uint32_t>& ids, bool declares);
  void parse_parameter(Function& function, std::vector<std::uint32_t>& ids, bool declares);
  void parse_performance_directives(Function& function);
  bool parse_dimensions_directive(std::uint32_t (&dimensions)[3]);
  void skip_directive_arguments();
  std::uint32_t add_function(const Function& header, const Token& name);
  void define(std::uint32_t id, Function header, const Token& name);
  void parse_body(const Token& name);
  void parse_body_directive();
  void parse_label(const Token& name);
  void parse_branch_targets(const Token& name);
  void parse_call_targets(const Token& name);
  void parse_call_prototype(const Token& name);

  // instructions.cpp
  void parse_instruction(const Token& opcode, std::uint32_t guard, bool guard_negated);
  void parse_guarded_instruction();
  static Role role_of(std::string_view opcode);
  Operand parse_operand(OperandContext context);
  Operand parse_simple_operand(OperandContext context);
  Operand parse_name(OperandContext context);
  Operand parse_constant();
  Operand parse_address();
  Operand parse_index(Operand base, const char* begin);
  Operand parse_children(OperandKind kind, char close);
  void parse_offset(Operand& operand);
  bool parse_selector(Operand& operand);
  static bool parse_part(std::string_view text, std::uint8_t& part);
  void name_operand(Operand& operand, const Token& name);
  std::uint32_t flush(std::size_t first);

  // expressions.cpp
  Constant parse_expression(bool addresses);
  Constant parse_binary(unsigned precedence, bool addresses);
  Constant parse_unary(bool addresses);
  Constant parse_primary(bool addresses);
  Constant parse_named_constant();
  Constant parse_mask(const Constant& mask, const Token& number);

  Module& module_;
  const Limits limits_;
  Lexer lexer_;
  SymbolTable symbols_;
  SymbolTable groups_;
  std::unordered_map<std::string_view, std::vector<std::string_view>> generated_;
  std::vector<Scope> scopes_;
  std::vector<PendingLabel> pending_;
  std::vector<Operand> operands_;  // of the instruction at hand, which are not yet in the module
  Function* function_ = nullptr;   // whose body is being read
  Role role_ = Role::plain;
  SourceLine source_;
  std::uint32_t depth_ = 0;
  std::uint64_t total_registers_ = 0;
  std::uint64_t total_initialised_ = 0;
  std::uint64_t total_generated_ = 0;
  std::uint64_t total_group_variables_ = 0;
  bool digit_prefixes_ = false;  // there was a group such as %a1<4>, which makes %a12 ambiguous
  std::vector<std::pair<std::uint32_t, Token>> aliases_;
};

}  // namespace manyscale::ptx
