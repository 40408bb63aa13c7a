// SPDX-License-Identifier: Apache-2.0
// Instructions and their operands.
#include <bit>
#include <limits>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {

ModuleParser::Role ModuleParser::role_of(std::string_view opcode) {
  switch (opcode[0]) {
    case 'b':
      return opcode == "bra" || opcode == "brx" ? Role::branch : Role::plain;
    case 'c':
      return opcode == "call" ? Role::call : opcode == "cvta" ? Role::address : Role::plain;
    case 'm':
      return opcode == "mov" || opcode == "mapa" ? Role::address : Role::plain;
    case 'g':
      return opcode == "getctarank" ? Role::address : Role::plain;
    case 'i':
      return opcode == "isspacep" ? Role::address : Role::plain;
    case 'v':
      return Role::video;
    default:
      return Role::plain;
  }
}

void ModuleParser::parse_guarded_instruction() {
  lexer_.advance();  // '@'
  const bool negated = accept('!');
  if (token().kind != TokenKind::identifier) fail_expected("a predicate after '@'");
  const Token predicate = take();
  Resolved resolved;
  if (!resolve(predicate.text, resolved)) fail_unknown(predicate.text, predicate.where, Sought::name);
  const bool is_register = resolved.kind == SymbolKind::reg;
  if (!is_register || function_->registers[resolved.id].type != Type::pred ||
      function_->registers[resolved.id].elements != 1) {
    fail(predicate, quoted(predicate.text) + " is not a predicate");
  }
  if (token().kind != TokenKind::identifier) fail_expected("an instruction");
  const Token opcode = take();
  parse_instruction(opcode, resolved.id, negated);
}

void ModuleParser::parse_instruction(const Token& opcode, std::uint32_t guard, bool guard_negated) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
  if (opcode.text[0] == '%') fail(opcode, "expected an instruction, found " + quoted(opcode.text));
  Instruction instruction;
  instruction.opcode = opcode.text;
  instruction.guard = guard;
  instruction.guard_negated = guard_negated;
  instruction.where = opcode.where;
  instruction.source = source_;
  instruction.first_modifier = static_cast<std::uint32_t>(module_.modifiers.size());
  role_ = role_of(opcode.text);
  for (; token().kind == TokenKind::directive; lexer_.advance()) {
    module_.modifiers.push_back(token().text.substr(1));
  }
  const std::size_t modifiers = module_.modifiers.size() - instruction.first_modifier;
  if (modifiers > kMost) fail(opcode, quoted(opcode.text) + " has too many modifiers");
  instruction.modifiers = static_cast<std::uint16_t>(modifiers);
  operands_.clear();
  if (!token().is(';')) {
    do {
      // The operand is made first: what stands within it uses the same stack.
      const Operand operand = parse_operand(OperandContext::top);
      operands_.push_back(operand);
    } while (accept(','));
  }
  if (!token().is(';')) fail_expected("',' or ';' after an operand of " + quoted(opcode.text));
  lexer_.advance();
  if (operands_.size() > kMost) fail(opcode, quoted(opcode.text) + " has too many operands");
  instruction.operands = static_cast<std::uint16_t>(operands_.size());
  instruction.first_operand = flush(0);
  if (role_ == Role::branch || role_ == Role::call) {
    for (std::uint32_t i = 0; i < instruction.operands; ++i) {
      const Operand& operand = module_.operands[instruction.first_operand + i];
      if (operand.kind != OperandKind::label) continue;
      const Sought what = role_ == Role::call ? Sought::function : Sought::label;
      const PendingLabel pending{operand.text, operand.where, what, instruction.first_operand + i, 0, 0};
      if (!patch(pending)) pending_.push_back(pending);
    }
  }
  function_->instructions.push_back(instruction);
}

std::uint32_t ModuleParser::flush(std::size_t first) {
  if (module_.operands.size() + (operands_.size() - first) >= kNone)
    fail(token(), "the module has too many operands");
  const auto begin = static_cast<std::uint32_t>(module_.operands.size());
  module_.operands.insert(module_.operands.end(), operands_.begin() + static_cast<std::ptrdiff_t>(first),
                          operands_.end());
  operands_.resize(first);
  return begin;
}

Operand ModuleParser::parse_operand(OperandContext context) {
  const Token first = token();
  const Operand left = parse_simple_operand(context);
  if (!token().is('|')) return left;
  lexer_.advance();
  const Operand right = parse_simple_operand(context);
  const std::size_t begin = operands_.size();
  operands_.push_back(left);
  operands_.push_back(right);
  Operand pair;
  pair.kind = OperandKind::pair;
  pair.where = first.where;
  pair.text = since(first.begin());
  pair.count = 2;
  pair.first = flush(begin);
  return pair;
}

