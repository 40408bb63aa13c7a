// SPDX-License-Identifier: Apache-2.0
// Branches, calls, convergence of lanes and barriers.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {
namespace {

// Distance from the next instruction; from sm_90 on its lowest bits stand apart.
std::int64_t distance(const Words& words, Architecture architecture) {
  constexpr unsigned kBits = 48;
  constexpr unsigned kLowBits = 8;
  std::uint64_t value = words.bits(34, kBits);
  unsigned bits = kBits;
  if (architecture.number >= 90) {
    value = value << kLowBits | words.bits(16, kLowBits);
    bits += kLowBits;
  }
  return (static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits)) * 4;
}

void read_target(Operand& operand, const Words& words, Architecture architecture) {
  operand.kind = OperandKind::target;
  operand.value = distance(words, architecture);
}

// A relative target: it is added to a register.
void read_displacement(Operand& operand, const Words& words, Architecture architecture) {
  operand.kind = OperandKind::immediate;
  operand.value = distance(words, architecture);
}

// A position in the whole program's code, which the loader fills in.
void read_absolute(Operand& operand, const Words& words, Architecture architecture) {
  read_displacement(operand, words, architecture);
}

// Where a BSSY's lanes meet again: its low bits name the barrier.
void read_reconvergence_point(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::target;
  operand.value = static_cast<std::int32_t>(words.bits(32, 32)) & ~std::int64_t{3};
}

void read_counter(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::dependence;
  operand.index = static_cast<std::uint8_t>(words.bits(44, 3));
}

// Further counters that must be empty.
void read_counters(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::flag_mask;
  operand.value = static_cast<std::int64_t>(words.bits(32, 6));
  operand.shown = operand.value != 0;
}

// What a warp knows of its lanes.
void read_warp_state(Operand& operand, const Words& words, Architecture) {
  static constexpr Modifier kStates[] = {mod("MEXITED"), mod("MKILL"), mod("MACTIVE"), mod("MATEXIT")};
  operand.kind = OperandKind::word;
  operand.suffix[0] = kStates[words.bits(24, 2)];
}

OperandField condition() {
  return predicate(87, 90).hidden_when_nothing();
}

}  // namespace

