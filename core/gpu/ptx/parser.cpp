// SPDX-License-Identifier: Apache-2.0
// The statements of a module, and the tokens that all of the parser reads.
#include "gpu/ptx/parser.hpp"

#include <charconv>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {
namespace {

// Differs between runs, so that no text can be made in which all names fall into one bucket of the hash
// table.
std::uint64_t hash_seed(const std::string& text) {
  return reinterpret_cast<std::uintptr_t>(text.data()) * 0xD1342543DE82EF95;
}

}  // namespace

Module parse(std::string text, std::string name, const Limits& limits) {
  Module module;
  module.name = std::move(name);
  if (text.size() > limits.text) {
    throw SyntaxError(module.name + ":1:1: the text has " + std::to_string(text.size()) + " bytes, at most " +
                      std::to_string(limits.text) + " are read");
  }
  // Compilers that hand PTX over as a C string count its end.
  while (!text.empty() && text.back() == '\0') text.pop_back();
  module.text = std::make_unique<std::string>(std::move(text));
  ModuleParser(module, limits).parse();
  return module;
}

ModuleParser::ModuleParser(Module& module, const Limits& limits)
    : module_(module),
      limits_(limits),
      lexer_(*module.text, module.name),
      symbols_(hash_seed(*module.text)),
      groups_(hash_seed(*module.text)) {}

void ModuleParser::parse() {
  declare_predefined();
  parse_version();
  parse_target();
  if (token().is_directive(".address_size")) parse_address_size();
  while (token().kind != TokenKind::end) parse_module_statement();
  resolve_aliases();
}

Token ModuleParser::take() {
  const Token taken = token();
  lexer_.advance();
  return taken;
}

bool ModuleParser::accept(char punctuation) {
  if (!token().is(punctuation)) return false;
  lexer_.advance();
  return true;
}

void ModuleParser::expect(char punctuation, const char* where) {
  if (!accept(punctuation)) fail_expected(std::string("'") + punctuation + "' " + where);
}

void ModuleParser::fail(const Token& token, const std::string& message) const {
  lexer_.fail(token.where, message);
}

std::string ModuleParser::found() const {
  return token().kind == TokenKind::end ? "the end of the text" : quoted(token().text);
}

void ModuleParser::fail_expected(const std::string& expected) const {
  fail(token(), "expected " + expected + ", found " + found());
}

void ModuleParser::fail_depth() const {
  fail(token(),
       "more than " + std::to_string(limits_.depth) + " braces or parentheses in each other, at " + found());
}

std::string_view ModuleParser::since(const char* begin) const {
  return {begin, static_cast<std::size_t>(lexer_.previous_end() - begin)};
}

std::uint32_t ModuleParser::expect_number(const char* what) {
  Constant value;
  if (token().kind != TokenKind::integer) fail_expected(what);
  if (!read_integer(token().text, value) || static_cast<std::uint64_t>(value.value) >= kNone) {
    fail(token(), std::string(what) + " is too large: " + found());
  }
  lexer_.advance();
  return static_cast<std::uint32_t>(value.value);
}

void ModuleParser::parse_version() {
  if (!token().is_directive(".version")) fail_expected("'.version' at the start of the module");
  lexer_.advance();
  const std::string_view text = token().text;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, module_.version_major);
  const bool dot = major.ec == std::errc() && major.ptr != end && *major.ptr == '.';
  if (token().kind != TokenKind::floating || !dot) fail_expected("a version such as 8.0");
  const auto minor = std::from_chars(major.ptr + 1, end, module_.version_minor);
  if (minor.ec != std::errc() || minor.ptr != end) fail_expected("a version such as 8.0");
  lexer_.advance();
}

void ModuleParser::parse_target() {
  if (!token().is_directive(".target")) fail_expected("'.target' after '.version'");
  do {
    lexer_.advance();
    if (token().kind != TokenKind::identifier) fail_expected("a target such as sm_80");
    if (module_.target.empty() || token().text.starts_with("sm_")) module_.target = token().text;
    lexer_.advance();
  } while (token().is(','));
}

void ModuleParser::parse_address_size() {
  lexer_.advance();
  if (token().text != "32" && token().text != "64") fail_expected("an address size of 32 or 64");
  module_.address_size = token().text == "32" ? 32 : 64;
  lexer_.advance();
}

Linkage ModuleParser::parse_linkage() {
  Linkage linkage = Linkage::internal;
  if (token().is_directive(".visible")) linkage = Linkage::visible;
  if (token().is_directive(".extern")) linkage = Linkage::external;
  if (token().is_directive(".weak")) linkage = Linkage::weak;
  if (token().is_directive(".common")) linkage = Linkage::common;
  if (linkage != Linkage::internal) lexer_.advance();
  return linkage;
}

void ModuleParser::parse_module_statement() {
  if (token().is('@')) {
    // "@@DWARF …" is how old compilers carried debugging information, one line each.
    const std::uint32_t line = token().where.line;
    lexer_.advance();
    if (!token().is('@')) fail_expected("a declaration, a function or a directive");
    while (token().kind != TokenKind::end && token().where.line == line) lexer_.advance();
    return;
  }
  if (token().kind != TokenKind::directive) fail_expected("a declaration, a function or a directive");
  const std::string_view text = token().text;
  if (text == ".file") return parse_file();
  if (text == ".loc") return parse_source_line();
  if (text == ".section") return skip_section();
  if (text == ".pragma") return parse_pragma();
  if (text == ".alias") return parse_alias();
  const Linkage linkage = parse_linkage();
  if (token().is_directive(".entry") || token().is_directive(".func")) return parse_function(linkage);
  parse_declaration(linkage);
}

