// SPDX-License-Identifier: Apache-2.0
// Declarations of registers and variables.
#include <utility>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {

std::vector<Variable>& ModuleParser::scope_variables() {
  return function_ == nullptr ? module_.variables : function_->variables;
}

bool ModuleParser::parse_space(Space& space) const {
  static constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {".reg", Space::reg},       {".param", Space::param},        {".global", Space::global},
      {".shared", Space::shared}, {".local", Space::local},        {".const", Space::constant},
      {".tex", Space::global},    {".shared::cta", Space::shared},
  };
  for (const auto& [name, named] : kSpaces) {
    if (token().is_directive(name)) {
      space = named;
      return true;
    }
  }
  return false;
}

std::uint32_t ModuleParser::parse_alignment() {
  lexer_.advance();
  const Token first = token();
  const std::uint32_t alignment = expect_number("an alignment");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    fail(first, "an alignment must be a power of two, found " + quoted(first.text));
  }
  return alignment;
}

ModuleParser::Specifiers ModuleParser::parse_specifiers(Linkage linkage) {
  Specifiers specifiers;
  specifiers.linkage = linkage;
  const Token space = token();
  if (!parse_space(specifiers.space)) {
    if (linkage != Linkage::internal) fail_expected("'.func', '.entry' or a state space after the linkage");
    if (space.text == ".version" || space.text == ".target" || space.text == ".address_size") {
      fail(space, quoted(space.text) + " stands once, at the start of the module");
    }
    NearestName nearest(space.text);
    for (const char* known :
         {".reg", ".param", ".global", ".shared", ".local", ".const", ".entry", ".func", ".visible",
          ".extern", ".weak", ".common", ".file", ".loc", ".section", ".pragma", ".alias"}) {
      nearest.consider(known);
    }
    const std::string hint = nearest.best().empty() ? "" : ", did you mean " + quoted(nearest.best()) + "?";
    fail(space, "unknown directive " + quoted(space.text) + hint);
  }
  lexer_.advance();
  const bool texture = space.text == ".tex";
  if (specifiers.space == Space::constant && accept('[')) {  // .const[2]: banks of old versions
    expect_number("the number of a bank");
    expect(']', "after the number of the bank");
  }
  for (; token().kind == TokenKind::directive;) {
    const std::string_view text = token().text;
    if (text == ".align") {
      specifiers.alignment = parse_alignment();
    } else if (text == ".v2" || text == ".v4" || text == ".v8") {
      specifiers.vector = static_cast<std::uint8_t>(text[2] - '0');
      lexer_.advance();
    } else if (text == ".attribute") {
      specifiers.managed |= is_managed_attribute();
    } else if (text == ".ptr") {
      // What the pointer points to: of no concern to who runs it.
      lexer_.advance();
      Space pointed;
      if (parse_space(pointed)) lexer_.advance();
      if (token().is_directive(".align")) parse_alignment();
    } else {
      const Type type = type_named(text.substr(1));
      if (type == Type::none) fail(token(), "unknown type " + quoted(text));
      if (specifiers.type != Type::none) fail(token(), "a second type, " + quoted(text));
      specifiers.type = type;
      lexer_.advance();
    }
  }
  if (specifiers.type == Type::none) fail_expected("a type such as .b32");
  if (texture) specifiers.type = Type::texref;
  const bool opaque = specifiers.type >= Type::texref;
  const bool sized = size_of(specifiers.type) != 0;
  if (specifiers.space == Space::reg ? opaque || (!sized && specifiers.type != Type::pred) : !sized) {
    fail(space, quoted(space.text) + " cannot have the type ." + std::string(name_of(specifiers.type)));
  }
  return specifiers;
}

void ModuleParser::parse_declaration(Linkage linkage) {
  const Token first = token();
  const Specifiers specifiers = parse_specifiers(linkage);
  if (function_ == nullptr && (specifiers.space == Space::reg || specifiers.space == Space::param)) {
    fail(first, quoted(first.text) + " must be declared in a function");
  }
  const bool linked =
      specifiers.space != Space::reg && specifiers.space != Space::param && specifiers.space != Space::local;
  if (linkage != Linkage::internal && !linked)
    fail(first, quoted(first.text) + " cannot be linked to other modules");
  do {
    if (token().kind != TokenKind::identifier) fail_expected("a name to declare");
    if (specifiers.space == Space::reg) {
      parse_registers(specifiers);
    } else {
      parse_variable(specifiers);
    }
  } while (accept(','));
  expect(';', "after the declaration");
}

std::uint32_t ModuleParser::parse_group_count() {
  const std::uint32_t count = expect_number("a number of registers");
  expect('>', "after the number");
  return count;
}

void ModuleParser::add_registers(Function& function, std::size_t count, const Token& name) {
  total_registers_ += count;
  if (function.registers.size() + count > limits_.function_registers) {
    fail(name, "a function may have " + std::to_string(limits_.function_registers) + " registers, " +
                   quoted(name.text) + " makes it more");
  }
  if (total_registers_ > limits_.registers) {
    fail(name, "a module may have " + std::to_string(limits_.registers) + " registers, " + quoted(name.text) +
                   " makes it more");
  }
}

