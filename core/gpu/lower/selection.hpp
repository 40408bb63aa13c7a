// SPDX-License-Identifier: Apache-2.0
// Which operations become part of others: a product of the sum that uses it, a constant of an address.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/lower/values.hpp"

namespace manyscale::gpu {

// What an operation has become by taking in others.
enum class Form : std::uint8_t {
  plain,
  multiply_add,  // IMAD, IMAD.WIDE, FFMA, DFMA
  shift_add,     // LEA
  add3,          // IADD3 of three
  logic3,        // LOP3 of two operations
  test,          // LOP3 that compares with zero
};

class Selection {
 public:
  explicit Selection(const Values& values);

  // Hardware executes nothing for it.
  bool is_nothing(std::uint32_t op) const { return nothing_[op] != 0; }
  Form form(std::uint32_t op) const { return forms_[op]; }
  // The operation whose operands its users read instead of this element; kNoOperation if they read it.
  std::uint32_t inlined(std::uint32_t element) const { return inlined_[element]; }
  // A load that comes with an earlier one: one instruction loads two elements or four.
  std::uint32_t loaded_with(std::uint32_t op) const { return loaded_with_[op]; }

 private:
  void put_pairs_together();
  void put_offsets_into_addresses();
  void put_products_into_sums();
  void put_shifts_into_sums();
  void put_extensions_into_sums();
  void put_signs_into_users();
  void put_sums_into_sums();
  void put_logic_into_logic();
  void put_choices_into_sources();
  void put_masks_into_tests();
  void put_comparisons_into_predicates();
  void join_shared_loads();

  bool can_vanish(std::uint32_t op) const;
  void inline_into_users(std::uint32_t op, Form form);
  unsigned constants(std::uint32_t op, std::uint32_t with) const;

  const Values& values_;
  std::vector<char> nothing_;
  std::vector<Form> forms_;
  std::vector<std::uint32_t> inlined_;
  std::vector<std::uint32_t> loaded_with_;
};

}  // namespace manyscale::gpu