Operand ModuleParser::parse_simple_operand(OperandContext context) {
  const Token first = token();
  if (first.kind == TokenKind::identifier) return parse_name(context);
  if (first.kind == TokenKind::integer) return parse_constant();
  if (first.is('[')) return parse_address();
  if (first.is('{')) return parse_children(OperandKind::vector, '}');
  if (first.is('(') && role_ == Role::call) return parse_children(OperandKind::list, ')');
  if (first.is('!') || first.is('-')) {
    Lexer ahead = lexer_;
    ahead.advance();
    if (ahead.token().kind == TokenKind::identifier && ahead.token().text != "WARP_SZ") {
      lexer_.advance();
      Operand operand = parse_name(context);
      operand.negated = true;
      operand.where = first.where;
      operand.text = since(first.begin());
      return operand;
    }
  }
  return parse_constant();
}

Operand ModuleParser::parse_constant() {
  const Token first = token();
  Operand operand;
  operand.where = first.where;
  const bool sign = first.is('(') || first.is('-') || first.is('+') || first.is('~') || first.is('!');
  if ((first.kind == TokenKind::punctuation && !sign) || first.kind == TokenKind::string ||
      first.kind == TokenKind::end) {
    fail_expected("an operand");
  }
  const Constant value = parse_expression(false);
  operand.kind = value.is_integer() ? OperandKind::integer : OperandKind::floating;
  operand.is_f32 = value.kind == ConstantKind::single;
  operand.value =
      value.kind == ConstantKind::floating ? std::bit_cast<std::int64_t>(value.number) : value.value;
  operand.text = since(first.begin());
  return operand;
}

void ModuleParser::name_operand(Operand& operand, const Token& name) {
  operand.where = name.where;
  operand.text = name.text;
  if (name.text == "_") return;
  Resolved resolved;
  const bool known = resolve(name.text, resolved);
  const bool may_be_label = role_ == Role::branch || role_ == Role::call;
  if (may_be_label && (!known || (role_ == Role::branch && resolved.kind != SymbolKind::reg))) {
    operand.kind = OperandKind::label;
    return;
  }
  if (!known) fail_unknown(name.text, name.where, Sought::name);
  operand.id = resolved.id;
  switch (resolved.kind) {
    case SymbolKind::reg:
      operand.kind = OperandKind::reg;
      break;
    case SymbolKind::special:
      operand.kind = OperandKind::special;
      operand.id = kNone;
      break;
    case SymbolKind::variable:
      operand.kind = OperandKind::variable;
      break;
    case SymbolKind::local:
      operand.kind = OperandKind::variable;
      operand.is_local = true;
      break;
    case SymbolKind::function:
      operand.kind = OperandKind::function;
      break;
    default:
      if (role_ != Role::call) fail(name, quoted(name.text) + " is a label, which cannot be an operand here");
      operand.kind = OperandKind::label;
      operand.id = kNone;
      break;
  }
}

Operand ModuleParser::parse_name(OperandContext context) {
  const Token name = token();
  if (name.text == "WARP_SZ") return parse_constant();
  lexer_.advance();
  Operand operand;
  name_operand(operand, name);
  if (operand.kind == OperandKind::label && context != OperandContext::top)
    fail_unknown(name.text, name.where, Sought::name);
  if (token().kind == TokenKind::directive && !parse_selector(operand)) {
    fail(token(), quoted(token().text) + " is not a part of " + quoted(name.text));
  }
  if (context == OperandContext::base) return operand;
  if (operand.kind == OperandKind::reg && (token().is('+') || token().is('-'))) {
    fail(token(), "an offset is added to a register only in brackets, found " + found());
  }
  if (operand.kind != OperandKind::variable) return operand;
  if (token().is('[')) return parse_index(operand, name.begin());
  if (token().is('+') || token().is('-')) {
    parse_offset(operand);
    operand.text = since(name.begin());
  }
  return operand;
}

