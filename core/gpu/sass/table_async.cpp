// SPDX-License-Identifier: Apache-2.0
// Copies that go on by themselves, and the barriers in shared memory that count them and the threads: from
// sm_80 on for each thread, from sm_90 on also in bulk, of tensors and between the CTAs of a cluster.
#include "gpu/sass/table.hpp"
#include "gpu/sass/table_parts.hpp"

namespace manyscale::sass {
namespace {

constexpr AddressLayout kSharedOfAsync = {.uniform = 64};
constexpr AddressLayout kCopySource = {.offset = 32,
                                       .offset_bits = 12,
                                       .uniform = 64,
                                       .wide_base = 70,
                                       .descriptor = 76,
                                       .without_zero_uniform = true};
constexpr AddressLayout kCopyDestination = {.offset = 44, .offset_bits = 20, .base = 16};

constexpr AddressLayout kUniformCopyDestination = {
    .offset = 44, .offset_bits = 20, .base = 16, .uniform = 64};

// The source of a copy whose destination has the uniform register; a descriptor is the one behind it.
void read_copy_source(Operand& operand, const Words& words, Architecture architecture) {
  constexpr unsigned kBits = 12;
  constexpr std::uint16_t kFirstNamingDescriptors = 90;
  operand.kind = OperandKind::address;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 8));
  operand.value = static_cast<std::int64_t>(words.bits(32, kBits) << (64 - kBits)) >> (64 - kBits);
  operand.suffix[0] = mod("64");
  if (words.bit(76) && architecture.number >= kFirstNamingDescriptors)
    operand.descriptor = static_cast<std::uint8_t>(words.bits(64, 6) + 1);
}

void read_uniform_at(Operand& operand, const Words& words, unsigned first) {
  operand.kind = OperandKind::address;
  operand.index = kZeroRegister;
  operand.uniform = static_cast<std::uint8_t>(words.bits(first, 6));
}

// [UR] in one of three fields; that of an exchange has an offset.
void read_early_address(Operand& operand, const Words& words, Architecture) {
  read_uniform_at(operand, words, 24);
}
void read_wide_address(Operand& operand, const Words& words, Architecture) {
  read_uniform_at(operand, words, 32);
}
void read_exchanged(Operand& operand, const Words& words, Architecture) {
  constexpr unsigned kBits = 24;
  read_uniform_at(operand, words, 24);
  operand.value = static_cast<std::int64_t>(words.bits(40, kBits) << (64 - kBits)) >> (64 - kBits);
}

// A word in the shared memory of a CTA of the cluster: the address and that of a barrier.
void read_distant(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::address;
  operand.index = static_cast<std::uint8_t>(words.bits(24, 8));
  operand.suffix[0] = mod("64");
}

// How the caches are to treat what is copied: desc[UR].
void read_policy(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::policy;
  operand.index = static_cast<std::uint8_t>(words.bits(40, 6));
}

// One half of the return address, which serves as a register.
void read_return_address(Operand& operand, const Words& words, Architecture) {
  operand.kind = OperandKind::word;
  operand.value = words.bit(31) ? 1 : 0;
  operand.suffix[0] = words.bit(31) ? mod("Rpc.HI") : mod("Rpc.LO");
}

Row uniform_row(std::string_view name, std::uint16_t code, std::uint8_t forms,
                std::vector<ModifierField> modifiers, std::vector<OperandField> operands) {
  return {name, code, forms, std::move(modifiers), std::move(operands), 90, 999, true};
}

}  // namespace

