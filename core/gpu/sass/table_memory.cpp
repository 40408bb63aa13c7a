// SPDX-License-Identifier: Apache-2.0
// Loads, stores and what orders them.
#include "gpu/sass/table.hpp"
#include "gpu/sass/table_parts.hpp"

namespace manyscale::sass {
namespace {

constexpr AddressLayout kLoad = {.uniform = 32, .wide_base = 90, .descriptor = 76};
constexpr AddressLayout kGenericLoad = {
    .uniform = 32, .wide_base = 90, .descriptor = 76, .long_without_uniform = true};
constexpr AddressLayout kStore = {.uniform = 64, .wide_base = 90, .descriptor = 76};
constexpr AddressLayout kReduced = {.uniform = 64, .wide_base = 90, .indexed = true};
constexpr AddressLayout kPlainMemory = {};
constexpr AddressLayout kQueried = {.uniform = 32, .wide_base = 90};
constexpr AddressLayout kGenericStore = {.offset = 32, .offset_bits = 32};
constexpr AddressLayout kShared = {.uniform = 32, .scale = 78};
constexpr AddressLayout kSharedStore = {.uniform = 64, .scale = 78};
constexpr AddressLayout kLocalLoad = {.uniform = 32};
constexpr AddressLayout kLocalStore = {.uniform = 64};

// c[bank][R+offset] of LDC.
void read_table_entry(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::constant;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 8));
  operand.indexed = true;
  operand.bank = static_cast<std::uint8_t>(words.bits(54, 5));
  operand.value = static_cast<std::int16_t>(words.bits(38, 16));
  if (words.bit(91)) {
    operand.descriptor = static_cast<std::uint8_t>(words.bits(32, 6));
    operand.bank = 0;
  }
}

// Whether a load reads memory; it is written with its bits inverted.
void read_reads(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::predicate;
  operand.index = static_cast<std::uint8_t>(7 - words.bits(64, 3));
  operand.negated = words.bit(67);
  operand.shown = operand.index != kTruePredicate || operand.negated;
}

// The line that CCTL is about, unless it is about all of them.
void read_cached(Operand& operand, const Words& words, Architecture) {
  constexpr unsigned kBits = 24;
  const std::uint64_t what = words.bits(87, 4);
  operand.kind = OperandKind::address;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 8));
  operand.value = static_cast<std::int64_t>(words.bits(40, kBits) << (64 - kBits)) >> (64 - kBits);
  operand.shown = what < 4 || what == 5 || what > 8;
}

}  // namespace

std::vector<Row> memory_rows() {
  std::vector<ModifierField> global = {bit(72, "E"), eviction(), cache_hint(), access_size()};
  append(global, memory_order());
  const auto with_order = [](std::vector<ModifierField> fields) {
    append(fields, memory_order());
    return fields;
  };
  const std::vector<ModifierField> local = {eviction(), access_size()};
  const ModifierField index_mode = choice(78, 2, {"", "IL", "IS", "ISL"});
  const OperandField found = predicate(81).written().hidden_when_nothing();
  return {
      {"LDG",
       0x181,
       form(1, 4),
       global,
       {found, destination(), address(kLoad), composed(read_reads).when(9, 3, 1)}},
      {"LDGMC",
       0x1a4,
       form(4),
       with_order({bit(72, "E"), choice(87, 3, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"}),
                   choice(73, 4, {"32", "S32", "64", "S64"})}),
       {destination(), address(kReduced)},
       90},
      {"LDGMC",
       0x1a5,
       form(4),
       with_order({bit(72, "E"), choice(88, 2, {"ADD", "MIN", "MAX", "F32ADD"}),
                   choice(73, 4,
                          {"F16x2", "F16x4", "F16x8", "BF16x2", "BF16x4", "BF16x8", "?", "?", "?", "?", "?",
                           "?", "F32", "F32x2", "F32x4", "F64"}),
                   always("RN")}),
       {destination(), address(kReduced)},
       90},
      {"LD", 0x180, form(4), global, {destination(), address(kGenericLoad)}},
      {"LDL", 0x183, form(4), local, {destination(), address(kLocalLoad)}},
      {"LDS", 0x184, form(4), {bit(76, "U"), access_size()}, {destination(), address(kShared)}},
      {"LDC", 0x182, form(5), {index_mode, access_size()}, {destination(), composed(read_table_entry)}},
      {"STG", 0x186, form(1, 4), global, {address(kStore), general(32)}},
      {"ST", 0x185, form(1), global, {address(kGenericStore), general(64)}},
      {"ST", 0x185, form(4), global, {address(kStore), general(32)}},
      {"STL", 0x187, form(1, 4), local, {address(kLocalStore), general(32)}},
      {"STS", 0x188, form(1, 4), {access_size()}, {address(kSharedStore), general(32)}},
      {"LDSM",
       0x03b,
       form(4),
       {always("16"), choice(78, 1, {"M88", "MT88"}), choice(72, 2, {"", "2", "4"})},
       {destination(), address(kLocalLoad)}},
      {"STSM",
       0x044,
       form(4),
       {always("16"), choice(78, 1, {"M88", "MT88"}), choice(72, 2, {"", "2", "4"})},
       {address(kLocalStore), general(32)},
       90},
      {"QSPC",
       0x1aa,
       form(1),
       {bit(72, "E"), choice(73, 2, {"G", "L", "S", "D"})},
       {predicate(81).written(), destination(), address(kPlainMemory)}},
      {"QSPC",
       0x1aa,
       form(4),
       {bit(72, "E"), choice(73, 2, {"G", "L", "S", "D"})},
       {predicate(81).written(), destination(), address(kQueried)},
       75,
       999,
       false,
       {91, 1, 1}},
      {"MEMBAR",
       0x192,
       form(4),
       {choice(79, 2, {"SC", "ALL", ""}), choice(76, 3, {"CTA", "SM", "GPU", "SYS", "?", "VC"})},
       {}},
      {"ERRBAR", 0x1ab, form(4), {}, {}},
      {"CCTL",
       0x18f,
       form(4),
       {bit(72, "E"), choice(87, 4,
                             {"PF1", "PF2", "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL", "WBALLP", "PML2",
                              "DML2", "RML2"})},
       {composed(read_cached)}},
      {"CCTLL",
       0x190,
       form(4),
       {choice(87, 4, {"PF1", "PF2", "WB", "IV", "IVALL", "RS"})},
       {composed(read_cached)}},
      {"LDGDEPBAR", 0x1af, form(4), {}, {}, 80},
  };
}

}  // namespace manyscale::sass