bool ModuleParser::parse_selector(Operand& operand) {
  const std::string_view text = token().text.substr(1);
  const bool is_register = operand.kind == OperandKind::reg;
  if (!is_register && operand.kind != OperandKind::special) return false;
  constexpr std::string_view kElements = "xyzwrgba";
  const std::size_t element = text.size() == 1 ? kElements.find(text[0]) : std::string_view::npos;
  if (element != std::string_view::npos) {
    const unsigned elements =
        is_register ? function_->registers[operand.id].elements : symbols_.find(operand.text)->count;
    if (element % 4 >= elements || elements == 1) return false;
    operand.component = static_cast<std::uint8_t>(element % 4);
  } else if (!is_register || role_ != Role::video || !parse_part(text, operand.part)) {
    return false;
  }
  const char* begin = operand.text.data();
  lexer_.advance();
  if (is_register) operand.text = since(begin);
  return true;
}

bool ModuleParser::parse_part(std::string_view text, std::uint8_t& part) {
  if (text.size() < 2 || text.size() > 5 || (text[0] != 'b' && text[0] != 'h')) return false;
  const char last = text.size() > 2 ? '7' : text[0] == 'b' ? '3' : '1';
  for (const char c : text.substr(1)) {
    if (c < '0' || c > last) return false;
  }
  part = static_cast<std::uint8_t>(text.size() > 2 ? 254 : (text[0] == 'h' ? 16 : 0) + text[1] - '0');
  return true;
}

void ModuleParser::parse_offset(Operand& operand) {
  auto value = static_cast<std::uint64_t>(operand.value);
  while (token().is('+') || token().is('-')) {
    const bool subtract = token().is('-');
    lexer_.advance();
    const Token first = token();
    const Constant offset = parse_binary(10, false);
    if (!offset.is_integer()) fail(first, "an offset must be an integer, found " + quoted(first.text));
    const auto amount = static_cast<std::uint64_t>(offset.value);
    value += subtract ? 0 - amount : amount;
  }
  operand.value = static_cast<std::int64_t>(value);
}

Operand ModuleParser::parse_index(Operand base, const char* begin) {
  const Token open = take();
  const Variable& variable = base.is_local ? function_->variables[base.id] : module_.variables[base.id];
  if (token().kind == TokenKind::identifier && token().text != "WARP_SZ") {
    fail(token(), "an index must be a constant, found " + quoted(token().text));
  }
  const Constant index = parse_expression(false);
  if (!index.is_integer()) fail(open, "an index must be an integer, at '['");
  expect(']', "after the index");
  const std::uint64_t element = std::uint64_t{size_of(variable.type)} * variable.vector;
  const auto offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(index.value) * element);
  if (role_ == Role::address) {
    base.value = offset;
    base.text = since(begin);
    return base;
  }
  Operand address;
  address.kind = OperandKind::address;
  address.where = base.where;
  address.value = offset;
  address.count = 1;
  const std::size_t first = operands_.size();
  operands_.push_back(base);
  address.first = flush(first);
  address.text = since(begin);
  return address;
}

Operand ModuleParser::parse_address() {
  const Nesting nesting(*this);
  const Token open = take();
  Operand address;
  address.kind = OperandKind::address;
  address.where = open.where;
  const Token first = token();
  Operand base;
  if (first.is(']')) fail_expected("an address");
  if (first.kind == TokenKind::identifier && first.text != "WARP_SZ") {
    base = parse_name(OperandContext::base);
    if (token().is('+') || token().is('-')) parse_offset(address);
  } else {
    base = parse_constant();
    if (base.kind != OperandKind::integer)
      fail(first, "an address must be an integer, found " + quoted(base.text));
    address.value = base.value;
    base.value = 0;
  }
  const std::size_t begin = operands_.size();
  operands_.push_back(base);
  while (accept(',')) {
    const Operand operand = parse_operand(OperandContext::inner);
    operands_.push_back(operand);
  }
  expect(']', "after the address");
  address.count = static_cast<std::uint32_t>(operands_.size() - begin);
  address.first = flush(begin);
  address.text = since(open.begin());
  return address;
}

Operand ModuleParser::parse_children(OperandKind kind, char close) {
  const Nesting nesting(*this);
  const Token open = take();
  Operand operand;
  operand.kind = kind;
  operand.where = open.where;
  const std::size_t begin = operands_.size();
  const bool is_list = kind == OperandKind::list;
  if (!is_list || !token().is(close)) {
    do {
      if (token().is('{') || token().is('[') || token().is('(')) fail_expected("an element");
      const Operand child = parse_operand(OperandContext::inner);
      operands_.push_back(child);
    } while (accept(','));
  }
  expect(close, is_list ? "or ',' in the list" : "or ',' in the vector");
  operand.count = static_cast<std::uint32_t>(operands_.size() - begin);
  operand.first = flush(begin);
  operand.text = since(open.begin());
  return operand;
}

}  // namespace manyscale::ptx
