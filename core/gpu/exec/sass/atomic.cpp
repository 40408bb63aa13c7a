// SPDX-License-Identifier: Apache-2.0
// Read-modify-write of memory.
#include "gpu/exec/instructions/atomic_lanes.hpp"
#include "gpu/exec/sass/builder.hpp"
#include "gpu/exec/sass/mbarrier.hpp"

namespace manyscale::gpu {
namespace {

using namespace atomic_lanes;
using sass::Operand;
using sass::OperandKind;
using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

// A value of 64 bits lies in two registers.
template <class T>
struct InWords {
  U32* low = nullptr;
  InWords(const Warp& warp, Slot slot) : low(slot == kNoSlot ? nullptr : warp.lanes<U32>(slot)) {}
  T get(unsigned lane) const {
    if constexpr (sizeof(T) == 8) return low[lane] | static_cast<T>(low[kLanes + lane]) << 32;
    return static_cast<T>(low[lane]);
  }
  void set(unsigned lane, T value) const {
    low[lane] = static_cast<U32>(value);
    if constexpr (sizeof(T) == 8) low[kLanes + lane] = static_cast<U32>(static_cast<U64>(value) >> 32);
  }
  explicit operator bool() const { return low != nullptr; }
};

// Compares and swaps, in shared memory; the result is whether it did.
template <class T>
void compare_and_test(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(T), Does::atomic);
  const InWords<T> expected(warp, op.src[1]), replacement(warp, op.src[2]), result(warp, op.dst);
  for_each_active(warp.mask, [&](unsigned lane) {
    const T wanted = expected.get(lane);
    const T old = modify<T>(located.at(lane), false,
                            [&](T value) { return value == wanted ? replacement.get(lane) : value; });
    if (result) result.set(lane, old == wanted ? 1 : 0);
  });
}

template <class F>
constexpr Handler kUpdate = update<F, InWords>;

enum Operation : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kSafeAdd, kCas };

struct Choice {
  Handler handler = nullptr;
  unsigned words = 1;
};

// The handler of an operation on a type that modifiers name.
Choice choose(Operation operation, std::string_view type) {
  const bool is_signed = type.starts_with("S");
  if (type == "64" || type == "U64" || type == "S64") {
    switch (operation) {
      case kAdd:
        return {kUpdate<Add<U64>>, 2};
      case kMin:
        return {is_signed ? kUpdate<Minimum<I64>> : kUpdate<Minimum<U64>>, 2};
      case kMax:
        return {is_signed ? kUpdate<Maximum<I64>> : kUpdate<Maximum<U64>>, 2};
      case kAnd:
        return {kUpdate<And<U64>>, 2};
      case kOr:
        return {kUpdate<Or<U64>>, 2};
      case kXor:
        return {kUpdate<Xor<U64>>, 2};
      case kExch:
        return {kUpdate<Exchange<U64>>, 2};
      case kCas:
        return {kUpdate<CompareAndSwap<U64>>, 2};
      default:
        return {};
    }
  }
  if (type == "F32") return {operation == kAdd ? kUpdate<AddF32> : nullptr, 1};
  if (type == "F64") return {operation == kAdd ? kUpdate<AddF64> : nullptr, 2};
  if (type == "F16x2") {
    return {operation == kAdd   ? kUpdate<Half<F16, U32, HalfAdd>>
            : operation == kMin ? kUpdate<Half<F16, U32, HalfMinimum>>
            : operation == kMax ? kUpdate<Half<F16, U32, HalfMaximum>>
                                : nullptr,
            1};
  }
  if (type == "BF16x2" || type == "BF16_V2") {
    return {operation == kAdd   ? kUpdate<Half<Bf16, U32, HalfAdd>>
            : operation == kMin ? kUpdate<Half<Bf16, U32, HalfMinimum>>
            : operation == kMax ? kUpdate<Half<Bf16, U32, HalfMaximum>>
                                : nullptr,
            1};
  }
  if (type == "16" || type == "U16")
    return {operation == kCas ? kUpdate<CompareAndSwap<std::uint16_t>> : nullptr, 1};
  switch (operation) {
    case kAdd:
      return {kUpdate<Add<U32>>, 1};
    case kMin:
      return {is_signed ? kUpdate<Minimum<I32>> : kUpdate<Minimum<U32>>, 1};
    case kMax:
      return {is_signed ? kUpdate<Maximum<I32>> : kUpdate<Maximum<U32>>, 1};
    case kInc:
      return {kUpdate<Increment>, 1};
    case kDec:
      return {kUpdate<Decrement>, 1};
    case kAnd:
      return {kUpdate<And<U32>>, 1};
    case kOr:
      return {kUpdate<Or<U32>>, 1};
    case kXor:
      return {kUpdate<Xor<U32>>, 1};
    case kExch:
      return {kUpdate<Exchange<U32>>, 1};
    case kCas:
      return {kUpdate<CompareAndSwap<U32>>, 1};
    default:
      return {};
  }
}

