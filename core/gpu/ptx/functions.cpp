// SPDX-License-Identifier: Apache-2.0
// Functions: their heads, their bodies without the instructions, and tables of targets.
#include <algorithm>
#include <iterator>
#include <utility>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {
namespace {

// Whether a call made for one head works with the other.
bool same_parameters(const Function& one, const Function& other) {
  if (one.parameters.size() != other.parameters.size() || one.results.size() != other.results.size())
    return false;
  if (one.register_parameters != other.register_parameters) return false;
  const auto size_of_parameter = [](const Function& function, std::uint32_t id) -> std::uint64_t {
    if (function.register_parameters)
      return size_of(function.registers[id].type) * function.registers[id].elements;
    return function.variables[id].size;
  };
  const auto same = [&](const std::vector<std::uint32_t>& ids, const std::vector<std::uint32_t>& others) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (size_of_parameter(one, ids[i]) != size_of_parameter(other, others[i])) return false;
    }
    return true;
  };
  return same(one.parameters, other.parameters) && same(one.results, other.results);
}

}  // namespace

void ModuleParser::parse_function(Linkage linkage) {
  Function header;
  header.linkage = linkage;
  header.is_entry = token().is_directive(".entry");
  lexer_.advance();
  while (token().is_directive(".attribute")) skip_attribute();
  if (!header.is_entry && token().is('(')) parse_parameters(header, header.results, false);
  if (token().kind != TokenKind::identifier) fail_expected("the name of the function");
  const Token name = take();
  header.name = name.text;
  header.where = name.where;
  const std::uint32_t id = add_function(header, name);
  open_scope();
  for (const std::uint32_t result : header.results) {
    const bool is_register = header.register_parameters;
    Token result_name;
    result_name.text = is_register ? header.registers[result].name : header.variables[result].name;
    result_name.where = is_register ? name.where : header.variables[result].where;
    if (result_name.text != "_")
      declare(result_name, is_register ? SymbolKind::reg : SymbolKind::local, result);
  }
  if (token().is('(')) parse_parameters(header, header.parameters, true);
  parse_performance_directives(header);
  header.has_body = token().is('{');
  define(id, std::move(header), name);
  if (token().is('{')) {
    function_ = &module_.functions[id];
    parse_body(name);
  } else {
    expect(';', "or a body after the head of the function");
  }
  close_scope();
  function_ = nullptr;
}

std::uint32_t ModuleParser::add_function(const Function& header, const Token& name) {
  const Symbol* known = symbols_.find(name.text);
  if (known != nullptr && known->kind == SymbolKind::function) {
    const Function& earlier = module_.functions[known->id];
    if (earlier.is_entry != header.is_entry) {
      fail(name, quoted(name.text) + " is declared both as '.entry' and as '.func'");
    }
    return known->id;
  }
  const auto id = static_cast<std::uint32_t>(module_.functions.size());
  declare(name, SymbolKind::function, id);
  module_.functions.emplace_back();
  module_.functions.back().name = header.name;
  module_.functions.back().is_entry = header.is_entry;
  module_.functions.back().linkage = header.linkage;
  return id;
}

void ModuleParser::define(std::uint32_t id, Function header, const Token& name) {
  Function& function = module_.functions[id];
  if (function.has_body && header.has_body)
    fail(name, "the function " + quoted(name.text) + " has a second body");
  if (function.alias_of != kNone && header.has_body) {
    fail(name, quoted(name.text) + " is an alias and cannot have a body");
  }
  if (function.where.line != 0 && !same_parameters(function, header)) {
    fail(name, quoted(name.text) + " was declared with other parameters or results");
  }
  if (function.has_body) return;
  header.noreturn = header.noreturn || function.noreturn;
  header.alias_of = function.alias_of;
  function = std::move(header);
}

void ModuleParser::parse_parameters(Function& function, std::vector<std::uint32_t>& ids, bool declares) {
  expect('(', "before the parameters");
  if (accept(')')) return;
  do {
    parse_parameter(function, ids, declares);
  } while (accept(','));
  expect(')', "or ',' after a parameter");
}