void ModuleParser::parse_alias() {
  lexer_.advance();
  const auto parse_name = [this]() {
    if (token().kind != TokenKind::identifier) fail_expected("the name of a function");
    const Token name = take();
    Resolved resolved;
    if (!resolve(name.text, resolved)) fail_unknown(name.text, name.where, Sought::function);
    if (resolved.kind != SymbolKind::function || module_.functions[resolved.id].is_entry) {
      fail(name, quoted(name.text) + " is not a function that can have an alias");
    }
    return std::pair(resolved.id, name);
  };
  const auto [alias, name] = parse_name();
  expect(',', "between the two names of '.alias'");
  const auto [function, target] = parse_name();
  expect(';', "after '.alias'");
  if (module_.functions[alias].has_body) fail(name, quoted(name.text) + " has a body and cannot be an alias");
  if (module_.functions[alias].alias_of != kNone) fail(name, quoted(name.text) + " is made an alias twice");
  if (alias == function) fail(name, quoted(name.text) + " is made an alias of itself");
  module_.functions[alias].alias_of = function;
  aliases_.emplace_back(alias, name);
}

void ModuleParser::resolve_aliases() {
  if (aliases_.empty()) return;
  std::vector<std::uint32_t> final_of(module_.functions.size());
  for (std::uint32_t i = 0; i < final_of.size(); ++i) final_of[i] = i;
  for (const auto& [alias, name] : aliases_) {
    std::uint32_t target = module_.functions[alias].alias_of;
    for (std::size_t steps = 0; module_.functions[target].alias_of != kNone; ++steps) {
      target = module_.functions[target].alias_of;
      if (steps > limits_.depth) fail(name, "the aliases of " + quoted(name.text) + " have no end");
    }
    final_of[alias] = target;
  }
  for (const auto& [alias, name] : aliases_) module_.functions[alias].alias_of = final_of[alias];
  for (Operand& operand : module_.operands) {
    if (operand.kind == OperandKind::function) operand.id = final_of[operand.id];
  }
  const auto relocate = [&](std::vector<Variable>& variables) {
    for (Variable& variable : variables) {
      for (Relocation& relocation : variable.relocations) {
        if (relocation.is_function) relocation.id = final_of[relocation.id];
      }
    }
  };
  relocate(module_.variables);
  for (Function& function : module_.functions) {
    relocate(function.variables);
    for (CallTable& table : function.call_tables) {
      for (std::uint32_t& target : table.targets) target = final_of[target];
    }
  }
}

void ModuleParser::parse_file() {
  constexpr std::uint32_t kMostFiles = 1'000'000;
  lexer_.advance();
  const Token first = token();
  const std::uint32_t number = expect_number("the number of a file");
  if (number >= kMostFiles) fail(first, "the number of a file is too large: " + quoted(first.text));
  if (token().kind != TokenKind::string) fail_expected("the name of a file in quotes");
  const auto unquoted = [](std::string_view text) { return std::string(text.substr(1, text.size() - 2)); };
  std::string name = unquoted(take().text);
  // Some compilers write the directory and the file apart.
  if (token().kind == TokenKind::string) {
    name += '/';
    name += unquoted(take().text);
  }
  if (number >= module_.files.size()) module_.files.resize(number + 1);
  module_.files[number] = std::move(name);
  while (accept(',')) {  // time and size of the file
    if (token().kind != TokenKind::integer) fail_expected("a number");
    lexer_.advance();
  }
}

void ModuleParser::parse_source_line() {
  lexer_.advance();
  source_.file = expect_number("the number of a file");
  source_.line = expect_number("the number of a line");
  expect_number("the number of a column");
  while (accept(',')) {
    if (token().is_identifier("function_name")) {
      lexer_.advance();
      if (token().kind != TokenKind::identifier && token().kind != TokenKind::directive) {
        fail_expected("a label after 'function_name'");
      }
      lexer_.advance();
      if (accept('+')) expect_number("an offset");
    } else if (token().is_identifier("inlined_at")) {
      lexer_.advance();
      for (const char* what : {"the number of a file", "the number of a line", "the number of a column"}) {
        expect_number(what);
      }
    } else {
      fail_expected("'function_name' or 'inlined_at'");
    }
  }
}

void ModuleParser::parse_pragma() {
  do {
    lexer_.advance();
    if (token().kind != TokenKind::string) fail_expected("a string after '.pragma'");
    lexer_.advance();
  } while (token().is(','));
  expect(';', "after '.pragma'");
}

void ModuleParser::skip_section() {
  lexer_.advance();
  if (token().kind != TokenKind::directive && token().kind != TokenKind::identifier) {
    fail_expected("the name of a section");
  }
  lexer_.advance();
  skip_balanced('{', '}');
}

void ModuleParser::skip_attribute() {
  lexer_.advance();
  skip_balanced('(', ')');
}

// Reads an attribute of a variable; whether it says that host and device share it.
bool ModuleParser::is_managed_attribute() {
  lexer_.advance();
  const Token begin = token();
  expect('(', "after .attribute");
  bool managed = false;
  for (std::uint64_t depth = 1; depth > 0; lexer_.advance()) {
    if (token().kind == TokenKind::end) fail(begin, "'(' without its ')'");
    managed = managed || token().is_directive(".managed");
    if (token().is('(')) ++depth;
    if (token().is(')')) --depth;
  }
  return managed;
}

void ModuleParser::skip_balanced(char open, char close) {
  const Token begin = token();
  expect(open, "here");
  for (std::uint64_t depth = 1; depth > 0; lexer_.advance()) {
    if (token().kind == TokenKind::end)
      fail(begin, std::string("'") + open + "' without its '" + close + "'");
    if (token().is(open)) ++depth;
    if (token().is(close)) --depth;
  }
}

}  // namespace manyscale::ptx
