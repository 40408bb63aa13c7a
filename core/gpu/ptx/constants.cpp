// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/constants.hpp"

#include <bit>
#include <charconv>
#include <cmath>

namespace manyscale::ptx {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 0x20) - 'a' + 10;
}

std::uint64_t read_hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) value = value << 4 | static_cast<std::uint64_t>(digit_value(c));
  return value;
}

const char* compute_floating(Operator operation, double left, double right, Constant& result) {
  switch (operation) {
    case Operator::multiply:
      result = floating_constant(left * right);
      break;
    case Operator::divide:
      if (right == 0) return "division by zero";
      result = floating_constant(left / right);
      break;
    case Operator::add:
      result = floating_constant(left + right);
      break;
    case Operator::subtract:
      result = floating_constant(left - right);
      break;
    case Operator::less:
      result = integer_constant(left < right);
      break;
    case Operator::less_or_equal:
      result = integer_constant(left <= right);
      break;
    case Operator::greater:
      result = integer_constant(left > right);
      break;
    case Operator::greater_or_equal:
      result = integer_constant(left >= right);
      break;
    case Operator::equal:
      result = integer_constant(left == right);
      break;
    case Operator::unequal:
      result = integer_constant(left != right);
      break;
    case Operator::logical_and:
      result = integer_constant(left != 0 && right != 0);
      break;
    case Operator::logical_or:
      result = integer_constant(left != 0 || right != 0);
      break;
    default:
      return "this operator needs integers";
  }
  return nullptr;
}

std::uint64_t shifted_right(std::uint64_t value, std::uint64_t amount, bool arithmetic) {
  const bool fill = arithmetic && (value >> 63) != 0;
  if (amount > 63) return fill ? ~std::uint64_t{0} : 0;
  if (amount == 0) return value;
  const std::uint64_t logical = value >> amount;
  return fill ? logical | ~std::uint64_t{0} << (64 - amount) : logical;
}

// Only wraps around where C++ would be undefined.
std::uint64_t divided_signed(std::uint64_t left, std::uint64_t right, bool remainder) {
  if (right == ~std::uint64_t{0}) return remainder ? 0 : 0 - left;
  const auto a = static_cast<std::int64_t>(left);
  const auto b = static_cast<std::int64_t>(right);
  return static_cast<std::uint64_t>(remainder ? a % b : a / b);
}

template <class T>
bool compared(Operator operation, T left, T right) {
  switch (operation) {
    case Operator::less:
      return left < right;
    case Operator::less_or_equal:
      return left <= right;
    case Operator::greater:
      return left > right;
    case Operator::greater_or_equal:
      return left >= right;
    case Operator::equal:
      return left == right;
    default:
      return left != right;
  }
}

const char* compute_integer(Operator operation, const Constant& left, const Constant& right,
                            Constant& result) {
  const auto a = static_cast<std::uint64_t>(left.value);
  const auto b = static_cast<std::uint64_t>(right.value);
  const bool left_signed = left.kind == ConstantKind::signed_integer;
  const bool is_signed = left_signed && right.kind == ConstantKind::signed_integer;
  std::uint64_t value = 0;
  bool result_signed = is_signed;
  switch (operation) {
    case Operator::multiply:
      value = a * b;
      break;
    case Operator::divide:
    case Operator::remainder:
      if (b == 0) return "division by zero";
      if (is_signed) {
        value = divided_signed(a, b, operation == Operator::remainder);
      } else {
        value = operation == Operator::remainder ? a % b : a / b;
      }
      break;
    case Operator::add:
      value = a + b;
      break;
    case Operator::subtract:
      value = a - b;
      break;
    case Operator::shift_left:
      value = b > 63 ? 0 : a << b;
      result_signed = left_signed;
      break;
    case Operator::shift_right:
      value = shifted_right(a, b, left_signed);
      result_signed = left_signed;
      break;
    case Operator::bit_and:
      value = a & b;
      break;
    case Operator::bit_xor:
      value = a ^ b;
      break;
    case Operator::bit_or:
      value = a | b;
      break;
    case Operator::logical_and:
      value = a != 0 && b != 0;
      result_signed = true;
      break;
    case Operator::logical_or:
      value = a != 0 || b != 0;
      result_signed = true;
      break;
    default:
      value = is_signed ? compared(operation, left.value, right.value) : compared(operation, a, b);
      result_signed = true;
      break;
  }
  result = result_signed ? integer_constant(static_cast<std::int64_t>(value)) : unsigned_constant(value);
  return nullptr;
}

