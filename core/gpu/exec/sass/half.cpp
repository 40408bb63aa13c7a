// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two halves of a register. Each operand says which halves it brings: both as they are, or one
// of them twice (.H0_H0, .H1_H1); an operand may also be a float (.F32).
#include "gpu/exec/numerics/half.hpp"
#include "gpu/exec/numerics/flush.hpp"
#include "gpu/exec/numerics/half_arithmetic.hpp"
#include "gpu/exec/numerics/ordering.hpp"
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {
namespace {

using I64 = std::int64_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;

// Above the operands' modifiers: which halves operand k brings (two bits each), then these.
enum Halves : std::uint8_t { both, lower, upper, float32 };
constexpr unsigned halves_bits(unsigned k) {
  return kFreeBits + 2 * k;
}
constexpr I64 kFlushes = I64{1} << (kFreeBits + 8);
constexpr I64 kSaturates = I64{1} << (kFreeBits + 9);
constexpr I64 kRelu = I64{1} << (kFreeBits + 10);
constexpr I64 kToFloat = I64{1} << (kFreeBits + 11);
constexpr I64 kIsAnd = I64{1} << (kFreeBits + 12);  // HSETP2.H0_AND: both comparisons together
constexpr I64 kBoolean = I64{1} << (kFreeBits + 13);
constexpr I64 kNan = I64{1} << (kFreeBits + 14);
// .H0_NH1 of the second source: its halves are swapped, and what was the upper one is negated.
constexpr I64 kCrossed = I64{1} << (kFreeBits + 15);
constexpr unsigned kHowBits = kFreeBits + 16;
constexpr unsigned kRelationBits = kFreeBits + 20;

// The two halves of a source.
template <class H>
class HalfSource {
 public:
  HalfSource(const Warp& warp, const Op& op, unsigned k)
      : lanes_(warp.lanes<U32>(op.src[k])),
        which_(static_cast<Halves>(op.immediate >> halves_bits(k) & 3)),
        keep_((op.immediate & absolute_bit(k)) != 0 ? 0x7fff : 0xffff),
        flip_((op.immediate & negated_bit(k)) != 0 ? 0x8000 : 0),
        crossed_(k == 1 && (op.immediate & kCrossed) != 0),
        flushes_((op.immediate & kFlushes) != 0) {}
  H at(unsigned lane, unsigned half) const {
    if (which_ == float32) {
      float value = from_bits<float>(lanes_[lane]);
      if constexpr (std::is_same_v<H, F16>)
        return modified(to_f16(value).bits);
      else
        return modified(to_bf16(value).bits);
    }
    if (crossed_) return modified(static_cast<U16>(half == 0 ? lanes_[lane] >> 16 ^ 0x8000 : lanes_[lane]));
    const unsigned index = which_ == both ? half : which_ == upper ? 1 : 0;
    return modified(static_cast<U16>(lanes_[lane] >> (16 * index)));
  }

 private:
  H modified(U16 bits) const {
    const H value{static_cast<U16>((bits & keep_) ^ flip_)};
    return flushes_ ? flush(value) : value;
  }
  const U32* lanes_;
  Halves which_;
  U32 keep_;
  U32 flip_;
  bool crossed_;
  bool flushes_;
};

constexpr auto kSum = [](auto a, auto b, auto) { return add(a, b); };
constexpr auto kProduct = [](auto a, auto b, auto) { return mul(a, b); };
constexpr auto kFused = [](auto a, auto b, auto c) { return fma(a, b, c); };

template <class H>
H finished(H result, I64 modifiers) {
  if (modifiers & kFlushes) result = flush(result);
  if (modifiers & kSaturates) result = saturate(result);
  if (modifiers & kRelu) result = relu(result);
  return result;
}

template <class H, auto f, unsigned count>
void compute(Warp& warp, const Op& op) {
  const HalfSource<H> a(warp, op, 0), b(warp, op, 1), c(warp, op, count - 1);
  const I64 modifiers = op.immediate;
  alignas(64) std::array<U32, kLanes> results{};
  for_each_active(warp.mask, [&](unsigned i) {
    U32 word = 0;
    for (unsigned half = 0; half < 2; ++half)
      word |= U32{finished(f(a.at(i, half), b.at(i, half), c.at(i, half)), modifiers).bits} << (16 * half);
    results[i] = word;
  });
  for_words(warp, op.dst, [&](unsigned i) { return results[i]; });
}

// HADD2.F32: the lower halves' sum as a float.
template <class H>
void add_to_float(Warp& warp, const Op& op) {
  const HalfSource<H> a(warp, op, 0), b(warp, op, 1);
  for_words(warp, op.dst,
            [=](unsigned i) { return bits_of(canonical(to_f32(a.at(i, 0)) + to_f32(b.at(i, 0)))); });
}

Halves accept_halves(MachineBuilder& builder, const sass::Operand& operand) {
  Halves which = both;
  for (sass::Modifier suffix : operand.suffix) {
    const std::string_view word = sass::name_of(suffix);
    if (word.empty()) continue;
    if (word == "H0_H0" || word == "H0_NH0")
      which = lower;
    else if (word == "H1_H1")
      which = upper;
    else if (word == "F32")
      which = float32;
    else if (word != "H1_H0" && word != "H0_NH1")
      builder.unsupported("an operand with ." + std::string(word));
    if (word == "H0_NH0") builder.unsupported("an operand with .H0_NH0");
  }
  return which;
}

// Puts the sources of an instruction into slots and says in the modifiers which halves they bring.
std::array<Slot, 4> half_sources(MachineBuilder& builder, unsigned count, I64& modifiers) {
  std::array<Slot, 4> slots{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  unsigned from = 0;
  for (unsigned k = 0; k < count; ++k, ++from) {
    const sass::Operand& operand = builder.value(from);
    modifiers |= I64{accept_halves(builder, operand)} << halves_bits(k);
    if (operand.has(sass::mod("H0_NH1"))) {
      if (k != 1 || operand.absolute) builder.unsupported("an operand with .H0_NH1");
      modifiers |= kCrossed;
    }
    slots[k] = builder.source(operand, 1, &modifiers, k);
  }
  return slots;
}

bool accept_bf16(MachineBuilder& builder) {
  return builder.accept("BF16_V2") || builder.accept("BF16");
}

I64 accept_flags(MachineBuilder& builder) {
  I64 flags = 0;
  if (builder.accept("FTZ") || builder.accept("FMZ")) flags |= kFlushes;
  if (builder.accept("SAT")) flags |= kSaturates;
  if (builder.accept("RELU")) flags |= kRelu;
  builder.ignore({"MMA", "F16_V2"});
  return flags;
}

template <auto f, unsigned count>
void decode_arithmetic(MachineBuilder& builder) {
  const bool bf16 = accept_bf16(builder);
  I64 modifiers = accept_flags(builder);
  const bool to_float = builder.accept("F32");
  const Slot dst = builder.destination();
  const auto sources = half_sources(builder, count, modifiers);
  if (to_float && count != 2) builder.unsupported(".F32");
  const Handler handler = to_float ? (bf16 ? add_to_float<Bf16> : add_to_float<F16>)
                                   : (bf16 ? compute<Bf16, f, count> : compute<F16, f, count>);
  Op& op = builder.emit(handler, Class::fp16);
  op.dst = dst;
  op.src = sources;
  op.immediate = modifiers;
}

// The smaller or larger of two halves.
template <bool kSigns, Nan kNans, class H>
H extreme_of(bool smaller, H x, H y) {
  if constexpr (kSigns)
    return smaller ? min_xorsign_abs<kNans>(x, y) : max_xorsign_abs<kNans>(x, y);
  else
    return smaller ? min<kNans>(x, y) : max<kNans>(x, y);
}

// With .XORSIGN (`kSigns`) magnitudes are compared, and the result has the product of the signs.
template <class H, bool kSigns>
void extreme(Warp& warp, const Op& op) {
  Op signed_op = op;
  if (kSigns) signed_op.immediate &= ~(absolute_bit(0) | absolute_bit(1));
  const HalfSource<H> a(warp, signed_op, 0), b(warp, signed_op, 1);
  const Mask smaller = first_condition(warp, op);
  const bool propagates = (op.immediate & kNan) != 0;
  alignas(64) std::array<U32, kLanes> results{};
  for_each_active(warp.mask, [&](unsigned i) {
    for (unsigned half = 0; half < 2; ++half) {
      const H x = a.at(i, half);
      const H y = b.at(i, half);
      const bool least = (smaller >> i & 1) != 0;
      const H chosen = propagates ? extreme_of<kSigns, Nan::propagated>(least, x, y)
                                  : extreme_of<kSigns, Nan::ignored>(least, x, y);
      results[i] |= U32{chosen.bits} << (16 * half);
    }
  });
  for_words(warp, op.dst, [&](unsigned i) { return results[i]; });
}

void decode_extreme(MachineBuilder& builder) {
  const bool signs = builder.accept("XORSIGN");
  const bool bf16 = accept_bf16(builder);
  I64 modifiers = accept_flags(builder);
  if (builder.accept("NAN")) modifiers |= kNan;
  const Slot dst = builder.destination();
  auto sources = half_sources(builder, 2, modifiers);
  bool negated = false;
  sources[3] = builder.condition(0, negated);
  const Handler handler = signs ? (bf16 ? extreme<Bf16, true> : extreme<F16, true>)
                                : (bf16 ? extreme<Bf16, false> : extreme<F16, false>);
  Op& op = builder.emit(handler, Class::fp16);
  op.dst = dst;
  op.src = sources;
  op.immediate = modifiers | (negated ? kPredicateNegated : 0);
}

// --- Comparisons

bool holds(int relation, float a, float b) {
  switch (relation) {
    case 0:
      return compare<Comparison::lt>(a, b);
    case 1:
      return compare<Comparison::eq>(a, b);
    case 2:
      return compare<Comparison::le>(a, b);
    case 3:
      return compare<Comparison::gt>(a, b);
    case 4:
      return compare<Comparison::ne>(a, b);
    case 5:
      return compare<Comparison::ge>(a, b);
    case 6:
      return compare<Comparison::num>(a, b);
    case 7:
      return compare<Comparison::nan>(a, b);
    case 8:
      return compare<Comparison::ltu>(a, b);
    case 9:
      return compare<Comparison::equ>(a, b);
    case 10:
      return compare<Comparison::leu>(a, b);
    case 11:
      return compare<Comparison::gtu>(a, b);
    case 12:
      return compare<Comparison::neu>(a, b);
    default:
      return compare<Comparison::geu>(a, b);
  }
}

Mask combine(unsigned how, Mask a, Mask b) {
  return how == 0 ? a & b : how == 1 ? a | b : a ^ b;
}

template <class H>
Mask compare_halves(Warp& warp, const Op& op, unsigned half) {
  const HalfSource<H> a(warp, op, 0), b(warp, op, 1);
  const auto relation = static_cast<int>(op.immediate >> kRelationBits & 15);
  return ballot([&](unsigned i) { return holds(relation, to_f32(a.at(i, half)), to_f32(b.at(i, half))); });
}

template <class H>
void set_predicates(Warp& warp, const Op& op) {
  const Mask with = first_condition(warp, op);
  const auto how = static_cast<unsigned>(op.immediate >> kHowBits) & 3;
  Mask first = compare_halves<H>(warp, op, 0);
  Mask second = compare_halves<H>(warp, op, 1);
  if (op.immediate & kIsAnd) {
    const Mask all = first & second;
    first = all;
    second = ~all;
  }
  if (op.dst != kNoSlot) set_predicate(warp, op.dst, combine(how, first, with));
  if (op.dst2 != kNoSlot) set_predicate(warp, op.dst2, combine(how, second, with));
}

template <class H>
void set_word(Warp& warp, const Op& op) {
  const Mask with = first_condition(warp, op);
  const auto how = static_cast<unsigned>(op.immediate >> kHowBits) & 3;
  const Mask first = combine(how, compare_halves<H>(warp, op, 0), with);
  const Mask second = combine(how, compare_halves<H>(warp, op, 1), with);
  const U32 yes = op.immediate & kBoolean ? one_bits<H> : 0xffff;
  for_words(warp, op.dst, [=](unsigned i) {
    return ((first >> i & 1) != 0 ? yes : 0) | ((second >> i & 1) != 0 ? yes << 16 : 0);
  });
}

template <bool word>
void decode_comparison(MachineBuilder& builder) {
  const bool bf16 = accept_bf16(builder);
  I64 modifiers = accept_flags(builder);
  const int relation = builder.accept_one_of(
      {"LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU"});
  if (relation < 0) builder.unsupported("no such comparison");
  if (builder.accept("BF")) modifiers |= kBoolean;
  if (builder.accept("H_AND") || builder.accept("H0_AND")) modifiers |= kIsAnd;
  const int how = builder.accept_one_of({"AND", "OR", "XOR"});
  auto sources = half_sources(builder, 2, modifiers);
  bool negated = false;
  sources[3] = builder.condition(0, negated);
  const Handler handler =
      word ? (bf16 ? set_word<Bf16> : set_word<F16>) : (bf16 ? set_predicates<Bf16> : set_predicates<F16>);
  Op& op = builder.emit(handler, Class::compare);
  if constexpr (word) {
    op.dst = builder.destination();
  } else {
    op.dst = builder.predicate_result(0);
    op.dst2 = builder.predicate_result(1);
  }
  op.src = sources;
  op.immediate = modifiers | (negated ? kPredicateNegated : 0) | I64{std::max(how, 0)} << kHowBits |
                 I64{relation} << kRelationBits;
}

constexpr MachineOpcode kOpcodes[] = {
    {"HADD2", decode_arithmetic<kSum, 2>},
    {"HMUL2", decode_arithmetic<kProduct, 2>},
    {"HFMA2", decode_arithmetic<kFused, 3>},
    {"HMNMX2", decode_extreme},
    {"VHMNMX", decode_extreme},
    {"HSETP2", decode_comparison<false>},
    {"HSET2", decode_comparison<true>},
};

}  // namespace

std::span<const MachineOpcode> machine_half_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