void ModuleParser::parse_registers(const Specifiers& specifiers) {
  const Token name = take();
  std::vector<Register>& registers = function_->registers;
  const auto first = static_cast<std::uint32_t>(registers.size());
  if (accept('<')) {
    const std::uint32_t count = parse_group_count();
    add_registers(*function_, count, name);
    const std::vector<std::string_view>& names = numbered_names(name, count);
    for (std::uint32_t i = 0; i < count; ++i)
      registers.push_back({names[i], specifiers.type, specifiers.vector});
    declare_group(name, SymbolKind::group, first, count);
    return;
  }
  add_registers(*function_, 1, name);
  registers.push_back({name.text, specifiers.type, specifiers.vector});
  declare(name, SymbolKind::reg, first);
}

Variable ModuleParser::make_variable(const Specifiers& specifiers, const Token& name) const {
  Variable variable;
  variable.name = name.text;
  variable.space = specifiers.space;
  variable.type = specifiers.type;
  variable.linkage = specifiers.linkage;
  variable.vector = specifiers.vector;
  variable.size = std::uint64_t{size_of(specifiers.type)} * specifiers.vector;
  variable.managed = specifiers.managed;
  variable.alignment = specifiers.alignment != 0
                           ? specifiers.alignment
                           : static_cast<std::uint32_t>(variable.size == 0 ? 1 : variable.size);
  variable.where = name.where;
  return variable;
}

std::vector<std::uint64_t> ModuleParser::parse_dimensions(Variable& variable, const Token& name) {
  std::vector<std::uint64_t> dimensions;
  while (token().is('[')) {
    if (dimensions.size() >= limits_.depth) fail_depth();
    lexer_.advance();
    if (accept(']')) {
      if (!dimensions.empty())
        fail(name, "only the first dimension of " + quoted(name.text) + " may be left out");
      variable.unsized = true;
      dimensions.push_back(0);
      continue;
    }
    const Token first = token();
    const Constant extent = parse_expression(false);
    if (!extent.is_integer() || (extent.kind == ConstantKind::signed_integer && extent.value < 0)) {
      fail(first, "the size of an array must be a whole number, found " + quoted(since(first.begin())));
    }
    if (extent.value == 0 && !dimensions.empty()) {
      fail(first, "only the first dimension of " + quoted(name.text) + " may be 0");
    }
    expect(']', "after the size of the array");
    dimensions.push_back(static_cast<std::uint64_t>(extent.value));
  }
  for (std::size_t i = variable.unsized ? 1 : 0; i < dimensions.size(); ++i) {
    if (__builtin_mul_overflow(variable.size, dimensions[i], &variable.size) ||
        variable.size > limits_.variable) {
      fail(name, quoted(name.text) + " has more than " + std::to_string(limits_.variable) + " bytes");
    }
  }
  return dimensions;
}

void ModuleParser::parse_variable(const Specifiers& specifiers) {
  const Token name = take();
  Variable variable = make_variable(specifiers, name);
  if (accept('<')) {
    const std::uint32_t count = parse_group_count();
    std::vector<Variable>& variables = scope_variables();
    total_group_variables_ += count;
    if (total_group_variables_ > limits_.group_variables) {
      fail(name,
           "more than " + std::to_string(limits_.group_variables) + " variables, at " + quoted(name.text));
    }
    const auto first = static_cast<std::uint32_t>(variables.size());
    const std::vector<std::string_view>& names = numbered_names(name, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      variables.push_back(variable);
      variables.back().name = names[i];
    }
    const auto kind = function_ == nullptr ? SymbolKind::module_group : SymbolKind::local_group;
    declare_group(name, kind, first, count);
    return;
  }
  const std::vector<std::uint64_t> dimensions = parse_dimensions(variable, name);
  if (accept('=')) parse_initialiser(variable, dimensions, name);
  if (variable.unsized) {
    if (variable.linkage != Linkage::external && variable.space != Space::param) {
      fail(name, "the size of " + quoted(name.text) + " is left out, which only '.extern' allows");
    }
    variable.size = 0;
  }
  add_variable(std::move(variable), name);
}

void ModuleParser::add_variable(Variable variable, const Token& name) {
  std::vector<Variable>& variables = scope_variables();
  const auto kind = function_ == nullptr ? SymbolKind::variable : SymbolKind::local;
  const Symbol* known = symbols_.find(name.text);
  if (known != nullptr && known->depth == symbols_.depth() && known->kind == kind) {
    Variable& earlier = variables[known->id];
    const bool declaration = variable.linkage == Linkage::external;
    if (declaration || earlier.linkage == Linkage::external) {
      if (earlier.space != variable.space) {
        fail(name, quoted(name.text) + " was declared in the space ." + std::string(name_of(earlier.space)));
      }
      if (!declaration) earlier = std::move(variable);
      return;
    }
  }
  declare(name, kind, static_cast<std::uint32_t>(variables.size()));
  variables.push_back(std::move(variable));
}

}  // namespace manyscale::ptx