std::vector<Row> control_rows() {
  const OperandField to = composed(read_target);
  const OperandField by = composed(read_displacement);
  const OperandField at = composed(read_absolute);
  const ModifierField noinc = bit(86, "NOINC");
  const std::vector<ModifierField> barrier = {choice(77, 3, {"SYNC", "ARV", "RED", "SCAN", "SYNCALL"}),
                                              choice(74, 2, {"POPC", "AND", "OR"}).when(77, 3, 2),
                                              bit(80, "DEFER_BLOCKING")};
  const OperandField reduced = predicate(87, 90).when(77, 3, 2);
  return {
      {"NOP", 0x118, form(4), {}, {}},
      {"BRA",
       0x147,
       form(4),
       {choice(32, 2, {"", "U", "DIV", "CONV"}), bit(84, "ANY")},
       {condition(), uniform(24).inverted_by(30).when(91, 1, 1), to}},
      {"BRA",
       0x147,
       form(2),
       {choice(32, 2, {"?", "U", "?", "?"})},
       {condition(), uniform_predicate(24, 27), to},
       80,
       999,
       false,
       {91, 1, 1}},
      {"BRX", 0x149, form(4), {}, {condition(), general(24), by}},
      {"BRXU", 0x158, form(4), {}, {condition(), uniform(24), by}, 75, 999, false, {91, 1, 1}},
      {"JMXU", 0x159, form(4), {}, {condition(), uniform(24), by}, 75, 999, false, {91, 1, 1}},
      {"CALL", 0x143, form(4), {always("ABS"), noinc}, {condition(), at}},
      {"CALL", 0x143, form(1), {always("ABS"), noinc}, {condition(), general(24)}},
      {"CALL", 0x144, form(4), {always("REL"), noinc}, {condition(), to}},
      {"CALL", 0x144, form(1), {always("REL"), noinc}, {condition(), general(24), to}},
      {"RET",
       0x150,
       form(4),
       {always("REL"), bit(86, "NODEC")},
       {condition(), general(24), to},
       70,
       999,
       false,
       {85, 1, 0}},
      {"RET",
       0x150,
       form(4),
       {always("ABS"), bit(86, "NODEC")},
       {condition(), general(24), at},
       70,
       999,
       false,
       {85, 1, 1}},
      {"EXIT", 0x14d, form(4), {choice(84, 2, {"", "KEEPREFCOUNT", "PREEMPTED"})}, {condition()}},
      {"BSSY",
       0x145,
       form(4),
       {},
       {condition(), convergence(16).written(), composed(read_reconvergence_point)}},
      {"BSYNC", 0x141, form(4), {}, {condition(), convergence(16)}},
      {"BREAK", 0x142, form(4), {}, {condition(), convergence(16)}},
      {"YIELD", 0x146, form(4), {}, {condition()}},
      {"WARPSYNC", 0x148, form(1), {bit(86, "EXCLUSIVE")}, {condition(), general(32)}, 70, 89},
      {"WARPSYNC",
       0x148,
       form(1),
       {bit(85, "EXCLUSIVE")},
       {condition(), general(24)},
       90,
       999,
       false,
       {86, 1, 0}},
      {"WARPSYNC",
       0x148,
       form(1),
       {always("COLLECTIVE")},
       {condition(), general(24), to},
       90,
       999,
       false,
       {86, 1, 1}},
      {"WARPSYNC", 0x148, form(4), {always("ALL")}, {condition()}, 90, 999, false, {86, 1, 0}},
      {"WARPSYNC",
       0x148,
       form(4),
       {always("COLLECTIVE"), always("ALL")},
       {condition(), to},
       90,
       999,
       false,
       {86, 1, 1}},
      {"WARPSYNC", 0x148, form(4), {bit(86, "EXCLUSIVE")}, {condition(), number(32, 32)}, 70, 89},
      {"BMOV", 0x155, form(1), {always("32"), bit(84, "CLEAR")}, {destination(), convergence(24)}},
      {"BMOV", 0x156, form(1), {always("32"), bit(84, "CLEAR")}, {convergence(24).written(), general(32)}},
      {"BMOV",
       0x155,
       form(7),
       {always("32"), bit(84, "PQUAD")},
       {convergence(16).written(), composed(read_warp_state)},
       70,
       999,
       false,
       {26, 6, 6}},
      {"BMOV",
       0x156,
       form(7),
       {always("32"), bit(84, "PQUAD")},
       {composed(read_warp_state).written(), convergence(16)},
       70,
       999,
       false,
       {26, 6, 6}},
      {"B2R",
       0x11c,
       form(1),
       {choice(77, 2, {"BAR", "?", "RESULT", "WARP"})},
       {destination(), predicate(81).written().hidden_when_nothing()}},
      {"BAR", 0x11d, form(5), barrier, {number(54, 4), number(42, 12).hidden_when_zero(), reduced}},
      {"BAR", 0x11d, form(2), barrier, {general(32), number(42, 12).hidden_when_zero(), reduced}},
      {"BAR", 0x11d, form(1), barrier, {general(32), general(32), reduced}},
      {"BAR", 0x11d, form(4), barrier, {number(54, 4), general(32), reduced}},
      {"BPT", 0x15c, form(4), {choice(84, 3, {"?", "DRAIN", "PAUSE", "TRAP", "INT"})}, {number(34, 20)}},
      {"NANOSLEEP",
       0x15d,
       form(4),
       {bit(85, "WARP").on(70, 75), bit(84, "SYNCS").on(90)},
       {condition(), number(32, 32)}},
      {"NANOSLEEP",
       0x15d,
       form(1),
       {bit(85, "WARP").on(70, 75), bit(84, "SYNCS").on(90)},
       {condition(), general(32)}},
      {"DEPBAR",
       0x11a,
       form(4),
       {bit(47, "LE")},
       {composed(read_counter).shown_when(47, 1, 1), number(38, 6).shown_when(47, 1, 1),
        composed(read_counters)}},
      {"ENDCOLLECTIVE", 0x11b, form(4), {}, {}, 90},
      {"ELECT", 0x02f, form(4), {}, {predicate(81).written(), uniform_destination(), predicate(87, 90)}, 90},
      {"UCGABAR_ARV", 0x1c7, form(4), {}, {}, 90},
      {"UCGABAR_WAIT", 0x1c7, form(6), {}, {}, 90},
      {"CGAERRBAR", 0x1ab, form(2), {}, {}, 90},
  };
}

}  // namespace manyscale::sass