void ModuleParser::parse_parameter(Function& function, std::vector<std::uint32_t>& ids, bool declares) {
  const Token first = token();
  if (!first.is_directive(".param") && !first.is_directive(".reg")) fail_expected("'.param' or '.reg'");
  const Specifiers specifiers = parse_specifiers(Linkage::internal);
  const bool is_register = specifiers.space == Space::reg;
  if (function.results.size() + function.parameters.size() == 0) {
    function.register_parameters = is_register;
  } else if (function.register_parameters != is_register) {
    fail(first, "parameters in '.reg' and in '.param' cannot be mixed, found " + quoted(first.text));
  }
  if (is_register && function.is_entry)
    fail(first, "the parameters of an '.entry' are '.param', found '.reg'");
  if (token().kind != TokenKind::identifier) fail_expected("the name of a parameter");
  const Token name = take();
  std::uint32_t id = 0;
  if (is_register) {
    id = static_cast<std::uint32_t>(function.registers.size());
    add_registers(function, 1, name);
    function.registers.push_back({name.text, specifiers.type, specifiers.vector});
  } else {
    id = static_cast<std::uint32_t>(function.variables.size());
    Variable variable = make_variable(specifiers, name);
    parse_dimensions(variable, name);
    if (variable.unsized) {
      if (function.is_entry) fail(name, "the size of " + quoted(name.text) + " is left out");
      variable.size = 0;
    }
    function.variables.push_back(std::move(variable));
  }
  ids.push_back(id);
  // Prototypes may leave names out with "_".
  if (declares && name.text != "_") declare(name, is_register ? SymbolKind::reg : SymbolKind::local, id);
}

bool ModuleParser::parse_dimensions_directive(std::uint32_t (&dimensions)[3]) {
  lexer_.advance();
  for (std::uint32_t& dimension : dimensions) dimension = 1;
  for (std::uint32_t& dimension : dimensions) {
    dimension = expect_number("a number of threads or CTAs");
    if (!accept(',')) return true;
  }
  return false;
}

void ModuleParser::skip_directive_arguments() {
  lexer_.advance();
  while (token().kind == TokenKind::integer || token().kind == TokenKind::string ||
         token().kind == TokenKind::identifier || token().is(',')) {
    lexer_.advance();
  }
}

void ModuleParser::parse_performance_directives(Function& function) {
  while (token().kind == TokenKind::directive) {
    const Token directive = token();
    const std::string_view text = directive.text;
    bool complete = true;
    if (text == ".maxntid") {
      complete = parse_dimensions_directive(function.maximum_threads);
    } else if (text == ".reqntid") {
      complete = parse_dimensions_directive(function.required_threads);
    } else if (text == ".reqnctapercluster") {
      complete = parse_dimensions_directive(function.required_cluster);
    } else if (text == ".minnctapersm") {
      lexer_.advance();
      function.minimum_ctas = expect_number("a number of CTAs");
    } else if (text == ".maxnreg") {
      lexer_.advance();
      function.maximum_registers = expect_number("a number of registers");
    } else if (text == ".maxclusterrank") {
      lexer_.advance();
      function.maximum_cluster = expect_number("a number of CTAs");
    } else if (text == ".noreturn") {
      lexer_.advance();
      function.noreturn = true;
    } else if (text == ".pragma") {
      parse_pragma();
    } else if (text == ".attribute") {
      skip_attribute();
    } else if (text == ".entry" || text == ".func" || text == ".visible" || text == ".extern") {
      fail_expected("';' or a body after the head of the function");
    } else {
      skip_directive_arguments();  // a hint, of which new versions bring more
    }
    if (!complete) fail(directive, quoted(text) + " takes at most three numbers");
  }
}

void ModuleParser::parse_body(const Token& name) {
  const std::size_t outermost = scopes_.size();
  source_ = {};
  lexer_.advance();  // '{'
  for (;;) {
    const Token first = token();
    if (first.kind == TokenKind::identifier) {
      lexer_.advance();
      if (token().is(':')) {
        parse_label(first);
      } else {
        parse_instruction(first, kNone, false);
      }
    } else if (first.is('@')) {
      parse_guarded_instruction();
    } else if (first.kind == TokenKind::directive) {
      parse_body_directive();
    } else if (first.is('{')) {
      if (scopes_.size() > limits_.depth) fail_depth();
      open_scope();
      lexer_.advance();
    } else if (first.is('}')) {
      lexer_.advance();
      if (scopes_.size() == outermost) return;
      close_scope();
    } else if (first.kind == TokenKind::end) {
      fail(first, "the body of " + quoted(name.text) + " has no end, '}' was expected");
    } else {
      fail_expected("an instruction, a declaration or a label");
    }
  }
}