std::vector<Row> async_rows() {
  const OperandField done = predicate(81).written();
  const OperandField early = composed(read_early_address);
  const OperandField wide_address = composed(read_wide_address);
  const OperandField distant = composed(read_distant);
  const OperandField policy = composed(read_policy).when(76, 1, 1);
  const ModifierField to = choice(73, 1, {"G", "S"});
  const ModifierField from = choice(74, 1, {"G", "S"});
  const ModifierField multicast = bit(75, "MULTICAST");
  const ModifierField reduction = choice(87, 3, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"});
  const ModifierField dimensions = choice(79, 3, {"1D", "2D", "3D", "4D", "5D"});
  const ModifierField columns = bit(82, "IM2COL");
  std::vector<ModifierField> copy = {always("E"), clear_bit(81, "BYPASS"), eviction(),
                                     choice(71, 2, {"", "LTC64B", "LTC128B", "LTC256B"}), access_size()};
  append(copy, memory_order());
  copy.push_back(bit(82, "ZFILL"));
  return {
      {"LDGSTS",
       0x1ae,
       form(7),
       copy,
       {address(kCopyDestination), address(kCopySource), predicate(87, 90).hidden_when_nothing()},
       80},
      {"LDGSTS",
       0x1ae,
       form(6),
       copy,
       {address(kUniformCopyDestination), composed(read_copy_source),
        predicate(87, 90).hidden_when_nothing()},
       80,
       999,
       false,
       {91, 1, 1}},
      {"ARRIVES", 0x1b0, form(4), {always("LDGSTSBAR"), always("64")}, {address(kSharedOfAsync)}, 80, 89},
      {"ARRIVES",
       0x1b0,
       form(4),
       {always("LDGSTSBAR"), always("64"), choice(70, 2, {"", "ARVCNT", "TRANSCNT"})},
       {address(kSharedOfAsync)},
       90},
      {"SYNCS",
       0x1a7,
       form(4),
       {always("ARRIVE"), always("TRANS64"), choice(73, 2, {"", "TMASK", "RED"}), bit(75, "OPTOUT"),
        choice(84, 3, {"", "A1T0", "A0T1", "A0TR", "A0TX", "ART0"})},
       {destination(), address(kSharedOfAsync), general(32)},
       90},
      {"SYNCS",
       0x1a7,
       form(2),
       {always("PHASECHK"), always("TRANS64"), bit(72, "TRYWAIT")},
       {done, address(kSharedOfAsync), general(32)},
       90},
      uniform_row("SYNCS", 0x1b2, form(2), {always("EXCH"), always("64")},
                  {uniform_destination(), composed(read_exchanged), uniform(32)}),
      {"SYNCS", 0x1b1, form(4), {always("CCTL"), always("IV")}, {address(kSharedOfAsync)}, 90},
      {"RPCMOV", 0x152, form(1), {always("32")}, {composed(read_return_address), general(32)}, 90},
      {"RPCMOV", 0x153, form(1), {always("32")}, {destination(), composed(read_return_address)}, 90},
      {"STAS", 0x1bd, form(6), {access_size()}, {distant, general(32)}, 90},
      {"REDAS",
       0x1be,
       form(6),
       {reduction, choice(73, 3, {"", "S32", "64", "?", "?", "S64"})},
       {distant, general(32)},
       90},
      uniform_row("UBLKCP", 0x1ba, form(1), {to, from, multicast},
                  {wide_address, early, uniform(64), policy}),
      uniform_row(
          "UBLKRED", 0x1bb, form(1),
          {to, from, reduction, choice(81, 4, {"", "S32", "U64", "S64", "F16", "F32", "F32", "F64", "BF16"}),
           choice(81, 4, {"", "", "", "", "", "", "FTZ", "", ""}),
           choice(81, 4, {"", "", "", "", "RN", "RN", "RN", "RN", "RN"})},
          {wide_address, early, uniform(64), policy}),
      uniform_row("UBLKPF", 0x1bc, form(1), {always("L2")}, {early, uniform(64), policy}),
      uniform_row("UTMALDG", 0x1b4, form(2), {dimensions, multicast}, {wide_address, early, policy}),
      uniform_row("UTMALDG", 0x1b4, form(1), {dimensions, columns, multicast},
                  {wide_address, early, uniform(64), policy}),
      uniform_row("UTMASTG", 0x1b5, form(1), {dimensions, columns}, {wide_address, early, policy}),
      uniform_row("UTMAREDG", 0x1b6, form(1), {dimensions, columns, reduction},
                  {wide_address, early, policy}),
      uniform_row("UTMAPF", 0x1b8, form(2), {always("L2"), dimensions}, {wide_address, early, policy}),
      uniform_row("UTMAPF", 0x1b8, form(1), {always("L2"), dimensions, columns},
                  {wide_address, early, uniform(64), policy}),
      uniform_row("UTMACMDFLUSH", 0x1b7, form(4), {}, {}),
      uniform_row("UTMACCTL", 0x1b9, form(4), {choice(82, 1, {"IV", "PF"})}, {early}),
      {"FENCE", 0x1c6, form(1), {always("VIEW"), always("ASYNC"), choice(72, 4, {"S", "G", "T"})}, {}, 90},
      {"ACQBULK", 0x02e, form(4), {}, {}, 90},
      {"PREEXIT", 0x02d, form(4), {}, {}, 90},
  };
}

}  // namespace manyscale::sass
