// SPDX-License-Identifier: Apache-2.0
// Instructions on floating-point numbers of 32 and 64 bits, and on pairs of halves.
#include "gpu/sass/table.hpp"

namespace manyscale::sass {
namespace {

using Format = Operand::Format;

const std::initializer_list<std::string_view> kRounding = {"", "RM", "RP", "RZ"};
const std::initializer_list<std::string_view> kCompare = {
    "F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"};
// Comparisons of doubles have minimum and maximum in place of "false" and "true".
const std::initializer_list<std::string_view> kCompareDouble = {
    "MIN", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "MAX"};
const std::initializer_list<std::string_view> kCombine = {"AND", "OR", "XOR"};

// The numbers of an instruction on bfloat16 are written as such.
void mean_brain_floats(Instruction& instruction, Architecture) {
  if (!instruction.has(mod("BF16_V2"))) {
    return;
  }
  for (Operand& operand : instruction.operands) {
    if (operand.format == Format::float16x2) {
      operand.format = Format::bfloat16x2;
    }
  }
}

// Flushing and treating zeros specially at once is called something else.
void name_half_product(Instruction& instruction, Architecture architecture) {
  mean_brain_floats(instruction, architecture);
  if (!instruction.has(mod("FTZ")) || !instruction.has(mod("FMZ"))) {
    return;
  }
  unsigned kept = 0;
  const auto all = instruction.modifiers;
  for (const Modifier modifier : all) {
    if (modifier == mod("FMZ")) {
      continue;
    }
    instruction.modifiers[kept++] = modifier == mod("FTZ") ? mod("OOB") : modifier;
  }
  instruction.modifiers[kept] = Modifier{};
}

// Functions of doubles work on the upper half of them.
void mean_upper_half(Instruction& instruction, Architecture) {
  if (instruction.has(mod("RCP64H")) || instruction.has(mod("RSQ64H"))) {
    instruction.operands[1].format = Format::float64_high;
  }
}

}  // namespace

std::vector<Row> float_rows() {
  const OperandField a = source_a();
  const OperandField b = source_b().as(Format::float32);
  const OperandField c = source_c().as(Format::float32);
  const OperandField w = wide().as(Format::float32);
  const OperandField b64 = source_b().as(Format::float64_high);
  const OperandField c64 = source_c().as(Format::float64_high);
  const OperandField w64 = wide().as(Format::float64_high);
  const ModifierField ftz = bit(80, "FTZ");
  const ModifierField rounding = choice(78, 2, kRounding);
  const ModifierField saturate = bit(77, "SAT");
  return {
      {"FSEL",
       0x008,
       kTwoSources,
       {ftz},
       {destination(), a.minus_and_absolute(), w.minus_and_absolute(), predicate(87, 90)}},
      {"FMNMX",
       0x009,
       kTwoSources,
       {ftz, bit(81, "NAN").on(80), bit(82, "XORSIGN").on(80)},
       {destination(), a.minus_and_absolute(), w.minus_and_absolute(), predicate(87, 90)}},
      {"FSET",
       0x00a,
       kTwoSources,
       {always("BF"), choice(76, 4, kCompare), ftz, choice(74, 2, kCombine)},
       {destination(), a.minus_and_absolute(), w.minus_and_absolute(), predicate(87, 90)}},
      {"FSETP",
       0x00b,
       kTwoSources,
       {choice(76, 4, kCompare), ftz, choice(74, 2, kCombine)},
       {predicate(81).written(), predicate(84).written(), a.minus_and_absolute(), w.minus_and_absolute(),
        predicate(87, 90)}},
      {"FMUL",
       0x020,
       kTwoSources,
       {ftz, bit(76, "FMZ"), choice(84, 3, {"?", "D8", "D4", "D2", "", "M2", "M4", "M8"}), rounding,
        saturate},
       {destination(), a.minus_and_absolute(), w.minus_and_absolute()}},
      {"FADD",
       0x021,
       kTwoSourcesLate,
       {ftz, rounding, saturate},
       {destination(), a.minus_and_absolute(), late().as(Format::float32).minus_and_absolute()}},
      {"FFMA",
       0x023,
       kThreeSources,
       {ftz, bit(76, "FMZ"), rounding, saturate},
       {destination(), a.minus_and_absolute(), b.minus_and_absolute(), c.minus_and_absolute()}},
      {"DMUL",
       0x028,
       kTwoSources,
       {rounding},
       {destination(), a.minus_and_absolute(), w64.minus_and_absolute()}},
      {"DADD",
       0x029,
       kTwoSourcesLate,
       {rounding},
       {destination(), a.minus_and_absolute(), c64.minus_and_absolute()}},
      {"DSETP",
       0x02a,
       kTwoSourcesLate,
       {choice(76, 4, kCompareDouble), choice(74, 2, kCombine)},
       {predicate(81).written(), predicate(84).written(), a.minus_and_absolute(),
        late().as(Format::float64_high).minus_and_absolute(), predicate(87, 90)}},
      {"DFMA",
       0x02b,
       kThreeSources,
       {rounding},
       {destination(), a.minus_and_absolute(), b64.minus_and_absolute(), c64.minus_and_absolute()}},
      {"FCHK",
       0x102,
       kTwoSources,
       {},
       {predicate(81).written(), a.minus_and_absolute(), w.minus_and_absolute()}},
      {"MUFU",
       0x108,
       kTwoSources,
       {choice(74, 4, {"COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH"}),
        bit(73, "F16").on(75, 89), choice(72, 2, {"", "F16", "BF16"}).on(90)},
       {destination(), w.minus_and_absolute().suffix(bit(60, "H1").when(9, 3, 1))},
       70,
       999,
       false,
       {},
       mean_upper_half},
      {"FSWZADD",
       0x022,
       form(4),
       {ftz, rounding, bit(77, "NDV")},
       {destination(), general(24), general(64), number(32, 8).as(Format::signs)}},
  };
}

std::vector<Row> half_rows() {
  const OperandField a = source_a().as(Format::float16x2).minus_and_absolute();
  const OperandField b = source_b().as(Format::float16x2).minus_and_absolute();
  const OperandField half_negated = b.suffix(bit(86, "H0_NH1").on(86));
  const OperandField c = source_c().as(Format::float16x2).minus_and_absolute();
  const OperandField w = wide().as(Format::float16x2).minus_and_absolute();
  const OperandField l = late().as(Format::float16x2).minus_and_absolute();
  const ModifierField ftz = bit(80, "FTZ");
  const ModifierField saturate = bit(77, "SAT");
  const ModifierField f32 = bit(78, "F32");
  const ModifierField brain = bit(85, "BF16_V2").on(80);
  const ModifierField relu = bit(79, "RELU").on(80);
  const auto made = [](Row row) {
    row.finish = row.name == "HFMA2" ? name_half_product : mean_brain_floats;
    return row;
  };
  return {
      made({"HADD2", 0x030, kTwoSourcesLate, {brain, f32, ftz, saturate}, {destination(), a, l}}),
      made({"HFMA2",
            0x031,
            kThreeSources,
            {brain, ftz, bit(76, "FMZ"), f32, relu, saturate},
            {destination(), a, half_negated, c}}),
      made({"HFMA2",
            0x035,
            kThreeSources,
            {always("MMA"), brain, ftz, bit(76, "FMZ"), f32, relu, saturate},
            {destination(), a, b, c}}),
      made({"HMUL2",
            0x032,
            kTwoSources,
            {brain, ftz, bit(76, "FMZ"), f32, relu, saturate},
            {destination(), a, w}}),
      made({"HSET2",
            0x033,
            kTwoSourcesLate,
            {bit(65, "BF16_V2").on(80), bit(71, "BF"), choice(76, 4, kCompare), ftz, choice(69, 2, kCombine)},
            {destination(), a, l, predicate(87, 90)}}),
      made({"HSETP2",
            0x034,
            kTwoSourcesLate,
            {bit(65, "BF16_V2").on(80), choice(76, 4, kCompare), ftz, bit(71, "H_AND"),
             choice(69, 2, kCombine)},
            {predicate(81).written(), predicate(84).written(), a, l, predicate(87, 90)}}),
      made({"HMNMX2",
            0x040,
            kTwoSources,
            {brain, f32, ftz, bit(81, "NAN"), bit(82, "XORSIGN")},
            {destination(), a, w, predicate(87, 90)},
            80}),
  };
}

std::vector<Row> conversion_rows() {
  // Of a register that holds several small numbers, which one: of halves or bytes.
  const auto part = [](std::initializer_list<std::string_view> words, std::uint64_t type, std::uint8_t bits) {
    return choice(60, 2, words).when(84, bits, type).unless(9, 3, 4);
  };
  const OperandField w = wide()
                             .as(Format::float32)
                             .minus_and_absolute()
                             .suffix(part({"", "H1"}, 1, 3))
                             .suffix(part({"", "H1"}, 4, 3));
  const OperandField w64 = wide().as(Format::float64_high).minus_and_absolute();
  const OperandField integer =
      wide().minus_and_absolute().suffix(part({"", "B1", "B2", "B3"}, 0, 2)).suffix(part({"", "H1"}, 1, 2));
  OperandField signed_integer = integer.when(74, 1, 1);
  signed_integer.signed_value = true;
  const std::vector<OperandField> from_integer = {destination(), signed_integer, integer.when(74, 1, 0)};
  const ModifierField ftz = bit(80, "FTZ");
  const ModifierField rounding = choice(78, 2, kRounding);
  const ModifierField to_integer = choice(78, 2, {"", "FLOOR", "CEIL", "TRUNC"});
  const ModifierField from_float = choice(84, 3, {"F8", "F16", "", "F64", "BF16"});
  const ModifierField unsigned_result = choice(75, 2, {"U8", "U16", "U32", "U64"}).when(72, 1, 0);
  const ModifierField signed_result = choice(75, 2, {"S8", "S16", "", "S64"}).when(72, 1, 1);
  const ModifierField float_result = choice(75, 3, {"F8", "F16", "", "F64", "BF16"});
  const ModifierField unsigned_source = choice(84, 2, {"U8", "U16", "U32", "U64"}).when(74, 1, 0);
  const ModifierField signed_source = choice(84, 2, {"S8", "S16", "", "S64"}).when(74, 1, 1);
  const std::vector<ModifierField> f2f = {ftz, choice(75, 3, {"F8", "F16", "F32", "F64", "BF16"}),
                                          choice(84, 3, {"F8", "F16", "F32", "F64", "BF16"}), rounding};
  const std::vector<ModifierField> f2i = {ftz,        unsigned_result, signed_result,
                                          from_float, to_integer,      bit(77, "NTZ")};
  const std::vector<ModifierField> i2f = {float_result, unsigned_source, signed_source, rounding};
  const std::vector<ModifierField> round = {ftz, from_float, to_integer};
  // Two numbers into one register, or one beside what a third has.
  const ModifierField packing = choice(78, 1, {"PACK_AB", "MERGE_C"});
  const ModifierField late_rounding = choice(79, 2, kRounding);
  const std::vector<OperandField> packed = {
      destination(), source_a().minus_and_absolute().shown_unless(78, 1, 1),
      source_b().as(Format::float32).minus_and_absolute(), source_c().shown_when(78, 1, 1)};
  return {
      {"F2F", 0x104, kTwoSources, f2f, {destination(), w}},
      {"F2F", 0x110, kTwoSources, f2f, {destination(), w64}},
      {"F2I", 0x105, kTwoSources, f2i, {destination(), w}},
      {"F2I", 0x111, kTwoSources, f2i, {destination(), w64}},
      {"I2F", 0x106, kTwoSources, i2f, from_integer},
      {"I2F", 0x112, kTwoSources, i2f, from_integer},
      {"I2FP",
       0x045,
       kTwoSources,
       {always("F32"), choice(74, 1, {"U32", "S32"}), rounding},
       from_integer,
       86},
      {"F2FP",
       0x03e,
       kThreeSources,
       {bit(75, "RELU"), choice(76, 1, {"", "BF16"}), packing, late_rounding},
       packed,
       75,  // libraries have it there, though the disassembler names it from sm_80 on
       88},
      {"F2FP",
       0x03e,
       kThreeSources,
       {bit(75, "RELU"), choice(76, 1, {"F16", "BF16"}), always("F32"), packing, late_rounding},
       packed,
       89,
       999,
       false,
       {86, 5, 0}},
      {"F2FP",
       0x03e,
       form(1),
       {bit(75, "RELU"), always("TF32"), always("F32"), always("PACK_B"), late_rounding},
       {destination(), general(32)},
       89,
       999,
       false,
       {86, 5, 9}},
      {"F2FP",
       0x03e,
       form(1),
       {bit(75, "RELU"), choice(76, 1, {"F16", "BF16"}), choice(73, 1, {"E5M2", "E4M3"}), always("UNPACK_B")},
       {destination(), general(32).suffix(bit(88, "H1"))},
       89,
       999,
       false,
       {89, 2, 1}},
      {"F2FP",
       0x03e,
       form(1),
       {always("SATFINITE"), bit(75, "RELU"), choice(76, 1, {"E5M2", "E4M3"}), always("F16"),
        always("UNPACK_B_MERGE_C")},
       {destination(), general(32), general(64)},
       89,
       999,
       false,
       {78, 13, 0x1200}},
      {"F2FP",
       0x03e,
       kThreeSources,
       {always("SATFINITE"), bit(75, "RELU"), choice(76, 1, {"E5M2", "E4M3"}), always("F32"),
        always("PACK_AB_MERGE_C")},
       {destination(), source_a().minus_and_absolute(), source_b().as(Format::float32).minus_and_absolute(),
        source_c()},
       89,
       999,
       false,
       {78, 13, 0x1201}},
      {"FRND", 0x107, kTwoSources, round, {destination(), w}},
      {"FRND", 0x113, kTwoSources, round, {destination(), w64}},
  };
}

}  // namespace manyscale::sass