void ModuleParser::parse_body_directive() {
  const std::string_view text = token().text;
  if (text == ".loc") return parse_source_line();
  if (text == ".file") return parse_file();
  if (text == ".pragma") return parse_pragma();
  if (text == ".section") return skip_section();
  if (text == ".branchtargets" || text == ".calltargets" || text == ".callprototype") {
    fail_expected("a label before " + quoted(text));
  }
  const Linkage linkage = parse_linkage();
  parse_declaration(linkage);
}

void ModuleParser::parse_label(const Token& name) {
  lexer_.advance();  // ':'
  if (token().is_directive(".branchtargets")) return parse_branch_targets(name);
  if (token().is_directive(".calltargets")) return parse_call_targets(name);
  if (token().is_directive(".callprototype")) return parse_call_prototype(name);
  declare(name, SymbolKind::label, static_cast<std::uint32_t>(function_->instructions.size()));
}

void ModuleParser::parse_branch_targets(const Token& name) {
  const auto id = static_cast<std::uint32_t>(function_->branch_tables.size());
  declare(name, SymbolKind::branch_table, id);
  function_->branch_tables.push_back({name.text, {}});
  do {
    lexer_.advance();
    if (token().kind != TokenKind::identifier) fail_expected("a label");
    std::vector<std::uint32_t>& targets = function_->branch_tables[id].targets;
    const auto slot = static_cast<std::uint32_t>(targets.size());
    const PendingLabel pending{token().text, token().where, Sought::label, kNone, id, slot};
    targets.push_back(kNone);
    if (!patch(pending)) pending_.push_back(pending);
    lexer_.advance();
  } while (token().is(','));
  expect(';', "after the labels");
}

void ModuleParser::parse_call_targets(const Token& name) {
  declare(name, SymbolKind::call_table, static_cast<std::uint32_t>(function_->call_tables.size()));
  CallTable table{name.text, {}};
  do {
    lexer_.advance();
    if (token().kind != TokenKind::identifier) fail_expected("the name of a function");
    Resolved resolved;
    if (!resolve(token().text, resolved)) fail_unknown(token().text, token().where, Sought::function);
    if (resolved.kind != SymbolKind::function) fail(token(), quoted(token().text) + " is not a function");
    table.targets.push_back(resolved.id);
    lexer_.advance();
  } while (token().is(','));
  expect(';', "after the functions");
  function_->call_tables.push_back(std::move(table));
}

void ModuleParser::parse_call_prototype(const Token& name) {
  declare(name, SymbolKind::prototype, static_cast<std::uint32_t>(function_->prototypes.size()));
  lexer_.advance();
  Function head;
  if (token().is('(')) parse_parameters(head, head.results, false);
  if (token().kind != TokenKind::identifier) fail_expected("'_' in place of the function's name");
  lexer_.advance();
  if (token().is('(')) parse_parameters(head, head.parameters, false);
  parse_performance_directives(head);
  expect(';', "after the prototype");
  Prototype prototype;
  prototype.name = name.text;
  prototype.noreturn = head.noreturn;
  const auto move_to = [&](const std::vector<std::uint32_t>& ids, std::vector<Variable>& into) {
    for (const std::uint32_t id : ids) {
      if (!head.register_parameters) {
        into.push_back(std::move(head.variables[id]));
        continue;
      }
      const Register& reg = head.registers[id];
      Variable variable;
      variable.name = reg.name;
      variable.space = Space::reg;
      variable.type = reg.type;
      variable.vector = reg.elements;
      variable.size = std::uint64_t{size_of(reg.type)} * reg.elements;
      into.push_back(std::move(variable));
    }
  };
  move_to(head.results, prototype.results);
  move_to(head.parameters, prototype.parameters);
  function_->prototypes.push_back(std::move(prototype));
}

}  // namespace manyscale::ptx