std::string_view accept_type(MachineBuilder& builder) {
  for (std::string_view type :
       {"F32", "F64", "F16x2", "BF16x2", "BF16_V2", "S32", "S64", "U64", "64", "U32", "16", "U16"})
    if (builder.accept(type)) return type;
  return "U32";
}

void decode_atomic(MachineBuilder& builder) {
  if (builder.accept("ARRIVE")) return decode_shared_arrival(builder);
  const int operation = builder.accept_one_of({"POPC", "ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR",
                                               "EXCH", "SAFEADD", "CAS"}) -
                        1;
  const bool counts = builder.name() == "ATOMS" && operation == -1;
  if (counts) {
    builder.ignore({"INC", "32"});
  }
  const bool tests = operation == -2 && builder.accept("CAST");
  if (operation < 0 && !counts && !tests) builder.unsupported("no such operation");
  builder.ignore({"E", "STRONG", "SYS", "GPU", "CTA", "SM", "RN", "FTZ", "NOFTZ", "FTZ.RN", "EF", "EL", "LU",
                  "EU", "SPIN"});
  const std::string_view type = accept_type(builder);
  builder.ignore({"RN", "FTZ"});
  const Operand* address = builder.find(OperandKind::address);
  if (address == nullptr) builder.unsupported("no address is named");
  // ATOMS.POPC.INC adds the number of lanes that name an address: one for each.
  const bool swaps = operation == kCas || tests;
  Choice choice = choose(counts ? kAdd : swaps ? kCas : static_cast<Operation>(operation), type);
  if (tests) choice.handler = choice.words == 2 ? compare_and_test<U64> : compare_and_test<U32>;
  if (choice.handler == nullptr) builder.unsupported("no such operation on ." + std::string(type));
  const bool wanted = builder.results() > 0 && builder.is_wanted(builder.result(0));
  const Slot dst = wanted ? builder.destination(0, choice.words) : kNoSlot;
  Slot b = kNoSlot;
  Slot c = kNoSlot;
  if (counts) {
    b = builder.constant(1);
  } else if (swaps) {
    // The value to compare with and the new one are two operands, or one behind the other.
    b = builder.source(0, builder.values() > 1 ? choice.words : 2 * choice.words);
    c = builder.values() > 1 ? builder.source(1, choice.words) : next_word(b, choice.words);
  } else {
    b = builder.source(0, choice.words);
  }
  const std::string_view name = builder.name();
  const ptx::Space space = name == "ATOMS"                     ? ptx::Space::shared
                           : name == "ATOMG" || name == "REDG" ? ptx::Space::global
                                                               : ptx::Space::generic;
  Op& op = builder.emit(choice.handler, Class::atomic, wanted ? Flow::yield : Flow::next);
  op.dst = dst;
  op.dst2 = builder.predicate_result(0);
  builder.address(op, *address, space);
  op.src[1] = b;
  op.src[2] = c;
  op.bytes = static_cast<std::uint8_t>(type == "16" || type == "U16" ? 2 : 4 * choice.words);
  op.count = 1;
  // Who comes first shows in what an update gives, in sums of floats and where values are replaced.
  const bool commutes = !(type.find('F') != std::string_view::npos) && operation != kExch && !swaps &&
                        operation != kInc && operation != kDec;
  if (space != ptx::Space::shared && (wanted || !commutes)) op.flags |= kOrdered;
}

constexpr MachineOpcode kOpcodes[] = {
    {"ATOM", decode_atomic}, {"ATOMG", decode_atomic}, {"ATOMS", decode_atomic},
    {"RED", decode_atomic},  {"REDG", decode_atomic},
};

}  // namespace

std::span<const MachineOpcode> machine_atomic_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