const char* compute_address(Operator operation, const Constant& left, const Constant& right,
                            Constant& result) {
  const bool from_right = operation == Operator::add && left.is_integer();
  const Constant& address = from_right ? right : left;
  const Constant& offset = from_right ? left : right;
  const bool adds = operation == Operator::add || operation == Operator::subtract;
  if (!adds || address.kind != ConstantKind::address || !offset.is_integer() || address.masked) {
    return "an integer may be added to an address or subtracted from it, and nothing else";
  }
  const auto amount = static_cast<std::uint64_t>(offset.value);
  result = address;
  result.value = static_cast<std::int64_t>(static_cast<std::uint64_t>(address.value) +
                                           (operation == Operator::subtract ? 0 - amount : amount));
  return nullptr;
}

}  // namespace

Constant integer_constant(std::int64_t value) {
  Constant result;
  result.value = value;
  return result;
}

Constant unsigned_constant(std::uint64_t value) {
  Constant result;
  result.kind = ConstantKind::unsigned_integer;
  result.value = static_cast<std::int64_t>(value);
  return result;
}

Constant floating_constant(double number) {
  Constant result;
  result.kind = ConstantKind::floating;
  result.number = number;
  return result;
}

bool read_integer(std::string_view text, Constant& result) {
  bool is_unsigned = false;
  if (text.ends_with('U')) {
    is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char second = static_cast<char>(text[1] | 0x20);
    base = second == 'x' ? 16 : second == 'b' ? 2 : 8;
    text.remove_prefix(base == 8 ? 1 : 2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  is_unsigned = is_unsigned || value >> 63 != 0;
  result = is_unsigned ? unsigned_constant(value) : integer_constant(static_cast<std::int64_t>(value));
  return true;
}

Constant read_floating(std::string_view text) {
  const char second = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  if (second == 'f') {
    Constant result;
    result.kind = ConstantKind::single;
    result.value = static_cast<std::int64_t>(read_hexadecimal(text.substr(2)));
    return result;
  }
  if (second == 'd') return floating_constant(std::bit_cast<double>(read_hexadecimal(text.substr(2))));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    // from_chars leaves the number alone then; a negative exponent means that it was too small.
    const std::size_t exponent = text.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && text.substr(exponent + 1).starts_with('-');
    number = tiny ? 0.0 : HUGE_VAL;
  }
  return floating_constant(number);
}

double as_double(const Constant& constant) {
  switch (constant.kind) {
    case ConstantKind::floating:
      return constant.number;
    case ConstantKind::single:
      return as_float(constant);
    case ConstantKind::unsigned_integer:
      return static_cast<double>(static_cast<std::uint64_t>(constant.value));
    default:
      return static_cast<double>(constant.value);
  }
}

float as_float(const Constant& constant) {
  if (constant.kind == ConstantKind::single) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(constant.value));
  }
  const double number = as_double(constant);
  // A double beyond the range of float would be undefined to convert.
  if (number > 3.4028235677973366e38) return HUGE_VALF;
  if (number < -3.4028235677973366e38) return -HUGE_VALF;
  return static_cast<float>(number);
}

std::int64_t as_integer(const Constant& constant) {
  if (constant.kind != ConstantKind::floating) return constant.value;
  constexpr double kLimit = 9223372036854775808.0;
  if (std::isnan(constant.number)) return 0;
  if (constant.number >= kLimit) {
    if (constant.number >= 2 * kLimit) return -1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(constant.number));
  }
  if (constant.number < -kLimit) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(constant.number);
}

bool is_true(const Constant& constant) {
  return constant.kind == ConstantKind::floating ? constant.number != 0 : constant.value != 0;
}

const char* compute(Operator operation, const Constant& left, const Constant& right, Constant& result) {
  if (left.kind == ConstantKind::address || right.kind == ConstantKind::address) {
    return compute_address(operation, left, right, result);
  }
  if (left.kind == ConstantKind::single || right.kind == ConstantKind::single) {
    return "a number in the form 0f… cannot be computed with";
  }
  if (left.kind == ConstantKind::floating || right.kind == ConstantKind::floating) {
    return compute_floating(operation, as_double(left), as_double(right), result);
  }
  return compute_integer(operation, left, right, result);
}

}  // namespace manyscale::ptx
