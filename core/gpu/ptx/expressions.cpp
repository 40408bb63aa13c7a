// SPDX-License-Identifier: Apache-2.0
// Constant expressions.
#include <bit>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {
namespace {

struct BinaryOperator {
  unsigned precedence;  // 0: no operator
  Operator operation;
};

constexpr unsigned symbol_code(char first, char second) {
  return static_cast<unsigned char>(first) + 256U * static_cast<unsigned char>(second);
}

BinaryOperator binary_operator(const Token& token) {
  if (token.kind != TokenKind::punctuation) return {0, Operator::add};
  switch (token.symbol) {
    case '*':
      return {10, Operator::multiply};
    case '/':
      return {10, Operator::divide};
    case '%':
      return {10, Operator::remainder};
    case '+':
      return {9, Operator::add};
    case '-':
      return {9, Operator::subtract};
    case symbol_code('<', '<'):
      return {8, Operator::shift_left};
    case symbol_code('>', '>'):
      return {8, Operator::shift_right};
    case '<':
      return {7, Operator::less};
    case '>':
      return {7, Operator::greater};
    case symbol_code('<', '='):
      return {7, Operator::less_or_equal};
    case symbol_code('>', '='):
      return {7, Operator::greater_or_equal};
    case symbol_code('=', '='):
      return {6, Operator::equal};
    case symbol_code('!', '='):
      return {6, Operator::unequal};
    case '&':
      return {5, Operator::bit_and};
    case '^':
      return {4, Operator::bit_xor};
    case '|':
      return {3, Operator::bit_or};
    case symbol_code('&', '&'):
      return {2, Operator::logical_and};
    case symbol_code('|', '|'):
      return {1, Operator::logical_or};
    default:
      return {0, Operator::add};
  }
}

}  // namespace

Constant ModuleParser::parse_expression(bool addresses) {
  const Nesting nesting(*this);
  const Constant condition = parse_binary(1, addresses);
  if (!token().is('?')) return condition;
  if (!condition.is_number()) fail(token(), "a condition must be a number, found '?'");
  lexer_.advance();
  const Constant if_true = parse_expression(addresses);
  expect(':', "between the two values of a choice");
  const Constant if_false = parse_expression(addresses);
  return is_true(condition) ? if_true : if_false;
}

Constant ModuleParser::parse_binary(unsigned precedence, bool addresses) {
  Constant left = parse_unary(addresses);
  for (;;) {
    const BinaryOperator found = binary_operator(token());
    if (found.precedence == 0 || found.precedence < precedence) return left;
    const Token sign = take();
    const Constant right = parse_binary(found.precedence + 1, addresses);
    const char* wrong = compute(found.operation, left, right, left);
    if (wrong != nullptr) fail(sign, std::string(wrong) + ", at " + quoted(sign.text));
  }
}

Constant ModuleParser::parse_unary(bool addresses) {
  const Token sign = token();
  if (!sign.is('+') && !sign.is('-') && !sign.is('!') && !sign.is('~')) return parse_primary(addresses);
  const Nesting nesting(*this);
  lexer_.advance();
  const Constant value = parse_unary(addresses);
  if (sign.is('-') && value.kind == ConstantKind::single) {
    Constant negative = value;
    negative.value ^= 0x80000000;
    return negative;
  }
  if (!value.is_number()) fail(sign, "this operator needs a number, at " + quoted(sign.text));
  if (sign.is('+')) return value;
  if (sign.is('!')) return integer_constant(is_true(value) ? 0 : 1);
  if (sign.is('~')) {
    if (!value.is_integer()) fail(sign, "this operator needs an integer, at '~'");
    Constant inverted = value;
    inverted.value = ~value.value;
    return inverted;
  }
  if (value.kind == ConstantKind::floating) return floating_constant(-value.number);
  Constant negative = value;
  negative.value = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value.value));
  return negative;
}

Constant ModuleParser::parse_primary(bool addresses) {
  if (token().kind == TokenKind::directive && token().text[1] >= '0' && token().text[1] <= '9') {
    lexer_.reread_as_number();
  }
  const Token first = token();
  if (first.kind == TokenKind::integer) {
    Constant value;
    if (!read_integer(first.text, value))
      fail(first, "the integer " + quoted(first.text) + " has more than 64 bits");
    lexer_.advance();
    if (addresses && token().is('(')) return parse_mask(value, first);
    return value;
  }
  if (first.kind == TokenKind::floating) {
    lexer_.advance();
    return read_floating(first.text);
  }
  if (first.is('(')) {
    const Nesting nesting(*this);
    lexer_.advance();
    if (token().kind == TokenKind::directive && (token().text[1] < '0' || token().text[1] > '9')) {
      const Token type = take();
      expect(')', "after the type to convert to");
      const Constant value = parse_unary(addresses);
      if (!value.is_number()) fail(type, "only a number can be converted, at " + quoted(type.text));
      if (type.text == ".s64") return integer_constant(as_integer(value));
      if (type.text == ".u64") return unsigned_constant(static_cast<std::uint64_t>(as_integer(value)));
      if (type.text == ".f64") return floating_constant(as_double(value));
      fail(type, "a constant is converted to .s64, .u64 or .f64, found " + quoted(type.text));
    }
    const Constant value = parse_expression(addresses);
    expect(')', "after the expression");
    return value;
  }
  if (first.is_identifier("WARP_SZ")) {
    lexer_.advance();
    return integer_constant(32);
  }
  if (first.kind == TokenKind::identifier && addresses) return parse_named_constant();
  fail_expected(addresses ? "a constant or an address" : "a constant");
}

Constant ModuleParser::parse_named_constant() {
  if (token().text == "generic") {
    lexer_.advance();
    expect('(', "after 'generic'");
    const Nesting nesting(*this);
    const Token first = token();
    Constant value = parse_expression(true);
    if (value.kind != ConstantKind::address || value.masked) {
      fail(first, "'generic' takes an address, found " + quoted(first.text));
    }
    expect(')', "after the address");
    value.generic = true;
    return value;
  }
  const Token name = take();
  Resolved resolved;
  if (!resolve(name.text, resolved)) fail_unknown(name.text, name.where, Sought::name);
  Constant value;
  value.kind = ConstantKind::address;
  value.id = resolved.id;
  value.is_function = resolved.kind == SymbolKind::function;
  if (!value.is_function) {
    if (resolved.kind != SymbolKind::variable) {
      fail(name,
           "only variables and functions of the module have an address here, found " + quoted(name.text));
    }
    const Space space = module_.variables[resolved.id].space;
    if (space != Space::global && space != Space::constant) {
      fail(name, "only variables in .global and .const have an address here, found " + quoted(name.text));
    }
  }
  return value;
}

Constant ModuleParser::parse_mask(const Constant& mask, const Token& number) {
  const auto bits = static_cast<std::uint64_t>(mask.value);
  const int shift = bits == 0 ? 0 : std::countr_zero(bits);
  if (bits == 0 || shift % 8 != 0 || bits >> shift != 0xFF) {
    fail(number, "a mask has one byte of ones, found " + quoted(number.text));
  }
  const Nesting nesting(*this);
  const Token open = take();
  Constant value = parse_expression(true);
  if (value.kind != ConstantKind::address || value.masked) fail(open, "a mask takes an address, at '('");
  expect(')', "after the address");
  value.masked = true;
  value.shift = static_cast<std::uint8_t>(shift);
  return value;
}

}  // namespace manyscale::ptx
