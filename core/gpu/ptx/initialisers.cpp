// SPDX-License-Identifier: Apache-2.0
// The values that variables are declared with.
#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/ptx/module_parser.hpp"

namespace manyscale::ptx {

void ModuleParser::parse_initialiser(Variable& variable, const std::vector<std::uint64_t>& dimensions,
                                     const Token& name) {
  if (variable.space != Space::global && variable.space != Space::constant) {
    fail(name,
         quoted(name.text) + " is ." + std::string(name_of(variable.space)) + " and cannot be given a value");
  }
  if (variable.linkage == Linkage::external) {
    fail(name, quoted(name.text) + " is defined in another module and cannot be given a value");
  }
  if (variable.type == Type::texref || variable.type == Type::samplerref || variable.type == Type::surfref) {
    return skip_balanced('{', '}');  // how to filter and address, which the host says as well
  }
  Initialiser initialiser{variable, {}, limits_.initialised - total_initialised_, 0};
  std::uint64_t stride = size_of(variable.type);
  if (variable.vector > 1) initialiser.strides.push_back(stride);
  stride *= variable.vector;
  for (std::size_t i = dimensions.size(); i > 0; --i) {
    initialiser.strides.push_back(stride);
    stride *= i > 1 ? dimensions[i - 1] : 1;
  }
  std::reverse(initialiser.strides.begin(), initialiser.strides.end());
  if (!variable.unsized) {
    if (variable.size > initialiser.limit) {
      fail(name, "variables with a value may have " + std::to_string(limits_.initialised) +
                     " bytes together, " + quoted(name.text) + " makes it more");
    }
    initialiser.limit = variable.size;
    variable.initial.resize(variable.size);
  }
  if (initialiser.strides.empty()) {
    if (token().is('{')) fail(token(), quoted(name.text) + " is one value, found '{'");
    parse_value(initialiser, 0);
  } else {
    if (!token().is('{')) fail_expected("'{' before the values of " + quoted(name.text));
    parse_values(initialiser, 0, 0, initialiser.limit);
  }
  if (variable.unsized) {
    const std::uint64_t element = std::max<std::uint64_t>(variable.size, 1);
    variable.size = (initialiser.filled + element - 1) / element * element;
    variable.initial.resize(variable.size);
    variable.unsized = false;
  }
  total_initialised_ += variable.initial.size();
}

void ModuleParser::parse_values(Initialiser& initialiser, std::size_t level, std::uint64_t begin,
                                std::uint64_t end) {
  const Nesting nesting(*this);
  expect('{', "before the values");
  if (accept('}')) return;
  const std::uint64_t stride = initialiser.strides[level];
  const bool innermost = level + 1 == initialiser.strides.size();
  std::uint64_t offset = begin;
  do {
    const Token first = token();
    if (offset > end || end - offset < stride) {
      fail(first, "more values than " + quoted(initialiser.variable.name) + " has elements, at " + found());
    }
    if (innermost) {
      if (first.is('{'))
        fail(first, "more braces than " + quoted(initialiser.variable.name) + " has dimensions");
      parse_value(initialiser, offset);
    } else {
      parse_values(initialiser, level + 1, offset, offset + stride);
    }
    offset += stride;
  } while (accept(','));
  expect('}', "or ',' after a value");
  initialiser.filled = std::max(initialiser.filled, offset);
}

void ModuleParser::parse_value(Initialiser& initialiser, std::uint64_t offset) {
  const Token first = token();
  const std::uint64_t size = size_of(initialiser.variable.type);
  const Constant value = parse_expression(true);
  if (initialiser.variable.initial.size() < offset + size) initialiser.variable.initial.resize(offset + size);
  write_value(initialiser, offset, value, first);
}

void ModuleParser::write_value(Initialiser& initialiser, std::uint64_t offset, const Constant& value,
                               const Token& first) {
  Variable& variable = initialiser.variable;
  const unsigned size = size_of(variable.type);
  const auto mismatch = [&]() {
    fail(first, "the value " + quoted(since(first.begin())) + " does not fit the type ." +
                    std::string(name_of(variable.type)));
  };
  std::uint64_t bits = 0;
  if (value.kind == ConstantKind::address) {
    if (is_float(variable.type) || (!value.masked && size < 4)) mismatch();
    Relocation relocation;
    relocation.offset = offset;
    relocation.size = static_cast<std::uint8_t>(value.masked ? 1 : std::min(size, 8U));
    relocation.shift = value.shift;
    relocation.is_function = value.is_function;
    relocation.generic = value.generic;
    relocation.id = value.id;
    relocation.addend = value.value;
    variable.relocations.push_back(relocation);
    return;
  }
  if (variable.type == Type::f64) {
    if (value.is_integer()) mismatch();
    bits = std::bit_cast<std::uint64_t>(as_double(value));
  } else if (variable.type == Type::f32) {
    if (value.is_integer()) mismatch();
    bits = std::bit_cast<std::uint32_t>(as_float(value));
  } else if (value.is_integer() && !is_float(variable.type)) {
    bits = static_cast<std::uint64_t>(value.value);
  } else if (variable.type == Type::b32) {
    bits = std::bit_cast<std::uint32_t>(as_float(value));
  } else if (variable.type == Type::b64) {
    bits = std::bit_cast<std::uint64_t>(as_double(value));
  } else {
    mismatch();
  }
  // Little-endian, as the machine that is simulated, whatever this one is.
  const bool negative = value.kind == ConstantKind::signed_integer && value.value < 0;
  for (unsigned i = 0; i < size; ++i) {
    const std::uint64_t byte = i < 8 ? bits >> (8 * i) & 0xFF : negative ? 0xFF : 0;
    variable.initial[offset + i] = static_cast<std::byte>(byte);
  }
}

}  // namespace manyscale::ptx
