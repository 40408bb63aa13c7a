// SPDX-License-Identifier: Apache-2.0
// The values that PTX computes while it is read: constants of 64 bits and addresses of symbols.
#pragma once
#include <cstdint>
#include <string_view>

#include "gpu/ptx/module.hpp"

namespace manyscale::ptx {

enum class ConstantKind : std::uint8_t {
  signed_integer,    // value
  unsigned_integer,  // value, to be read as unsigned
  floating,          // number
  single,            // value: the bits of a float, as 0f… gives them
  address,           // of the variable or function `id`, with `value` added
};

// The value of a constant expression.
struct Constant {
  ConstantKind kind = ConstantKind::signed_integer;
  bool is_function = false;
  bool is_local = false;
  bool generic = false;
  bool masked = false;  // one byte of the address, at `shift`
  std::uint8_t shift = 0;
  std::uint32_t id = kNone;
  std::int64_t value = 0;
  double number = 0;

  bool is_integer() const {
    return kind == ConstantKind::signed_integer || kind == ConstantKind::unsigned_integer;
  }
  bool is_number() const { return is_integer() || kind == ConstantKind::floating; }
};

enum class Operator : std::uint8_t {
  multiply,
  divide,
  remainder,
  add,
  subtract,
  shift_left,
  shift_right,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  equal,
  unequal,
  bit_and,
  bit_xor,
  bit_or,
  logical_and,
  logical_or,
};

Constant integer_constant(std::int64_t value);
Constant unsigned_constant(std::uint64_t value);
Constant floating_constant(double number);

// The value of a literal as the lexer let it pass; false if it has more than 64 bits.
bool read_integer(std::string_view text, Constant& result);
Constant read_floating(std::string_view text);

double as_double(const Constant& constant);
float as_float(const Constant& constant);  // from a `single` exactly
std::int64_t as_integer(const Constant& constant);
bool is_true(const Constant& constant);

// Computes as PTX does, in 64 bits that wrap around. Returns what is wrong, or nullptr.
const char* compute(Operator operation, const Constant& left, const Constant& right, Constant& result);

}  // namespace manyscale::ptx
