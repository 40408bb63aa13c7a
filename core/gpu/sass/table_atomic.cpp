// SPDX-License-Identifier: Apache-2.0
// Read-modify-write instructions.
#include "gpu/sass/table.hpp"
#include "gpu/sass/table_parts.hpp"

namespace manyscale::sass {
namespace {

// The flags of an address stand elsewhere where the operation takes the usual bits.
constexpr AddressLayout kPlain = {};
constexpr AddressLayout kWithUniform = {.uniform = 64, .wide_base = 70, .descriptor = 71};
constexpr AddressLayout kReduction = {.uniform = 64, .wide_base = 90, .descriptor = 71};
constexpr AddressLayout kSharedOfAtomics = {.uniform = 64, .scale = 78};

// Before sm_90 three bits name the type of all operations; from then on floating-point ones have opcodes of
// their own.
std::vector<ModifierField> with_type(std::vector<ModifierField> fields) {
  append(fields, {choice(73, 3, {"", "S32", "64", "F32", "F16x2", "S64", "F64"}).on(70, 89),
                  choice(73, 3, {"", "", "", "FTZ", "RN", "", "RN"}).on(70, 89),
                  choice(73, 3, {"", "", "", "RN", "", "", ""}).on(70, 89),
                  choice(73, 4, {"", "S32", "64", "S64", "128"}).on(90)});
  append(fields, memory_order());
  return fields;
}

std::vector<ModifierField> with_float_type(std::vector<ModifierField> fields) {
  append(fields, {choice(73, 4,
                         {"F16x2", "F16x4", "F16x8", "BF16x2", "BF16x4", "BF16x8", "?", "?", "?", "F32",
                          "F32x2", "F32x4", "F32", "F32x2", "F32x4", "F64"}),
                  choice(73, 4, {"", "", "", "", "", "", "", "", "", "FTZ", "FTZ", "FTZ", "", "", "", ""}),
                  always("RN")});
  append(fields, memory_order());
  return fields;
}

}  // namespace

std::vector<Row> atomic_rows() {
  const ModifierField extended = bit(72, "E");
  const ModifierField operation =
      choice(87, 4, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "SAFEADD"});
  const ModifierField reduction = choice(87, 3, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"});
  const ModifierField float_operation = choice(87, 3, {"ADD", "?", "MIN", "?", "MAX"});
  const ModifierField shared_type = choice(73, 3, {"", "S32", "64", "F32", "F16x2", "S64", "F64"});
  const std::vector<ModifierField> atomic = with_type({extended, operation});
  const std::vector<ModifierField> compare = with_type({extended, always("CAS")});
  const std::vector<ModifierField> reduce = with_type({extended, reduction});
  const std::vector<ModifierField> float_atomic = with_float_type({extended, float_operation});
  const OperandField done = predicate(81).written();
  return {
      {"ATOM", 0x18a, form(1), atomic, {done, destination(), address(kPlain), general(32)}},
      {"ATOM", 0x18a, form(4), atomic, {done, destination(), address(kWithUniform), general(32)}},
      {"ATOM", 0x18b, form(1), compare, {done, destination(), address(kPlain), general(32), general(64)}},
      {"ATOM", 0x1a2, form(4), float_atomic, {done, destination(), address(kWithUniform), general(32)}, 90},
      {"ATOMG", 0x1a8, form(1), atomic, {done, destination(), address(kPlain), general(32)}},
      {"ATOMG", 0x1a8, form(4), atomic, {done, destination(), address(kWithUniform), general(32)}},
      {"ATOMG", 0x1a9, form(1), compare, {done, destination(), address(kPlain), general(32), general(64)}},
      {"ATOMG", 0x1a3, form(4), float_atomic, {done, destination(), address(kWithUniform), general(32)}, 90},
      {"RED", 0x18e, form(4), reduce, {address(kReduction), general(32)}, 70, 89},
      {"REDG", 0x18e, form(4), reduce, {address(kReduction), general(32)}, 90},
      {"REDG", 0x1a6, form(4), float_atomic, {address(kReduction), general(32)}, 90},
      {"ATOMS",
       0x18c,
       form(1, 4),
       {operation, shared_type},
       {destination(), address(kSharedOfAtomics), general(32)}},
      {"ATOMS",
       0x18d,
       form(1, 4),
       {choice(87, 2, {"CAS", "CAS", "?", "CAST"}), choice(87, 2, {"", "", "", "SPIN"}), shared_type},
       {destination(), address(kSharedOfAtomics), general(32), general(64)}},
      {"ATOMS",
       0x18c,
       form(7),
       {always("ARRIVE"), always("64")},
       {destination(), address(kSharedOfAtomics)},
       80,
       999,
       false,
       {87, 4, 9}},
      {"ATOMS",
       0x18c,
       form(7),
       {always("POPC"), always("INC"), always("32")},
       {destination(), address(kSharedOfAtomics)},
       80,
       999,
       false,
       {88, 3, 5}},
  };
}

}  // namespace manyscale::sass
